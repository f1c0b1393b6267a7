<?php

/** One request of a WordPress, from the command line: `php run.php step argument...` prints what it found. */

declare(strict_types=1);

[, $step] = $argv;
$_SERVER += ['HTTP_HOST' => parse_url((string) getenv('WORDPRESS_URL'), PHP_URL_HOST), 'REQUEST_URI' => '/'];
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
if ($step === 'install') {
    define('WP_INSTALLING', true);
}
require getenv('WORDPRESS') . '/wp-load.php';

if (!wp_using_ext_object_cache()) {
    throw new LogicException('WordPress does not use the drop-in');
}
$steps = [
    'install' => static function (): int {
        // No letter is sent to the owner.
        eval('function wp_new_blog_notification() {}');
        require_once ABSPATH . 'wp-admin/includes/upgrade.php';
        wp_install('Shop', 'ann', 'ann@example.com', true, '', 'lamp oil');
        switch_theme('plain');
        wp_delete_post(1, true);
        return (int) wp_insert_post(['post_title' => 'Lamp', 'post_content' => 'It shines.', 'post_status' => 'publish', 'meta_input' => ['mark' => 'new']]);
    },
    // The post, and the statements that this took.
    'read' => static function (string $id): string {
        $before = $GLOBALS['wpdb']->num_queries;
        $post = get_post((int) $id);
        return $post->post_title . ' ' . get_post_meta((int) $id, 'mark', true) . ' ' . ($GLOBALS['wpdb']->num_queries - $before);
    },
    'rename' => static fn (string $id, string $title): int => wp_update_post(['ID' => (int) $id, 'post_title' => $title]),
    'mark' => static fn (string $id, string $mark): string => json_encode(update_post_meta((int) $id, 'mark', $mark)),
    'option' => static fn (string $name, string $value): string => json_encode(update_option($name, $value)),
    'see' => static fn (string $name): string => (string) get_option($name, 'none'),
    'remember' => static fn (string $name, string $value): string => json_encode(set_transient($name, $value, 600)),
    'recall' => static fn (string $name): string => (string) get_transient($name),
    // Transients are in the cache alone.
    'transients' => static fn (): int => (int) $GLOBALS['wpdb']->get_var("SELECT count(*) FROM wp_options WHERE option_name LIKE '%transient%recalled%'"),
    'log in' => static fn (string $password): string => is_wp_error($user = wp_authenticate('ann', $password)) ? 'no' : $user->user_login,
    'flush' => static fn (): string => json_encode(wp_cache_flush()),
];
echo $steps[$step](...array_slice($argv, 2)), "\n";

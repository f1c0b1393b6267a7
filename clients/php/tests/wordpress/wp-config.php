<?php

/** The settings of the WordPress that is tested. */

define('DB_NAME', 'wp');
define('DB_USER', 'wp');
define('DB_PASSWORD', 'wp');
define('DB_HOST', '127.0.0.1:' . getenv('WORDPRESS_DATABASE'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('SQLCACHED', ['location' => '127.0.0.1:' . getenv('SQLCACHED_PORT'), 'state' => getenv('TMPDIR') . '/state', 'timeout' => 60]);
define('SQLCACHED_PACKAGE', getenv('WORDPRESS_PACKAGE'));
// Nothing is asked of other servers, and no request begins another one.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_HOME', getenv('WORDPRESS_URL'));
define('WP_SITEURL', getenv('WORDPRESS_URL'));
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $name) {
    define($name, $name);
}
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';

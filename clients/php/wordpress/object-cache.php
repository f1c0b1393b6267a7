<?php

/**
 * WordPress' object cache in sqlcached. Copy this file to `wp-content/object-cache.php`, and the package to
 * `wp-content/sqlcached-cache`.
 *
 * `wp-config.php` may define:
 *
 * | Constant | Meaning | Default |
 * |---|---|---|
 * | `SQLCACHED` | where the daemon is, or an array of options | `127.0.0.1:11211` |
 * | `SQLCACHED_TABLE` | the table of this WordPress | `wordpress` |
 * | `SQLCACHED_OPTIONS` | options of the table, as `['max_memory' => '64 MB']` | none |
 * | `SQLCACHED_PACKAGE` | the folder of the package | `sqlcached-cache` beside this file |
 */

declare(strict_types=1);

use Sqlcached\Cache\WordPress\ObjectCache;

if (!class_exists(ObjectCache::class)) {
    spl_autoload_register(static function (string $class): void {
        $begin = 'Sqlcached\\Cache\\';
        $package = defined('SQLCACHED_PACKAGE') ? SQLCACHED_PACKAGE : __DIR__ . '/sqlcached-cache';
        if (str_starts_with($class, $begin)) {
            require $package . '/src/' . str_replace('\\', '/', substr($class, strlen($begin))) . '.php';
        }
    });
}

function wp_cache_init(): void
{
    $cache = new ObjectCache(
        defined('SQLCACHED') ? SQLCACHED : [],
        defined('SQLCACHED_TABLE') ? SQLCACHED_TABLE : 'wordpress',
        defined('SQLCACHED_OPTIONS') ? SQLCACHED_OPTIONS : [],
    );
    if (function_exists('is_multisite') && is_multisite()) {
        $cache->switchTo((int) get_current_blog_id());
    }
    $GLOBALS['wp_object_cache'] = $cache;
}

/** The one that `wp_cache_init` made. */
function sqlcached_wp_cache(): ObjectCache
{
    return $GLOBALS['wp_object_cache'];
}

/** WordPress takes no group for this one. */
function sqlcached_wp_group(mixed $group): string
{
    return empty($group) ? 'default' : (string) $group;
}

/** Whether something is a key. Whoever gives something else is told, as by WordPress' own cache. */
function sqlcached_wp_is_key(mixed $key, string $caller): bool
{
    if (is_int($key) || is_string($key) && trim($key) !== '') {
        return true;
    }
    if (function_exists('_doing_it_wrong')) {
        _doing_it_wrong($caller, is_string($key) ? 'A key of the cache must not be empty.' : 'A key of the cache is an integer or a string.', '6.1.0');
    }
    return false;
}

/** Keys that are some, of a call with many. */
function sqlcached_wp_keys(array $keys, string $caller): array
{
    return array_values(array_filter($keys, static fn (mixed $key): bool => sqlcached_wp_is_key($key, $caller)));
}

function sqlcached_wp_is_suspended(): bool
{
    return function_exists('wp_suspend_cache_addition') && wp_suspend_cache_addition();
}

function wp_cache_add($key, $data, $group = '', $expire = 0): bool
{
    return sqlcached_wp_is_key($key, __FUNCTION__) && !sqlcached_wp_is_suspended()
        && sqlcached_wp_cache()->add($key, $data, sqlcached_wp_group($group), (int) $expire);
}

function wp_cache_add_multiple(array $data, $group = '', $expire = 0): array
{
    $added = [];
    foreach ($data as $key => $value) {
        $added[$key] = wp_cache_add($key, $value, $group, $expire);
    }
    return $added;
}

function wp_cache_replace($key, $data, $group = '', $expire = 0): bool
{
    return sqlcached_wp_is_key($key, __FUNCTION__) && sqlcached_wp_cache()->replace($key, $data, sqlcached_wp_group($group), (int) $expire);
}

function wp_cache_set($key, $data, $group = '', $expire = 0): bool
{
    return sqlcached_wp_is_key($key, __FUNCTION__) && sqlcached_wp_cache()->set($key, $data, sqlcached_wp_group($group), (int) $expire);
}

function wp_cache_set_multiple(array $data, $group = '', $expire = 0): array
{
    $keys = sqlcached_wp_keys(array_keys($data), __FUNCTION__);
    return sqlcached_wp_cache()->setMany(array_intersect_key($data, array_flip($keys)), sqlcached_wp_group($group), (int) $expire)
        + array_fill_keys(array_keys($data), false);
}

function wp_cache_get($key, $group = '', $force = false, &$found = null): mixed
{
    if (!sqlcached_wp_is_key($key, __FUNCTION__)) {
        $found = false;
        return false;
    }
    return sqlcached_wp_cache()->get($key, sqlcached_wp_group($group), (bool) $force, $found);
}

function wp_cache_get_multiple($keys, $group = '', $force = false): array
{
    $values = sqlcached_wp_cache()->getMany(sqlcached_wp_keys((array) $keys, __FUNCTION__), sqlcached_wp_group($group), (bool) $force);
    $all = [];
    foreach ((array) $keys as $key) {
        $all[$key] = $values[$key] ?? false;
    }
    return $all;
}

function wp_cache_delete($key, $group = ''): bool
{
    return sqlcached_wp_is_key($key, __FUNCTION__) && sqlcached_wp_cache()->delete($key, sqlcached_wp_group($group));
}

function wp_cache_delete_multiple(array $keys, $group = ''): array
{
    return sqlcached_wp_cache()->deleteMany(sqlcached_wp_keys($keys, __FUNCTION__), sqlcached_wp_group($group));
}

function wp_cache_incr($key, $offset = 1, $group = ''): int|false
{
    return sqlcached_wp_is_key($key, __FUNCTION__) ? sqlcached_wp_cache()->increment($key, (int) $offset, sqlcached_wp_group($group)) : false;
}

function wp_cache_decr($key, $offset = 1, $group = ''): int|false
{
    return sqlcached_wp_is_key($key, __FUNCTION__) ? sqlcached_wp_cache()->increment($key, -(int) $offset, sqlcached_wp_group($group)) : false;
}

function wp_cache_flush(): bool
{
    return sqlcached_wp_cache()->flush();
}

function wp_cache_flush_runtime(): bool
{
    return sqlcached_wp_cache()->flushRuntime();
}

function wp_cache_flush_group($group): bool
{
    return sqlcached_wp_cache()->flushGroup(sqlcached_wp_group($group));
}

function wp_cache_supports($feature): bool
{
    return in_array($feature, ['add_multiple', 'set_multiple', 'get_multiple', 'delete_multiple', 'flush_runtime', 'flush_group'], true);
}

function wp_cache_close(): bool
{
    return true;
}

function wp_cache_add_global_groups($groups): void
{
    sqlcached_wp_cache()->share($groups);
}

function wp_cache_add_non_persistent_groups($groups): void
{
    sqlcached_wp_cache()->keepOutOfTable($groups);
}

function wp_cache_switch_to_blog($blog_id): void
{
    if (function_exists('is_multisite') && is_multisite()) {
        sqlcached_wp_cache()->switchTo((int) $blog_id);
    }
}

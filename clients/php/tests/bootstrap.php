<?php

/** What the tests need: this package, the frameworks of Debian's packages, and the frameworks' own tests. */

declare(strict_types=1);

require __DIR__ . '/autoload.php';

foreach (['Psr/SimpleCache', 'Cache/IntegrationTests', 'Symfony/Component/Cache', 'Illuminate/Cache', 'Illuminate/Config', 'Illuminate/Events'] as $package) {
    require_once "$package/autoload.php";
}

require __DIR__ . '/clock.php';

// The frameworks' own tests, which `cargo xtask tools` fetches.
spl_autoload_register(static function (string $class): void {
    $begin = 'Symfony\\Component\\Cache\\Tests\\';
    $folder = getenv('SQLCACHED_SUITES') . '/symfony/src/Symfony/Component/Cache/Tests/';
    if (str_starts_with($class, $begin)) {
        require $folder . str_replace('\\', '/', substr($class, strlen($begin))) . '.php';
    }
});

// Laravel's tests make a store of their own in each test. They get ours in its place.
foreach (['CacheTaggedCacheTest', 'CacheArrayStoreTest'] as $name) {
    $file = getenv('SQLCACHED_SUITES') . "/php-laravel-framework/tests/Cache/$name.php";
    $text = (string) file_get_contents($file);
    $ours = str_replace('use Illuminate\\Cache\\ArrayStore;', 'use Sqlcached\\Cache\\Tests\\EmptyStore as ArrayStore;', $text, $count);
    if ($count !== 1) {
        throw new LogicException("$file does not name the store that it tests");
    }
    // Four tests are of Laravel's own store on Redis.
    eval('?>' . str_replace('function testRedis', 'function ofRedis', $ours));
}

<?php

/** This package by the rules of its own `composer.json`, and the classes of its tests. */

declare(strict_types=1);

error_reporting(E_ALL);

(static function (): void {
    $rules = json_decode((string) file_get_contents(__DIR__ . '/../composer.json'), true)['autoload']['psr-4'];
    $rules['Sqlcached\\Cache\\Tests\\'] = 'tests/';
    spl_autoload_register(static function (string $class) use ($rules): void {
        foreach (array_reverse($rules) as $begin => $folder) {
            $file = __DIR__ . "/../$folder" . str_replace('\\', '/', substr($class, strlen($begin))) . '.php';
            if (str_starts_with($class, $begin) && is_file($file)) {
                require $file;
                return;
            }
        }
    });
})();

<?php

/** What Composer would make for the shop in `examples/symfony`: the shop, this package, and Debian's packages. */

declare(strict_types=1);

require_once __DIR__ . '/autoload.php';

foreach (['Symfony/Component/Cache', 'Symfony/Component/HttpFoundation', 'Symfony/Component/Routing', 'Twig'] as $package) {
    require_once "$package/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/../../../examples/symfony/src/' . str_replace('\\', '/', substr($class, strlen('Shop\\'))) . '.php';
    if (str_starts_with($class, 'Shop\\') && is_file($file)) {
        require $file;
    }
});

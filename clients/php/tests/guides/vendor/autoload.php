<?php

/** What Composer would make for the programs of the guides: this package, and the frameworks of Debian's packages. */

declare(strict_types=1);

require dirname(__DIR__, 2) . '/autoload.php';

foreach (['Psr/SimpleCache', 'Symfony/Component/Cache', 'Illuminate/Cache', 'Illuminate/Config', 'Illuminate/Events'] as $package) {
    require_once "$package/autoload.php";
}

<?php

/** Every request of the shop. `php -S 127.0.0.1:8000 -t public public/index.php` serves it. */

declare(strict_types=1);

use Symfony\Component\HttpFoundation\Request;

(require dirname(__DIR__) . '/bootstrap.php')['pages']->answer(Request::createFromGlobals())->send();

<?php

/** A page of PHP's own web server, whose persistent connections outlive the script. */

declare(strict_types=1);

require __DIR__ . '/../autoload.php';
require_once 'Psr/SimpleCache/autoload.php';

use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Tests\Place;

$cache = new Psr16(Place::options(), 'pages');
[$do, $key] = explode('/', trim((string) $_SERVER['REQUEST_URI'], '/')) + ['', ''];
switch ($do) {
    case 'set':
        echo json_encode($cache->set($key, str_repeat($key, 100_000)));
        break;
    case 'get':
        echo md5((string) $cache->get($key));
        break;
    case 'die':
        // The limit of memory ends the script in the middle of an answer.
        ini_set('memory_limit', (string) (memory_get_usage(true) + 700_000));
        $cache->getMultiple([$key, $key]);
        echo 'alive';
        break;
    case 'late':
        // So does the limit of time, in the middle of a request.
        pcntl_async_signals(true);
        pcntl_signal(SIGALRM, static fn () => exit('stopped'));
        pcntl_alarm(1);
        while (true) {
            $cache->getMultiple([$key, $key . $key]);
        }
}

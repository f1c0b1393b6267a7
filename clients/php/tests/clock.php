<?php

/**
 * The suites' `sleep` moves the clocks: the daemon's, and PHP's where Symfony and this package read it. No test waits.
 */

declare(strict_types=1);

namespace Sqlcached\Cache\Tests {
    /** By how many seconds the clocks were moved. */
    final class Clock
    {
        public static int $moved = 0;
    }

    /** Moves the clocks forward. The daemon sees it with its next tick: a row that ends with the move is gone then. */
    function passed(int $seconds): void
    {
        $stream = stream_socket_client('tcp://127.0.0.1:' . Place::port());
        $ask = static function (string $request) use ($stream): string {
            fwrite($stream, $request);
            return (string) fgets($stream);
        };
        $answers = $ask("ms passed 1 T$seconds\r\nx\r\n") . $ask("debugtime $seconds\r\n");
        if ($answers !== "HD\r\nOK\r\n") {
            throw new \LogicException("the daemon's clock cannot be moved: $answers");
        }
        while ($ask("mg passed\r\n") !== "EN\r\n") {
            usleep(1_000);
        }
        Clock::$moved += $seconds;
    }

    const SLEEP = 'function sleep(int $seconds): int { \Sqlcached\Cache\Tests\passed($seconds); return 0; }';
    const MICROTIME = 'function microtime(bool $number = false) { return \microtime(true) + \Sqlcached\Cache\Tests\Clock::$moved; }';
    const TIME = 'function time(): int { return \time() + \Sqlcached\Cache\Tests\Clock::$moved; }';

    foreach (['Cache\IntegrationTests', 'Symfony\Component\Cache\Tests\Adapter'] as $suite) {
        eval("namespace $suite { " . SLEEP . TIME . ' }');
    }
    foreach (['Symfony\Component\Cache', 'Symfony\Component\Cache\Adapter', 'Symfony\Component\Cache\Traits', 'Symfony\Contracts\Cache'] as $reader) {
        eval("namespace $reader { " . MICROTIME . TIME . ' }');
    }
    eval('namespace Sqlcached\Cache { ' . TIME . ' }');
}

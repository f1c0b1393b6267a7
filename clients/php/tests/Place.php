<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

use Sqlcached\Cache\Client;

/** Where the tests find the daemon that `SQLCACHED_PORT` names, and a daemon of their own that they may kill. */
final class Place
{
    /** Seconds that a call may take: tests run on loaded machines, and few of them are about time. */
    public const PATIENCE = ['timeout' => 60, 'connect_timeout' => 20];

    public static function port(): string
    {
        return getenv('SQLCACHED_PORT') ?: throw new \LogicException('SQLCACHED_PORT names no daemon');
    }

    /** A folder of this run for what cannot be sent. */
    public static function state(): string
    {
        return sys_get_temp_dir() . '/sqlcached-php-tests-' . getmypid();
    }

    /**
     * @param array<string, mixed> $more
     *
     * @return array<string, mixed>
     */
    public static function options(array $more = []): array
    {
        return $more + ['location' => '127.0.0.1:' . self::port(), 'state' => self::state(), 'log' => static fn () => null] + self::PATIENCE;
    }

    /** Statements beside the caches'. */
    public static function sql(string $text, mixed ...$parameters): array|int
    {
        return (new Client(self::options()))->sql($text, ...$parameters);
    }

    public static function rows(string $table): int
    {
        return self::sql("SELECT count(*) AS n FROM \"$table\"")[0]['n'];
    }
}

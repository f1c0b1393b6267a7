<?php

/**
 * Tags in figures, beside Symfony's own adapter on Redis where PHP's extension for Redis is there.
 *
 *     php bench/tags.php 127.0.0.1:11211 "$(pidof sqlcached)" 127.0.0.1:6379 "$(pidof redis-server)"
 *
 * `ROWS=1000000` is the size of the large table.
 */

declare(strict_types=1);

require __DIR__ . '/../tests/guides/vendor/autoload.php';

use Sqlcached\Cache\Client;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Symfony\Component\Cache\Adapter\RedisTagAwareAdapter;
use Symfony\Component\Cache\Adapter\TagAwareAdapterInterface;

[, $location, $daemon, $redis, $redisDaemon] = $argv + ['', '', '', '', ''];
const CALLS = 10_000;
const TAGGED = 1_000;
const MANY = 10_000;
const ROUNDS = 5;

/** Seconds of processor time of a process. */
function spent(int $process): float
{
    $words = explode(' ', substr(strrchr((string) file_get_contents("/proc/$process/stat"), ')'), 2));
    return ((int) $words[11] + (int) $words[12]) / 100;
}

/** Microseconds of processor time a call, of both sides. */
function cost(int $server, int $calls, Closure $work): float
{
    $own = (int) getmypid();
    $before = spent($own) + spent($server);
    for ($number = 0; $number < $calls; $number++) {
        $work($number);
    }
    return (spent($own) + spent($server) - $before) / $calls * 1e6;
}

/** Milliseconds that a call takes: the middle of some rounds, each with its own preparation. */
function lasts(Closure $prepare, Closure $work): float
{
    $times = [];
    for ($round = 0; $round < ROUNDS; $round++) {
        $prepare();
        $begin = hrtime(true);
        $work();
        $times[] = (hrtime(true) - $begin) / 1e6;
    }
    sort($times);
    return $times[intdiv(ROUNDS, 2)];
}

function pool(string $name, TagAwareAdapterInterface $pool, int $server): void
{
    $value = str_repeat('x', 1024);
    $pool->clear();
    $save = static fn (int $number) => $pool->save($pool->getItem("k$number")->set($value)->tag(['product.17', 'shop', 'user.5']));
    printf("%-10s save, 3 tags      %7.1f µs\n", $name, cost($server, CALLS, $save));
    printf("%-10s getItem           %7.1f µs\n", $name, cost($server, CALLS, static fn (int $number) => $pool->getItem("k$number")));
    $fill = static function () use ($pool, $value): void {
        for ($number = 0; $number < TAGGED; $number++) {
            $pool->saveDeferred($pool->getItem("t$number")->set($value)->tag(['many']));
        }
        $pool->commit();
    };
    printf("%-10s tag of 1,000      %7.2f ms\n", $name, lasts($fill, static fn () => $pool->invalidateTags(['many'])));
}

pool('sqlcached', new TagAwareAdapter($location, table: 'bench_symfony'), (int) $daemon);
if ($redis !== '' && extension_loaded('redis')) {
    [$host, $port] = explode(':', $redis);
    $connection = new Redis();
    $connection->connect($host, (int) $port);
    $connection->config('SET', 'maxmemory-policy', 'volatile-lru');
    pool('Redis', new RedisTagAwareAdapter($connection, 'bench'), (int) $redisDaemon);
}

// Rows of a table without a framework: each has a tag that 10,000 rows have, and one of its own.
$client = new Client(['location' => $location, 'timeout' => 600]);
$rows = (int) (getenv('ROWS') ?: 100_000);
$client->sql('DROP TABLE IF EXISTS bench_tags');
$client->sql("CREATE TABLE bench_tags (key TEXT PRIMARY KEY, body ANY, tags TEXT[]) WITH (prefix = 'bench_tags:', value = 'body', tags = 'tags', ordered = on)");
$client->sql('CREATE INDEX bench_tags_tags ON bench_tags USING gin (tags)');
$fill = static function (int $from, int $to) use ($client): void {
    for (; $from < $to; $from += 500) {
        $values = [];
        for ($number = $from; $number < min($from + 500, $to); $number++) {
            array_push($values, "k$number", str_repeat('x', 100), ['t' . intdiv($number, MANY), "own$number"]);
        }
        $places = implode(', ', array_fill(0, intdiv(count($values), 3), '(?, ?, ?)'));
        $client->sql("REPLACE INTO bench_tags (key, body, tags) VALUES $places", ...$values);
    }
};
$fill(0, $rows);
$again = static fn () => $fill(0, MANY);
$hard = lasts($again, static fn () => $client->sql("DELETE FROM bench_tags WHERE tags && ?", ['t0']));
$soft = lasts($again, static fn () => $client->sql("UPDATE bench_tags SET _stale = TRUE WHERE tags && ?", ['t0']));
printf("one tag of %d among %d: hard %.1f ms, soft %.1f ms, ratio %.2f\n", MANY, $rows, $hard, $soft, $soft / $hard);
$client->sql('DROP TABLE bench_tags');

<?php

/**
 * Processor time of calls: of this process and of the daemon, in microseconds a call.
 *
 *     php bench/calls.php 127.0.0.1:11211 "$(pidof sqlcached)"
 */

declare(strict_types=1);

require __DIR__ . '/../tests/guides/vendor/autoload.php';

use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Symfony\TagAwareAdapter;

[, $location, $daemon] = $argv;
const CALLS = 20_000;

/** Seconds of processor time of a process. */
function spent(int $process): float
{
    $words = explode(' ', substr(strrchr((string) file_get_contents("/proc/$process/stat"), ')'), 2));
    return ((int) $words[11] + (int) $words[12]) / 100;
}

function measure(string $name, int $calls, Closure $work): void
{
    global $daemon;
    $ours = (int) getmypid();
    [$client, $server] = [spent($ours), spent((int) $daemon)];
    for ($number = 0; $number < $calls; $number++) {
        $work($number);
    }
    $client = (spent($ours) - $client) / $calls * 1e6;
    $server = (spent((int) $daemon) - $server) / $calls * 1e6;
    printf("%-44s client %6.1f  server %6.1f  sum %7.1f\n", $name, $client, $server, $client + $server);
}

$value = str_repeat('x', 1024);
$tags = ['product.17', 'shop', 'user.5'];
$psr = new Psr16($location, 'bench_psr');
$pool = new TagAwareAdapter($location, table: 'bench_symfony');
$store = new Store($location, '', 'bench_laravel');
$psr->clear();
$pool->clear();
$store->flush();
$keys = array_map(static fn (int $number): string => "k$number", range(0, 99));

measure('PSR-16 set', CALLS, static fn (int $number) => $psr->set("k$number", $value, 600));
measure('PSR-16 get', CALLS, static fn (int $number) => $psr->get("k$number"));
measure('PSR-16 getMultiple of 100', CALLS / 50, static fn () => $psr->getMultiple($keys));
measure('PSR-16 set, 3 tags', CALLS, static fn (int $number) => $psr->set("k$number", $value, 600, $tags));
measure('PSR-16 getOrSet, a hit', CALLS, static fn (int $number) => $psr->getOrSet("k$number", static fn () => $value, 600));
measure('PSR-16 getOrSet, a miss, 3 tags', CALLS / 4, static fn (int $number) => $psr->getOrSet("m$number", static fn () => $value, 600, $tags));
measure('PSR-16 delete', CALLS, static fn (int $number) => $psr->delete("k$number"));
measure('Symfony save, 3 tags', CALLS, static fn (int $number) => $pool->save($pool->getItem("k$number")->set($value)->tag([...$tags, "t$number"])));
measure('Symfony getItem', CALLS, static fn (int $number) => $pool->getItem("k$number"));
measure('Symfony get, a hit', CALLS, static fn (int $number) => $pool->get("k$number", static fn () => $value));
measure('Symfony invalidateTags, one row', CALLS / 4, static fn (int $number) => $pool->invalidateTags(["t$number"]));
measure('Symfony invalidateTags, 15,000 rows', 1, static fn () => $pool->invalidateTags(['shop']));
measure('Laravel put, 3 tags', CALLS, static fn (int $number) => $store->tags($tags)->put("k$number", $value, 600));
measure('Laravel get, 3 tags', CALLS, static fn (int $number) => $store->tags($tags)->get("k$number"));
measure('Laravel lock and release', CALLS / 4, static fn (int $number) => $store->lock("l$number", 10)->get(static fn () => true));

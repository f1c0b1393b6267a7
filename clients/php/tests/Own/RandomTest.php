<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Tests\Place;

/** Random calls, compared with an array. `SEED=7` repeats a run. */
final class RandomTest extends TestCase
{
    private const CALLS = 4_000;

    public function testRandomCallsAreThoseOfAnArray(): void
    {
        $seed = (int) (getenv('SEED') ?: random_int(1, PHP_INT_MAX >> 1));
        fwrite(STDERR, "SEED=$seed\n");
        mt_srand($seed);
        $store = new Store(Place::options(), '', 'random');
        $store->flush();
        /** @var array<string, array{0: mixed, 1: list<string>}> $model */
        $model = [];
        for ($call = 0; $call < self::CALLS; $call++) {
            $this->one($store, $model, "SEED=$seed, call $call");
        }
    }

    /** @param array<string, array{0: mixed, 1: list<string>}> $model */
    private function one(Store $store, array &$model, string $where): void
    {
        $keys = ['a', 'b', 'c d', "\0e", str_repeat('f', 300), "g\xff", 'ab'];
        $tags = ['t', 'u v', 'w,x', '"{}\\', "\xff"];
        $key = $keys[mt_rand(0, count($keys) - 1)];
        $some = array_values(array_filter($tags, static fn (): bool => mt_rand(0, 2) === 0));
        $value = [mt_rand(-5, 5), str_repeat('x', mt_rand(0, 40_000)), "\xfe", ['n' => null], true, 2.5, ''][mt_rand(0, 6)];
        switch (mt_rand(0, 9)) {
            case 0:
            case 1:
                $this->assertTrue($store->put($key, $value, 1000), $where);
                $model[$key] = [$value, []];
                break;
            case 2:
            case 3:
                $this->assertTrue($store->pool->set($key, $value, null, $some), $where);
                $model[$key] = [$value, $some];
                break;
            case 4:
                $this->assertSame(isset($model[$key]), $store->forget($key), $where);
                unset($model[$key]);
                break;
            case 5:
                $this->assertTrue($store->flushTags($some), $where);
                $model = array_filter($model, static fn (array $row): bool => array_intersect($row[1], $some) === []);
                break;
            case 6:
                $number = $model[$key][0] ?? 0;
                $delta = mt_rand(-3, 3);
                $expected = is_int($number) ? $number + $delta : false;
                $this->assertSame($expected, $store->increment($key, $delta), $where);
                if ($expected !== false) {
                    $model[$key] = [$expected, $model[$key][1] ?? []];
                }
                break;
            case 7:
                $this->assertSame(!isset($model[$key]), $store->add($key, $value, 1000), $where);
                $model[$key] ??= [$value, []];
                break;
            case 8:
                if (mt_rand(0, 20) === 0) {
                    $this->assertTrue($store->pool->deletePrefix('a'), $where);
                    unset($model['a'], $model['ab']);
                }
                break;
            case 9:
                $this->assertTrue($store->putMany(['a' => 1, $key => $value], 1000), $where);
                $model['a'] = [1, []];
                $model[$key] = [$value, []];
        }
        $expected = array_combine($keys, array_map(static fn (string $key): mixed => $model[$key][0] ?? null, $keys));
        $this->assertSame($expected, $store->many($keys), $where);
        $this->assertSame($expected[$key], $store->get($key), $where);
    }
}

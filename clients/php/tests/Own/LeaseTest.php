<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Laravel\Repository;
use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Limits;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Tests\Place;
use Sqlcached\Cache\Tests\Processes;
use function Sqlcached\Cache\Tests\passed;

/** One of all who miss a value computes it, and what was computed before an invalidation is not stored. */
final class LeaseTest extends TestCase
{
    private const PROCESSES = 10;

    /** @return iterable<string, array{0: \Closure(\Closure): mixed, 1: \Closure(): mixed, 2: \Closure(): mixed}> */
    public function caches(): iterable
    {
        $psr = static fn (): Psr16 => new Psr16(Place::options(), 'lease');
        yield 'PSR-16' => [
            static fn (\Closure $compute): mixed => $psr()->getOrSet('a', $compute, 100, ['t 1', 'u']),
            static fn (): mixed => $psr()->get('a'),
            static fn (): mixed => $psr()->invalidateTags(['t 1']),
        ];
        yield 'a long key' => [
            static fn (\Closure $compute): mixed => $psr()->getOrSet(str_repeat('k', 400), $compute, 100, ['t 1']),
            static fn (): mixed => $psr()->get(str_repeat('k', 400)),
            static fn (): mixed => $psr()->invalidateTags(['t 1']),
        ];
        $pool = static fn (): TagAwareAdapter => new TagAwareAdapter(Place::options(), 'app', 0, 'lease');
        yield 'Symfony, which knows the tags last' => [
            static fn (\Closure $compute): mixed => $pool()->get('a', static function ($item) use ($compute) {
                $item->tag(['t']);
                return $compute();
            }),
            static fn (): mixed => $pool()->getItem('a')->get(),
            static fn (): mixed => $pool()->invalidateTags(['t']),
        ];
        $laravel = static fn (): Repository => new Repository(new Store(Place::options(), '', 'lease'));
        yield 'Laravel' => [
            static fn (\Closure $compute): mixed => $laravel()->remember('l', 100, $compute),
            static fn (): mixed => $laravel()->get('l'),
            static fn (): mixed => $laravel()->forget('l'),
        ];
        yield 'Laravel with tags' => [
            static fn (\Closure $compute): mixed => $laravel()->tags(['t', 'u'])->rememberForever('l', $compute),
            static fn (): mixed => $laravel()->tags(['u', 't'])->get('l'),
            static fn (): mixed => $laravel()->tags('u')->flush(),
        ];
        yield 'Laravel, flexible' => [
            static fn (\Closure $compute): mixed => $laravel()->flexible('l', [50, 100], $compute),
            static fn (): mixed => $laravel()->get('l'),
            static fn (): mixed => $laravel()->forget('l'),
        ];
    }

    protected function setUp(): void
    {
        (new Psr16(Place::options(), 'lease'))->clear();
    }

    /** A stale value that was only read was never computed again, unless its table had a `lease`. */
    public function testWhoOnlyReadsOrFailsLeavesAStaleValueToTheNext(): void
    {
        $cache = new Psr16(Place::options(), 'lease');
        foreach (['a', 'b'] as $key) {
            $cache->set($key, 'old', 100, ['t']);
        }
        $cache->invalidateTags(['t'], soft: true);
        $this->assertNull($cache->get('a'));
        $this->assertSame(['a' => null, 'b' => null], [...$cache->getMultiple(['a', 'b'])]);
        try {
            $cache->getOrSet('a', static fn () => throw new \RuntimeException('no database'), 100);
            $this->fail('the failure is the caller\'s');
        } catch (\RuntimeException) {
        }
        foreach (['a', 'b'] as $key) {
            $this->assertSame('new', $cache->getOrSet($key, static fn (): string => 'new', 100));
        }
    }

    /** @dataProvider caches */
    public function testOneOfTenComputes(\Closure $remember): void
    {
        $slow = static function (): string {
            usleep(100_000);
            return 'made by ' . getmypid();
        };
        $said = Processes::run(self::PROCESSES, static fn (): string => $remember($slow));
        $this->assertCount(self::PROCESSES, $said);
        $this->assertCount(1, array_unique($said), implode("\n", $said));
        $this->assertStringStartsWith('made by ', $said[0]);
    }

    /** @dataProvider caches */
    public function testWhatWasComputedBeforeAnInvalidationIsNotStored(\Closure $remember, \Closure $read, \Closure $remove): void
    {
        $value = $remember(static function () use ($remove): string {
            $remove();
            return 'old';
        });
        $this->assertSame('old', $value);
        $this->assertNull($read());
        $this->assertSame('new', $remember(static fn (): string => 'new'));
        $this->assertSame('new', $read());
        $remove();
        $this->assertNull($read());
    }

    /** @dataProvider caches */
    public function testWhoFailsLeavesThePlaceToTheNext(\Closure $remember, \Closure $read): void
    {
        try {
            $remember(static fn () => throw new \DomainException('no value'));
            $this->fail('no error');
        } catch (\DomainException) {
        }
        $begin = microtime(true);
        $this->assertSame('next', $remember(static fn (): string => 'next'));
        $this->assertLessThan(Limits::LEASE_WAIT, microtime(true) - $begin);
        $this->assertSame('next', $read());
    }

    public function testSymfonyComputesAgainWhatIsThere(): void
    {
        $pool = new TagAwareAdapter(Place::options(), '', 0, 'lease');
        $tagged = static fn (string $value, ?\Closure $meanwhile = null): \Closure => static function ($item) use ($value, $meanwhile) {
            $item->tag(['new']);
            $meanwhile === null || $meanwhile();
            return $value;
        };
        $this->assertSame('one', $pool->get('a', static fn () => 'one'));
        $this->assertSame('two', $pool->get('a', $tagged('two'), INF));
        $this->assertSame('two', $pool->get('a', $tagged('three')));
        // The tag is new to the row, which is known only when the value is.
        $pool->get('b', static fn () => 'one');
        $this->assertSame('late', $pool->get('b', $tagged('late', static fn () => $pool->invalidateTags(['new'])), INF));
        $this->assertFalse($pool->getItem('b')->isHit());
    }

    public function testASoftInvalidationAsksOneToComputeAgain(): void
    {
        $cache = new Psr16(Place::options(), 'lease');
        $cache->getOrSet('a', static fn () => 'old', 100, ['t']);
        $cache->invalidateTags(['t'], true);
        $seen = $cache->getOrSet('a', static function () use ($cache): string {
            return 'new, while others read ' . $cache->getOrSet('a', static fn () => 'nothing', 100, ['t']);
        }, 100, ['t']);
        $this->assertSame('new, while others read old', $seen);
        $this->assertSame($seen, $cache->get('a'));
    }

    public function testFlexibleComputesAgainBetweenTheTwoTimes(): void
    {
        $cache = new Repository(new Store(Place::options(), '', 'lease'));
        $made = 0;
        $compute = static function () use (&$made, $cache, &$others): int {
            $others = $cache->flexible('f', [50, 100], static fn () => 'nothing');
            return ++$made;
        };
        $this->assertSame(1, $cache->flexible('f', [50, 100], static function () use (&$made): int {
            return ++$made;
        }));
        $this->assertSame(1, $cache->flexible('f', [50, 100], $compute));
        passed(60);
        $this->assertSame(2, $cache->flexible('f', [50, 100], $compute));
        $this->assertSame(1, $others, 'the others read the old value meanwhile');
        $this->assertSame(2, $cache->flexible('f', [50, 100], $compute));
    }
}

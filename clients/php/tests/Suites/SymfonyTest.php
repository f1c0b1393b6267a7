<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Suites;

use Psr\Cache\CacheItemPoolInterface;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Tests\Place;
use Symfony\Component\Cache\PruneableInterface;
use Symfony\Component\Cache\Tests\Adapter\AdapterTestCase;
use Symfony\Component\Cache\Tests\Adapter\TagAwareTestTrait;

/** Symfony's own tests of an adapter, which include those of PSR-6, and of tags. */
final class SymfonyTest extends AdapterTestCase
{
    use TagAwareTestTrait;

    public function createCachePool(int $defaultLifetime = 0, ?string $testMethod = null): CacheItemPoolInterface
    {
        return new TagAwareAdapter(Place::options(), 'suite', $defaultLifetime, 'suite_symfony');
    }

    /** Rows leave by themselves when they expire, so that there is nothing to prune. */
    public function testPrune(): void
    {
        $this->assertNotInstanceOf(PruneableInterface::class, $this->createCachePool());
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Suites;

use Cache\IntegrationTests\SimpleCacheTest;
use Psr\SimpleCache\CacheInterface;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Tests\Place;

/** The integration tests of PSR-16. */
final class Psr16Test extends SimpleCacheTest
{
    public function createSimpleCache(): CacheInterface
    {
        return new Psr16(Place::options(), 'suite_psr16');
    }
}

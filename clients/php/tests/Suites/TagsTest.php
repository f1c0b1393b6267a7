<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Suites;

use Cache\IntegrationTests\TaggableCachePoolTest;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Tests\Place;
use Sqlcached\Cache\Tests\TaggedPool;

/** The integration tests of tags. */
final class TagsTest extends TaggableCachePoolTest
{
    public function createCachePool(): TaggedPool
    {
        return new TaggedPool(new TagAwareAdapter(Place::options(), '', 0, 'suite_tags'));
    }
}

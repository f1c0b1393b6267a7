<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Suites;

use Illuminate\Tests\Cache\CacheTaggedCacheTest;

/** Laravel's own tests of tags. */
final class LaravelTagsTest extends CacheTaggedCacheTest
{
    /** There the tests of Redis end their mocks. */
    protected function tearDown(): void
    {
    }
}

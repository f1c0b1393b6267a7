<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Suites;

use Illuminate\Support\Carbon;
use Illuminate\Tests\Cache\CacheArrayStoreTest;
use Sqlcached\Cache\Tests\EmptyStore;
use function Sqlcached\Cache\Tests\passed;

/** Laravel's own tests of a store and of locks. Those that move PHP's clock move the daemon's here. */
final class LaravelStoreTest extends CacheArrayStoreTest
{
    public function testItemsCanExpire(): void
    {
        $store = new EmptyStore();
        $store->put('foo', 'bar', 10);
        passed(11);
        $this->assertNull($store->get('foo'));
    }

    public function testExpiredKeysAreIncrementedLikeNonExistingKeys(): void
    {
        $store = new EmptyStore();
        $store->put('foo', 999, 10);
        passed(11);
        $this->assertSame(1, $store->increment('foo'));
    }

    public function testCanAcquireLockAgainAfterExpiry(): void
    {
        $lock = (new EmptyStore())->lock('foo', 10);
        $lock->acquire();
        passed(10);
        $this->assertTrue($lock->acquire());
    }

    public function testLockExpirationLowerBoundary(): void
    {
        $lock = (new EmptyStore())->lock('foo', 10);
        $lock->acquire();
        passed(9);
        $this->assertFalse($lock->acquire());
    }

    public function testLockWithNoExpirationNeverExpires(): void
    {
        $lock = (new EmptyStore())->lock('foo');
        $lock->acquire();
        passed(3600 * 24 * 365);
        $this->assertFalse($lock->acquire());
        Carbon::setTestNow(null);
    }

    /** Laravel's store of arrays has `forever` call `put`. */
    public function testStoreItemForeverProperlyStoresInArray(): void
    {
        $store = new EmptyStore();
        $this->assertTrue($store->forever('foo', 'bar'));
        passed(3600 * 24 * 365);
        $this->assertSame('bar', $store->get('foo'));
    }

    public function testValuesAreNotStoredByReference(): void
    {
        $store = new EmptyStore();
        $object = (object) ['foo' => true];
        $store->put('object', $object, 10);
        $object->bar = true;
        $this->assertEquals((object) ['foo' => true], $store->get('object'));
    }

    /** Only a store in the process itself can return the same object. */
    public function testValuesAreStoredByReferenceIfSerializationIsDisabled(): void
    {
        $this->testValuesAreNotStoredByReference();
    }
}

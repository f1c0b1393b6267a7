<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Tests\Place;
use function Sqlcached\Cache\Tests\passed;

/**
 * Tags leave with their rows. On other stores one run of tagged writes left thousands of keys behind, one for each tag
 * and each set of tags.
 */
final class NothingLeftTest extends TestCase
{
    private const WRITES = 10_000;

    public function testNothingIsLeftOfTaggedWrites(): void
    {
        $table = 'nothing_left';
        $psr = new Psr16(Place::options(), $table);
        $pool = new TagAwareAdapter(Place::options(), 'app', 0, $table);
        $store = new Store(Place::options(), 'laravel:', $table);
        $psr->clear();
        for ($number = 0; $number < self::WRITES; $number++) {
            $tags = ["product.$number", "shop." . $number % 7, 'all'];
            $ttl = $number % 2 === 0 ? 60 : null;
            match ($number % 4) {
                0 => $psr->set("k$number", $number, $ttl, $tags),
                1 => $pool->saveDeferred($pool->getItem("k$number")->set($number)->expiresAfter($ttl)->tag($tags)),
                2 => $store->tags($tags)->put("k$number", $number, $ttl),
                3 => $store->tags($tags)->forever("k$number", $number),
            };
        }
        $this->assertTrue($pool->commit());
        $this->assertSame(self::WRITES, Place::rows($table));
        passed(61);
        $this->assertSame(self::WRITES / 2, Place::rows($table));
        $this->assertTrue($pool->invalidateTags(['all']));
        $this->assertTrue($store->tags(['all'])->flush());
        $this->assertSame(0, Place::rows($table));
        $this->assertSame([], Place::sql('SELECT key FROM memcached WHERE key LIKE ?', "%$table%"));
    }
}

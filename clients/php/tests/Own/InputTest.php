<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Definition;
use Sqlcached\Cache\Exception\RefusedException;
use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Table;
use Sqlcached\Cache\Tests\Place;
use Sqlcached\Cache\Values;

/** What nobody expects. */
final class InputTest extends TestCase
{
    public static int $woken = 0;

    protected function setUp(): void
    {
        (new Psr16(Place::options(), 'input'))->clear();
    }

    /** @return iterable<array{0: string}> */
    public function keys(): iterable
    {
        $keys = ['a', '0', ' ', "\0", "a\0b", "a\x1b00b", "\x1b", "\xff", "\xed\xa0\x80", 'ä', "\u{10ffff}", 'a b', "a\r\nmg b v\r\n", '%', "'", '"',
            '(){}/\\@:', '-- x', str_repeat('k', 243), str_repeat('k', 244), str_repeat('k', 245), str_repeat('ä', 200), str_repeat('k', 2_000),
            str_repeat("\0", 2_000), str_repeat("\xff", 100)];
        foreach ($keys as $key) {
            yield bin2hex(substr($key, 0, 8)) . ' ' . strlen($key) => [$key];
        }
    }

    /** @dataProvider keys */
    public function testAnyKey(string $key): void
    {
        $store = new Store(Place::options(), '', 'input');
        $store->forever('k', 'another');
        foreach (['one', "\0\xff", ['x' => null], 17] as $value) {
            $this->assertTrue($store->put($key, $value, 100));
            $this->assertSame($value, $store->get($key));
            $this->assertSame([$key => $value], $store->many([$key]));
        }
        $this->assertSame(20, $store->increment($key, 3));
        $this->assertSame(15, $store->decrement($key, 5));
        $this->assertTrue($store->putMany([$key => 'many', 'k' => 'another'], 100));
        $this->assertSame('many', $store->get($key));
        $this->assertFalse($store->add($key, 'added', 100));
        $this->assertTrue($store->touch($key, 50));
        $this->assertTrue($store->forget($key));
        $this->assertFalse($store->forget($key));
        $this->assertNull($store->get($key));
        $this->assertTrue($store->add($key, 'added', 100));
        $this->assertSame('made', $store->tags('t')->get($key, 'made'));
        $this->assertSame('another', $store->get('k'));
    }

    public function testKeysThatBeginAlike(): void
    {
        $cache = new Psr16(Place::options(), 'input');
        $store = new Store(Place::options(), '', 'input');
        foreach (["p\xff1", "p\xff2", "p\0", 'p', 'q', "p\u{10ffff}", 'o'] as $key) {
            $store->forever($key, 1);
        }
        $this->assertTrue($cache->deletePrefix("p\xff"));
        $this->assertNull($store->get("p\xff1"));
        $this->assertSame(1, $store->get("p\0"));
        $this->assertTrue($cache->deletePrefix('p'));
        $this->assertNull($store->get("p\u{10ffff}"));
        $this->assertSame([1, 1], array_values($store->many(['q', 'o'])));
    }

    /** @return iterable<array{0: list<string>}> */
    public function tags(): iterable
    {
        foreach (['a', '', ' ', 'a,b', 'a b', '"', "'", '{', '}', '{a,"b"}', '\\', 'NULL', "\0", "\n", "\xff", 'ä', '[1]', str_repeat('t', 3_000)] as $tag) {
            yield bin2hex(substr($tag, 0, 8)) . ' ' . strlen($tag) => [[$tag]];
        }
        yield 'many' => [array_map(static fn (int $number): string => "tag $number", range(1, 500))];
        yield 'twice' => [['a', 'a']];
    }

    /**
     * @dataProvider tags
     *
     * @param list<string> $tags
     */
    public function testAnyTag(array $tags): void
    {
        $cache = new Psr16(Place::options(), 'input');
        foreach (['a', str_repeat('k', 400)] as $key) {
            $this->assertTrue($cache->set($key, 'value', 100, $tags));
            $this->assertTrue($cache->set('other', 'value', 100, ['other']));
            $this->assertTrue($cache->invalidateTags(['never']));
            $this->assertSame('value', $cache->get($key));
            $this->assertTrue($cache->invalidateTags([$tags[array_key_last($tags)]]));
            $this->assertNull($cache->get($key));
            $this->assertSame('value', $cache->get('other'));
            $this->assertSame('made', $cache->getOrSet($key, static fn () => 'made', 100, $tags));
            $this->assertTrue($cache->invalidateTags([$tags[0]]));
            $this->assertNull($cache->get($key));
        }
    }

    public function testLaravelsTagsAreAsTheyAreWritten(): void
    {
        $store = new Store(Place::options(), '', 'input');
        $store->tags(['a|b'])->put('k', 1, 100);
        $store->tags(['a', 'b'])->put('k', 2, 100);
        $this->assertSame(1, $store->tags('a|b')->get('k'));
        $this->assertSame(2, $store->tags(['b', 'a'])->get('k'));
        $this->assertNull($store->tags('a')->get('k'));
        $store->tags('a')->flush();
        $this->assertSame(1, $store->tags('a|b')->get('k'));
        $this->assertNull($store->tags(['a', 'b'])->get('k'));
    }

    public function testDeadlines(): void
    {
        $cache = new Psr16(Place::options(), 'input');
        $store = new Store(Place::options(), '', 'input');
        foreach ([0, -1, PHP_INT_MIN] as $ttl) {
            $cache->set('a', 1);
            $this->assertTrue($cache->set('a', 2, $ttl));
            $this->assertNull($cache->get('a'));
            $cache->set('a', 1);
            $this->assertTrue($cache->setMultiple(['a' => 2, 'b' => 3], $ttl));
            $this->assertNull($cache->get('a'));
            $store->forever('a', 1);
            $store->put('a', 2, $ttl);
            $this->assertNull($store->get('a'));
            $this->assertFalse($store->add('a', 1, $ttl));
            $this->assertSame('made', $cache->getOrSet('a', static fn () => 'made', $ttl));
            $this->assertNull($cache->get('a'));
        }
        foreach ([1, 2_592_000, 2_592_001, 2_147_483_647, 4_294_967_296, PHP_INT_MAX] as $ttl) {
            foreach ([[], ['a tag']] as $tags) {
                $this->assertTrue($cache->set('a', $ttl, $ttl, $tags));
                $this->assertSame($ttl, $cache->get('a'));
            }
        }
        $this->assertTrue($cache->set('a', 1, new \DateInterval('P1000Y')));
        $this->assertSame(1, $cache->get('a'));
    }

    public function testObjectsThatAreNotAllowedAreNotMade(): void
    {
        $trusting = new Psr16(Place::options(), 'input');
        $trusting->set('a', new Waking());
        $trusting->set('deep', ['x' => [(object) ['y' => new Waking()]]]);
        $trusting->set('plain', ['x' => 1.5]);
        foreach ([false, [\stdClass::class]] as $classes) {
            self::$woken = 0;
            $careful = new Psr16(Place::options(), 'input', [], $classes);
            $this->assertNull($careful->get('deep'));
            $this->assertSame(['x' => 1.5], $careful->get('plain'));
            $this->assertSame(0, self::$woken);
            $this->assertNull($trusting->get('deep'), 'it was removed');
            $trusting->set('deep', ['x' => [(object) ['y' => new Waking()]]]);
        }
        $this->assertInstanceOf(Waking::class, $trusting->get('a'));
        $this->assertSame(1, self::$woken);
        $this->assertSame('made', (new Psr16(Place::options(), 'input', [], false))->getOrSet('a', static fn () => 'made'));
    }

    public function testBrokenValues(): void
    {
        $table = new Table(Place::options(), new Definition('input'));
        $cache = new Psr16(Place::options(), 'input');
        $pool = new TagAwareAdapter(Place::options(), '', 0, 'input');
        $broken = ['', 'x', 'O:1:"X":0:{}', 'O:8:"stdClass":99999999:{}', 'a:1:{i:0;R:1;}', 'b:0', "a:2:{i:0;i:1;", 'C:11:"ArrayObject":0:{}', "\0"];
        foreach ($broken as $data) {
            $table->set('a', $data, Values::SERIALIZED, null);
            $value = $cache->get('a', 'none');
            $this->assertTrue($value === 'none' || is_array($value) || $value instanceof \ArrayObject, $data);
            $table->set('a', $data, Values::INTEGER, null);
            $this->assertSame('none', $cache->get('a', 'none'), $data);
            $table->set('a', $data, Values::FOREIGN, null);
            $this->assertFalse($pool->getItem('a')->isHit(), $data);
            $this->assertFalse($pool->hasItem('a'), $data);
        }
        // Flags of another client mean bytes.
        $table->set('a', 'x', 0xFFFFFFFF, null);
        $this->assertSame('x', $cache->get('a'));
        $table->set('a', serialize(false), Values::SERIALIZED, null);
        $this->assertFalse($cache->get('a', 'none'));
    }

    /** With some classes allowed an array that contains itself ended never. */
    public function testAnArrayThatContainsItself(): void
    {
        $table = new Table(Place::options(), new Definition('input'));
        $table->set('a', 'a:1:{i:0;a:1:{i:0;R:2;}}', Values::SERIALIZED, null);
        $this->assertSame('none', (new Psr16(Place::options(), 'input', [], false))->get('a', 'none'));
    }

    public function testValuesThatAreTooLarge(): void
    {
        $cache = new Psr16(Place::options(), 'input');
        $cache->set('a', 'old', null, ['t']);
        $this->assertFalse($cache->set('a', str_repeat('x', 2 << 20), null, ['t']));
        $this->assertNull($cache->get('a'));
        $this->assertFalse($cache->set(str_repeat('k', 300), str_repeat('x', 5 << 20)));
        $this->assertFalse($cache->setMultiple(['b' => 'small', 'a' => str_repeat('x', 2 << 20)]));
        $this->assertSame('small', $cache->get('b'));
    }

    public function testATableThatSomebodyDropped(): void
    {
        $cache = new Psr16(Place::options(), 'dropped');
        $cache->set('a', 1, null, ['t']);
        Place::sql('DROP TABLE dropped');
        $this->assertTrue($cache->invalidateTags(['t']));
        $this->assertNull($cache->get('a'));
        $cache->set('a', 2, null, ['t']);
        $this->assertTrue($cache->invalidateTags(['t']));
        $this->assertNull($cache->get('a'));
    }

    public function testATableThatIsNotOfThisCache(): void
    {
        Place::sql('CREATE TABLE IF NOT EXISTS foreign_table (id INT PRIMARY KEY, tags TEXT[])');
        $cache = new Psr16(Place::options(), 'foreign_table');
        $this->assertFalse($cache->set('a', 1));
        $this->assertNull($cache->get('a'));
        $this->expectException(RefusedException::class);
        $this->expectExceptionMessage('lacks prefix=foreign_table:');
        (new Table(Place::options(), new Definition('foreign_table')))->get('a');
    }

    public function testATableThatSomebodyAltered(): void
    {
        $cache = new Psr16(Place::options(), 'altered');
        $cache->set('a', 1, null, ['t']);
        Place::sql('ALTER TABLE altered RENAME COLUMN tags TO labels');
        $table = new Table(Place::options(), new Definition('altered'));
        try {
            $this->expectException(RefusedException::class);
            $this->expectExceptionMessage('lacks tags=tags');
            $table->deleteTags(['t']);
        } finally {
            Place::sql('DROP TABLE altered');
        }
    }

    public function testNamesThatAreNone(): void
    {
        foreach (['', 'a b', 'a"', "a\n", '1a', str_repeat('a', 64)] as $name) {
            try {
                new Definition($name);
                $this->fail($name);
            } catch (\InvalidArgumentException) {
            }
        }
        $this->expectException(\InvalidArgumentException::class);
        new Definition('a', ['ttl = 1) --' => 1]);
    }
}

/** An object that notices when it is made again. */
final class Waking
{
    public function __wakeup(): void
    {
        InputTest::$woken++;
    }
}

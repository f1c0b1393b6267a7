<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Tests\Daemon;
use Sqlcached\Cache\Tests\Place;
use Sqlcached\Cache\WordPress\ObjectCache;

/** The functions of the drop-in without WordPress; with a real one they are in `tests/it/languages/wordpress.rs`. */
final class WordPressTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        define('SQLCACHED', Place::options());
        define('SQLCACHED_TABLE', 'wp');
        require_once __DIR__ . '/../../wordpress/object-cache.php';
    }

    protected function setUp(): void
    {
        wp_cache_init();
        wp_cache_flush();
    }

    /** What this request knows is forgotten: another one begins. */
    private static function nextRequest(): void
    {
        wp_cache_init();
    }

    public function testValuesAreWhatTheyWere(): void
    {
        $post = (object) ['ID' => 17, 'title' => "caf\u{e9}", 'meta' => [1, null, 2.5]];
        $values = ['text', '', "\0\xff", 0, -5, 17, 1.5, true, false, null, [], ['a' => [1]], $post];
        foreach ($values as $number => $value) {
            $this->assertTrue(wp_cache_set("k$number", $value, 'posts'));
        }
        for ($round = 0; $round < 2; $round++) {
            foreach ($values as $number => $value) {
                $this->assertEquals($value, wp_cache_get("k$number", 'posts', false, $found));
                $this->assertSame(gettype($value), gettype(wp_cache_get("k$number", 'posts')));
                $this->assertTrue($found);
            }
            self::nextRequest();
        }
        $this->assertFalse(wp_cache_get('other', 'posts', false, $found));
        $this->assertFalse($found);
    }

    public function testAnObjectThatIsChangedDoesNotChangeTheCache(): void
    {
        $post = (object) ['title' => 'old'];
        wp_cache_set(1, $post, 'posts');
        $post->title = 'new';
        $read = wp_cache_get(1, 'posts');
        $this->assertSame('old', $read->title);
        $read->title = 'other';
        $this->assertSame('old', wp_cache_get('1', 'posts')->title);
    }

    public function testAddAndReplace(): void
    {
        $this->assertFalse(wp_cache_replace('a', 1));
        $this->assertTrue(wp_cache_add('a', 1));
        $this->assertFalse(wp_cache_add('a', 2));
        self::nextRequest();
        $this->assertFalse(wp_cache_add('a', 2, 'default'));
        $this->assertSame(1, wp_cache_get('a', 'default'));
        $this->assertTrue(wp_cache_replace('a', 3));
        $this->assertSame(3, wp_cache_get('a', ''));
        $this->assertTrue(wp_cache_delete('a'));
        $this->assertFalse(wp_cache_delete('a'));
        $this->assertFalse(wp_cache_replace('a', 4));
        $this->assertSame(['a' => true, 5 => true], wp_cache_add_multiple(['a' => 1, 5 => 2], 'more'));
        $this->assertSame(['a' => false, 6 => true], wp_cache_add_multiple(['a' => 1, 6 => 2], 'more'));
    }

    public function testMany(): void
    {
        $this->assertSame(['a' => true, 7 => true], wp_cache_set_multiple(['a' => 'x', 7 => [1]], 'posts'));
        foreach ([false, true] as $force) {
            $this->assertSame(['b' => false, 7 => [1], 'a' => 'x'], wp_cache_get_multiple(['b', 7, 'a'], 'posts', $force));
            self::nextRequest();
        }
        $this->assertSame([], wp_cache_get_multiple([], 'posts'));
        $this->assertSame(['a' => true, 7 => true], wp_cache_delete_multiple(['a', 7], 'posts'));
        $this->assertSame(['a' => false, 7 => false], wp_cache_get_multiple(['a', 7], 'posts'));
    }

    public function testNumbers(): void
    {
        foreach (['stats', 'of this request'] as $group) {
            wp_cache_add_non_persistent_groups(['of this request']);
            $this->assertFalse(wp_cache_incr('n', 1, $group));
            wp_cache_set('n', 5, $group, 600);
            $this->assertSame(6, wp_cache_incr('n', 1, $group));
            $this->assertSame(9, wp_cache_incr('n', 3, $group));
            $this->assertSame(7, wp_cache_decr('n', 2, $group));
            $this->assertSame(0, wp_cache_decr('n', 10, $group));
            $this->assertSame(0, wp_cache_get('n', $group));
            wp_cache_set('n', 'no number', $group);
            $this->assertSame(2, wp_cache_incr('n', 2, $group));
            wp_cache_set('n', [1], $group);
            $this->assertSame(0, wp_cache_decr('n', 2, $group));
        }
        wp_cache_set('n', 5, 'stats', 600);
        wp_cache_incr('n', 1, 'stats');
        $this->assertGreaterThan(500, Place::sql("SELECT _ttl FROM wp WHERE key = 'stats:n'")[0]['_ttl'], 'the deadline stays');
    }

    public function testGroupsAreApart(): void
    {
        foreach (['a', 'a:b', 'a%3Ab', 'a%', ''] as $number => $group) {
            wp_cache_set('k', $number, $group);
        }
        foreach (['a', 'a:b', 'a%3Ab', 'a%', 'default'] as $number => $group) {
            $this->assertSame($number, wp_cache_get('k', $group, true));
        }
        $this->assertTrue(wp_cache_flush_group('a'));
        foreach ([false, true] as $force) {
            $this->assertFalse(wp_cache_get('k', 'a', $force));
            $this->assertSame(1, wp_cache_get('k', 'a:b', $force));
            $this->assertSame(3, wp_cache_get('k', 'a%', $force));
            $this->assertSame(4, wp_cache_get('k', '', $force));
        }
        $this->assertTrue(wp_cache_flush());
        $this->assertSame(0, Place::rows('wp'));
        $this->assertFalse(wp_cache_get('k', 'a:b'));
    }

    public function testAnotherRequestsWriteIsReadByForce(): void
    {
        wp_cache_set('k', 'old', 'options');
        $other = new ObjectCache(Place::options(), 'wp');
        $other->set('k', 'new', 'options');
        $this->assertSame('old', wp_cache_get('k', 'options'));
        $this->assertSame('new', wp_cache_get('k', 'options', true));
        $other->delete('k', 'options');
        $this->assertSame('new', wp_cache_get('k', 'options'));
        $this->assertTrue(wp_cache_flush_runtime());
        $this->assertFalse(wp_cache_get('k', 'options'));
    }

    public function testSitesOfANetwork(): void
    {
        $cache = $GLOBALS['wp_object_cache'];
        $this->assertInstanceOf(ObjectCache::class, $cache);
        wp_cache_add_global_groups(['users']);
        $cache->switchTo(1);
        wp_cache_set('k', 'first', 'posts');
        wp_cache_set('k', 'all', 'users');
        $cache->switchTo(2);
        $this->assertFalse(wp_cache_get('k', 'posts'));
        $this->assertFalse(wp_cache_get('k', 'posts', true));
        $this->assertSame('all', wp_cache_get('k', 'users'));
        wp_cache_set('k', 'second', 'posts');
        $cache->switchTo(1);
        $this->assertSame('first', wp_cache_get('k', 'posts'));
        $this->assertSame('first', wp_cache_get('k', 'posts', true));
        $keys = array_column(Place::sql('SELECT key FROM wp ORDER BY key'), 'key');
        $this->assertSame(['posts:1:k', 'posts:2:k', 'users:k'], $keys);
        wp_cache_flush_group('posts');
        $cache->switchTo(2);
        $this->assertFalse(wp_cache_get('k', 'posts'));
        $this->assertSame('all', wp_cache_get('k', 'users', true));
    }

    public function testGroupsOfThisRequestAreInNoTable(): void
    {
        wp_cache_add_non_persistent_groups('counts');
        $this->assertTrue(wp_cache_set('k', 1, 'counts'));
        $this->assertFalse(wp_cache_add('k', 2, 'counts'));
        $this->assertTrue(wp_cache_add('l', 2, 'counts'));
        $this->assertTrue(wp_cache_replace('l', 3, 'counts'));
        $this->assertSame(['k' => 1, 'l' => 3], wp_cache_get_multiple(['k', 'l'], 'counts', true));
        $this->assertSame(0, Place::rows('wp'));
        $this->assertTrue(wp_cache_delete('k', 'counts'));
        $this->assertFalse(wp_cache_delete('k', 'counts'));
        $this->assertTrue(wp_cache_flush_group('counts'));
        $this->assertFalse(wp_cache_get('l', 'counts'));
    }

    public function testKeysThatAreNone(): void
    {
        foreach (['', '  ', null, 1.5, false, []] as $key) {
            $this->assertFalse(wp_cache_set($key, 1));
            $this->assertFalse(wp_cache_add($key, 1));
            $this->assertFalse(wp_cache_get($key, '', false, $found));
            $this->assertFalse($found);
            $this->assertFalse(wp_cache_delete($key));
            $this->assertFalse(wp_cache_incr($key));
        }
        foreach ([0, '0', ' a ', "\0'\"{}\xff", str_repeat('k', 2_000)] as $key) {
            $this->assertTrue(wp_cache_set($key, 'v'));
            $this->assertSame('v', wp_cache_get($key, '', true));
        }
    }

    public function testDeadlines(): void
    {
        wp_cache_set('a', 1, 'transient', 60);
        wp_cache_set('b', 1, 'transient');
        $rows = array_column(Place::sql('SELECT key, _ttl FROM wp'), '_ttl', 'key');
        $this->assertNull($rows['transient:b']);
        $this->assertEqualsWithDelta(60, $rows['transient:a'], 60);
        $this->assertGreaterThan(0, $rows['transient:a']);
    }

    public function testWhatItSupports(): void
    {
        foreach (['add_multiple', 'set_multiple', 'get_multiple', 'delete_multiple', 'flush_runtime', 'flush_group'] as $feature) {
            $this->assertTrue(wp_cache_supports($feature));
            $this->assertTrue(function_exists("wp_cache_$feature"));
        }
        $this->assertFalse(wp_cache_supports('other'));
        $this->assertTrue(wp_cache_close());
    }

    public function testWithoutADaemonAValueLivesAsLongAsTheRequest(): void
    {
        $daemon = new Daemon();
        try {
            $cache = new ObjectCache($daemon->options(), 'wp');
            $cache->set('k', 'old', 'options');
            $daemon->kill();
            $this->assertFalse($cache->set('k', 'new', 'options'));
            $this->assertSame('new', $cache->get('k', 'options'));
            $this->assertFalse($cache->add('l', 1, 'options'));
            $this->assertSame(1, $cache->get('l', 'options'));
            $this->assertFalse($cache->delete('l', 'options'));
            $this->assertFalse($cache->get('l', 'options'));
            $this->assertFalse($cache->increment('k', 1, 'options'));
            $daemon->start();
            // What could not be removed is read by nobody.
            $this->assertFalse((new ObjectCache($daemon->options(), 'wp'))->get('k', 'options'));
        } finally {
            $daemon->end();
        }
    }
}

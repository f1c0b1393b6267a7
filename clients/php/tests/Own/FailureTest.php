<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Exception\UnavailableException;
use Sqlcached\Cache\Laravel\Repository;
use Sqlcached\Cache\Laravel\Store;
use Sqlcached\Cache\Limits;
use Sqlcached\Cache\Options;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\SessionHandler;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Sqlcached\Cache\Tests\Daemon;
use Sqlcached\Cache\Tests\Door;

/** The daemon is killed and comes back with its rows. */
final class FailureTest extends TestCase
{
    private Daemon $daemon;

    protected function setUp(): void
    {
        $this->daemon = new Daemon();
    }

    protected function tearDown(): void
    {
        $this->daemon->end();
    }

    /** Another process of the application knows what this one could not send from the folder that they share. */
    private function other(string $class, mixed ...$more): object
    {
        return new $class($this->daemon->options(), ...$more);
    }

    /** What this process could not send is sent at most once in a second. */
    private function aSecondLater(): void
    {
        foreach (glob($this->daemon->options()['state'] . '/*.tried') ?: [] as $mark) {
            touch($mark, time() - 10);
        }
    }

    /** Another process has just tried, and this test may take longer than a second. */
    private function anotherTriesNow(): void
    {
        touch(glob($this->daemon->options()['state'] . '/*.unsent')[0] . '.tried', time() + 600);
    }

    public function testAReadIsAMissAndAWriteIsFalseWhileTheDaemonIsAway(): void
    {
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 1);
        $this->daemon->kill();
        $this->assertNull($cache->get('a'));
        $this->assertSame(['a' => 5], $cache->getMultiple(['a'], 5));
        $this->assertFalse($cache->has('a'));
        $this->assertFalse($cache->set('b', 1));
        $this->assertFalse($cache->setMultiple(['b' => 1, 'c' => 2]));
        $this->assertSame('made', $cache->getOrSet('d', static fn () => 'made', 10, ['t']));
        $this->daemon->start();
        $this->assertTrue($cache->set('e', 2));
        $this->aSecondLater();
        $this->assertSame(2, $this->other(Psr16::class)->get('e'));
    }

    public function testARestartBetweenTwoCallsIsNotSeen(): void
    {
        $pool = new TagAwareAdapter($this->daemon->options());
        $store = new Store($this->daemon->options());
        $pool->save($pool->getItem('a')->set('x'));
        $store->forever('n', 5);
        for ($round = 0; $round < 3; $round++) {
            $this->daemon->kill();
            $this->daemon->start();
            $this->assertSame('x', $pool->getItem('a')->get());
            $this->assertSame(6 + $round, $store->increment('n'));
        }
    }

    public function testAColdDaemonHasItsTablesAgain(): void
    {
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 1, 100, ['t']);
        $this->daemon->kill();
        $this->daemon->start('--cold');
        $this->assertNull($cache->get('a'));
        $this->assertTrue($cache->set('a', 2, 100, ['t']));
        $this->assertTrue($cache->invalidateTags(['t']));
        $this->assertNull($cache->get('a'));
    }

    public function testAnInvalidationIsSentAgainToADaemonThatRestarts(): void
    {
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 1, null, ['t']);
        $cache->set('b', 1, null, ['u']);
        // Each attempt opens two connections.
        $door = new Door($this->daemon->port, 2 * (count(Limits::RETRIES)));
        try {
            $other = new Psr16($this->daemon->options(['location' => "127.0.0.1:{$door->port}"]));
            $this->assertTrue($other->invalidateTags(['t']));
            $this->assertNull($other->get('a'));
            $this->assertSame(1, $other->get('b'));
        } finally {
            $door->end();
        }
    }

    public function testWhatCouldNotBeRemovedIsReadByNoProcess(): void
    {
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 'old', null, ['t']);
        $cache->set('b', 'good');
        $cache->set('n', 5, null, ['t']);
        $this->daemon->kill();
        $this->assertFalse($cache->invalidateTags(['t']));
        $this->daemon->start();
        $this->anotherTriesNow();
        $this->assertNull($this->other(Psr16::class)->get('b'), 'the table was read before the removal got through');
        $this->anotherTriesNow();
        $this->assertFalse($this->other(Store::class, '', 'cache')->increment('n'));
        $this->aSecondLater();
        $other = $this->other(Psr16::class);
        $this->assertNull($other->get('a'));
        $this->assertSame('good', $other->get('b'));
        $this->assertSame('good', $cache->get('b'));
        $this->assertSame([], glob($this->daemon->options()['state'] . '/*.unsent'));
    }

    /** @return iterable<string, array{0: \Closure(array): object, 1: \Closure(object): void, 2: \Closure(object): mixed}> */
    public function removals(): iterable
    {
        $psr = static fn (array $options): Psr16 => new Psr16($options);
        $get = static fn (Psr16 $cache): mixed => $cache->get('a');
        yield 'set' => [$psr, static fn (Psr16 $cache) => $cache->set('a', 'new'), $get];
        yield 'setMultiple' => [$psr, static fn (Psr16 $cache) => $cache->setMultiple(['a' => 'new', 'b' => 'new']), $get];
        yield 'delete' => [$psr, static fn (Psr16 $cache) => $cache->delete('a'), $get];
        yield 'deletePrefix' => [$psr, static fn (Psr16 $cache) => $cache->deletePrefix('a'), $get];
        yield 'clear' => [$psr, static fn (Psr16 $cache) => $cache->clear(), $get];
        $symfony = static fn (array $options): TagAwareAdapter => new TagAwareAdapter($options, '', 0, 'cache');
        $item = static fn (TagAwareAdapter $pool): mixed => $pool->getItem('a')->get();
        yield 'deleteItem' => [$symfony, static fn (TagAwareAdapter $pool) => $pool->deleteItem('a'), $item];
        yield 'Symfony invalidateTags' => [$symfony, static fn (TagAwareAdapter $pool) => $pool->invalidateTags(['t']), $item];
        yield 'Symfony clear' => [$symfony, static fn (TagAwareAdapter $pool) => $pool->clear(), $item];
        $laravel = static fn (array $options): Store => new Store($options, '', 'cache');
        $value = static fn (Store $store): mixed => $store->get('a');
        yield 'forget' => [$laravel, static fn (Store $store) => $store->forget('a'), $value];
        yield 'flush' => [$laravel, static fn (Store $store) => $store->flush(), $value];
        yield 'increment' => [$laravel, static fn (Store $store) => $store->increment('a'), $value];
        yield 'Laravel tags' => [$laravel, static fn (Store $store) => $store->tags('t')->flush(), $value];
    }

    /** @dataProvider removals */
    public function testAFailedWriteLeavesNoOldValue(\Closure $make, \Closure $write, \Closure $read): void
    {
        $cache = $make($this->daemon->options());
        $pool = new TagAwareAdapter($this->daemon->options(), '', 0, 'cache');
        $pool->save($pool->getItem('a')->set('old')->tag(['t']));
        $this->daemon->kill();
        $this->assertFalse((bool) $write($cache));
        $this->daemon->start();
        $this->assertNull($read($make($this->daemon->options())));
        $this->aSecondLater();
        $this->assertNull($read($make($this->daemon->options())));
        $this->aSecondLater();
        $this->assertNull($read($cache));
    }

    public function testOnFailureRaiseAndLog(): void
    {
        $logged = [];
        $log = static function (string $level, string $text) use (&$logged): void {
            $logged[] = $level;
        };
        $raising = new Psr16($this->daemon->options(['on_failure' => 'raise', 'log' => $log]));
        $logging = new Psr16($this->daemon->options(['on_failure' => 'log', 'log' => $log]), 'logged');
        $raising->set('a', 'old', null, ['t']);
        $logging->set('a', 'old', null, ['t']);
        $this->daemon->kill();
        try {
            $raising->invalidateTags(['t']);
            $this->fail('no error');
        } catch (UnavailableException) {
        }
        $this->assertFalse($logging->invalidateTags(['t']));
        $this->assertSame(['error', 'error'], $logged);
        $this->daemon->start();
        $this->aSecondLater();
        $this->assertNull((new Psr16($this->daemon->options()))->get('a'));
        $this->assertSame('old', $logging->get('a'));
    }

    public function testManyRemovalsBecomeOne(): void
    {
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 1, null, ['t']);
        $cache->set('b', 1, null, ['u']);
        $this->daemon->kill();
        for ($number = 0; $number < 40; $number++) {
            $cache->invalidateTags(['t', str_repeat('x', 10_000) . $number]);
        }
        $file = glob($this->daemon->options()['state'] . '/*.unsent')[0];
        clearstatcache();
        $this->assertLessThan(262_144, filesize($file));
        $this->daemon->start();
        $this->aSecondLater();
        $other = $this->other(Psr16::class);
        $this->assertNull($other->get('a'));
        $this->assertNull($other->get('b'), 'all rows are removed in the place of many');
        $this->assertTrue($other->set('b', 2));
        $this->assertSame(2, $other->get('b'));
    }

    public function testWithoutAFolderThisProcessKnows(): void
    {
        $cache = new Psr16($this->daemon->options(['state' => '/proc/nowhere']));
        $cache->set('a', 'old', null, ['t']);
        $this->daemon->kill();
        $cache->invalidateTags(['t']);
        $this->daemon->start();
        $this->assertNull($cache->get('a'));
        $this->assertNull($cache->get('a'));
    }

    /** Whoever makes the folder first could have its statements sent by us. */
    public function testAFolderOfSomebodyElseIsNotUsed(): void
    {
        $folder = $this->daemon->options()['state'];
        $cache = new Psr16($this->daemon->options());
        $cache->set('a', 'old', null, ['t']);
        $cache->set('b', 'good');
        mkdir($folder);
        $file = "$folder/cache-" . md5($this->daemon->options()['location']) . '.unsent';
        file_put_contents($file, json_encode(['DELETE FROM cache', [], 'x']) . "\n");
        if (!@chown($folder, 65_534)) {
            // Only root can give a folder away; another user's is the system's own.
            $this->assertFalse((new Options(['state' => '/']))->hasFolder(true));
            return;
        }
        $this->assertSame('good', $this->other(Psr16::class)->get('b'));
        chown($folder, posix_geteuid());
        $this->assertNull($this->other(Psr16::class)->get('b'), 'in a folder of ours the file is one');
    }

    public function testWithoutADaemonNobodyGetsALock(): void
    {
        $store = new Store($this->daemon->options());
        $lock = $store->lock('job', 10);
        $this->daemon->kill();
        $this->assertFalse($lock->get());
        $this->daemon->start();
        $this->assertTrue($lock->get());
        $this->assertFalse($store->lock('job', 10)->get());
        $this->daemon->kill();
        $this->assertFalse($lock->release());
        $this->daemon->start();
        $this->assertTrue($lock->release());
        $this->assertTrue($store->lock('job', 10)->get());
    }

    public function testRememberComputesWithoutADaemon(): void
    {
        $cache = new Repository(new Store($this->daemon->options()));
        $this->daemon->kill();
        $this->assertSame(7, $cache->remember('a', 10, static fn () => 7));
        $this->assertSame(8, $cache->flexible('a', [5, 10], static fn () => 8));
        $pool = new TagAwareAdapter($this->daemon->options());
        $this->assertSame(9, $pool->get('a', static fn () => 9));
    }

    public function testASessionThatCannotBeReadIsNotOverwritten(): void
    {
        $sessions = new SessionHandler($this->daemon->options());
        $this->assertSame('', $sessions->read('s'));
        $this->assertTrue($sessions->write('s', 'cart|i:3;'));
        $this->daemon->kill();
        $this->assertFalse($sessions->read('s'));
        $this->daemon->start();
        $this->assertFalse($sessions->write('s', ''));
        $this->assertSame('cart|i:3;', $sessions->read('s'));
        $this->daemon->kill();
        $this->assertFalse($sessions->write('s', 'cart|i:4;'));
        $this->daemon->start();
        $this->assertSame('cart|i:3;', $sessions->read('s'));
    }

    public function testALogoutThatCouldNotBeSentIsSentBeforeASessionStarts(): void
    {
        $sessions = new SessionHandler($this->daemon->options(), static fn (): string => 'user:2');
        foreach (['phone', 'laptop', 'kept'] as $id) {
            $sessions->read($id);
            $sessions->write($id, 'uid|i:2;');
        }
        $this->daemon->kill();
        try {
            $sessions->logoutEverywhere('user:2', 'kept');
            $this->fail('no error');
        } catch (UnavailableException) {
        }
        $this->daemon->start();
        $this->anotherTriesNow();
        $this->assertFalse($this->other(SessionHandler::class)->read('phone'));
        $this->aSecondLater();
        $other = $this->other(SessionHandler::class);
        $this->assertSame('', $other->read('phone'));
        $this->assertSame('', $other->read('laptop'));
        $this->assertSame('uid|i:2;', $other->read('kept'));
    }
}

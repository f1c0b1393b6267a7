<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use Illuminate\Cache\CacheManager;
use Illuminate\Cache\Events\CacheEvent;
use Illuminate\Cache\RateLimiter;
use Illuminate\Config\Repository as Config;
use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Laravel\Repository;
use Sqlcached\Cache\Laravel\ServiceProvider;
use Sqlcached\Cache\SessionHandler;
use Sqlcached\Cache\Tests\Place;
use function Sqlcached\Cache\Tests\passed;

/** The driver in Laravel's own container. */
final class LaravelTest extends TestCase
{
    private function application(): Container
    {
        $app = new Container();
        $app->instance('config', new Config([
            'cache' => ['default' => 'main', 'prefix' => 'app:', 'stores' => [
                'main' => ['driver' => 'sqlcached', 'connection' => Place::options(), 'table' => 'laravel_main'],
                'plain' => ['driver' => 'sqlcached', 'connection' => Place::options(), 'table' => 'laravel_main', 'prefix' => '', 'classes' => false],
            ]],
            'session' => ['lifetime' => 2, 'sqlcached' => Place::options(), 'table' => 'laravel_sessions'],
        ]));
        $app->singleton('events', static fn (): Dispatcher => new Dispatcher());
        $app->singleton('cache', static fn (Container $app): CacheManager => new CacheManager($app));
        (new ServiceProvider($app))->register();
        return $app;
    }

    public function testTheDriver(): void
    {
        $app = $this->application();
        $cache = $app->make('cache')->store();
        $this->assertInstanceOf(Repository::class, $cache);
        $cache->flush();
        $cache->put('a', ['x'], 60);
        $cache->tags(['t'])->put('b', 'tagged', 60);
        $this->assertSame(['x'], $app->make('cache')->store('plain')->get('app:a'));
        $this->assertSame(1, Place::sql('SELECT count(*) AS n FROM laravel_main WHERE key = ?', 'app:a')[0]['n']);
        $cache->tags('t')->flush();
        $this->assertNull($cache->tags(['t'])->get('b'));
        $this->assertSame(['x'], $cache->get('a'));
        $cache->forever('object', (object) ['x' => 1]);
        $this->assertNull($app->make('cache')->store('plain')->get('app:object'));
    }

    public function testEventsAreThoseOfLaravel(): void
    {
        $app = $this->application();
        $seen = [];
        $app->make('events')->listen('*', static function (string $name, array $events) use (&$seen): void {
            if ($events[0] instanceof CacheEvent) {
                $seen[] = [class_basename($name), $events[0]->key, $events[0]->tags];
            }
        });
        $cache = $app->make('cache')->store();
        $cache->tags(['t'])->flush();
        $cache->tags(['t'])->remember('e', 60, static fn () => 1);
        $cache->tags(['t'])->remember('e', 60, static fn () => 2);
        $this->assertSame([['CacheMissed', 'e', ['t']], ['CacheHit', 'e', ['t']]], $seen);
    }

    public function testRememberStoresNoNull(): void
    {
        $cache = $this->application()->make('cache')->store();
        $cache->flush();
        $this->assertNull($cache->remember('n', 60, static fn () => null));
        $this->assertSame(5, $cache->remember('n', static fn (int $value) => $value * 10, static fn () => 5));
        $this->assertSame(50, Place::sql('SELECT _ttl FROM laravel_main WHERE key = ?', 'app:n')[0]['_ttl']);
        $this->assertSame(5, $cache->rememberForever('n', static fn () => 6));
    }

    public function testOneStoreOfTwoPrefixesIsFlushedAlone(): void
    {
        $manager = $this->application()->make('cache');
        $manager->store('plain')->forever('other:a', 1);
        $manager->store('main')->forever('a', 2);
        $manager->store('main')->flush();
        $this->assertNull($manager->store('main')->get('a'));
        $this->assertSame(1, $manager->store('plain')->get('other:a'));
    }

    public function testTheRateLimiter(): void
    {
        $limiter = new RateLimiter($this->application()->make('cache')->store());
        $limiter->clear('login');
        foreach ([1, 2, 3] as $hits) {
            $this->assertFalse($limiter->tooManyAttempts('login', 3));
            $this->assertSame($hits, $limiter->hit('login', 60));
        }
        $this->assertTrue($limiter->tooManyAttempts('login', 3));
        passed(61);
        $this->assertSame(0, $limiter->attempts('login'));
    }

    public function testFlushReleasesNoLock(): void
    {
        $store = $this->application()->make('cache')->store()->getStore();
        $lock = $store->lock('job', 60);
        $this->assertTrue($lock->get());
        $store->flush();
        $this->assertFalse($store->lock('job', 60)->get());
        $this->assertTrue($store->restoreLock('job', $lock->owner())->release());
        $this->assertTrue($lock->get(static fn () => true));
        $this->assertTrue($store->lock('job')->get());
        $store->lock('job')->forceRelease();
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

use Illuminate\Cache\Events\CacheHit;
use Illuminate\Cache\Events\CacheMissed;

/**
 * The calls of Laravel's cache that compute, by lease: of all processes that miss a value one computes it, and one that
 * was invalidated meanwhile is not stored.
 */
trait Remembers
{
    public function remember($key, $ttl, \Closure $callback): mixed
    {
        return $this->computed($key, $callback, fn (mixed $value): ?int => $this->lifetime($ttl, $value));
    }

    public function rememberForever($key, \Closure $callback): mixed
    {
        return $this->computed($key, $callback, null);
    }

    public function sear($key, \Closure $callback): mixed
    {
        return $this->rememberForever($key, $callback);
    }

    /**
     * The value, which is fresh for the first number of seconds. After that, until the second, one caller computes it
     * again while the others get the old one.
     *
     * @param array{0: \DateTimeInterface|\DateInterval|int, 1: \DateTimeInterface|\DateInterval|int} $ttl
     */
    public function flexible($key, $ttl, $callback, $lock = null, $alwaysDefer = false): mixed
    {
        [$fresh, $whole] = [(int) $this->lifetime($ttl[0]), (int) $this->lifetime($ttl[1])];
        return $this->computed($key, \Closure::fromCallable($callback), static fn (): int => $whole, max(0, $whole - $fresh));
    }

    private function computed(mixed $key, \Closure $callback, ?\Closure $seconds, int $refresh = 0): mixed
    {
        $store = $this->store;
        assert($store instanceof Store);
        $made = false;
        $compute = static function () use ($callback, &$made): mixed {
            $made = true;
            return $callback();
        };
        // As everywhere in Laravel null is no value, and is not stored.
        $ttl = static fn (mixed $value): ?int => $value === null ? 0 : ($seconds === null ? null : $seconds($value));
        $value = $store->remember($this->itemKey($key), $compute, $ttl, $refresh);
        $this->event($made ? self::made(CacheMissed::class, (string) $key) : self::made(CacheHit::class, (string) $key, $value));
        return $value;
    }

    /** The seconds of a deadline as Laravel spells it, or of a function that returns one. */
    private function lifetime(mixed $ttl, mixed $value = null): ?int
    {
        $ttl = $ttl instanceof \Closure ? $ttl($value) : $ttl;
        return $ttl === null ? null : (int) $this->getSeconds($ttl);
    }

    /** Later versions of Laravel have the store's name before the key. */
    private static function made(string $event, string $key, mixed ...$more): object
    {
        $first = (new \ReflectionMethod($event, '__construct'))->getParameters()[0]->getName();
        return $first === 'storeName' ? new $event(null, $key, ...$more) : new $event($key, ...$more);
    }
}

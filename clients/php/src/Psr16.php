<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Psr\SimpleCache\CacheInterface;
use Sqlcached\Cache\Exception\InvalidArgumentException;

/**
 * The cache of PSR-16, with tags and leases beyond it.
 *
 * ```php
 * $cache = new Psr16('127.0.0.1:11211');
 * $cache->set('product.17', $product, 600, ['product:17']);
 * $cache->invalidateTags(['product:17']);
 * ```
 */
final class Psr16 implements CacheInterface
{
    private readonly Pool $pool;

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param array<string, scalar> $options of the table
     * @param bool|list<class-string> $classes whose objects may be made of what the cache has
     */
    public function __construct(
        string|array|Options $connection = [],
        string $table = 'cache',
        array $options = [],
        bool|array $classes = true,
    ) {
        $this->pool = Pool::of($connection, $table, $options, $classes);
    }

    public function get($key, $default = null): mixed
    {
        return $this->pool->get(self::key($key), $default);
    }

    /** @param list<string> $tags names by which `invalidateTags` removes the value */
    public function set($key, $value, $ttl = null, array $tags = []): bool
    {
        return $this->pool->set(self::key($key), $value, self::seconds($ttl), $tags);
    }

    public function delete($key): bool
    {
        return $this->deleteMultiple([$key]);
    }

    public function clear(): bool
    {
        return $this->pool->clear();
    }

    /** @return array<string, mixed> */
    public function getMultiple($keys, $default = null): iterable
    {
        $keys = array_map(self::key(...), self::listed($keys));
        $found = $this->pool->getMany($keys);
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = array_key_exists($key, $found) ? $found[$key] : $default;
        }
        return $values;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        if (!is_iterable($values)) {
            throw new InvalidArgumentException('values are an array or Traversable');
        }
        $wanted = [];
        foreach ($values as $key => $value) {
            // PHP makes a number of the key '17' of an array.
            $wanted[self::key(is_int($key) ? (string) $key : $key)] = $value;
        }
        return $this->pool->setMany($wanted, self::seconds($ttl));
    }

    public function deleteMultiple($keys): bool
    {
        return $this->pool->deleteMany(array_map(self::key(...), self::listed($keys)));
    }

    public function has($key): bool
    {
        return $this->pool->has(self::key($key));
    }

    // Beyond PSR-16.

    /**
     * The value, or else what a function returns, which is stored. Of all processes that miss it at once, one computes it.
     *
     * @param list<string> $tags
     * @param int $refreshBefore seconds before the deadline in which one caller computes the value again
     */
    public function getOrSet(string $key, callable $compute, mixed $ttl = null, array $tags = [], int $refreshBefore = 0): mixed
    {
        return $this->pool->remember(self::key($key), $compute(...), self::seconds($ttl), $tags, $refreshBefore);
    }

    /**
     * Removes all values with one of these tags. With `$soft` they become stale: `getOrSet` returns the old value to all
     * callers but one, who computes it again.
     *
     * @param list<string> $tags
     */
    public function invalidateTags(array $tags, bool $soft = false): bool
    {
        return $this->pool->invalidateTags($tags, $soft);
    }

    /** Removes all values whose key begins so. */
    public function deletePrefix(string $prefix): bool
    {
        return $this->pool->deletePrefix($prefix);
    }

    private static function key(mixed $key): string
    {
        if (!is_string($key) || $key === '') {
            throw new InvalidArgumentException('a key is a text that is not empty');
        }
        if (strpbrk($key, '{}()/\@:') !== false) {
            throw new InvalidArgumentException("the key '$key' has one of the characters {}()/\\@:");
        }
        return $key;
    }

    /** @return list<mixed> */
    private static function listed(mixed $keys): array
    {
        if (!is_iterable($keys)) {
            throw new InvalidArgumentException('keys are an array or Traversable');
        }
        return is_array($keys) ? array_values($keys) : iterator_to_array($keys, false);
    }

    private static function seconds(mixed $ttl): ?int
    {
        if ($ttl === null || is_int($ttl)) {
            return $ttl;
        }
        if ($ttl instanceof \DateInterval) {
            $now = new \DateTimeImmutable('@0');
            return $now->add($ttl)->getTimestamp();
        }
        throw new InvalidArgumentException('a ttl is null, a number of seconds or a DateInterval');
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\WordPress;

use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Options;
use Sqlcached\Cache\Pool;

/**
 * WordPress' object cache: groups of values, in a table for all processes, and in this process for one request.
 *
 * A row's key is `group:key`, in a network of sites `group:site:key`, so that a group is removed by the beginning of its
 * keys. While the daemon is away a value lives as long as the request, as in WordPress without an object cache.
 */
final class ObjectCache
{
    /** Plugins that show how the cache does read these two. */
    public int $cache_hits = 0;
    public int $cache_misses = 0;

    private readonly Pool $pool;

    /**
     * What this request has read and written, by group and by key.
     *
     * @var array<string, array<string, mixed>>
     */
    private array $local = [];

    /**
     * Groups that all sites of a network share.
     *
     * @var array<string, true>
     */
    private array $shared = [];

    /**
     * Groups whose values are of this request alone.
     *
     * @var array<string, true>
     */
    private array $ofRequest = [];

    /** How keys of this site begin; empty where there is only one. */
    private string $site = '';

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param array<string, scalar> $options of the table
     */
    public function __construct(string|array|Options $connection = [], string $table = 'wordpress', array $options = [])
    {
        $this->pool = Pool::of($connection, $table, $options, true);
    }

    /** From now on keys are of this site of a network. */
    public function switchTo(int $site): void
    {
        $this->site = "$site:";
    }

    /** @param string|list<string> $groups */
    public function share(string|array $groups): void
    {
        $this->shared += array_fill_keys((array) $groups, true);
    }

    /** @param string|list<string> $groups */
    public function keepOutOfTable(string|array $groups): void
    {
        $this->ofRequest += array_fill_keys((array) $groups, true);
    }

    /** With `$force` what another process has written since is read. */
    public function get(int|string $key, string $group, bool $force = false, ?bool &$found = null): mixed
    {
        return $this->getMany([$key], $group, $force, $found)[$key];
    }

    /**
     * The values by key; `false` for what is not there.
     *
     * @param list<int|string> $keys
     *
     * @return array<int|string, mixed>
     */
    public function getMany(array $keys, string $group, bool $force = false, ?bool &$found = null): array
    {
        $place = new Group($group, $this->siteOf($group));
        $isOfRequest = isset($this->ofRequest[$group]);
        $wanted = [];
        foreach ($keys as $key) {
            if (!$isOfRequest && ($force || !$this->has($place, $key))) {
                $wanted[$place->row($key)] = $key;
            }
        }
        // PHP makes numbers of keys that look like some; these have a colon.
        foreach ($wanted === [] ? [] : $this->pool->getMany(array_keys($wanted)) as $row => $value) {
            $this->hold($place, $wanted[$row], $value);
            unset($wanted[$row]);
        }
        foreach ($wanted as $key) {
            $this->forget($place, $key);
        }
        $values = [];
        foreach ($keys as $key) {
            $found = $this->has($place, $key);
            $found ? $this->cache_hits++ : $this->cache_misses++;
            $values[$key] = $found ? self::copy($this->local[$place->name][$place->key($key)]) : false;
        }
        return $values;
    }

    public function set(int|string $key, mixed $value, string $group, int $seconds = 0): bool
    {
        $place = new Group($group, $this->siteOf($group));
        $this->hold($place, $key, $value);
        return isset($this->ofRequest[$group]) || $this->pool->set($place->row($key), $value, self::ttl($seconds));
    }

    /**
     * Stores values in few round trips; of each whether it was stored.
     *
     * @param array<int|string, mixed> $values
     *
     * @return array<int|string, bool>
     */
    public function setMany(array $values, string $group, int $seconds = 0): array
    {
        $place = new Group($group, $this->siteOf($group));
        $rows = [];
        foreach ($values as $key => $value) {
            $this->hold($place, $key, $value);
            $rows[$place->row($key)] = $value;
        }
        $done = isset($this->ofRequest[$group]) || $rows === [] || $this->pool->setMany($rows, self::ttl($seconds));
        return array_fill_keys(array_keys($values), $done);
    }

    /** Stores a value if there is none. */
    public function add(int|string $key, mixed $value, string $group, int $seconds = 0): bool
    {
        $place = new Group($group, $this->siteOf($group));
        if ($this->has($place, $key)) {
            return false;
        }
        if (isset($this->ofRequest[$group])) {
            $this->hold($place, $key, $value);
            return true;
        }
        $added = $this->pool->add($place->row($key), $value, self::ttl($seconds));
        if ($added || !$this->pool->has($place->row($key))) {
            $this->hold($place, $key, $value);
        }
        return $added;
    }

    /** Stores a value if there is one. */
    public function replace(int|string $key, mixed $value, string $group, int $seconds = 0): bool
    {
        $this->get($key, $group, true, $found);
        return $found && $this->set($key, $value, $group, $seconds);
    }

    /** Removes a value; whether it was there. */
    public function delete(int|string $key, string $group): bool
    {
        $place = new Group($group, $this->siteOf($group));
        $was = $this->has($place, $key);
        $this->forget($place, $key);
        return isset($this->ofRequest[$group]) ? $was : $this->pool->delete($place->row($key));
    }

    /**
     * Removes values in one round trip; whether that got through.
     *
     * @param list<int|string> $keys
     *
     * @return array<int|string, bool>
     */
    public function deleteMany(array $keys, string $group): array
    {
        $place = new Group($group, $this->siteOf($group));
        foreach ($keys as $key) {
            $this->forget($place, $key);
        }
        $done = isset($this->ofRequest[$group]) || $keys === [] || $this->pool->deleteMany(array_map($place->row(...), $keys));
        return array_fill_keys($keys, $done);
    }

    /** Adds to a number that is there, which does not fall below 0; what is no number counts as 0. */
    public function increment(int|string $key, int $delta, string $group): int|false
    {
        $place = new Group($group, $this->siteOf($group));
        if (!isset($this->ofRequest[$group])) {
            $number = $this->pool->adjust($place->row($key), $delta);
            $number === false ? $this->forget($place, $key) : $this->hold($place, $key, $number);
            return $number;
        }
        if (!$this->has($place, $key)) {
            return false;
        }
        $value = $this->local[$place->name][$place->key($key)];
        $number = max(0, (is_numeric($value) ? (int) $value : 0) + $delta);
        $this->hold($place, $key, $number);
        return $number;
    }

    /** Removes the values of all groups and sites. */
    public function flush(): bool
    {
        $this->local = [];
        return $this->pool->clear();
    }

    /** Removes the values of a group, of all sites. */
    public function flushGroup(string $group): bool
    {
        $place = new Group($group, '');
        unset($this->local[$place->name]);
        return isset($this->ofRequest[$group]) || $this->pool->deletePrefix($place->name);
    }

    /** Forgets what this request has read and written. */
    public function flushRuntime(): bool
    {
        $this->local = [];
        return true;
    }

    private function siteOf(string $group): string
    {
        return isset($this->shared[$group]) ? '' : $this->site;
    }

    private function has(Group $place, int|string $key): bool
    {
        return array_key_exists($place->key($key), $this->local[$place->name] ?? []);
    }

    private function hold(Group $place, int|string $key, mixed $value): void
    {
        $this->local[$place->name][$place->key($key)] = self::copy($value);
    }

    private function forget(Group $place, int|string $key): void
    {
        unset($this->local[$place->name][$place->key($key)]);
    }

    /** Whoever changes an object that he was given does not change the cache. */
    private static function copy(mixed $value): mixed
    {
        return is_object($value) ? clone $value : $value;
    }

    /** WordPress says 0 for no deadline. */
    private static function ttl(int $seconds): ?int
    {
        return $seconds === 0 ? null : $seconds;
    }
}

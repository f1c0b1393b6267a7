<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

use Illuminate\Cache\TaggableStore;
use Illuminate\Contracts\Cache\LockProvider;
use Sqlcached\Cache\Definition;
use Sqlcached\Cache\Options;
use Sqlcached\Cache\Pool;
use Sqlcached\Cache\Table;

/**
 * A store of Laravel's whose tags are a column: they leave with their row. A tagged `get` reads no versions of tags, and
 * `flush` of tags is one statement.
 */
class Store extends TaggableStore implements LockProvider
{
    public readonly Pool $pool;
    private readonly Table $locks;

    /**
     * The tags of what this view of the store writes.
     *
     * @var list<string>
     */
    private array $tags = [];

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param array<string, scalar> $options of the table
     * @param bool|list<class-string> $classes whose objects may be made of what the cache has
     */
    public function __construct(
        string|array|Options $connection = [],
        private readonly string $prefix = '',
        string $table = 'laravel',
        array $options = [],
        bool|array $classes = true,
    ) {
        $this->pool = Pool::of($connection, $table, $options, $classes);
        // To flush the cache releases no lock, and neither does memory that is short.
        $definition = new Definition("{$table}_locks", ['flush' => false, 'min_memory' => '1 MB']);
        $this->locks = new Table($this->pool->table->options, $definition, false);
    }

    public function get($key): mixed
    {
        return $this->pool->get($this->key($key));
    }

    /** @return array<string, mixed> */
    public function many(array $keys): array
    {
        $found = $this->pool->getMany(array_map($this->key(...), array_values($keys)));
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = $found[$this->key($key)] ?? null;
        }
        return $values;
    }

    public function put($key, $value, $seconds): bool
    {
        return $this->pool->set($this->key($key), $value, (int) $seconds, $this->tags);
    }

    public function putMany(array $values, $seconds): bool
    {
        $wanted = [];
        foreach ($values as $key => $value) {
            $wanted[$this->key($key)] = $value;
        }
        return $this->pool->setMany($wanted, (int) $seconds, $this->tags);
    }

    public function add($key, $value, $seconds): bool
    {
        return $this->pool->add($this->key($key), $value, (int) $seconds, $this->tags);
    }

    public function increment($key, $value = 1): int|float|bool
    {
        return $this->pool->increment($this->key($key), (int) $value, $this->tags);
    }

    public function decrement($key, $value = 1): int|float|bool
    {
        return $this->pool->increment($this->key($key), -(int) $value, $this->tags);
    }

    public function forever($key, $value): bool
    {
        return $this->pool->set($this->key($key), $value, null, $this->tags);
    }

    public function touch($key, $seconds): bool
    {
        return $this->pool->touch($this->key($key), (int) $seconds);
    }

    public function forget($key): bool
    {
        return $this->pool->delete($this->key($key));
    }

    public function flush(): bool
    {
        return $this->prefix === '' ? $this->pool->clear() : $this->pool->deletePrefix($this->prefix);
    }

    public function getPrefix(): string
    {
        return $this->prefix;
    }

    public function tags($names): TaggedCache
    {
        $names = is_array($names) ? $names : func_get_args();
        $tags = array_values(array_map(static fn (mixed $name): string => (string) $name, $names));
        $view = clone $this;
        $view->tags = $tags;
        return new TaggedCache($view, new TagSet($view, $tags));
    }

    /**
     * Removes all values with one of these tags.
     *
     * @param list<string> $tags
     */
    public function flushTags(array $tags, bool $soft = false): bool
    {
        return $this->pool->invalidateTags($tags, $soft);
    }

    /** The value, or else what one caller of all processes computes, while the others wait. */
    public function remember(string $key, \Closure $compute, int|\Closure|null $seconds, int $refresh = 0): mixed
    {
        return $this->pool->remember($this->key($key), $compute, $seconds, $this->tags, $refresh);
    }

    public function lock($name, $seconds = 0, $owner = null): Lock
    {
        return new Lock($this->locks, $this->prefix . $name, (int) $seconds, $owner);
    }

    public function restoreLock($name, $owner): Lock
    {
        return $this->lock($name, 0, $owner);
    }

    private function key(mixed $key): string
    {
        return $this->prefix . $key;
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * A table with PHP's values in it. While the daemon is away a read is a miss and a write is `false`; what does not load
 * is a miss, and is removed.
 */
final class Pool
{
    public function __construct(public readonly Table $table, private readonly Values $values)
    {
    }

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param array<string, scalar> $options of the table
     * @param bool|list<class-string> $classes whose objects may be made of what the cache has
     */
    public static function of(string|array|Options $connection, string $table, array $options, bool|array $classes): self
    {
        return new self(new Table($connection, new Definition($table, $options)), new Values($classes));
    }

    public function get(string $key, mixed $default = null): mixed
    {
        $item = $this->table->attempt(fn (): ?Item => $this->table->get($key), null);
        return $item === null ? $default : $this->loaded($key, $item, $default);
    }

    /**
     * The values that are there, by key.
     *
     * @param list<string> $keys
     *
     * @return array<string, mixed>
     */
    public function getMany(array $keys): array
    {
        $missing = new \stdClass();
        $found = [];
        foreach ($this->table->attempt(fn (): array => $this->table->getMany($keys), []) as $key => $item) {
            $value = $this->loaded((string) $key, $item, $missing);
            if ($value !== $missing) {
                $found[$key] = $value;
            }
        }
        return $found;
    }

    private function loaded(string $key, Item $item, mixed $default): mixed
    {
        try {
            return $this->values->load($item->data, $item->flags);
        } catch (\UnexpectedValueException $why) {
            $this->table->drop($key, $why);
            return $default;
        }
    }

    public function has(string $key): bool
    {
        return $this->table->attempt(fn (): bool => $this->table->get($key) !== null, false);
    }

    /**
     * Stores a value; one whose time has come is removed.
     *
     * @param list<string> $tags
     */
    public function set(string $key, mixed $value, ?int $ttl, array $tags = []): bool
    {
        if ($ttl !== null && $ttl <= 0) {
            $this->delete($key);
            return true;
        }
        [$data, $flags] = $this->values->dump($value);
        return $this->table->attempt(fn (): bool => $this->table->set($key, $data, $flags, $ttl, $tags), false);
    }

    /**
     * Stores a value if there is none.
     *
     * @param list<string> $tags
     */
    public function add(string $key, mixed $value, ?int $ttl, array $tags = []): bool
    {
        if ($ttl !== null && $ttl <= 0) {
            return false;
        }
        [$data, $flags] = $this->values->dump($value);
        return $this->table->attempt(function () use ($key, $data, $flags, $ttl, $tags): bool {
            if ($this->table->set($key, $data, $flags, $ttl, $tags, 'E')) {
                return true;
            }
            // The place of a value that is being computed is no value.
            $item = $this->table->item($key);
            return $item?->isReserved() && $this->table->set($key, $data, $flags, $ttl, $tags, 'S', $item->cas);
        }, false);
    }

    /**
     * Stores values.
     *
     * @param array<string, mixed> $values
     * @param list<string> $tags
     */
    public function setMany(array $values, ?int $ttl, array $tags = []): bool
    {
        if ($ttl !== null && $ttl <= 0) {
            return $this->deleteMany(array_map(strval(...), array_keys($values)));
        }
        $rows = array_map(fn (mixed $value): array => [...$this->values->dump($value), $tags], $values);
        return $this->table->attempt(fn (): bool => $this->table->setMany($rows, $ttl) === [], false);
    }

    /** Removes a value; whether it was there. */
    public function delete(string $key): bool
    {
        return $this->table->attempt(fn (): bool => $this->table->delete($key), false);
    }

    /**
     * Removes values; whether that got through.
     *
     * @param list<string> $keys
     */
    public function deleteMany(array $keys): bool
    {
        return $this->removed(fn (): ?int => $this->table->deleteMany($keys) ? 1 : null);
    }

    /** Empties the table, and no other. */
    public function clear(): bool
    {
        return $this->removed(fn (): ?int => $this->table->clear() ? 1 : null);
    }

    /**
     * Removes all values with one of these tags; with `$soft` they become stale. Whether that got through.
     *
     * @param list<string> $tags
     */
    public function invalidateTags(array $tags, bool $soft = false): bool
    {
        return $this->removed(fn (): ?int => $this->table->deleteTags($tags, $soft));
    }

    /** Removes all values whose key begins so. */
    public function deletePrefix(string $prefix): bool
    {
        return $this->removed(fn (): ?int => $this->table->deletePrefix($prefix));
    }

    /** @param \Closure(): ?int $work */
    private function removed(\Closure $work): bool
    {
        if ($this->table->options->onFailure === OnFailure::Raise) {
            return $work() !== null;
        }
        return $this->table->attempt(fn (): bool => $work() !== null, false);
    }

    /**
     * Adds to a number; false if there is no number, or no daemon.
     *
     * @param list<string> $tags
     */
    public function increment(string $key, int $delta, array $tags = []): int|float|false
    {
        return $this->table->attempt(fn (): int|float|null => $this->table->add($key, $delta, $tags), null) ?? false;
    }

    /** Adds to a number that is there, which does not fall below 0; false if there is none, or no daemon. */
    public function adjust(string $key, int $delta): int|false
    {
        return $this->table->attempt(fn (): ?int => $this->table->adjust($key, $delta), null) ?? false;
    }

    public function touch(string $key, ?int $ttl): bool
    {
        if ($ttl !== null && $ttl <= 0) {
            return $this->delete($key);
        }
        return $this->table->attempt(fn (): bool => $this->table->touch($key, $ttl), false);
    }

    /**
     * The value, or else what a function returns, which is stored.
     *
     * Of all processes that miss the value at once, one calls the function; the others wait for it, or get the stale
     * value if there is one. A value whose key or tag was invalidated meanwhile is returned and not stored.
     *
     * @param \Closure(): mixed $compute
     * @param ?int|\Closure(mixed): ?int $ttl seconds, or a function of the value that returns them
     * @param list<string> $tags
     * @param int $refresh seconds before the deadline in which one caller computes the value again
     */
    public function remember(string $key, \Closure $compute, int|\Closure|null $ttl, array $tags = [], int $refresh = 0): mixed
    {
        $missing = new \stdClass();
        $lease = Lease::take($this->table, $key, $tags, $refresh);
        if ($lease->item !== null && ($value = $this->loaded($key, $lease->item, $missing)) !== $missing) {
            return $value;
        }
        try {
            $value = $compute();
            $seconds = $ttl instanceof \Closure ? $ttl($value) : $ttl;
            if ($seconds === null || $seconds > 0) {
                [$data, $flags] = $this->values->dump($value);
                $this->table->attempt(fn (): bool => $lease->fill($data, $flags, $seconds, $tags), false);
            }
            return $value;
        } finally {
            $lease->giveUp();
        }
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

use Sqlcached\Cache\Item;
use Sqlcached\Cache\Keys;
use Sqlcached\Cache\Table;
use Sqlcached\Cache\Values;

/** A lock is a row with its owner. While the daemon is away nobody gets one. */
final class Lock extends \Illuminate\Cache\Lock
{
    public function __construct(private readonly Table $table, string $name, int $seconds, ?string $owner = null)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        $ttl = $this->seconds > 0 ? $this->seconds : null;
        return $this->table->attempt(
            fn (): bool => $this->table->set($this->name, $this->owner, Values::TEXT, $ttl, [], 'E'),
            false,
        );
    }

    public function release(): bool
    {
        $text = "DELETE FROM {$this->table->definition->quoted()} WHERE key = ? AND body = ?";
        return $this->table->attempt(fn (): bool => $this->table->changed($text, [Keys::text($this->name), $this->owner]) > 0, false);
    }

    public function forceRelease(): void
    {
        $this->table->attempt(fn (): bool => $this->table->delete($this->name), false);
    }

    protected function getCurrentOwner(): ?string
    {
        return $this->table->attempt(fn (): ?Item => $this->table->item($this->name), null)?->data;
    }
}

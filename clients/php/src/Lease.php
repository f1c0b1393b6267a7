<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * One computes: of all who miss a value at once, one is asked to compute it; the others wait for it. A value whose row
 * was invalidated or written meanwhile is refused, because it was computed from what was there before.
 */
final class Lease
{
    /** The tag of places whose value's tags are known only when it is computed. Every removal by tag removes them. */
    public const UNKNOWN = 'sqlcached:computing';

    /** The version that was claimed; null if the value is not to be stored. */
    private ?string $cas = null;

    /** The claim was for a missing value, so that nothing is left if it is given up. */
    private bool $reserved = false;

    /** A value that is there, fresh or stale; null if it is to be computed. */
    public ?Item $item = null;

    private function __construct(private readonly Table $table, private readonly string $key)
    {
    }

    /**
     * Asks for a value, or for the claim to compute it.
     *
     * @param ?list<string> $tags of the value; null if they are known only when it is computed
     * @param int $refresh seconds before the deadline in which one caller is asked to compute the value again
     */
    public static function take(
        Table $table,
        string $key,
        ?array $tags,
        int $refresh = 0,
        int $seconds = Limits::LEASE,
        float $wait = Limits::LEASE_WAIT,
    ): self {
        $lease = new self($table, $key);
        $end = microtime(true) + $wait;
        $pause = Limits::PAUSE_MIN;
        // Whoever waited long enough computes the value for itself, and does not store it.
        while (!$table->attempt(fn (): bool => $lease->look($tags, $refresh, $seconds), true) && microtime(true) < $end) {
            usleep($pause);
            $pause = min($pause * 3 >> 1, Limits::PAUSE_MAX);
        }
        return $lease;
    }

    /**
     * Whether it is known what to do: return the value, or compute it.
     *
     * @param ?list<string> $tags
     */
    private function look(?array $tags, int $refresh, int $seconds): bool
    {
        if (!$this->table->isReadable()) {
            return true;
        }
        $item = $this->table->item($this->key, 0, $refresh);
        if ($item === null) {
            return $this->reserve($tags, $seconds);
        }
        // A place is near its deadline from the beginning, and is claimed already, unless it was invalidated softly.
        if ($item->won && (!$item->isReserved() || $item->stale)) {
            $this->cas = $item->cas;
            $this->reserved = $item->isReserved();
            return true;
        }
        if ($item->isReserved()) {
            return false;
        }
        $this->item = $item;
        return true;
    }

    /**
     * Takes the place of a missing value, with its tags, so that a removal by tag finds it while it is computed.
     *
     * @param ?list<string> $tags
     */
    private function reserve(?array $tags, int $seconds): bool
    {
        $cas = $this->table->reserve($this->key, $tags ?? [self::UNKNOWN], $seconds);
        $this->cas = $cas;
        $this->reserved = $cas !== null;
        return $this->reserved;
    }

    /**
     * Takes the claim to compute a value again that is there, whoever else does. Its tags may become others, so that
     * every removal by tag refuses what is computed.
     */
    public static function again(Table $table, string $key): self
    {
        $lease = new self($table, $key);
        $lease->cas = $table->attempt(fn (): ?string => $table->mark($key, self::UNKNOWN), null);
        return $lease;
    }

    /**
     * Stores the value, unless the row was invalidated or written since the claim. Whether it was stored.
     *
     * @param list<string> $tags
     */
    public function fill(string $data, int $flags, ?int $ttl, array $tags): bool
    {
        if ($this->cas === null) {
            return false;
        }
        [$cas, $this->cas] = [$this->cas, null];
        return $this->table->set($this->key, $data, $flags, $ttl, $tags, 'S', $cas);
    }

    /** Leaves the place, or the claim of a stale value, to the next who asks. */
    public function giveUp(): void
    {
        [$cas, $this->cas] = [$this->cas, null];
        if ($cas !== null) {
            $this->table->attempt(fn (): bool => $this->table->giveBack($this->key, $cas, $this->reserved), false);
        }
    }
}

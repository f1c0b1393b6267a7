<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Exception\UnavailableException;

/** The removals of a table, none of which may be lost: what cannot be sent is kept in the `Journal`. */
final class Removals
{
    private readonly Journal $journal;

    /** @param bool $expendable whether all rows may be removed when there are too many removals to keep */
    public function __construct(
        private readonly Statements $statements,
        private readonly Definition $definition,
        private readonly Options $options,
        bool $expendable,
    ) {
        $all = $expendable ? "DELETE FROM {$definition->quoted()}" : null;
        $this->journal = new Journal($options, $definition->name, $all);
    }

    /** Whether nothing waits. What waits is sent now. */
    public function areSent(): bool
    {
        if ($this->journal->isEmpty()) {
            return true;
        }
        try {
            return $this->journal->send(fn (string $text, array $parameters) => $this->statements->changed($text, $parameters));
        } catch (SqlcachedException $why) {
            Notices::warn($this->options, "table {$this->definition->name} is not read until its removals were sent", $why);
            return false;
        }
    }

    /**
     * A removal that must not be lost: it is sent again to a daemon that restarts, and kept for one that stays away.
     *
     * @param list<mixed> $parameters
     *
     * @return ?int how many rows; null if it waits
     */
    public function send(string $text, array $parameters): ?int
    {
        // Where others wait already, the daemon was away a moment ago.
        $pauses = $this->journal->isEmpty() ? Limits::RETRIES : [];
        while (true) {
            try {
                return $this->statements->changed($text, $parameters);
            } catch (UnavailableException $why) {
                if ($pauses === []) {
                    return $this->keep($text, $parameters, $why);
                }
                usleep(array_shift($pauses));
            }
        }
    }

    /**
     * Keeps a removal that cannot be sent, or logs that it is lost.
     *
     * @param list<mixed> $parameters
     *
     * @return null it waits
     */
    public function keep(string $text, array $parameters, UnavailableException $why): ?int
    {
        $name = $this->definition->name;
        if ($this->options->onFailure === OnFailure::Log) {
            Notices::error($this->options, "table $name: an invalidation was not sent, old rows may be read: {$why->getMessage()}");
            return null;
        }
        $suspends = $this->journal->isEmpty();
        if (!$this->journal->add($text, $parameters)) {
            throw $why;
        }
        if ($suspends) {
            Notices::error($this->options, "table $name is not read until an invalidation was sent: {$why->getMessage()}");
        }
        return $this->options->onFailure === OnFailure::Raise ? throw $why : null;
    }

    /**
     * The removal of rows by their keys: a statement and its parameters.
     *
     * @param list<string> $keys
     *
     * @return array{0: string, 1: list<string>}
     */
    public function ofKeys(array $keys): array
    {
        $places = implode(', ', array_fill(0, count($keys), '?'));
        return ["DELETE FROM {$this->definition->quoted()} WHERE key IN ($places)", array_map(Keys::text(...), $keys)];
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Exception\StatementException;
use Sqlcached\Cache\Exception\UnavailableException;

/**
 * A table of the daemon as the caches and the sessions use it: rows by key, rows by tag, leases.
 *
 * Rows whose key fits memcached's protocol go by meta commands, longer ones and unusual tags by statements. A removal
 * that cannot be sent is kept in the `Journal`, and nothing is read from the table until it got through.
 */
final class Table
{
    private readonly Client $client;
    private readonly Statements $statements;
    private readonly Removals $removals;
    private readonly Wire $wire;
    public readonly Options $options;

    /** Values of this process that did not load. They were removed. */
    public int $broken = 0;

    /**
     * @param string|array<string, mixed>|Options $options of the connection
     * @param bool $expendable whether a row may be removed because a write failed, and all rows if there are too many
     *     removals to keep
     */
    public function __construct(string|array|Options $options, public readonly Definition $definition, private readonly bool $expendable = true)
    {
        $this->options = Options::of($options);
        $begin = static fn (Connection $connection) => $definition->ensure($connection);
        $this->client = new Client($this->options, "table $definition", $begin);
        $this->statements = new Statements($this->client, $definition);
        $this->removals = new Removals($this->statements, $definition, $this->options, $expendable);
        $this->wire = new Wire($definition);
    }

    /** Whether rows may be read: what could not be removed before is removed now. */
    public function isReadable(): bool
    {
        return $this->removals->areSent();
    }

    /**
     * What a call returns, or an answer in its place if the daemon cannot be asked; then a warning is logged.
     *
     * @template T
     *
     * @param \Closure(): T $work
     * @param T $answer
     *
     * @return T
     */
    public function attempt(\Closure $work, mixed $answer): mixed
    {
        try {
            return $work();
        } catch (SqlcachedException $why) {
            Notices::warn($this->options, "table {$this->definition->name}", $why);
            return $answer;
        }
    }

    /** Removes a value that did not load. */
    public function drop(string $key, \Throwable $why): void
    {
        $this->broken++;
        Notices::warn($this->options, "table {$this->definition->name}: a value did not load and was removed", $why);
        $this->attempt(fn () => $this->delete($key), false);
    }

    /**
     * Runs a statement. If the table is gone, it is made, and the statement runs again.
     *
     * @param list<mixed> $parameters
     *
     * @return list<array<string, mixed>>|int
     */
    public function sql(string $text, array $parameters = []): array|int
    {
        return $this->statements->run($text, $parameters);
    }

    /**
     * Runs a statement that writes; the number of rows.
     *
     * @param list<mixed> $parameters
     */
    public function changed(string $text, array $parameters = [], bool $again = true): int
    {
        return $this->statements->changed($text, $parameters, $again);
    }

    /** A write may have failed after an old row was there, which must not be read any more. */
    private function written(string $key, \Closure $work): mixed
    {
        try {
            return $work();
        } catch (UnavailableException $why) {
            if ($this->expendable) {
                $this->removals->keep(...$this->removals->ofKeys([$key]), why: $why);
            }
            throw $why;
        }
    }

    // Rows by key.

    /** The row; null if it is missing, stale or reserved, or may not be read. */
    public function get(string $key): ?Item
    {
        return $this->isReadable() ? $this->read($key, $this->item($key)) : null;
    }

    /** What a reader gets of an item. One that is asked to compute the value only reads: it leaves that to others. */
    private function read(string $key, ?Item $item): ?Item
    {
        if ($item?->won) {
            $this->attempt(fn (): bool => $this->giveBack($key, $item->cas, $item->isReserved()), false);
        }
        return $item?->isFresh() ? $item : null;
    }

    /** Gives back the claim to compute a version, so that the next who reads it gets it. Whether it was that version. */
    public function giveBack(string $key, string $cas, bool $reserved): bool
    {
        if ($reserved) {
            return $this->delete($key, $cas);
        }
        $text = "UPDATE {$this->definition->quoted()} SET _leased = FALSE WHERE key = ? AND _cas = CAST(? AS BIGINT)";
        return $this->changed($text, [Keys::text($key), $cas]) > 0;
    }

    /**
     * The rows that are there, by key.
     *
     * @param list<string> $keys
     *
     * @return array<string, Item>
     */
    public function getMany(array $keys): array
    {
        if (count($keys) < 2) {
            $item = $keys === [] ? null : $this->get($keys[0]);
            return $item === null ? [] : [$keys[0] => $item];
        }
        if (!$this->isReadable()) {
            return [];
        }
        $found = [];
        foreach (array_chunk($keys, Limits::KEYS) as $part) {
            $request = '';
            foreach ($part as $place => $key) {
                $name = $this->wire->key($key);
                if ($name === null) {
                    $found[$key] = $this->read($key, $this->item($key));
                } else {
                    $request .= "mg $name v f c q O$place\r\n";
                }
            }
            if ($request === '') {
                continue;
            }
            $items = $this->client->run(static function (Connection $connection) use ($request): array {
                $connection->send("{$request}mn\r\n");
                return Protocol::items($connection);
            });
            foreach ($items as $place => $item) {
                $found[$part[$place] ?? ''] = $this->read($part[$place] ?? '', $item);
            }
        }
        return array_filter($found);
    }

    /**
     * All that the daemon says of a row. `$reserve` takes the place of a missing value for so many seconds.
     */
    public function item(string $key, int $reserve = 0, int $refresh = 0): ?Item
    {
        $name = $this->wire->key($key);
        if ($name === null) {
            return $this->row($key);
        }
        $request = "mg $name v f c" . ($reserve > 0 ? " N$reserve" : '') . ($refresh > 0 ? " R$refresh" : '') . "\r\n";
        return $this->client->run(static function (Connection $connection) use ($request): ?Item {
            $connection->send($request);
            return Protocol::item($connection);
        });
    }

    /** A row whose key is too long for memcached's protocol. */
    private function row(string $key): ?Item
    {
        $text = "SELECT body, _flags, CAST(_cas AS TEXT) AS cas, _stale FROM {$this->definition->quoted()} WHERE key = ?";
        $rows = $this->sql($text, [Keys::text($key)]);
        if (!is_array($rows) || $rows === []) {
            return null;
        }
        ['body' => $body, '_flags' => $flags, 'cas' => $cas, '_stale' => $stale] = $rows[0];
        return new Item((string) $body, (int) $flags, (string) $cas, false, (bool) $stale);
    }

    /**
     * Stores a row, without a deadline if `$ttl` is null. Modes are `S`, `E` (if it is missing) and `R` (if it exists);
     * with `$cas` only that version is replaced. Whether it was stored.
     *
     * @param list<string> $tags
     */
    public function set(
        string $key,
        string $data,
        int $flags,
        ?int $ttl,
        array $tags = [],
        string $mode = 'S',
        ?string $cas = null,
    ): bool {
        $again = $mode === 'S' && $cas === null;
        $request = $this->wire->storing($key, $data, $flags, $ttl, $tags, $mode, $cas);
        if ($request === null) {
            return $this->written($key, fn (): bool => $this->put($key, $data, $flags, $ttl, $tags, $mode, $cas));
        }
        return $this->written($key, fn (): bool => $this->client->run(static function (Connection $connection) use ($request): bool {
            $connection->send($request);
            return Protocol::done($connection->line());
        }, $again));
    }

    /**
     * Stores rows in few round trips; the keys that were refused.
     *
     * @param array<string, array{0: string, 1: int, 2: list<string>}> $rows data, flags and tags by key
     *
     * @return list<string>
     */
    public function setMany(array $rows, ?int $ttl): array
    {
        $again = [];
        $request = '';
        $batch = [];
        foreach ($rows as $key => [$data, $flags, $tags]) {
            $command = $this->wire->storing((string) $key, $data, $flags, $ttl, $tags, 'S', null, ' q');
            if ($command === null) {
                $again[] = (string) $key;
                continue;
            }
            $batch[] = (string) $key;
            $request .= $command;
            if (count($batch) >= Limits::BATCH || strlen($request) >= Limits::BATCH_BYTES) {
                array_push($again, ...$this->refused($request, $batch));
                [$request, $batch] = ['', []];
            }
        }
        array_push($again, ...$this->refused($request, $batch));
        return array_values(array_filter($again, fn (string $key): bool => !$this->stores($key, $rows[$key], $ttl)));
    }

    /**
     * Sends a batch. A refusal does not name its key, so all keys of a batch with one are stored again, one by one.
     *
     * @param list<string> $keys
     *
     * @return list<string>
     */
    private function refused(string $request, array $keys): array
    {
        return count($keys) < 2 || !$this->allDone($request, $keys) ? $keys : [];
    }

    /** @param list<string> $keys */
    private function allDone(string $request, array $keys): bool
    {
        try {
            return $this->client->run(static function (Connection $connection) use ($request): array {
                $connection->send("{$request}mn\r\n");
                return Protocol::refusals($connection);
            }) === [];
        } catch (UnavailableException $why) {
            $this->removals->keep(...$this->removals->ofKeys($keys), why: $why);
            throw $why;
        }
    }

    /** @param array{0: string, 1: int, 2: list<string>} $row */
    private function stores(string $key, array $row, ?int $ttl): bool
    {
        try {
            return $this->set($key, $row[0], $row[1], $ttl, $row[2]);
        } catch (Exception\RefusedException | StatementException $why) {
            Notices::warn($this->options, "table {$this->definition->name}: a value was refused", $why);
            return false;
        }
    }

    /** Removes a row; whether it was there. */
    public function delete(string $key, ?string $cas = null): bool
    {
        $name = $this->wire->key($key);
        if ($name === null) {
            [$text, $parameters] = $this->removals->ofKeys([$key]);
            return $cas === null
                ? $this->removals->send($text, $parameters) > 0
                : $this->changed("$text AND _cas = CAST(? AS BIGINT)", [...$parameters, $cas], false) > 0;
        }
        $request = "md $name" . ($cas === null ? '' : " C$cas") . "\r\n";
        try {
            return $this->client->run(static function (Connection $connection) use ($request): bool {
                $connection->send($request);
                return Protocol::done($connection->line());
            });
        } catch (UnavailableException) {
            // A place that was reserved expires by itself.
            return $cas === null && $this->removals->send(...$this->removals->ofKeys([$key])) > 0;
        }
    }

    /**
     * Removes rows.
     *
     * @param list<string> $keys
     *
     * @return bool whether that got through
     */
    public function deleteMany(array $keys): bool
    {
        $done = true;
        foreach (array_chunk($keys, Limits::BATCH) as $part) {
            $names = array_map($this->wire->key(...), $part);
            $done = (!in_array(null, $names, true) && $this->areDeleted($names)
                || $this->removals->send(...$this->removals->ofKeys($part)) !== null) && $done;
        }
        return $done;
    }

    /**
     * Removes rows in one round trip; false if the daemon cannot be asked.
     *
     * @param list<string> $names
     */
    private function areDeleted(array $names): bool
    {
        $request = implode('', array_map(static fn (string $name): string => "md $name q\r\n", $names));
        try {
            $refused = $this->client->run(static function (Connection $connection) use ($request): array {
                $connection->send("{$request}mn\r\n");
                return Protocol::refusals($connection);
            });
        } catch (UnavailableException) {
            return false;
        }
        return $refused === [] ? true : throw Connection::refused($refused[0]);
    }

    /** Gives a row a new deadline; whether it exists. */
    public function touch(string $key, ?int $ttl): bool
    {
        $name = $this->wire->key($key);
        if ($name === null) {
            $text = "UPDATE {$this->definition->quoted()} SET _ttl = ? WHERE key = ?";
            return $this->written($key, fn (): bool => $this->changed($text, [Wire::deadline($ttl), Keys::text($key)]) > 0);
        }
        $request = "mg $name T{$this->wire->exptime($ttl)}\r\n";
        return $this->written($key, fn (): bool => $this->client->run(static function (Connection $connection) use ($request): bool {
            $connection->send($request);
            return Protocol::done($connection->line());
        }));
    }

    /**
     * Adds to a number; the result. A missing one begins at 0 with these tags. What is no number, or may not be read, is
     * null. The row keeps its deadline and its tags.
     *
     * @param list<string> $tags
     */
    public function add(string $key, int $delta, array $tags = []): int|float|null
    {
        if (!$this->isReadable()) {
            return null;
        }
        $name = $this->wire->key($key);
        if ($name !== null && $delta > 0) {
            $number = $this->written($key, fn (): ?string => $this->added("ma $name D$delta v\r\n"));
            if ($number !== null) {
                return $number + 0;
            }
        }
        for ($attempt = 0; $attempt < Limits::ATTEMPTS; $attempt++) {
            $item = $this->item($key);
            if ($item === null || $item->isReserved()) {
                $mode = $item === null ? 'E' : 'S';
                if ($this->set($key, (string) $delta, Values::INTEGER, null, $tags, $mode, $item?->cas)) {
                    return $delta;
                }
                continue;
            }
            if (!is_numeric($item->data)) {
                return null;
            }
            $number = $item->data + $delta;
            if ($this->renumber($key, $number, $item->cas)) {
                return $number;
            }
        }
        throw new Exception\RefusedException('other clients change the number all the time');
    }

    /** Adds to a number that is there, which does not fall below 0; what is no number counts as 0. */
    public function adjust(string $key, int $delta): ?int
    {
        for ($attempt = 0; $attempt < Limits::ATTEMPTS; $attempt++) {
            $item = $this->get($key);
            if ($item === null) {
                return null;
            }
            $number = (int) max(0, (is_numeric($item->data) ? $item->data + 0 : 0) + $delta);
            if ($this->renumber($key, $number, $item->cas)) {
                return $number;
            }
        }
        throw new Exception\RefusedException('other clients change the number all the time');
    }

    /** Puts a number in the place of one version, which keeps its deadline and its tags. */
    private function renumber(string $key, int|float $number, string $cas): bool
    {
        $text = "UPDATE {$this->definition->quoted()} SET body = ?, _flags = ? WHERE key = ? AND _cas = CAST(? AS BIGINT)";
        $parameters = [(string) $number, Values::INTEGER, Keys::text($key), $cas];
        return $this->written($key, fn (): int => $this->changed($text, $parameters, false)) > 0;
    }

    /** What the daemon adds by itself: numbers without a sign that are there. */
    private function added(string $request): ?string
    {
        try {
            return $this->client->run(static function (Connection $connection) use ($request): ?string {
                $connection->send($request);
                $line = $connection->line();
                if ($line === 'NF') {
                    return null;
                }
                return str_starts_with($line, 'VA ') ? $connection->block((int) substr($line, 3)) : throw Connection::refused($line);
            }, false);
        } catch (Exception\RefusedException) {
            return null;
        }
    }

    // Leases.

    /**
     * Takes the place of a missing row together with its tags. The version of the place; null if somebody was there.
     *
     * @param list<string> $tags
     */
    public function reserve(string $key, array $tags, int $seconds): ?string
    {
        $request = $this->wire->storing($key, '', 0, $seconds, $tags, 'E', null, ' c');
        if ($request !== null) {
            return $this->client->run(static function (Connection $connection) use ($request): ?string {
                $connection->send($request);
                $line = $connection->line();
                return Protocol::done($line) ? substr($line, strlen('HD c')) : null;
            }, false);
        }
        if (!$this->put($key, '', 0, $seconds, $tags, 'E', null)) {
            return null;
        }
        $item = $this->item($key);
        // What was removed since then is no matter: nothing was computed yet. What was stored since then is read.
        return $item?->isReserved() ? $item->cas : null;
    }

    /** Adds a tag to a row, if it is not there; the row's version then, or null if it is gone. */
    public function mark(string $key, string $tag): ?string
    {
        $table = $this->definition->quoted();
        $name = Keys::text($key);
        $this->changed(
            "UPDATE $table SET tags = array_append(coalesce(tags, ARRAY[]::TEXT[]), ?) WHERE key = ? "
                . 'AND NOT coalesce(? = ANY (tags), FALSE)',
            [$tag, $name, $tag],
            false,
        );
        $rows = $this->sql("SELECT CAST(_cas AS TEXT) AS cas FROM $table WHERE key = ? AND ? = ANY (tags)", [$name, $tag]);
        return is_array($rows) && $rows !== [] ? (string) $rows[0]['cas'] : null;
    }

    // Rows by tag and by the beginning of their key.

    /**
     * Removes all rows with one of these tags; with `$soft` they become stale. How many, or null if it waits.
     *
     * @param list<string> $tags
     */
    public function deleteTags(array $tags, bool $soft = false): ?int
    {
        if ($tags === []) {
            return 0;
        }
        // A value whose tags are not known yet is being computed from what was there before.
        $tags = array_map(Keys::text(...), [...$tags, Lease::UNKNOWN]);
        $verb = $soft ? "UPDATE {$this->definition->quoted()} SET _stale = TRUE" : "DELETE FROM {$this->definition->quoted()}";
        return $this->removals->send("$verb WHERE tags && ?", [array_values(array_unique($tags))]);
    }

    /** Removes all rows whose key begins so. */
    public function deletePrefix(string $prefix): ?int
    {
        if ($prefix === '') {
            return $this->removals->send("DELETE FROM {$this->definition->quoted()}", []);
        }
        $begin = Keys::text($prefix);
        $end = Keys::after($begin);
        $text = "DELETE FROM {$this->definition->quoted()} WHERE key >= ?" . ($end === null ? '' : ' AND key < ?');
        return $this->removals->send($text, $end === null ? [$begin] : [$begin, $end]);
    }

    /**
     * Removes the rows of a condition; how many. An error is thrown also if it is kept and sent later.
     *
     * @param list<mixed> $parameters
     */
    public function deleteRows(string $condition, array $parameters): int
    {
        return $this->removals->send("DELETE FROM {$this->definition->quoted()} WHERE $condition", $parameters)
            ?? throw new UnavailableException("{$this->options}: the removal waits until the daemon is back");
    }

    /** Empties the table, and no other. */
    public function clear(): bool
    {
        return $this->deletePrefix('') !== null;
    }

    /**
     * As `set`, by a statement.
     *
     * @param list<string> $tags
     */
    private function put(string $key, string $data, int $flags, ?int $ttl, array $tags, string $mode, ?string $cas): bool
    {
        $name = Keys::text($key);
        $body = $flags !== Values::BYTES && Keys::isText($data) && !str_contains($data, "\0") ? $data : new Bytes($data);
        if ($data === '') {
            $body = '';
        }
        $list = $tags === [] ? null : array_map(Keys::text(...), $tags);
        $values = [$body, $list, $flags, Wire::deadline($ttl)];
        $table = $this->definition->quoted();
        if ($mode === 'S' && $cas === null) {
            return $this->changed("REPLACE INTO $table (body, tags, _flags, _ttl, key) VALUES (?, ?, ?, ?, ?)", [...$values, $name]) > 0;
        }
        if ($mode === 'E') {
            $text = "INSERT INTO $table (body, tags, _flags, _ttl, key) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
            return $this->changed($text, [...$values, $name], false) > 0;
        }
        $text = "UPDATE $table SET body = ?, tags = ?, _flags = ?, _ttl = ?, _stale = FALSE WHERE key = ?";
        return $this->changed(...($cas === null
            ? [$text, [...$values, $name], false]
            : ["$text AND _cas = CAST(? AS BIGINT)", [...$values, $name, $cas], false])) > 0;
    }

    /** Closes the connection, which opens again by itself. */
    public function close(): void
    {
        $this->client->close();
    }
}

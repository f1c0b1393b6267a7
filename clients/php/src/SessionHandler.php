<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * PHP's sessions in a table, whose rows know their user.
 *
 * ```php
 * $sessions = new SessionHandler('127.0.0.1:11211', fn () => $_SESSION['user'] ?? null);
 * session_set_save_handler($sessions);
 * $sessions->logoutEverywhere(17);
 * ```
 *
 * Other tables cannot evict sessions below the table's `min_memory`, and `flush_all` leaves them. While the daemon is
 * away no session starts: an empty one in its place would overwrite the stored one later.
 */
final class SessionHandler implements \SessionHandlerInterface, \SessionUpdateTimestampHandlerInterface
{
    private const OPTIONS = ['min_memory' => '8 MB', 'flush' => false];

    private readonly Table $table;

    /**
     * How the sessions that this process has read are written: only if they are there still (`R`), only if they are
     * not (`E`), or not at all, because they could not be read.
     *
     * @var array<string, ?string>
     */
    private array $read = [];

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param ?\Closure(string): (string|int|null) $user the user of the session that is written, whose bytes it is given
     * @param ?int $lifetime seconds; null: PHP's `session.gc_maxlifetime`
     * @param array<string, scalar> $options of the table
     */
    public function __construct(
        string|array|Options $connection = [],
        private readonly ?\Closure $user = null,
        private readonly ?int $lifetime = null,
        string $table = 'php_sessions',
        array $options = [],
    ) {
        $this->table = new Table($connection, new Definition($table, $options + self::OPTIONS), false);
    }

    /**
     * Ends all sessions of a user, but one; how many. If that cannot be sent, it is kept, no session starts until it got
     * through, and the caller gets the error.
     */
    public function logoutEverywhere(string|int $user, ?string $keep = null): int
    {
        return $this->table->deleteRows('? = ANY (tags) AND key <> ?', [Keys::text((string) $user), Keys::text($keep ?? '')]);
    }

    /**
     * The sessions of a user: their ids, and the seconds that they have left.
     *
     * @return array<string, ?int>
     */
    public function active(string|int $user): array
    {
        $text = "SELECT key, _ttl FROM {$this->table->definition->quoted()} WHERE ? = ANY (tags) ORDER BY key";
        $rows = $this->table->sql($text, [Keys::text((string) $user)]);
        return is_array($rows) ? array_column($rows, '_ttl', 'key') : [];
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        $this->read = [];
        return true;
    }

    public function read(string $id): string|false
    {
        // A process that serves many requests does not always close.
        unset($this->read[$id]);
        $this->read = array_slice($this->read, 1 - Limits::SESSIONS, null, true) + [$id => null];
        $item = $this->table->attempt(fn (): Item|false|null => $this->table->isReadable() ? $this->table->get($id) : false, false);
        if ($item === false) {
            return false;
        }
        $this->read[$id] = $item === null ? 'E' : 'R';
        return $item->data ?? '';
    }

    /** A session that somebody ended meanwhile does not come back, and one that could not be read is not overwritten. */
    public function write(string $id, string $data): bool
    {
        $mode = array_key_exists($id, $this->read) ? $this->read[$id] : 'S';
        if ($mode === null) {
            return false;
        }
        $user = $this->user === null ? null : ($this->user)($data);
        $tags = $user === null || $user === '' ? [] : [(string) $user];
        return $this->table->attempt(function () use ($id, $data, $tags, $mode): bool {
            if ($this->table->set($id, $data, Values::TEXT, $this->seconds(), $tags, $mode)) {
                $this->read[$id] = 'R';
            }
            return true;
        }, false);
    }

    public function destroy(string $id): bool
    {
        unset($this->read[$id]);
        // What cannot be sent is kept, and no session starts until it got through.
        return $this->table->attempt(fn (): bool => $this->table->deleteMany([$id]), false);
    }

    /** Rows expire by themselves. */
    public function gc(int $max_lifetime): int|false
    {
        return 0;
    }

    /** With `session.use_strict_mode` PHP asks whether an id is one that it has given. */
    public function validateId(string $id): bool
    {
        return $this->read($id) !== false && $this->read[$id] === 'R';
    }

    /** The session was read and not changed. */
    public function updateTimestamp(string $id, string $data): bool
    {
        return $this->table->attempt(function () use ($id): bool {
            $this->table->touch($id, $this->seconds());
            return true;
        }, false);
    }

    private function seconds(): int
    {
        return $this->lifetime ?? max(1, (int) ini_get('session.gc_maxlifetime'));
    }
}

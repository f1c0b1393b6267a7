<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Exception\UnavailableException;

/**
 * Requests to one daemon: memcached's meta commands and statements, over one connection.
 *
 * ```php
 * $client = new Client('127.0.0.1:11211');
 * $client->sql('DELETE FROM page WHERE product = ?', 17);
 * ```
 */
final class Client
{
    public readonly Options $options;

    /**
     * The connections of this process that are not in use, and the process that opened them.
     *
     * @var array<string, array{0: int, 1: Connection}>
     */
    private static array $idle = [];

    /**
     * How many requests are under way, one within another. A signal's handler may come between any two steps of a
     * request, so the first step is to count it, and a request within a request has a connection of its own.
     *
     * @var array<string, int>
     */
    private static array $depth = [];

    /**
     * Until when daemons are taken to be away.
     *
     * @var array<string, float>
     */
    private static array $away = [];

    /**
     * Connections of the process that forked this one.
     *
     * @var list<Connection>
     */
    private static array $inherited = [];

    private ?string $name = null;

    /**
     * @param string|array<string, mixed>|Options $options a location, or options
     * @param string $purpose connections of the same purpose are begun in the same way
     * @param ?\Closure(Connection): void $begin is called for each new connection
     */
    public function __construct(
        string|array|Options $options = [],
        private readonly string $purpose = '',
        private readonly ?\Closure $begin = null,
    ) {
        $this->options = Options::of($options);
    }

    /**
     * Runs one statement: its rows, or the number of rows that it changed. Parameters are `?`. A list is an array of
     * SQL, a `Bytes` is a BYTEA.
     *
     * @return list<array<string, mixed>>|int
     */
    public function sql(string $text, mixed ...$parameters): array|int
    {
        return $this->statement($text, array_values($parameters));
    }

    /**
     * As `sql`.
     *
     * @param list<mixed> $parameters
     *
     * @return list<array<string, mixed>>|int
     */
    public function statement(string $text, array $parameters, bool $again = true): array|int
    {
        $request = Protocol::statement($text, $parameters);
        return $this->run(static function (Connection $connection) use ($request): array|int {
            $connection->send($request);
            return Protocol::rows($connection);
        }, $again);
    }

    /**
     * memcached's `stats`.
     *
     * @return array<string, string>
     */
    public function stats(): array
    {
        return $this->run(static function (Connection $connection): array {
            $connection->send("stats\r\n");
            $found = [];
            while (($line = $connection->line()) !== 'END') {
                [$word, $name, $value] = explode(' ', $line, 3) + ['', '', ''];
                if ($word !== 'STAT') {
                    throw Connection::refused($line);
                }
                $found[$name] = $value;
            }
            return $found;
        });
    }

    /**
     * Does something with a connection. One that had died is replaced; with `$again` off only if that was seen before
     * anything was sent, because the command must not be executed twice.
     *
     * @template T
     *
     * @param \Closure(Connection): T $work
     *
     * @return T
     */
    public function run(\Closure $work, bool $again = true): mixed
    {
        $name = $this->name();
        $outer = self::$depth[$name] ?? 0;
        self::$depth[$name] = $outer + 1;
        try {
            return $outer === 0 ? $this->kept($work, $again) : $this->within($work);
        } finally {
            self::$depth[$name] = $outer;
        }
    }

    /**
     * @template T
     *
     * @param \Closure(Connection): T $work
     *
     * @return T
     */
    private function kept(\Closure $work, bool $again): mixed
    {
        $connection = $this->take();
        if ($connection->used && !$again && !$connection->isAlive()) {
            $connection->close();
            $connection = $this->take();
        }
        $used = $connection->used;
        try {
            return $this->on($connection, $work);
        } catch (UnavailableException $why) {
            if (!$used || !$again) {
                throw $why;
            }
        }
        return $this->on($this->take(), $work);
    }

    /**
     * A request within a request: the kept connection waits for another answer.
     *
     * @template T
     *
     * @param \Closure(Connection): T $work
     *
     * @return T
     */
    private function within(\Closure $work): mixed
    {
        $connection = $this->reached(false);
        try {
            return $connection->run($work);
        } finally {
            $connection->close();
        }
    }

    /** Only a connection whose answers were read to their end is used again. */
    private function on(Connection $connection, \Closure $work): mixed
    {
        $whole = false;
        try {
            $result = $connection->run($work);
            $whole = true;
            return $result;
        } catch (UnavailableException $why) {
            throw $why;
        } catch (SqlcachedException $why) {
            $whole = true;
            throw $why;
        } finally {
            if ($whole) {
                self::$idle[$this->name()] = [getmypid(), $connection];
            } else {
                $connection->close();
            }
        }
    }

    private function take(): Connection
    {
        $name = $this->name();
        [$process, $connection] = self::$idle[$name] ?? [0, null];
        unset(self::$idle[$name]);
        if ($connection !== null && $process === getmypid()) {
            return $connection;
        }
        if ($connection !== null) {
            // After a fork the stream is the parent's. It is kept, so that PHP does not say good-bye on it.
            self::$inherited[] = $connection;
        }
        // PHP tells streams of a Unix socket apart by its path alone, which says neither role nor purpose nor process.
        return $this->reached($this->options->persistent && !$this->options->isUnix());
    }

    /** A host that does not even refuse costs a second; nobody waits for it twice in a second. */
    private function reached(bool $persistent): Connection
    {
        $begin = microtime(true);
        if ($begin < (self::$away[$this->name()] ?? 0.0)) {
            throw new UnavailableException("{$this->options}: there was no answer a moment ago");
        }
        try {
            return $this->open($persistent);
        } catch (UnavailableException $why) {
            if (microtime(true) - $begin > $this->options->connectTimeout / 2) {
                self::$away[$this->name()] = microtime(true) + Limits::RETRY;
            }
            throw $why;
        }
    }

    private function open(bool $persistent): Connection
    {
        $options = $this->options;
        $login = fn (Connection $connection) => $this->begun($connection);
        if ($options->isUnix()) {
            return Connection::open("unix://{$options->location}", $options, $persistent, [], $login);
        }
        $scheme = $options->tls === null ? 'tcp' : 'tls';
        // What follows the port is no part of the address: PHP tells persistent streams apart by the whole text. A
        // forked process must not find its parent's.
        $uri = "$scheme://{$options->location}" . ($persistent ? '/' . md5($this->name() . getmypid()) : '');
        $context = ['socket' => ['tcp_nodelay' => true], 'ssl' => $options->tls ?? []];
        return Connection::open($uri, $options, $persistent, $context, $login);
    }

    private function begun(Connection $connection): void
    {
        if ($this->options->user !== null) {
            $login = "{$this->options->user} {$this->options->password}";
            $connection->send('set login 0 0 ' . strlen($login) . "\r\n$login\r\n");
            $line = $connection->line();
            if ($line !== 'STORED') {
                throw Connection::refused($line);
            }
        }
        if ($this->begin !== null) {
            ($this->begin)($connection);
        }
    }

    /** Connections with the same name can stand for one another. */
    private function name(): string
    {
        $options = $this->options;
        return $this->name ??= serialize([
            $options->location, $options->user, $options->password, $options->tls, $options->persistent, $this->purpose,
        ]);
    }

    /** Closes the connection of this process, which opens again by itself; not one that waits for an answer. */
    public function close(): void
    {
        if ((self::$depth[$this->name()] ?? 0) > 0) {
            return;
        }
        [$process, $connection] = self::$idle[$this->name()] ?? [0, null];
        unset(self::$idle[$this->name()]);
        if ($connection !== null && $process === getmypid()) {
            $connection->close();
        }
    }
}

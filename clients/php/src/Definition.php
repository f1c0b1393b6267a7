<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\RefusedException;
use Sqlcached\Cache\Exception\StatementException;

/**
 * The table of a cache: keys, values, tags. `SELECT key, body, tags, _ttl FROM cache` in psql shows it.
 *
 * The key's prefix is the table's name and a colon. It is ordered, so that keys that begin alike are found without a
 * scan.
 */
final class Definition
{
    public readonly string $prefix;

    /** Whether rows without a deadline of their own get one from the table. */
    public readonly bool $hasTtl;

    /** @param array<string, scalar> $options of the table: `ttl`, `max_memory`, `min_memory`, `max_rows`, `stale_for`, ... */
    public function __construct(public readonly string $name, private readonly array $options = [])
    {
        if (preg_match('/^[A-Za-z_][A-Za-z0-9_]{0,62}$/D', $name) !== 1) {
            throw new \InvalidArgumentException("'$name' is no name of a table: letters, digits and _, at most 63");
        }
        foreach (array_keys($options) as $option) {
            if (preg_match('/^[a-z_]+$/D', (string) $option) !== 1) {
                throw new \InvalidArgumentException("'$option' is no option of a table");
            }
        }
        $this->prefix = "$name:";
        $this->hasTtl = isset($options['ttl']);
    }

    /** The name as an identifier of SQL. */
    public function quoted(): string
    {
        return "\"{$this->name}\"";
    }

    /** Another definition for the same table needs a connection of its own. */
    public function __toString(): string
    {
        return implode(";\n", $this->statements());
    }

    /** @return list<string> */
    public function statements(): array
    {
        $with = ['prefix' => $this->prefix, 'value' => 'body', 'tags' => 'tags', 'ordered' => true] + $this->options;
        $options = implode(', ', array_map(
            static fn (string $name, mixed $value): string => "$name = " . self::literal($value),
            array_keys($with),
            $with,
        ));
        return [
            "CREATE TABLE IF NOT EXISTS {$this->quoted()} (key TEXT PRIMARY KEY, body ANY, tags TEXT[]) WITH ($options)",
            "CREATE INDEX IF NOT EXISTS \"{$this->name}_tags\" ON {$this->quoted()} USING gin (tags)",
        ];
    }

    private static function literal(mixed $value): string
    {
        return match (true) {
            is_bool($value) => $value ? 'on' : 'off',
            is_int($value), is_float($value) => (string) $value,
            default => "'" . str_replace("'", "''", (string) $value) . "'",
        };
    }

    /**
     * Makes sure of the table on a new connection: the daemon may be another one than before, and the tables of an
     * earlier one may be gone. Without its table memcached's commands would go to the built-in one.
     */
    public function ensure(Connection $connection): void
    {
        if ($this->isThere($connection)) {
            return;
        }
        try {
            foreach ($this->statements() as $text) {
                self::sql($connection, $text);
            }
        } catch (StatementException $why) {
            if ($why->sqlstate !== StatementException::FORBIDDEN) {
                throw $why;
            }
            throw new RefusedException("a superuser must make the table {$this->name}:\n$this", 0, $why);
        }
    }

    private function isThere(Connection $connection): bool
    {
        $rows = self::sql($connection, 'SELECT options FROM sqlcached_tables WHERE table_name = ?', $this->name);
        if ($rows === [] || !is_array($rows)) {
            return false;
        }
        $have = json_decode((string) ($rows[0]['options'] ?? ''), true);
        $missing = array_diff(["prefix={$this->prefix}", 'value=body', 'tags=tags'], is_array($have) ? $have : []);
        if ($missing !== []) {
            throw new RefusedException("the table {$this->name} is not of this cache, it lacks " . implode(', ', $missing));
        }
        return true;
    }

    /** @return list<array<string, mixed>>|int */
    private static function sql(Connection $connection, string $text, mixed ...$parameters): array|int
    {
        $connection->send(Protocol::statement($text, array_values($parameters)));
        return Protocol::rows($connection);
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\RefusedException;

/** memcached's protocol as this package needs it: requests as bytes, answers as values. */
final class Protocol
{
    private function __construct()
    {
    }

    /**
     * The request of a statement.
     *
     * @param list<mixed> $parameters
     */
    public static function statement(string $text, array $parameters): string
    {
        try {
            $array = json_encode(array_map(self::parameter(...), $parameters), self::JSON);
        } catch (\JsonException $why) {
            throw new RefusedException("a parameter cannot be sent: {$why->getMessage()}", 0, $why);
        }
        return 'sqlp ' . strlen($text) . ' ' . strlen($array) . "\r\n$text\r\n$array\r\n";
    }

    private const JSON = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION;

    private static function parameter(mixed $value): mixed
    {
        return match (true) {
            $value instanceof Bytes => ['base64' => base64_encode($value->data)],
            is_array($value) => json_encode(array_values($value), self::JSON),
            is_object($value) => (string) $value,
            default => $value,
        };
    }

    /**
     * The answer of a statement.
     *
     * @return list<array<string, mixed>>|int
     */
    public static function rows(Connection $connection): array|int
    {
        $rows = [];
        while (($line = $connection->line()) !== 'END') {
            if (str_starts_with($line, '{')) {
                $rows[] = self::row($connection, $line);
            } elseif (preg_match('/^OK (\d+)$/', $line, $found) === 1) {
                return (int) $found[1];
            } else {
                throw Connection::refused($line);
            }
        }
        return $rows;
    }

    /** @return array<string, mixed> */
    private static function row(Connection $connection, string $line): array
    {
        $row = json_decode($line, true);
        if (!is_array($row)) {
            throw $connection->strange('a row that is no JSON');
        }
        foreach ($row as $name => $value) {
            if (is_array($value) && is_string($value['base64'] ?? null)) {
                $row[$name] = (string) base64_decode($value['base64'], true);
            }
        }
        return $row;
    }

    /** A key as meta commands send it, with the flag that says how. The row has its true text. */
    public static function key(string $key): string
    {
        return preg_match('/[\x00-\x20\x7f]/', $key) === 1 ? base64_encode($key) . ' b' : $key;
    }

    /** The answer of `mg` with the flags `v f c`; null for a miss. */
    public static function item(Connection $connection): ?Item
    {
        $line = $connection->line();
        return $line === 'EN' ? null : self::value($connection, $line);
    }

    /**
     * The answers of many `mg` with `v f q` and their place as opaque, behind them `mn`.
     *
     * @return array<int, Item>
     */
    public static function items(Connection $connection): array
    {
        $found = [];
        $failure = null;
        while (($line = $connection->line()) !== 'MN') {
            if (!str_starts_with($line, 'VA ')) {
                $failure ??= $line;
                continue;
            }
            $item = self::value($connection, $line);
            $found[$item->place] = $item;
        }
        return $failure === null ? $found : throw Connection::refused($failure);
    }

    private static function value(Connection $connection, string $line): Item
    {
        $words = explode(' ', $line);
        if ($words[0] !== 'VA' || !ctype_digit($words[1] ?? '')) {
            throw Connection::refused($line);
        }
        $data = $connection->block((int) $words[1]);
        $said = [];
        for ($at = 2; $at < count($words); $at++) {
            $said[$words[$at][0] ?? ''] = substr($words[$at], 1);
        }
        return new Item(
            $data,
            (int) ($said['f'] ?? 0),
            $said['c'] ?? '0',
            isset($said['W']),
            isset($said['X']),
            (int) ($said['O'] ?? 0),
        );
    }

    /** Whether a command was done, that is answered with one line. */
    public static function done(string $line): bool
    {
        return match (substr($line, 0, 2)) {
            'HD' => true,
            'NS', 'EX', 'NF', 'EN' => false,
            default => throw Connection::refused($line),
        };
    }

    /**
     * What quiet commands answered before their `mn`; success and missing keys are not among it.
     *
     * @return list<string>
     */
    public static function refusals(Connection $connection): array
    {
        $found = [];
        while (($line = $connection->line()) !== 'MN') {
            if (substr($line, 0, 2) !== 'NF') {
                $found[] = $line;
            }
        }
        return $found;
    }
}

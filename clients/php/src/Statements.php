<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\StatementException;

/** Statements about a table, which is made again if somebody has dropped it. */
final class Statements
{
    public function __construct(private readonly Client $client, private readonly Definition $definition)
    {
    }

    /**
     * Runs a statement. If the table is gone, it is made, and the statement runs again.
     *
     * @param list<mixed> $parameters
     *
     * @return list<array<string, mixed>>|int
     */
    public function run(string $text, array $parameters = [], bool $again = true): array|int
    {
        try {
            return $this->client->statement($text, $parameters, $again);
        } catch (StatementException $why) {
            if (!in_array($why->sqlstate, StatementException::OF_NO_TABLE, true)) {
                throw $why;
            }
        }
        $this->client->run(fn (Connection $connection) => $this->definition->ensure($connection));
        return $this->client->statement($text, $parameters, $again);
    }

    /**
     * Runs a statement that writes; the number of rows.
     *
     * @param list<mixed> $parameters
     */
    public function changed(string $text, array $parameters = [], bool $again = true): int
    {
        $result = $this->run($text, $parameters, $again);
        return is_int($result) ? $result : count($result);
    }
}

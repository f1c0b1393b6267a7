<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** A statement failed. */
final class StatementException extends SqlcachedException
{
    /** The table is gone. Then `tags && ?` may be refused before that is seen: the type of a missing column is not known. */
    public const OF_NO_TABLE = ['42P01', '42725'];
    public const FORBIDDEN = '42501';

    /** @param string $sqlstate PostgreSQL's code of five characters */
    public function __construct(public readonly string $sqlstate, string $message)
    {
        parent::__construct("$message ($sqlstate)");
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** A parameter of a statement that is bytes and no text. */
final class Bytes
{
    public function __construct(public readonly string $data)
    {
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** A row as the daemon answers it. */
final class Item
{
    /**
     * @param string $cas changes whenever the row changes; 64 bits without a sign
     * @param bool $won this client is asked to compute the value
     * @param int $place which of several keys
     */
    public function __construct(
        public readonly string $data,
        public readonly int $flags,
        public readonly string $cas,
        public readonly bool $won,
        public readonly bool $stale,
        public readonly int $place = 0,
    ) {
    }

    /** Nothing but the place of a value that is being computed. */
    public function isReserved(): bool
    {
        return $this->data === '' && $this->flags === 0;
    }

    /** A value that may be returned. */
    public function isFresh(): bool
    {
        return !$this->stale && !$this->isReserved();
    }
}

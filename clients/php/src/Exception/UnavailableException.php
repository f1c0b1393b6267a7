<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** The daemon cannot be reached, or did not answer in time. */
final class UnavailableException extends SqlcachedException
{
    /** @param bool $late whether the daemon was waited for as long as a call may take */
    public function __construct(string $message, public readonly bool $late = false)
    {
        parent::__construct($message);
    }
}

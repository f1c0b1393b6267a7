<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** The daemon cannot be reached, or did not answer in time. */
final class UnavailableException extends SqlcachedException
{
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** The daemon refused a command: a value that is too large, a row that a constraint forbids. */
final class RefusedException extends SqlcachedException
{
}

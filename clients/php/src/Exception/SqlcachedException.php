<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** Every error of this package. */
class SqlcachedException extends \RuntimeException
{
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Exception;

/** A key or a deadline that PSR-16 forbids. */
final class InvalidArgumentException extends \InvalidArgumentException implements \Psr\SimpleCache\InvalidArgumentException
{
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

/** What `Cache::store('sqlcached')` returns. */
class Repository extends \Illuminate\Cache\Repository
{
    use Remembers;
}

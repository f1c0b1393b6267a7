<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

use Sqlcached\Cache\Laravel\Store;

/** A store without rows, as Laravel's tests make one for each test. */
final class EmptyStore extends Store
{
    public function __construct()
    {
        parent::__construct(Place::options(), '', 'suite_laravel');
        $this->flush();
        $this->lock('any')->acquire();
        Place::sql('TRUNCATE suite_laravel_locks');
    }
}

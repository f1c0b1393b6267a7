<?php

require getenv('AUTOLOAD') ?: 'vendor/autoload.php';

use Sqlcached\Cache\Psr16;

$cache = new Psr16('127.0.0.1:' . (getenv('SQLCACHED_PORT') ?: 11211), 'example');
$cache->set('page.17', 'hello', 600, ['product:17', 'shop']);
echo $cache->get('page.17'), "\n";

// All that shows the product, whatever its keys are.
$cache->invalidateTags(['product:17']);
assert($cache->get('page.17') === null);

// Of all processes that miss the value at once, one computes it.
assert($cache->getOrSet('sum', fn () => 1 + 1, 60) === 2);

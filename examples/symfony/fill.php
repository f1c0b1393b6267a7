<?php

/** Makes the shop's database: products, reviews, and a user who may edit. */

declare(strict_types=1);

use Shop\Database;

require_once getenv('AUTOLOAD') ?: __DIR__ . '/vendor/autoload.php';

$database = new Database(getenv('SHOP_DATABASE') ?: __DIR__ . '/shop.sqlite3');
$database->fill('ann', 'lamp oil');
echo count($database->products()), " products\n";

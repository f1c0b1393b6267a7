<?php

/** Gives a product another price: `php reprice.php 1 35`. */

declare(strict_types=1);

['database' => $database, 'editor' => $editor] = require __DIR__ . '/bootstrap.php';

[, $id, $price] = $argv;
$name = $database->product((int) $id)['name'];
$editor->change((int) $id, $name, (int) $price);
echo "$name costs $price\n";

<?php

declare(strict_types=1);

namespace Shop;

/** Changes products, and removes what shows them. */
final class Editor
{
    public function __construct(private readonly Database $database, private readonly Fragments $fragments)
    {
    }

    public function change(int $product, string $name, int $price): void
    {
        $this->database->change($product, $name, $price);
        // Behind the commit: who makes a fragment now reads what was committed.
        $this->fragments->changed($product);
    }
}

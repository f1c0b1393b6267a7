<?php

declare(strict_types=1);

namespace Sqlcached\Cache\WordPress;

/** How the rows of a group of WordPress' values are called. */
final class Group
{
    /** The group as rows begin with it. */
    public readonly string $name;

    /** @param string $site how keys of a site begin; empty where all sites share the group */
    public function __construct(string $group, private readonly string $site)
    {
        // No group's name begins with that of another.
        $this->name = str_replace(['%', ':'], ['%25', '%3A'], $group) . ':';
    }

    /** A key within the group. */
    public function key(int|string $key): string
    {
        return $this->site . $key;
    }

    /** The key of the row. */
    public function row(int|string $key): string
    {
        return $this->name . $this->key($key);
    }
}

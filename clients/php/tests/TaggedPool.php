<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

use Cache\TagInterop\TaggableCacheItemPoolInterface;
use Psr\Cache\CacheItemInterface;
use Sqlcached\Cache\Symfony\TagAwareAdapter;

/** The pool of Symfony under the interface that the integration tests of tags ask for. It only gives calls their names. */
final class TaggedPool implements TaggableCacheItemPoolInterface
{
    public function __construct(private readonly TagAwareAdapter $pool)
    {
    }

    public function invalidateTag($tag): bool
    {
        return $this->pool->invalidateTags([$tag]);
    }

    public function invalidateTags(array $tags): bool
    {
        return $this->pool->invalidateTags($tags);
    }

    public function getItem($key): TaggedItem
    {
        return new TaggedItem($this->pool->getItem($key));
    }

    public function getItems(array $keys = []): iterable
    {
        foreach ($this->pool->getItems($keys) as $key => $item) {
            yield $key => new TaggedItem($item);
        }
    }

    public function hasItem($key): bool
    {
        return $this->pool->hasItem($key);
    }

    public function clear(): bool
    {
        return $this->pool->clear();
    }

    public function deleteItem($key): bool
    {
        return $this->pool->deleteItem($key);
    }

    public function deleteItems(array $keys): bool
    {
        return $this->pool->deleteItems($keys);
    }

    public function save(CacheItemInterface $item): bool
    {
        return $item instanceof TaggedItem && $this->pool->save($item->item);
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        return $item instanceof TaggedItem && $this->pool->saveDeferred($item->item);
    }

    public function commit(): bool
    {
        return $this->pool->commit();
    }
}

<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

use Cache\TagInterop\TaggableCacheItemInterface;
use Symfony\Component\Cache\CacheItem;

/** An item of Symfony under the interface that the integration tests of tags ask for. */
final class TaggedItem implements TaggableCacheItemInterface
{
    /** @var array<string, string> */
    private readonly array $before;

    public function __construct(public readonly CacheItem $item)
    {
        $this->before = $item->getMetadata()[CacheItem::METADATA_TAGS] ?? [];
    }

    /** @return array<string, string> */
    public function getPreviousTags(): array
    {
        return $this->before;
    }

    public function setTags(array $tags): static
    {
        $this->item->tag($tags);
        return $this;
    }

    public function getKey(): string
    {
        return $this->item->getKey();
    }

    public function get(): mixed
    {
        return $this->item->get();
    }

    public function isHit(): bool
    {
        return $this->item->isHit();
    }

    public function set($value): static
    {
        $this->item->set($value);
        return $this;
    }

    public function expiresAt($expiration): static
    {
        $this->item->expiresAt($expiration);
        return $this;
    }

    public function expiresAfter($time): static
    {
        $this->item->expiresAfter($time);
        return $this;
    }
}

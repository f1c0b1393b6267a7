<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

/** Tags have no versions here: a row has its tags, and to reset a tag is to remove its rows. */
final class TagSet extends \Illuminate\Cache\TagSet
{
    public function reset(): void
    {
        $this->flush();
    }

    public function resetTag($name): string
    {
        $this->rows([(string) $name]);
        return (string) $name;
    }

    public function flush(): void
    {
        $this->rows(array_values($this->names));
    }

    public function flushTag($name): void
    {
        $this->rows([(string) $name]);
    }

    public function tagId($name): string
    {
        return (string) $name;
    }

    /** Values of other tags are others, whatever the order. */
    public function getNamespace(): string
    {
        $names = array_unique(array_map(strval(...), $this->names));
        sort($names, SORT_STRING);
        return serialize($names);
    }

    /** @param list<string> $names */
    private function rows(array $names): bool
    {
        return $this->store instanceof Store && $this->store->flushTags($names);
    }
}

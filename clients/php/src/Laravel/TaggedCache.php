<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

/** What `Cache::tags([...])` returns. */
final class TaggedCache extends \Illuminate\Cache\TaggedCache
{
    use Remembers;

    /** Removes all values with one of these tags, by one statement. Whether that got through. */
    public function flush(): bool
    {
        $store = $this->store;
        return $store instanceof Store && $store->flushTags(array_map(strval(...), array_values($this->tags->getNames())));
    }
}

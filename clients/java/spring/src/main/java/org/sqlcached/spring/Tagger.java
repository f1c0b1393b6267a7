package org.sqlcached.spring;

import java.util.Collection;

/** Says which tags a value gets. A bean of this type holds for all caches of a manager. */
@FunctionalInterface
public interface Tagger {
    /**
     * @param cache the cache's name
     * @param key the value's key
     * @param value what is cached; null too, where a method gave null
     * @return by which tags it can be removed
     */
    Collection<String> tags(String cache, Object key, Object value);
}

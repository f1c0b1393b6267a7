package org.sqlcached.jcache;

import javax.cache.Cache;

/**
 * What a listener of a cache implements, too, to learn that entries may have changed without an event for each. JCache has no
 * event for that. A listener that keeps copies of entries drops all of them.
 *
 * <p>It is called if the cache hears other clients of the daemon (the property {@code sqlcached.events}): when it begins to
 * hear them, when it hears them again after the connection was lost, and when somebody emptied the table.
 */
public interface AllChangedListener {
    /** @param cache whose entries may have changed */
    void onAllMayHaveChanged(Cache<?, ?> cache);
}

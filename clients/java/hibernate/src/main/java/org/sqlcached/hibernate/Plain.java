package org.sqlcached.hibernate;

import java.util.function.Function;
import org.hibernate.cache.CacheException;
import org.hibernate.cache.spi.support.StorageAccess;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.sqlcached.client.Item;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Write;

/** A region whose values are overwritten as they come: answers of queries, and when tables were changed. */
final class Plain implements StorageAccess {
    private final Loading rows;
    private final Function<Object, String> texts;
    private final long ttl;
    private final Object unknown;

    /**
     * @param rows where the values are
     * @param texts the text of a key
     * @param ttl seconds that a value lives, as {@link Write} has them
     * @param unknown what is answered while the rows cannot be read
     */
    Plain(Loading rows, Function<Object, String> texts, long ttl, Object unknown) {
        this.rows = rows;
        this.texts = texts;
        this.ttl = ttl;
        this.unknown = unknown;
    }

    @Override
    public Object getFromCache(Object key, SharedSessionContractImplementor session) {
        String text = texts.apply(key);
        try {
            Item item = rows.table().get(text);
            return item == null && !rows.table().isReadable(text) ? unknown : rows.value(text, item);
        } catch (SqlcachedException why) {
            rows.warn(why);
            return unknown;
        }
    }

    @Override
    public void putIntoCache(Object key, Object value, SharedSessionContractImplementor session) {
        String text = texts.apply(key);
        try {
            rows.set(text, value, ttl);
        } catch (SqlcachedException why) {
            rows.warn(why);
            // The table is not read until the old value was removed.
            evictData(key);
        }
    }

    @Override
    public boolean contains(Object key) {
        return getFromCache(key, null) != null;
    }

    @Override
    public void evictData() {
        try {
            rows.table().clear();
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }

    @Override
    public void evictData(Object key) {
        try {
            rows.table().delete(texts.apply(key));
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }

    @Override
    public void release() {
        // The connections are the factory's.
    }
}

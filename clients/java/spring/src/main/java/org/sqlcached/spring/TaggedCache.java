package org.sqlcached.spring;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.springframework.cache.support.AbstractValueAdaptingCache;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyText;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Write;

/** A cache of Spring, whose entries are the rows of a table. Beyond Spring it removes by tags and by a condition of SQL. */
public final class TaggedCache extends AbstractValueAdaptingCache {
    private final String name;
    private final Loading rows;
    private final Tagger tagger;

    TaggedCache(String name, Loading rows, Tagger tagger) {
        super(true);
        this.name = name;
        this.rows = rows;
        this.tagger = tagger;
    }

    @Override
    public String getName() {
        return name;
    }

    /** @return the rows, with leases and soft invalidation */
    @Override
    public Loading getNativeCache() {
        return rows;
    }

    /** A read that cannot be sent is a miss. */
    @Override
    protected Object lookup(Object key) {
        try {
            return rows.get(KeyText.of(key));
        } catch (SqlcachedException why) {
            rows.warn(why);
            return null;
        }
    }

    /**
     * Returns a value, or computes it: of all threads and JVMs one does, and what was computed before an invalidation is
     * not stored. {@code @Cacheable(sync = true)} calls it.
     */
    @Override
    @SuppressWarnings("unchecked")
    public <T> T get(Object key, Callable<T> loader) {
        return (T) fromStoreValue(rows.getOrMake(KeyText.of(key), text -> made(key, loaded(key, loader))));
    }

    private static <T> T loaded(Object key, Callable<T> loader) {
        try {
            return loader.call();
        } catch (Exception why) {
            throw new ValueRetrievalException(key, loader, why);
        }
    }

    private Loading.Made made(Object key, Object value) {
        return new Loading.Made(toStoreValue(value), Write.OF_TABLE, tagger.tags(name, key, value));
    }

    @Override
    public CompletableFuture<?> retrieve(Object key) {
        return CompletableFuture.supplyAsync(() -> get(key));
    }

    @Override
    public <T> CompletableFuture<T> retrieve(Object key, Supplier<CompletableFuture<T>> loader) {
        return CompletableFuture.supplyAsync(() -> get(key, () -> loader.get().join()));
    }

    /** The value of a row that cannot be written is removed, before anything is read again. */
    @Override
    public void put(Object key, Object value) {
        try {
            rows.table().set(row(key, value));
        } catch (SqlcachedException why) {
            rows.warn(why);
        }
    }

    private Write row(Object key, Object value) {
        Loading.Made made = made(key, value);
        return rows.write(KeyText.of(key), made.value(), made.ttl(), made.tags());
    }

    @Override
    public ValueWrapper putIfAbsent(Object key, Object value) {
        try {
            if (rows.table().set(row(key, value).mode(Write.Mode.ADD))) {
                return null;
            }
            Item item = rows.table().get(KeyText.of(key));
            return item == null ? null : toValueWrapper(rows.value(KeyText.of(key), item));
        } catch (SqlcachedException why) {
            rows.warn(why);
            return null;
        }
    }

    @Override
    public void evict(Object key) {
        evictIfPresent(key);
    }

    @Override
    public boolean evictIfPresent(Object key) {
        return rows.table().delete(KeyText.of(key));
    }

    @Override
    public void clear() {
        invalidate();
    }

    @Override
    public boolean invalidate() {
        return rows.table().clear() != 0;
    }

    /**
     * Removes all entries with one of these tags, for all JVMs.
     *
     * @param tags the tags
     * @return how many; -1 if the removal waits for the daemon
     */
    public long evictTags(String... tags) {
        return rows.table().removeTags(tags);
    }

    /**
     * Removes entries by a condition of SQL, for all JVMs.
     *
     * @param condition such as {@code key LIKE ? AND _age > 60}
     * @param parameters of the condition
     * @return how many; -1 if the removal waits for the daemon
     */
    public long evictWhere(String condition, Object... parameters) {
        return rows.table().removeWhere(condition, parameters);
    }
}

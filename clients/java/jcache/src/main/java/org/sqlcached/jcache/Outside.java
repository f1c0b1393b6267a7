package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import javax.cache.Cache;
import javax.cache.CacheException;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.integration.CacheLoader;
import javax.cache.integration.CacheLoaderException;
import javax.cache.integration.CacheWriter;
import javax.cache.integration.CacheWriterException;

/** The loader and the writer of a cache, if it reads and writes through. */
final class Outside<K, V> {
    private final CacheLoader<K, V> loader;
    private final CacheWriter<K, V> writer;
    private final boolean reads;
    private final boolean writes;

    @SuppressWarnings("unchecked")
    Outside(MutableConfiguration<K, V> told) {
        reads = told.isReadThrough();
        writes = told.isWriteThrough();
        loader = told.getCacheLoaderFactory() == null ? null : told.getCacheLoaderFactory().create();
        writer = told.getCacheWriterFactory() == null
                ? null
                : (CacheWriter<K, V>) (CacheWriter<?, ?>) told.getCacheWriterFactory().create();
    }

    boolean isRead() {
        return reads && loader != null;
    }

    boolean isWritten() {
        return writes && writer != null;
    }

    boolean hasLoader() {
        return loader != null;
    }

    List<Object> both() {
        List<Object> found = new ArrayList<>();
        if (loader != null) {
            found.add(loader);
        }
        if (writer != null) {
            found.add(writer);
        }
        return found;
    }

    V load(K key) {
        try {
            return loader.load(key);
        } catch (RuntimeException why) {
            throw loading(why);
        }
    }

    /** What there is of these keys; values that are not there are left out. */
    Map<K, V> loadAll(Collection<? extends K> keys) {
        Map<K, V> found = new HashMap<>();
        try {
            Map<K, V> loaded = loader.loadAll(keys);
            if (loaded != null) {
                loaded.forEach((key, value) -> {
                    if (key != null && value != null) {
                        found.put(key, value);
                    }
                });
            }
        } catch (RuntimeException why) {
            throw loading(why);
        }
        return found;
    }

    private static CacheException loading(RuntimeException why) {
        return why instanceof CacheLoaderException ? (CacheLoaderException) why : new CacheLoaderException(why);
    }

    private static CacheException writing(RuntimeException why) {
        return why instanceof CacheWriterException ? (CacheWriterException) why : new CacheWriterException(why);
    }

    void write(K key, V value) {
        if (!isWritten()) {
            return;
        }
        try {
            writer.write(new Pair<>(key, value));
        } catch (RuntimeException why) {
            throw writing(why);
        }
    }

    void delete(K key) {
        if (!isWritten()) {
            return;
        }
        try {
            writer.delete(key);
        } catch (RuntimeException why) {
            throw writing(why);
        }
    }

    /** Writes all; what is left in the map was not written, and the error is returned. */
    CacheException writeAll(Map<K, V> all) {
        Map<K, Cache.Entry<? extends K, ? extends V>> left = new HashMap<>();
        all.forEach((key, value) -> left.put(key, new Pair<>(key, value)));
        Collection<Cache.Entry<? extends K, ? extends V>> entries = new ArrayList<>(left.values());
        try {
            writer.writeAll(entries);
            all.clear();
            return null;
        } catch (RuntimeException why) {
            all.keySet().retainAll(entries.stream().map(Cache.Entry::getKey).toList());
            return writing(why);
        }
    }

    /** Deletes all; what is left in the collection was not deleted, and the error is returned. */
    CacheException deleteAll(Collection<K> keys) {
        try {
            writer.deleteAll(keys);
            keys.clear();
            return null;
        } catch (RuntimeException why) {
            return writing(why);
        }
    }

    /** An entry that nobody changes. */
    record Pair<K, V>(K key, V value) implements Cache.Entry<K, V> {
        Pair {
            Objects.requireNonNull(key);
        }

        @Override
        public K getKey() {
            return key;
        }

        @Override
        public V getValue() {
            return value;
        }

        @Override
        public <T> T unwrap(Class<T> type) {
            return SqlcachedCache.unwrapped(type, this);
        }
    }
}

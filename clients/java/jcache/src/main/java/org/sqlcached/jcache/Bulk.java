package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.cache.CacheException;
import javax.cache.processor.EntryProcessor;
import javax.cache.processor.EntryProcessorException;
import javax.cache.processor.EntryProcessorResult;

/** Calls that are about many keys at once. */
final class Bulk<K, V> {
    private final Store<K, V> store;
    private final Deadlines deadlines;
    private final Outside<K, V> outside;
    private final Statistics statistics;
    private final Changes<K, V> changes;
    private final Loads<K, V> loads;

    Bulk(
            Store<K, V> store,
            Deadlines deadlines,
            Outside<K, V> outside,
            Statistics statistics,
            Changes<K, V> changes,
            Loads<K, V> loads) {
        this.store = store;
        this.deadlines = deadlines;
        this.outside = outside;
        this.statistics = statistics;
        this.changes = changes;
        this.loads = loads;
    }

    Map<K, V> getAll(Set<? extends K> keys, long since) {
        Map<String, K> texts = new LinkedHashMap<>();
        keys.forEach(key -> texts.put(store.keys().text(key), key));
        Map<K, V> found = new HashMap<>();
        store.readAll(List.copyOf(texts.keySet())).forEach((text, loaded) -> {
            Store.Found<K, V> each = store.found(texts.get(text), text, loaded.item(), loaded.value());
            if (each.isThere()) {
                changes.seen(each);
                found.put(each.key(), each.value());
            }
        });
        statistics.looked(found.size(), keys.size() - (long) found.size(), since);
        if (outside.isRead() && found.size() < keys.size()) {
            List<K> missing = new ArrayList<>(keys);
            missing.removeIf(found::containsKey);
            found.putAll(loads.all(missing));
        }
        return found;
    }

    void putAll(Map<? extends K, ? extends V> map, long since) {
        Map<K, V> all = new HashMap<>(map);
        CacheException failure = null;
        if (outside.isWritten()) {
            Map<K, V> left = new HashMap<>(map);
            failure = outside.writeAll(left);
            all.keySet().removeAll(left.keySet());
        }
        if (changes.isBlind()) {
            store.setAll(all, deadlines.ofCreation());
            statistics.put(all.size(), since);
        } else {
            long count = all.entrySet().stream().filter(each -> changes.putQuietly(each.getKey(), each.getValue())).count();
            statistics.put(count, since);
        }
        if (failure != null) {
            throw failure;
        }
    }

    void removeAll(Collection<? extends K> keys, long since) {
        List<K> all = new ArrayList<>(keys);
        CacheException failure = null;
        if (outside.isWritten() && !keys.isEmpty()) {
            List<K> left = new ArrayList<>(keys);
            failure = outside.deleteAll(left);
            all.removeAll(left);
        }
        long count = all.stream().filter(changes::removeQuietly).count();
        statistics.removed(count, since);
        if (failure != null) {
            throw failure;
        }
    }

    /** Asks a processor about each key. The error of one is told where its result is asked for. */
    <T> Map<K, EntryProcessorResult<T>> invokeAll(
            Set<? extends K> keys, EntryProcessor<K, V, T> processor, Object... arguments) {
        Map<K, EntryProcessorResult<T>> found = new HashMap<>();
        for (K key : keys) {
            try {
                T result = changes.invoke(key, processor, arguments);
                if (result != null) {
                    found.put(key, () -> result);
                }
            } catch (RuntimeException why) {
                EntryProcessorException told =
                        why instanceof EntryProcessorException each ? each : new EntryProcessorException(why);
                found.put(key, () -> {
                    throw told;
                });
            }
        }
        return found;
    }
}

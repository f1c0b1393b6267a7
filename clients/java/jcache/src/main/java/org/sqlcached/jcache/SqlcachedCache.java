package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.cache.Cache;
import javax.cache.CacheException;
import javax.cache.CacheManager;
import javax.cache.configuration.CacheEntryListenerConfiguration;
import javax.cache.configuration.Configuration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.expiry.ExpiryPolicy;
import javax.cache.integration.CompletionListener;
import javax.cache.processor.EntryProcessor;
import javax.cache.processor.EntryProcessorException;
import javax.cache.processor.EntryProcessorResult;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;

/**
 * A cache of JCache, whose entries are the rows of a table. Beyond JCache it removes by a condition of SQL and by tags.
 *
 * @param <K> the type of the keys
 * @param <V> the type of the values
 */
public final class SqlcachedCache<K, V> implements Cache<K, V> {
    private final SqlcachedManager manager;
    private final String name;
    private final MutableConfiguration<K, V> told;
    private final Store<K, V> store;
    private final Deadlines deadlines;
    private final Events<K, V> events = new Events<>(this);
    private final Outside<K, V> outside;
    private final Statistics statistics = new Statistics();
    private final Changes<K, V> changes;
    private final Loads<K, V> loads;
    private final Beans beans;
    private final ExpiryPolicy policy;
    private volatile boolean closed;

    SqlcachedCache(SqlcachedManager manager, String name, MutableConfiguration<K, V> told, Loading rows, KeyType<K> keys) {
        this.manager = manager;
        this.name = name;
        this.told = told;
        this.policy = told.getExpiryPolicyFactory().create();
        this.deadlines = new Deadlines(policy);
        this.outside = new Outside<>(told);
        this.store = new Store<>(rows, keys, events);
        this.changes = new Changes<>(store, deadlines, events, outside, statistics);
        this.loads = new Loads<>(name, store, deadlines, events, outside, changes);
        this.beans = new Beans(this);
    }

    void open() {
        told.getCacheEntryListenerConfigurations().forEach(events::add);
        setStatistics(told.isStatisticsEnabled());
        setManagement(told.isManagementEnabled());
    }

    Loading rows() {
        return store.rows();
    }

    private void check() {
        if (closed) {
            throw new IllegalStateException("the cache " + name + " is closed");
        }
    }

    private K key(K key) {
        check();
        Objects.requireNonNull(key, "the key");
        if (!store.keys().accepts(key)) {
            throw new ClassCastException("a key of " + key.getClass().getName());
        }
        return key;
    }

    private V value(V value) {
        Objects.requireNonNull(value, "the value");
        if (!told.getValueType().isInstance(value)) {
            throw new ClassCastException("a value of " + value.getClass().getName());
        }
        return value;
    }

    private void keys(Collection<? extends K> keys) {
        check();
        Objects.requireNonNull(keys, "the keys");
        keys.forEach(this::key);
    }

    // Reading.

    @Override
    public V get(K key) {
        long since = System.nanoTime();
        Store.Found<K, V> found = store.read(key(key));
        statistics.looked(found.isThere(), since);
        if (found.isThere()) {
            seen(found);
            return found.value();
        }
        return outside.isRead() ? loads.one(key) : null;
    }

    private void seen(Store.Found<K, V> found) {
        if (!deadlines.isAccessFree()) {
            store.access(found, deadlines.ofAccess());
        }
    }

    @Override
    public Map<K, V> getAll(Set<? extends K> keys) {
        long since = System.nanoTime();
        keys(keys);
        Map<String, K> texts = new LinkedHashMap<>();
        keys.forEach(key -> texts.put(store.keys().text(key), key));
        Map<K, V> found = new HashMap<>();
        store.readAll(List.copyOf(texts.keySet())).forEach((text, item) -> {
            Store.Found<K, V> each = store.found(texts.get(text), text, item);
            if (each.isThere()) {
                seen(each);
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

    @Override
    public boolean containsKey(K key) {
        return store.read(key(key)).isThere();
    }

    @Override
    public void loadAll(Set<? extends K> keys, boolean replaceExisting, CompletionListener listener) {
        keys(keys);
        loads.start(keys, replaceExisting, listener);
    }

    // Writing.

    @Override
    public void put(K key, V value) {
        long since = System.nanoTime();
        key(key);
        value(value);
        if (changes.isBlind()) {
            outside.write(key, value);
            store.set(key, value, deadlines.ofCreation());
            statistics.put(1, since);
        } else {
            statistics.put(changes.put(key, value).isDone() ? 1 : 0, since);
        }
    }

    @Override
    public V getAndPut(K key, V value) {
        long since = System.nanoTime();
        Changes.Done<V> done = changes.put(key(key), value(value));
        statistics.looked(done.old() != null, since);
        statistics.put(done.isDone() ? 1 : 0, since);
        return done.old();
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> map) {
        long since = System.nanoTime();
        check();
        keys(map.keySet());
        map.values().forEach(this::value);
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

    @Override
    public boolean putIfAbsent(K key, V value) {
        long since = System.nanoTime();
        boolean done = changes.putIfAbsent(key(key), value(value));
        statistics.looked(!done, since);
        statistics.put(done ? 1 : 0, since);
        return done;
    }

    @Override
    public boolean replace(K key, V before, V value) {
        long since = System.nanoTime();
        key(key);
        return replaced(changes.replace(key, value(before), value(value)), since);
    }

    @Override
    public boolean replace(K key, V value) {
        long since = System.nanoTime();
        return replaced(changes.replace(key(key), value(value)), since);
    }

    private boolean replaced(Changes.Done<V> done, long since) {
        statistics.looked(done.old() != null, since);
        statistics.put(done.isDone() ? 1 : 0, since);
        return done.isDone();
    }

    @Override
    public V getAndReplace(K key, V value) {
        long since = System.nanoTime();
        Changes.Done<V> done = changes.replace(key(key), value(value));
        replaced(done, since);
        return done.old();
    }

    // Removing.

    @Override
    public boolean remove(K key) {
        long since = System.nanoTime();
        boolean done = changes.remove(key(key)).isDone();
        statistics.removed(done ? 1 : 0, since);
        return done;
    }

    @Override
    public boolean remove(K key, V old) {
        long since = System.nanoTime();
        key(key);
        Changes.Done<V> done = changes.remove(key, value(old)::equals);
        statistics.looked(done.old() != null, since);
        statistics.removed(done.isDone() ? 1 : 0, since);
        return done.isDone();
    }

    @Override
    public V getAndRemove(K key) {
        long since = System.nanoTime();
        V old = changes.remove(key(key)).old();
        statistics.looked(old != null, since);
        statistics.removed(old == null ? 0 : 1, since);
        return old;
    }

    @Override
    public void removeAll(Set<? extends K> keys) {
        long since = System.nanoTime();
        keys(keys);
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

    @Override
    public void removeAll() {
        check();
        if (!outside.isWritten() && events.isEmpty() && !statistics.isOn) {
            clear();
            return;
        }
        Set<K> keys = new HashSet<>();
        new Walk<>(this, store, changes, null).forEachRemaining(entry -> keys.add(entry.getKey()));
        removeAll(keys);
    }

    @Override
    public void clear() {
        check();
        Store.asked(() -> rows().table().clear());
    }

    /**
     * Removes entries by a condition of SQL. Listeners and writers are not told.
     *
     * @param condition such as {@code key LIKE ? AND _age > 60}
     * @param parameters of the condition
     * @return how many; -1 if the removal waits for the daemon
     */
    public long removeWhere(String condition, Object... parameters) {
        check();
        return Store.asked(() -> rows().table().removeWhere(condition, parameters));
    }

    // Entry processors.

    @Override
    public <T> T invoke(K key, EntryProcessor<K, V, T> processor, Object... arguments) {
        key(key);
        Objects.requireNonNull(processor, "the processor");
        return changes.invoke(key, processor, arguments);
    }

    @Override
    public <T> Map<K, EntryProcessorResult<T>> invokeAll(
            Set<? extends K> keys, EntryProcessor<K, V, T> processor, Object... arguments) {
        keys(keys);
        Objects.requireNonNull(processor, "the processor");
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

    // The cache itself.

    @Override
    public String getName() {
        return name;
    }

    @Override
    public CacheManager getCacheManager() {
        return manager;
    }

    @Override
    public <C extends Configuration<K, V>> C getConfiguration(Class<C> type) {
        if (type.isInstance(told)) {
            return type.cast(told);
        }
        throw new IllegalArgumentException("the configuration is no " + type.getName());
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        loads.close();
        manager.forget(name);
        beans.setStatistics(false, statistics);
        beans.setConfiguration(false, told);
        List<Object> all = new ArrayList<>(outside.both());
        all.add(policy);
        all.addAll(events.listeners());
        all.forEach(SqlcachedCache::end);
    }

    /** What the application gave, and wants to be closed. */
    private static void end(Object each) {
        if (each instanceof AutoCloseable closeable) {
            try {
                closeable.close();
            } catch (Exception why) {
                System.getLogger("org.sqlcached").log(System.Logger.Level.WARNING, "it could not be closed", why);
            }
        }
    }

    @Override
    public boolean isClosed() {
        return closed;
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return type.isInstance(store.rows()) ? type.cast(store.rows()) : unwrapped(type, this);
    }

    static <T> T unwrapped(Class<T> type, Object from) {
        if (type.isInstance(from)) {
            return type.cast(from);
        }
        throw new IllegalArgumentException("it is no " + type.getName());
    }

    void setStatistics(boolean on) {
        check();
        told.setStatisticsEnabled(on);
        statistics.isOn = on;
        beans.setStatistics(on, statistics);
    }

    void setManagement(boolean on) {
        check();
        told.setManagementEnabled(on);
        beans.setConfiguration(on, told);
    }

    @Override
    public void registerCacheEntryListener(CacheEntryListenerConfiguration<K, V> listener) {
        check();
        told.addCacheEntryListenerConfiguration(listener);
        events.add(listener);
    }

    @Override
    public void deregisterCacheEntryListener(CacheEntryListenerConfiguration<K, V> listener) {
        check();
        told.removeCacheEntryListenerConfiguration(listener);
        events.remove(listener);
    }

    @Override
    public Iterator<Cache.Entry<K, V>> iterator() {
        check();
        return new Walk<>(this, store, changes, this::visited);
    }

    private void visited(Store.Found<K, V> found) {
        long since = System.nanoTime();
        seen(found);
        statistics.looked(true, since);
    }

    void removed() {
        statistics.removed(1, System.nanoTime());
    }
}

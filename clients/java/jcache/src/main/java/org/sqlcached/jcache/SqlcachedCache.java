package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.cache.Cache;
import javax.cache.CacheManager;
import javax.cache.configuration.CacheEntryListenerConfiguration;
import javax.cache.configuration.Configuration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.expiry.ExpiryPolicy;
import javax.cache.integration.CompletionListener;
import javax.cache.processor.EntryProcessor;
import javax.cache.processor.EntryProcessorResult;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;

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
    private final Bulk<K, V> bulk;
    private final Checks<K, V> checks;
    private final Beans beans;
    private final ExpiryPolicy policy;
    private final List<AutoCloseable> heard = new ArrayList<>();

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
        this.bulk = new Bulk<>(store, deadlines, outside, statistics, changes, loads);
        this.checks = new Checks<>(name, keys, told.getValueType());
        this.beans = new Beans(this);
    }

    /**
     * Hears other clients of the daemon.
     *
     * @param near how copies are kept; null: none are
     * @param listens whether listeners learn what others change
     */
    void hear(Near near, boolean listens) {
        if (near != null) {
            heard.add(rows().near(near));
        }
        if (listens) {
            store.told().isOn = true;
            heard.addAll(rows().table().listen(new Remote<>(name, rows(), store.keys(), events, store.told())));
        }
    }

    void open() {
        told.getCacheEntryListenerConfigurations().forEach(events::add);
        setStatistics(told.isStatisticsEnabled());
        setManagement(told.isManagementEnabled());
    }

    Loading rows() {
        return store.rows();
    }

    // Reading.

    @Override
    public V get(K key) {
        long since = System.nanoTime();
        Store.Found<K, V> found = store.read(checks.key(key));
        statistics.looked(found.isThere(), since);
        if (found.isThere()) {
            changes.seen(found);
            return found.value();
        }
        return outside.isRead() ? loads.one(key) : null;
    }

    @Override
    public Map<K, V> getAll(Set<? extends K> keys) {
        long since = System.nanoTime();
        checks.keys(keys);
        return bulk.getAll(keys, since);
    }

    @Override
    public boolean containsKey(K key) {
        return store.read(checks.key(key)).isThere();
    }

    @Override
    public void loadAll(Set<? extends K> keys, boolean replaceExisting, CompletionListener listener) {
        checks.keys(keys);
        loads.start(keys, replaceExisting, listener);
    }

    // Writing.

    @Override
    public void put(K key, V value) {
        long since = System.nanoTime();
        checks.key(key);
        checks.value(value);
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
        Changes.Done<V> done = changes.put(checks.key(key), checks.value(value));
        statistics.looked(done.old() != null, since);
        statistics.put(done.isDone() ? 1 : 0, since);
        return done.old();
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> map) {
        long since = System.nanoTime();
        checks.open();
        checks.keys(map.keySet());
        map.values().forEach(checks::value);
        bulk.putAll(map, since);
    }

    @Override
    public boolean putIfAbsent(K key, V value) {
        long since = System.nanoTime();
        boolean done = changes.putIfAbsent(checks.key(key), checks.value(value));
        statistics.looked(!done, since);
        statistics.put(done ? 1 : 0, since);
        return done;
    }

    @Override
    public boolean replace(K key, V before, V value) {
        long since = System.nanoTime();
        checks.key(key);
        return replaced(changes.replace(key, checks.value(before), checks.value(value)), since);
    }

    @Override
    public boolean replace(K key, V value) {
        long since = System.nanoTime();
        return replaced(changes.replace(checks.key(key), checks.value(value)), since);
    }

    private boolean replaced(Changes.Done<V> done, long since) {
        statistics.looked(done.old() != null, since);
        statistics.put(done.isDone() ? 1 : 0, since);
        return done.isDone();
    }

    @Override
    public V getAndReplace(K key, V value) {
        long since = System.nanoTime();
        Changes.Done<V> done = changes.replace(checks.key(key), checks.value(value));
        replaced(done, since);
        return done.old();
    }

    // Removing.

    @Override
    public boolean remove(K key) {
        long since = System.nanoTime();
        boolean done = changes.remove(checks.key(key)).isDone();
        statistics.removed(done ? 1 : 0, since);
        return done;
    }

    @Override
    public boolean remove(K key, V old) {
        long since = System.nanoTime();
        checks.key(key);
        Changes.Done<V> done = changes.remove(key, checks.value(old)::equals);
        statistics.looked(done.old() != null, since);
        statistics.removed(done.isDone() ? 1 : 0, since);
        return done.isDone();
    }

    @Override
    public V getAndRemove(K key) {
        long since = System.nanoTime();
        V old = changes.remove(checks.key(key)).old();
        statistics.looked(old != null, since);
        statistics.removed(old == null ? 0 : 1, since);
        return old;
    }

    @Override
    public void removeAll(Set<? extends K> keys) {
        long since = System.nanoTime();
        checks.keys(keys);
        bulk.removeAll(keys, since);
    }

    @Override
    public void removeAll() {
        checks.open();
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
        checks.open();
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
        checks.open();
        return Store.asked(() -> rows().table().removeWhere(condition, parameters));
    }

    // Entry processors.

    @Override
    public <T> T invoke(K key, EntryProcessor<K, V, T> processor, Object... arguments) {
        checks.key(key);
        Objects.requireNonNull(processor, "the processor");
        return changes.invoke(key, processor, arguments);
    }

    @Override
    public <T> Map<K, EntryProcessorResult<T>> invokeAll(
            Set<? extends K> keys, EntryProcessor<K, V, T> processor, Object... arguments) {
        checks.keys(keys);
        Objects.requireNonNull(processor, "the processor");
        return bulk.invokeAll(keys, processor, arguments);
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
        if (!checks.close()) {
            return;
        }
        loads.close();
        manager.forget(name);
        beans.setStatistics(false, statistics);
        beans.setConfiguration(false, told);
        List<Object> all = new ArrayList<>(heard);
        all.addAll(outside.both());
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
        return checks.isClosed();
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
        checks.open();
        told.setStatisticsEnabled(on);
        statistics.isOn = on;
        beans.setStatistics(on, statistics);
    }

    void setManagement(boolean on) {
        checks.open();
        told.setManagementEnabled(on);
        beans.setConfiguration(on, told);
    }

    @Override
    public void registerCacheEntryListener(CacheEntryListenerConfiguration<K, V> listener) {
        checks.open();
        told.addCacheEntryListenerConfiguration(listener);
        events.add(listener);
    }

    @Override
    public void deregisterCacheEntryListener(CacheEntryListenerConfiguration<K, V> listener) {
        checks.open();
        told.removeCacheEntryListenerConfiguration(listener);
        events.remove(listener);
    }

    @Override
    public Iterator<Cache.Entry<K, V>> iterator() {
        checks.open();
        return new Walk<>(this, store, changes, this::visited);
    }

    private void visited(Store.Found<K, V> found) {
        long since = System.nanoTime();
        changes.seen(found);
        statistics.looked(true, since);
    }

    void removed() {
        statistics.removed(1, System.nanoTime());
    }
}

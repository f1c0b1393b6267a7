package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import javax.cache.CacheException;
import javax.cache.expiry.Duration;
import javax.cache.integration.CompletionListener;

/**
 * What a cache's loader brings. A value takes its place before it is loaded, and is not stored if somebody removed or
 * wrote the row meanwhile.
 */
final class Loads<K, V> {
    /** Seconds that a cache waits for its loads when it is closed. */
    private static final int PATIENCE = 30;

    private final ThreadLocal<Boolean> isLoading = new ThreadLocal<>();
    private final String name;
    private final Store<K, V> store;
    private final Deadlines deadlines;
    private final Events<K, V> events;
    private final Outside<K, V> outside;
    private final Changes<K, V> changes;
    private ExecutorService thread;
    private boolean closed;

    Loads(
            String name,
            Store<K, V> store,
            Deadlines deadlines,
            Events<K, V> events,
            Outside<K, V> outside,
            Changes<K, V> changes) {
        this.name = name;
        this.store = store;
        this.deadlines = deadlines;
        this.events = events;
        this.outside = outside;
        this.changes = changes;
    }

    /** Loads one value; null if there is none. */
    V one(K key) {
        long cas = store.reserve(key);
        boolean filled = false;
        try {
            V value = outside.load(key);
            if (value != null && cas != 0) {
                filled = filled(key, value, cas);
            }
            return value;
        } finally {
            if (cas != 0 && !filled) {
                store.giveUp(key, cas);
            }
        }
    }

    /** Loads many values. */
    Map<K, V> all(List<K> keys) {
        Map<K, Long> places = new HashMap<>();
        keys.forEach(key -> places.put(key, store.reserve(key)));
        try {
            Map<K, V> loaded = outside.loadAll(keys);
            loaded.forEach((key, value) -> {
                long cas = places.getOrDefault(key, 0L);
                if (cas != 0 && filled(key, value, cas)) {
                    places.remove(key);
                }
            });
            return loaded;
        } finally {
            places.forEach((key, cas) -> {
                if (cas != 0) {
                    store.giveUp(key, cas);
                }
            });
        }
    }

    private boolean filled(K key, V value, long cas) {
        Duration duration = deadlines.ofCreation();
        if (Deadlines.isZero(duration) || !store.fill(key, value, duration, cas)) {
            return false;
        }
        events.created(key, value);
        return true;
    }

    /** Loads values in another thread, and tells when that is done. */
    void start(Collection<? extends K> keys, boolean replaceExisting, CompletionListener listener) {
        if (!outside.hasLoader()) {
            if (listener != null) {
                listener.onCompletion();
            }
            return;
        }
        List<K> wanted = new ArrayList<>(keys);
        execute(() -> {
            isLoading.set(true);
            try {
                load(wanted, replaceExisting);
            } catch (RuntimeException why) {
                if (listener != null) {
                    listener.onException(why instanceof CacheException ? why : new CacheException(why));
                }
                return;
            }
            if (listener != null) {
                listener.onCompletion();
            }
        });
    }

    private void load(List<K> wanted, boolean replaceExisting) {
        if (replaceExisting) {
            outside.loadAll(wanted).forEach(changes::putQuietly);
            return;
        }
        wanted.removeIf(key -> store.read(key).isThere());
        if (!wanted.isEmpty()) {
            all(wanted);
        }
    }

    /** Loads run one after another, in a thread that ends with the cache. */
    private synchronized void execute(Runnable load) {
        if (closed) {
            throw new IllegalStateException("the cache " + name + " is closed");
        }
        if (thread == null) {
            thread = Executors.newSingleThreadExecutor(work -> {
                Thread made = new Thread(work, "sqlcached-load " + name);
                made.setDaemon(true);
                return made;
            });
        }
        thread.execute(load);
    }

    /** No more loads begin. Those that run are waited for: they use the loader, which is closed next. */
    void close() {
        ExecutorService loads;
        synchronized (this) {
            closed = true;
            loads = thread;
        }
        if (loads == null) {
            return;
        }
        loads.shutdown();
        try {
            // Who closes the cache within a load, or while a load hangs, does not wait for it.
            if (isLoading.get() == null && !loads.awaitTermination(PATIENCE, TimeUnit.SECONDS)) {
                loads.shutdownNow();
            }
        } catch (InterruptedException why) {
            loads.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }
}

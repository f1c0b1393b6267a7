package org.sqlcached.jcache;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.cache.Cache;
import javax.cache.configuration.CacheEntryListenerConfiguration;
import javax.cache.configuration.Factory;
import javax.cache.event.CacheEntryCreatedListener;
import javax.cache.event.CacheEntryEvent;
import javax.cache.event.CacheEntryEventFilter;
import javax.cache.event.CacheEntryExpiredListener;
import javax.cache.event.CacheEntryListener;
import javax.cache.event.CacheEntryListenerException;
import javax.cache.event.CacheEntryRemovedListener;
import javax.cache.event.CacheEntryUpdatedListener;
import javax.cache.event.EventType;

/**
 * Who is told of what this process changes, and other clients, if it hears them. Listeners are called by the thread that
 * made the change, and by that of the announcements.
 */
final class Events<K, V> {
    private record Registered<K, V>(
            CacheEntryListenerConfiguration<K, V> told,
            CacheEntryListener<? super K, ? super V> listener,
            CacheEntryEventFilter<? super K, ? super V> filter) {
    }

    private final Cache<K, V> cache;
    private final List<Registered<K, V>> all = new CopyOnWriteArrayList<>();

    Events(Cache<K, V> cache) {
        this.cache = cache;
    }

    void add(CacheEntryListenerConfiguration<K, V> told) {
        Factory<CacheEntryEventFilter<? super K, ? super V>> filter = told.getCacheEntryEventFilterFactory();
        all.add(new Registered<>(
                told, told.getCacheEntryListenerFactory().create(), filter == null ? null : filter.create()));
    }

    void remove(CacheEntryListenerConfiguration<K, V> told) {
        all.removeIf(each -> each.told.equals(told));
    }

    boolean isEmpty() {
        return all.isEmpty();
    }

    List<Object> listeners() {
        List<Object> found = new ArrayList<>();
        all.forEach(each -> {
            found.add(each.listener);
            if (each.filter != null) {
                found.add(each.filter);
            }
        });
        return found;
    }

    void created(K key, V value) {
        tell(EventType.CREATED, key, value, null);
    }

    void updated(K key, V value, V old) {
        tell(EventType.UPDATED, key, value, old);
    }

    void removed(K key, V old) {
        tell(EventType.REMOVED, key, old, old);
    }

    void expired(K key, V old) {
        tell(EventType.EXPIRED, key, old, old);
    }

    /** What other clients did. Nobody waits for it, so there is nobody to whom a listener's failure could be thrown. */
    void byOthers(EventType type, K key, V value) {
        for (Registered<K, V> each : all) {
            try {
                tell(each, new Event<>(cache, type, key, value, null));
            } catch (RuntimeException why) {
                failed(why);
            }
        }
    }

    /** Whether there are listeners that cannot learn it. */
    boolean allMayHaveChanged() {
        boolean deaf = false;
        for (Registered<K, V> each : all) {
            if (!(each.listener instanceof AllChangedListener listener)) {
                deaf = true;
                continue;
            }
            try {
                listener.onAllMayHaveChanged(cache);
            } catch (RuntimeException why) {
                failed(why);
            }
        }
        return deaf;
    }

    private void tell(EventType type, K key, V value, V old) {
        for (Registered<K, V> each : all) {
            try {
                tell(each, new Event<>(cache, type, key, value, old));
            } catch (RuntimeException why) {
                if (each.told.isSynchronous()) {
                    throw why instanceof CacheEntryListenerException ? why : new CacheEntryListenerException(why);
                }
                failed(why);
            }
        }
    }

    private static void failed(RuntimeException why) {
        System.getLogger("org.sqlcached").log(System.Logger.Level.WARNING, "a listener failed", why);
    }

    private void tell(Registered<K, V> to, Event<K, V> event) {
        EventType type = event.getEventType();
        if (hears(to, type) && (to.filter == null || to.filter.evaluate(event))) {
            call(to.listener, type, List.of(event));
        }
    }

    private static boolean hears(Registered<?, ?> each, EventType type) {
        return LISTENERS.get(type).isInstance(each.listener);
    }

    private static final Map<EventType, Class<?>> LISTENERS = new EnumMap<>(Map.of(
            EventType.CREATED, CacheEntryCreatedListener.class,
            EventType.UPDATED, CacheEntryUpdatedListener.class,
            EventType.REMOVED, CacheEntryRemovedListener.class,
            EventType.EXPIRED, CacheEntryExpiredListener.class));

    @SuppressWarnings("unchecked")
    private void call(CacheEntryListener<? super K, ? super V> to, EventType type, List<Event<K, V>> events) {
        Iterable<CacheEntryEvent<? extends K, ? extends V>> told =
                (Iterable<CacheEntryEvent<? extends K, ? extends V>>) (Iterable<?>) events;
        switch (type) {
            case CREATED -> ((CacheEntryCreatedListener<K, V>) to).onCreated(told);
            case UPDATED -> ((CacheEntryUpdatedListener<K, V>) to).onUpdated(told);
            case REMOVED -> ((CacheEntryRemovedListener<K, V>) to).onRemoved(told);
            case EXPIRED -> ((CacheEntryExpiredListener<K, V>) to).onExpired(told);
        }
    }

    /** What happened to a value. */
    private static final class Event<K, V> extends CacheEntryEvent<K, V> {
        private static final long serialVersionUID = 1L;

        private final transient K key;
        private final transient V value;
        private final transient V old;

        Event(Cache<K, V> cache, EventType type, K key, V value, V old) {
            super(cache, type);
            this.key = key;
            this.value = value;
            this.old = old;
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
        public V getOldValue() {
            return old;
        }

        @Override
        public boolean isOldValueAvailable() {
            return old != null;
        }

        @Override
        public <T> T unwrap(Class<T> type) {
            return SqlcachedCache.unwrapped(type, this);
        }
    }
}

package org.sqlcached.jcache;

import java.util.Collection;
import java.util.Objects;
import org.sqlcached.client.KeyType;

/** What a cache refuses: nulls, keys and values of other types, and everything when it is closed. */
final class Checks<K, V> {
    private final String name;
    private final KeyType<K> keys;
    private final Class<V> values;
    private volatile boolean closed;

    Checks(String name, KeyType<K> keys, Class<V> values) {
        this.name = name;
        this.keys = keys;
        this.values = values;
    }

    /** Closes the cache; whether it was open. */
    synchronized boolean close() {
        boolean before = closed;
        closed = true;
        return !before;
    }

    boolean isClosed() {
        return closed;
    }

    void open() {
        if (closed) {
            throw new IllegalStateException("the cache " + name + " is closed");
        }
    }

    K key(K key) {
        open();
        Objects.requireNonNull(key, "the key");
        if (!keys.accepts(key)) {
            throw new ClassCastException("a key of " + key.getClass().getName());
        }
        return key;
    }

    V value(V value) {
        Objects.requireNonNull(value, "the value");
        if (!values.isInstance(value)) {
            throw new ClassCastException("a value of " + value.getClass().getName());
        }
        return value;
    }

    void keys(Collection<? extends K> all) {
        open();
        Objects.requireNonNull(all, "the keys");
        all.forEach(this::key);
    }
}

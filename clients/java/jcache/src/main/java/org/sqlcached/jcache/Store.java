package org.sqlcached.jcache;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import javax.cache.CacheException;
import javax.cache.expiry.Duration;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loaded;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Write;

/** The rows of a cache: values that are there, and changes of one version. */
final class Store<K, V> {
    /** Attempts of a change. Each fails only because another client succeeded. */
    private static final int ATTEMPTS = 10_000;

    /** Seconds for which the place of a value is held that is being loaded. */
    private static final int LEASE = 30;

    private final Loading rows;
    private final Table table;
    private final KeyType<K> keys;
    private final Events<K, V> events;
    private final Told told = new Told();

    Store(Loading rows, KeyType<K> keys, Events<K, V> events) {
        this.rows = rows;
        this.table = rows.table();
        this.keys = keys;
        this.events = events;
    }

    /**
     * What is there: the row, or null, and its value, or null where there is none that may be used.
     */
    record Found<K, V>(K key, String text, Item item, V value) {
        boolean isThere() {
            return value != null;
        }
    }

    Loading rows() {
        return rows;
    }

    Told told() {
        return told;
    }

    KeyType<K> keys() {
        return keys;
    }

    static <R> R asked(Supplier<R> work) {
        try {
            return work.get();
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        } catch (IllegalArgumentException why) {
            // A key or a value that cannot be serialized.
            throw new CacheException(why.getMessage(), why);
        }
    }

    /** A read that cannot be sent is a miss. */
    Found<K, V> read(K key) {
        String text = asked(() -> keys.text(key));
        try {
            Loaded loaded = rows.read(text);
            return found(key, text, loaded.item(), loaded.value());
        } catch (UnavailableException why) {
            rows.warn(why);
            return new Found<>(key, text, null, null);
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }

    /** Values that are there, by one round trip for each 200 keys. */
    Map<String, Loaded> readAll(List<String> texts) {
        try {
            return rows.readAll(texts);
        } catch (UnavailableException why) {
            rows.warn(why);
            return Map.of();
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }

    /** A row with its value. */
    Found<K, V> found(K key, String text, Item item) {
        if (item == null || !item.isFresh()) {
            return new Found<>(key, text, item, null);
        }
        return found(key, text, item, rows.value(text, item));
    }

    /** What was read. A value whose time is over is removed, and that is told. */
    @SuppressWarnings("unchecked")
    Found<K, V> found(K key, String text, Item item, Object loaded) {
        V value = (V) loaded;
        if (value == null) {
            return new Found<>(key, text, null, null);
        }
        if (!Deadlines.isExpired(item.flags())) {
            return new Found<>(key, text, item, value);
        }
        if (asked(() -> deleted(text, item))) {
            events.expired(key, value);
        }
        return new Found<>(key, text, null, null);
    }

    /** Does something with what is there, again if another client was faster: then the work returns null. */
    <R> R change(K key, Function<Found<K, V>, R> work) {
        return asked(() -> {
            String text = keys.text(key);
            for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                Item item = table.item(text, 0);
                if (item == null && !table.isReadable(text)) {
                    throw new UnavailableException("the cache is not read until its removals were sent");
                }
                R result = work.apply(found(key, text, item));
                if (result != null) {
                    return result;
                }
            }
            throw new SqlcachedException("other clients change the value all the time");
        });
    }

    /** Writes without a look at the old value. */
    void set(K key, V value, Duration duration) {
        asked(() -> table.set(row(keys.text(key), value, duration)));
    }

    void setAll(Map<? extends K, ? extends V> map, Duration duration) {
        asked(() -> {
            table.setAll(map.entrySet().stream()
                    .map(each -> row(keys.text(each.getKey()), each.getValue(), duration))
                    .toList());
            return null;
        });
    }

    private Write row(String text, Object value, Duration duration) {
        Write row = rows.write(text, value, Deadlines.seconds(duration), List.of());
        return Write.of(text, row.data(), Deadlines.flags(row.flags(), duration), row.ttl());
    }

    /** Writes in the place of what was found; whether nobody was faster. Without a duration the deadline stays. */
    boolean write(Found<K, V> found, V value, Duration duration) {
        Item item = found.item();
        if (duration == null && !Deadlines.isExact(item.flags())) {
            Write plain = rows.write(found.text(), value, Write.FOREVER, List.of());
            return told.writing(plain, () -> table.replaceKeeping(found.text(), plain.data(), plain.flags(), item.cas()));
        }
        Write row = row(found.text(), value, duration == null ? Deadlines.rest(item.flags()) : duration);
        return stored(item == null ? row.mode(Write.Mode.ADD) : row.ifVersion(item.cas()));
    }

    private boolean stored(Write row) {
        return told.writing(row, () -> table.set(row));
    }

    boolean delete(Found<K, V> found) {
        return deleted(found.text(), found.item());
    }

    private boolean deleted(String text, Item item) {
        return told.removing(text, () -> table.delete(text, item.cas()));
    }

    /** Gives a value that was read a new deadline. If another client was faster, it has given one. */
    void access(Found<K, V> found, Duration duration) {
        if (duration == null) {
            return;
        }
        asked(() -> {
            Item item = found.item();
            int flags = Deadlines.flags(item.flags(), duration);
            if (duration.isZero()) {
                return delete(found);
            }
            if (!Deadlines.isExact(flags) && !Deadlines.isExact(item.flags())) {
                return table.touch(found.text(), Deadlines.seconds(duration));
            }
            Write row = Write.of(found.text(), item.data(), flags, Deadlines.seconds(duration));
            return stored(row.ifVersion(item.cas()));
        });
    }

    /** Takes the place of a value that is to be loaded; 0 if it is not to be stored. */
    long reserve(K key) {
        try {
            String text = keys.text(key);
            return table.isReadable(text) ? table.reserve(text, List.of(), LEASE) : 0;
        } catch (SqlcachedException why) {
            rows.warn(why);
            return 0;
        }
    }

    /** Fills a place; whether nobody removed it since. */
    boolean fill(K key, V value, Duration duration, long cas) {
        return asked(() -> stored(row(keys.text(key), value, duration).ifVersion(cas)));
    }

    void giveUp(K key, long cas) {
        try {
            String text = keys.text(key);
            told.removing(text, () -> table.delete(text, cas));
        } catch (SqlcachedException why) {
            rows.warn(why);
        }
    }
}

package org.sqlcached.map;

import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.Row;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/**
 * A table of sqlcached as a map, which all machines share. It is a cache: its rows may expire and be evicted.
 *
 * <p>Every change of one key is atomic: it replaces the version that was read, or is computed again. The views are those
 * of the table, and their iterators are weakly consistent. A read that cannot be sent is a miss; everything else throws
 * {@link SqlcachedException} then.
 *
 * @param <K> the type of the keys
 * @param <V> the type of the values
 */
public final class CachedMap<K, V> extends AbstractMap<K, V> implements ConcurrentMap<K, V> {
    /** Attempts of a change. Each fails only because another client succeeded. */
    private static final int ATTEMPTS = 10_000;

    private final Loading rows;
    private final Table table;
    private final KeyType<K> keys;
    private final long ttl;

    /**
     * @param rows where the values are
     * @param keys how keys are written
     * @param ttl seconds that a value lives, or {@link Write#FOREVER} or {@link Write#OF_TABLE}
     */
    public CachedMap(Loading rows, KeyType<K> keys, long ttl) {
        this.rows = Objects.requireNonNull(rows);
        this.table = rows.table();
        this.keys = Objects.requireNonNull(keys);
        this.ttl = ttl;
    }

    /**
     * A map with texts as keys.
     *
     * @param client the daemon
     * @param table the table's name
     * @param classes patterns of classes whose objects may be made of values, such as {@code shop.model.**}
     * @return the map
     * @param <V> the type of the values
     */
    public static <V> CachedMap<String, V> of(Client client, String table, String... classes) {
        Loading rows = new Loading(new Table(client, new Definition(table)), new Values(classes));
        return new CachedMap<>(rows, KeyType.strings(), Write.OF_TABLE);
    }

    /**
     * Keeps copies of values in this process. {@code get}, {@code getAll} and {@code computeIfAbsent} read them; changes of
     * a value do not.
     *
     * @param options how many copies, and for how long they are used when the daemon is not heard
     * @return this map
     */
    public CachedMap<K, V> near(Near options) {
        rows.near(options);
        return this;
    }

    /** @return the table and its values, for tags and leases */
    public Loading rows() {
        return rows;
    }

    @SuppressWarnings("unchecked")
    private V value(String key, Item item) {
        return (V) rows.value(key, item);
    }

    /** The text of a key; null if no key of the map can be equal to it. */
    private String text(Object key) {
        Objects.requireNonNull(key, "the key");
        return keys.accepts(key) ? keys.text(key) : null;
    }

    // Reading.

    @Override
    @SuppressWarnings("unchecked")
    public V get(Object key) {
        String text = text(key);
        if (text == null) {
            return null;
        }
        try {
            return (V) rows.get(text);
        } catch (UnavailableException why) {
            rows.warn(why);
            return null;
        }
    }

    @Override
    public V getOrDefault(Object key, V other) {
        V value = get(key);
        return value == null ? other : value;
    }

    /**
     * @param wanted keys
     * @return those that are there, in one round trip for each 200 keys
     */
    @SuppressWarnings("unchecked")
    public Map<K, V> getAll(Collection<? extends K> wanted) {
        Map<String, K> texts = new LinkedHashMap<>();
        wanted.forEach(key -> texts.put(keys.text(Objects.requireNonNull(key)), key));
        Map<K, V> found = new HashMap<>();
        try {
            rows.readAll(texts.keySet()).forEach((text, loaded) -> found.put(texts.get(text), (V) loaded.value()));
        } catch (UnavailableException why) {
            rows.warn(why);
        }
        return found;
    }

    @Override
    public boolean containsKey(Object key) {
        return get(key) != null;
    }

    @Override
    public boolean containsValue(Object value) {
        Objects.requireNonNull(value, "the value");
        return super.containsValue(value);
    }

    @Override
    public int size() {
        return (int) Math.min(table.count(), Integer.MAX_VALUE);
    }

    // Writing.

    /**
     * Stores a value without a look at the old one, in one round trip.
     *
     * @param key the key
     * @param value not null
     * @param tags by which it can be removed
     */
    public void set(K key, V value, String... tags) {
        rows.set(keys.text(Objects.requireNonNull(key)), Objects.requireNonNull(value), ttl, tags);
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> map) {
        List<Write> all = new ArrayList<>(map.size());
        map.forEach((key, value) -> all.add(write(keys.text(Objects.requireNonNull(key)), value)));
        table.setAll(all);
    }

    private Write write(String key, Object value) {
        return rows.write(key, Objects.requireNonNull(value, "the value"), ttl, List.of());
    }

    /** What a change makes of a value: the new one, or null for none; and what the caller gets. */
    private record Change<V, R>(boolean isWritten, V value, R result) {
        static <V, R> Change<V, R> to(V value, R result) {
            return new Change<>(true, value, result);
        }

        static <V, R> Change<V, R> none(R result) {
            return new Change<>(false, null, result);
        }
    }

    /** Changes a value, unless another client has done so meanwhile. Then the change is computed again. */
    private <R> R change(String key, Function<V, Change<V, R>> work) {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            Item item = table.item(key, 0);
            if (item == null && !table.isReadable(key)) {
                throw new UnavailableException("the map is not read until its removals were sent");
            }
            V old = item != null && item.isFresh() ? value(key, item) : null;
            if (old == null && item != null && item.isFresh()) {
                // It did not load, and was removed.
                continue;
            }
            Change<V, R> change = work.apply(old);
            boolean writes = change.isWritten && (old != null || change.value != null);
            if (!writes && item != null && item.isStale() && item.isWon()) {
                // Another may compute the stale value.
                table.release(key, item.cas());
            }
            if (!writes || done(key, item, change.value)) {
                return change.result;
            }
        }
        throw new SqlcachedException("other clients change the value all the time");
    }

    private boolean done(String key, Item item, V value) {
        if (value == null) {
            return table.delete(key, item.cas());
        }
        Write row = write(key, value);
        return table.set(item == null ? row.mode(Write.Mode.ADD) : row.ifVersion(item.cas()));
    }

    @Override
    public V put(K key, V value) {
        Objects.requireNonNull(value, "the value");
        return change(keys.text(Objects.requireNonNull(key)), old -> Change.to(value, old));
    }

    @Override
    public V putIfAbsent(K key, V value) {
        Objects.requireNonNull(value, "the value");
        return change(keys.text(Objects.requireNonNull(key)), old -> old == null ? Change.to(value, null) : Change.none(old));
    }

    @Override
    public V remove(Object key) {
        String text = text(key);
        return text == null ? null : this.<V>change(text, old -> old == null ? Change.none(null) : Change.to(null, old));
    }

    @Override
    public boolean remove(Object key, Object value) {
        String text = text(key);
        if (text == null || value == null) {
            return false;
        }
        return this.<Boolean>change(text, old -> value.equals(old) ? Change.to(null, true) : Change.none(false));
    }

    @Override
    public V replace(K key, V value) {
        Objects.requireNonNull(value, "the value");
        return change(keys.text(Objects.requireNonNull(key)), old -> old == null ? Change.none(null) : Change.to(value, old));
    }

    @Override
    public boolean replace(K key, V before, V value) {
        Objects.requireNonNull(before, "the old value");
        Objects.requireNonNull(value, "the value");
        return this.<Boolean>change(
                keys.text(Objects.requireNonNull(key)),
                old -> before.equals(old) ? Change.to(value, true) : Change.none(false));
    }

    @Override
    public V compute(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function);
        return change(keys.text(Objects.requireNonNull(key)), old -> {
            V value = function.apply(key, old);
            return Change.to(value, value);
        });
    }

    @Override
    public V computeIfPresent(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function);
        return change(keys.text(Objects.requireNonNull(key)), old -> {
            V value = old == null ? null : function.apply(key, old);
            return old == null ? Change.none(null) : Change.to(value, value);
        });
    }

    /** Of all who miss the value at once, one computes it; the others wait for it. */
    @Override
    public V computeIfAbsent(K key, Function<? super K, ? extends V> function) {
        return computeIfAbsent(key, List.of(), function);
    }

    /**
     * As {@link #computeIfAbsent(Object, Function)}, with tags.
     *
     * @param key the key
     * @param tags by which the value can be removed, also while it is being computed
     * @param function computes it
     * @return the value
     */
    @SuppressWarnings("unchecked")
    public V computeIfAbsent(K key, Collection<String> tags, Function<? super K, ? extends V> function) {
        Objects.requireNonNull(function);
        return (V) rows.getOrCompute(
                keys.text(Objects.requireNonNull(key)), ttl, tags, text -> function.apply(key));
    }

    @Override
    public V merge(K key, V value, BiFunction<? super V, ? super V, ? extends V> function) {
        Objects.requireNonNull(value, "the value");
        Objects.requireNonNull(function);
        return change(keys.text(Objects.requireNonNull(key)), old -> {
            V next = old == null ? value : function.apply(old, value);
            return Change.to(next, next);
        });
    }

    @Override
    public void replaceAll(BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function);
        keySet().forEach(key -> computeIfPresent(key, (same, old) -> Objects.requireNonNull(function.apply(key, old))));
    }

    @Override
    public void clear() {
        table.clear();
    }

    /**
     * Removes rows by a condition of SQL. The table has the columns {@code key}, {@code body} and {@code tags}, and hidden
     * ones such as {@code _age}, {@code _ttl} and {@code _size}.
     *
     * @param condition such as {@code key LIKE ? AND _age > 60}
     * @param parameters of the condition
     * @return how many; -1 if the removal waits for the daemon
     */
    public long removeWhere(String condition, Object... parameters) {
        return table.removeWhere(condition, parameters);
    }

    /**
     * @param tags whose rows are removed
     * @return how many; -1 if the removal waits for the daemon
     */
    public long removeTags(String... tags) {
        return table.removeTags(tags);
    }

    // Views.

    @Override
    public Set<K> keySet() {
        return new Views.Keys<>(this);
    }

    @Override
    public Collection<V> values() {
        return new Views.Values<>(this);
    }

    @Override
    public Set<Entry<K, V>> entrySet() {
        return new Views.Entries<>(this);
    }

    /** The rows of a page as entries. */
    List<Entry<K, V>> entries(List<Row> page) {
        List<Entry<K, V>> found = new ArrayList<>(page.size());
        for (Row row : page) {
            K key = keys.key(row.key());
            V value = key == null ? null : value(row.key(), row.item());
            if (value != null) {
                found.add(new Views.Live<>(this, key, value));
            }
        }
        return found;
    }

    Table table() {
        return table;
    }
}

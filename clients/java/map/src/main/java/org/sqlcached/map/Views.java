package org.sqlcached.map;

import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.Function;
import org.sqlcached.client.Row;
import org.sqlcached.client.Table;

/** The views of a map. They hold nothing: each call asks the table. */
final class Views {
    private Views() {
    }

    /** An entry whose new value goes to the map. */
    static final class Live<K, V> extends AbstractMap.SimpleEntry<K, V> {
        private static final long serialVersionUID = 1L;

        private final transient CachedMap<K, V> map;

        Live(CachedMap<K, V> map, K key, V value) {
            super(key, value);
            this.map = map;
        }

        @Override
        public V setValue(V value) {
            map.put(getKey(), Objects.requireNonNull(value, "the value"));
            return super.setValue(value);
        }
    }

    /** Walks through a table by pages, in the order of the keys. */
    private static final class Walk<K, V, T> implements Iterator<T> {
        private final CachedMap<K, V> map;
        private final Function<Map.Entry<K, V>, T> shown;
        private Iterator<Map.Entry<K, V>> page = List.<Map.Entry<K, V>>of().iterator();
        private int daemon;
        private String after;
        private K last;

        Walk(CachedMap<K, V> map, Function<Map.Entry<K, V>, T> shown) {
            this.map = map;
            this.shown = shown;
        }

        @Override
        public boolean hasNext() {
            Table table = map.table();
            while (!page.hasNext() && daemon < table.daemons()) {
                List<Row> rows = table.page(daemon, after);
                page = map.entries(rows).iterator();
                if (rows.size() < Table.PAGE) {
                    daemon++;
                    after = null;
                } else {
                    after = rows.get(rows.size() - 1).key();
                }
            }
            return page.hasNext();
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            Map.Entry<K, V> entry = page.next();
            last = entry.getKey();
            return shown.apply(entry);
        }

        @Override
        public void remove() {
            if (last == null) {
                throw new IllegalStateException();
            }
            map.remove(last);
            last = null;
        }
    }

    /** The keys. */
    static final class Keys<K, V> extends AbstractSet<K> {
        private final CachedMap<K, V> map;

        Keys(CachedMap<K, V> map) {
            this.map = map;
        }

        @Override
        public Iterator<K> iterator() {
            return new Walk<>(map, Map.Entry::getKey);
        }

        @Override
        public int size() {
            return map.size();
        }

        @Override
        public boolean contains(Object key) {
            return map.containsKey(key);
        }

        @Override
        public boolean remove(Object key) {
            return map.remove(key) != null;
        }

        @Override
        public void clear() {
            map.clear();
        }
    }

    /** The values. */
    static final class Values<K, V> extends AbstractCollection<V> {
        private final CachedMap<K, V> map;

        Values(CachedMap<K, V> map) {
            this.map = map;
        }

        @Override
        public Iterator<V> iterator() {
            return new Walk<>(map, Map.Entry::getValue);
        }

        @Override
        public int size() {
            return map.size();
        }

        @Override
        public void clear() {
            map.clear();
        }
    }

    /** The entries. */
    static final class Entries<K, V> extends AbstractSet<Map.Entry<K, V>> {
        private final CachedMap<K, V> map;

        Entries(CachedMap<K, V> map) {
            this.map = map;
        }

        @Override
        public Iterator<Map.Entry<K, V>> iterator() {
            return new Walk<>(map, entry -> entry);
        }

        @Override
        public int size() {
            return map.size();
        }

        @Override
        public boolean contains(Object entry) {
            return entry instanceof Map.Entry<?, ?> each
                    && each.getKey() != null
                    && each.getValue() != null
                    && each.getValue().equals(map.get(each.getKey()));
        }

        @Override
        public boolean remove(Object entry) {
            return entry instanceof Map.Entry<?, ?> each
                    && each.getKey() != null
                    && map.remove(each.getKey(), each.getValue());
        }

        @Override
        public void clear() {
            map.clear();
        }
    }
}

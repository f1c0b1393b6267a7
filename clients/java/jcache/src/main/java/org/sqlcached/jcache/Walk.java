package org.sqlcached.jcache;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import javax.cache.Cache;
import org.sqlcached.client.Row;
import org.sqlcached.client.Table;

/** Walks through a cache by pages, in the order of its keys. */
final class Walk<K, V> implements Iterator<Cache.Entry<K, V>> {
    private final SqlcachedCache<K, V> cache;
    private final Store<K, V> store;
    private final Changes<K, V> changes;
    private final Consumer<Store.Found<K, V>> visited;
    private Iterator<Row> page = List.<Row>of().iterator();
    private int daemon;
    private String after;
    private Store.Found<K, V> next;
    private K last;

    Walk(SqlcachedCache<K, V> cache, Store<K, V> store, Changes<K, V> changes, Consumer<Store.Found<K, V>> visited) {
        this.cache = cache;
        this.store = store;
        this.changes = changes;
        this.visited = visited;
    }

    @Override
    public boolean hasNext() {
        while (next == null) {
            if (page.hasNext()) {
                next = found(page.next());
            } else if (!turns()) {
                return false;
            }
        }
        return true;
    }

    /** A row that is still to be used; null for others, and for keys of another type. */
    private Store.Found<K, V> found(Row row) {
        K key = store.keys().key(row.key());
        if (key == null) {
            return null;
        }
        Store.Found<K, V> found = store.found(key, row.key(), row.item());
        return found.isThere() ? found : null;
    }

    private boolean turns() {
        Table table = store.rows().table();
        if (daemon >= table.daemons()) {
            return false;
        }
        List<Row> rows = Store.asked(() -> table.page(daemon, after));
        page = rows.iterator();
        if (rows.size() < Table.PAGE) {
            daemon++;
            after = null;
        } else {
            after = rows.get(rows.size() - 1).key();
        }
        return true;
    }

    @Override
    public Cache.Entry<K, V> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        Store.Found<K, V> found = next;
        next = null;
        last = found.key();
        if (visited != null) {
            visited.accept(found);
        }
        return new Outside.Pair<>(found.key(), found.value());
    }

    @Override
    public void remove() {
        if (last == null) {
            throw new IllegalStateException();
        }
        if (changes.remove(last).isDone()) {
            cache.removed();
        }
        last = null;
    }
}

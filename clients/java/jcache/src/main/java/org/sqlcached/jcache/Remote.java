package org.sqlcached.jcache;

import java.util.Objects;
import javax.cache.event.EventType;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.RowListener;
import org.sqlcached.client.SqlcachedException;

/**
 * Tells the listeners of a cache what other clients of the daemon change. A row that left is read: if it is there, it was
 * updated. Its old value is not known.
 */
final class Remote<K, V> implements RowListener {
    private final String cache;
    private final Loading rows;
    private final KeyType<K> keys;
    private final Events<K, V> events;
    private final Told told;
    private boolean isHeard;

    Remote(String cache, Loading rows, KeyType<K> keys, Events<K, V> events, Told told) {
        this.cache = cache;
        this.rows = rows;
        this.keys = keys;
        this.events = events;
        this.told = Objects.requireNonNull(told);
    }

    @Override
    public void left(String text, Cause cause) {
        K key = events.isEmpty() ? null : keys.key(text);
        if (key == null) {
            return;
        }
        Told.Announced row;
        try {
            row = told.announced(text, () -> rows.table().get(text));
        } catch (SqlcachedException why) {
            allMayHaveChanged();
            return;
        }
        Item item = row.item();
        if (!row.isKnown()) {
            tell(key, item == null || Deadlines.isExpired(item.flags()) ? null : rows.value(text, item), cause);
        }
    }

    @SuppressWarnings("unchecked")
    private void tell(K key, Object value, Cause cause) {
        if (value != null) {
            events.byOthers(EventType.UPDATED, key, (V) value);
        } else {
            events.byOthers(cause == Cause.INVALIDATED ? EventType.REMOVED : EventType.EXPIRED, key, null);
        }
    }

    @Override
    public void allMayHaveChanged() {
        told.clear();
        boolean deaf = events.allMayHaveChanged();
        if (deaf && isHeard) {
            rows.warn(new SqlcachedException("entries of the cache " + cache + " changed, and its listeners do not know which"));
        }
        isHeard = true;
    }
}

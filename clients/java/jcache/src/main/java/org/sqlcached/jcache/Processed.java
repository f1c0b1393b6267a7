package org.sqlcached.jcache;

import java.util.Objects;
import javax.cache.processor.MutableEntry;

/** The entry that an entry processor works on: what was there, and what is to be done. */
final class Processed<K, V> implements MutableEntry<K, V> {
    enum What { NOTHING, ACCESS, CREATE, UPDATE, LOAD, REMOVE }

    private final Store.Found<K, V> found;
    private final Outside<K, V> outside;
    private V value;
    private What what = What.NOTHING;

    Processed(Store.Found<K, V> found, Outside<K, V> outside) {
        this.found = found;
        this.outside = outside;
        this.value = found.value();
    }

    What what() {
        return what;
    }

    V value() {
        return value;
    }

    @Override
    public boolean exists() {
        return value != null;
    }

    @Override
    public void remove() {
        // What was made here a moment ago was never there for anybody else.
        what = what == What.CREATE || what == What.LOAD ? What.NOTHING : What.REMOVE;
        value = null;
    }

    @Override
    public void setValue(V next) {
        value = Objects.requireNonNull(next, "the value");
        what = found.isThere() ? What.UPDATE : What.CREATE;
    }

    @Override
    public K getKey() {
        return found.key();
    }

    @Override
    public V getValue() {
        if (what == What.NOTHING && value != null) {
            what = What.ACCESS;
        } else if (what == What.NOTHING && outside.isRead()) {
            value = outside.load(found.key());
            if (value != null) {
                what = What.LOAD;
            }
        }
        return value;
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return SqlcachedCache.unwrapped(type, this);
    }
}

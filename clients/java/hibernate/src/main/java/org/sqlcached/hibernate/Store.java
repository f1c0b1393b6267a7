package org.sqlcached.hibernate;

import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.hibernate.cache.CacheException;
import org.hibernate.cache.spi.RegionFactory;
import org.hibernate.cache.spi.support.DomainDataStorageAccess;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.sqlcached.client.Item;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Write;

/**
 * The rows of a region. Who misses a value takes its place, and fills it with what he loads. A place that an
 * invalidation removed meanwhile is not filled, so that nothing old comes back, whichever JVM invalidates and loads.
 */
final class Store implements DomainDataStorageAccess {
    private final Loading rows;
    private final Table table;
    private final RegionFactory factory;

    Store(Loading rows, RegionFactory factory) {
        this.rows = rows;
        this.table = rows.table();
        this.factory = factory;
    }

    private static RegionKey key(Object key) {
        if (key instanceof RegionKey own) {
            return own;
        }
        throw new CacheException("leave hibernate.cache.keys_factory unset: the regions of sqlcached have keys of their own");
    }

    // Reading and filling.

    @Override
    public Object getFromCache(Object given, SharedSessionContractImplementor session) {
        RegionKey key = key(given);
        return quietly(() -> {
            Item item = table.item(key.text(), 0);
            if (item != null && item.isFresh() && !Mark.isOne(item)) {
                Object value = rows.value(key.text(), item);
                if (value != null) {
                    return value;
                }
                item = null;
            }
            lease(key, item, session);
            return null;
        }, null);
    }

    private void lease(RegionKey key, Item item, SharedSessionContractImplementor session) {
        Leases leases = Leases.of(session);
        if (leases == null || !session.getCacheMode().isPutEnabled()) {
            return;
        }
        long version = place(key, item, leases.getCachingTimestamp());
        if (version != 0) {
            leases.hold(place(key), version);
        }
    }

    /** The version of the place for a transaction that began at a time; 0 if it must not fill it. */
    private long place(RegionKey key, Item item, long began) {
        if (item == null) {
            return table.isReadable(key.text()) ? table.reserve(key.text(), key.tags(), Limits.LEASE) : 0;
        }
        Mark mark = Mark.of(item);
        if (mark == null) {
            // A value that was made stale asks one to compute it again. A place is another session's.
            return item.isWon() && !item.isReserved() ? item.cas() : 0;
        }
        // A transaction that began before the change may see what was there before it.
        return !mark.isLocked() && mark.released() < began ? item.cas() : 0;
    }

    /** A session may use several regions. */
    private String place(RegionKey key) {
        return table.definition().name() + ":" + key.text();
    }

    @Override
    public void putFromLoad(Object key, Object value, SharedSessionContractImplementor session) {
        fill(key, value, session);
    }

    /** Fills the place that the session took when it missed the value; whether it was still there. */
    boolean fill(Object given, Object value, SharedSessionContractImplementor session) {
        RegionKey key = key(given);
        Leases leases = Leases.of(session);
        long version = leases == null ? 0 : leases.take(place(key));
        return version != 0 && quietly(() -> table.set(row(key, value).ifVersion(version)), false);
    }

    private Write row(RegionKey key, Object value) {
        return rows.write(key.text(), value, Write.OF_TABLE, key.tags());
    }

    @Override
    public void putIntoCache(Object given, Object value, SharedSessionContractImplementor session) {
        RegionKey key = key(given);
        surely(key, () -> table.set(row(key, value)));
    }

    /** Stores what was inserted into the database, unless somebody was here since. */
    boolean add(Object given, Object value) {
        RegionKey key = key(given);
        return quietly(() -> table.set(row(key, value).mode(Write.Mode.ADD)), false);
    }

    @Override
    public boolean contains(Object given) {
        RegionKey key = key(given);
        return quietly(() -> {
            Item item = table.get(key.text());
            return item != null && !Mark.isOne(item);
        }, false);
    }

    // Changing.

    /** Locks a row: until it is unlocked, nobody reads or fills it. */
    Lock lock(Object given) {
        RegionKey key = key(given);
        Lock lock = new Lock(UUID.randomUUID().toString());
        surely(key, () -> change(key, item -> {
            Mark mark = Mark.of(item);
            return marked(key, mark == null ? Mark.lockedBy(lock.name()) : mark.with(lock.name()));
        }));
        return lock;
    }

    /** Ends a lock. When the transaction was over is kept for those that began before. */
    void unlock(Object given, Lock lock) {
        RegionKey key = key(given);
        surely(key, () -> change(key, item -> {
            Mark mark = Mark.of(item);
            long now = factory.nextTimestamp();
            if (mark == null || !mark.isLocked()) {
                // The lock is gone: it lasted too long, or all rows were removed. What came since may be old.
                return marked(key, Mark.released(now));
            }
            return marked(key, lock == null ? mark : mark.without(lock.name(), now));
        }));
    }

    /** Ends a lock with the new value, if nobody else changes it; else as {@link #unlock}. */
    boolean replace(Object given, Object value, Lock lock) {
        RegionKey key = key(given);
        boolean done = quietly(() -> {
            Item item = table.item(key.text(), 0);
            Mark mark = Mark.of(item);
            boolean isOurs = mark != null && lock != null && !mark.isShared() && mark.equals(Mark.lockedBy(lock.name()));
            return isOurs && table.set(row(key, value).ifVersion(item.cas()));
        }, false);
        if (!done) {
            unlock(given, lock);
        }
        return done;
    }

    private Write marked(RegionKey key, Mark mark) {
        return Write.of(key.text(), mark.data(), Mark.flags(), Limits.LOCK).tagged(key.tags());
    }

    /** Changes a row, again if another session was faster. */
    private boolean change(RegionKey key, Function<Item, Write> work) {
        for (int attempt = 0; attempt < Limits.ATTEMPTS; attempt++) {
            Item item = table.item(key.text(), 0);
            if (item == null && !table.isReadable(key.text())) {
                throw new UnavailableException("the region is not read until its removals were sent");
            }
            Write row = work.apply(item);
            if (table.set(item == null ? row.mode(Write.Mode.ADD) : row.ifVersion(item.cas()))) {
                return true;
            }
        }
        throw new SqlcachedException("other sessions change " + key + " all the time");
    }

    // Removing.

    @Override
    public void evictData(Object given) {
        RegionKey key = key(given);
        removed(() -> table.delete(key.text()));
    }

    @Override
    public void evictData() {
        removed(table::clear);
    }

    @Override
    public void release() {
        // The connections are the factory's.
    }

    // Failures.

    /** A read that cannot be sent is a miss, and what was loaded is not stored. */
    private <T> T quietly(Supplier<T> work, T answer) {
        try {
            return work.get();
        } catch (SqlcachedException why) {
            rows.warn(why);
            return answer;
        }
    }

    /** Changes a row, or removes it: the table keeps a removal that cannot be sent, and is not read until then. */
    private void surely(RegionKey key, Supplier<?> work) {
        try {
            work.get();
        } catch (SqlcachedException why) {
            rows.warn(why);
            removed(() -> table.delete(key.text()));
        }
    }

    /** A removal throws only if the options say so. */
    private static void removed(Supplier<?> work) {
        try {
            work.get();
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }
}

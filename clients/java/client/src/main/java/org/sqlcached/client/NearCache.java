package org.sqlcached.client;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Copies of a table's values in this process.
 *
 * <p>A read that fills a copy takes a ticket before it asks the daemon. Each change that is heard of, and each that this
 * process makes, invalidates the tickets of its key, so that no old value is kept that was on its way meanwhile.
 *
 * <p>If there are too many, the oldest goes, unless it was used since it was looked at last.
 */
public final class NearCache implements RowListener, AutoCloseable {
    /** Types of Java whose objects nobody can change. */
    private static final Set<Class<?>> UNCHANGEABLE = Set.of(
            String.class, Integer.class, Long.class, Short.class, Byte.class, Double.class, Float.class, Boolean.class,
            Character.class, UUID.class, BigInteger.class, BigDecimal.class);

    private final Near options;
    private final Values values;
    private final long staleness;
    private final ConcurrentHashMap<String, Copy> copies = new ConcurrentHashMap<>();

    /** Copies by their age, also those that were dropped since. Guarded by itself. */
    private final Queue<Copy> queue = new ArrayDeque<>();

    private final AtomicLong changesOfAll = new AtomicLong();
    private final AtomicLongArray changes = new AtomicLongArray(Limits.NEAR_STRIPES);
    private final LongAdder hits = new LongAdder();
    private Subscription[] daemons = {};

    NearCache(Near options, Values values) {
        this.options = options;
        this.values = values;
        this.staleness = options.staleness().toNanos();
    }

    private static final class Copy {
        private final String key;

        /** The row, and the value that all readers get, or null if each gets one of its own. */
        private final Loaded loaded;

        /** When the row expires, in {@link System#nanoTime}; not used without a deadline. */
        private final long end;
        private final boolean ends;

        /** A hint for the choice of the one that goes: a lost write does no harm. */
        private boolean wasUsed;

        Copy(String key, Loaded loaded) {
            this.key = key;
            this.loaded = loaded;
            this.ends = loaded.item().ttl() >= 0;
            this.end = System.nanoTime() + loaded.item().ttl() * 1_000_000_000L;
        }
    }

    /** Hears the daemons of the table, which are in this order. */
    void hear(Subscription[] all) {
        daemons = all;
    }

    @Override
    public void left(String key, Cause cause) {
        drop(key);
    }

    @Override
    public void allMayHaveChanged() {
        clear();
    }

    /** The row and its value, or null. The daemon is known that has the key. */
    Loaded get(String key, int daemon) {
        Copy copy = copies.get(key);
        if (copy == null) {
            return null;
        }
        long now = System.nanoTime();
        if (!daemons[daemon].isHeardWithin(staleness, now)) {
            return null;
        }
        if (copy.ends && now - copy.end >= 0) {
            copies.remove(key, copy);
            return null;
        }
        if (!copy.wasUsed) {
            copy.wasUsed = true;
        }
        hits.increment();
        return copy.loaded.value() != null ? copy.loaded : own(copy.loaded.item());
    }

    /** An object for one reader alone. */
    private Loaded own(Item item) {
        try {
            return new Loaded(item, values.load(item.data().clone(), item.flags()));
        } catch (Values.LoadException why) {
            // It did load before: another class loader asks. The table's own reader says what becomes of it.
            return null;
        }
    }

    /** What a read takes before it asks the daemon. */
    long ticket(String key) {
        return changes.get(stripe(key)) + changesOfAll.get();
    }

    private static int stripe(String key) {
        int sum = key.hashCode();
        return (sum ^ sum >>> 16) & Limits.NEAR_STRIPES - 1;
    }

    /** Keeps what was read, unless the key may have changed since the ticket was taken. */
    void keep(String key, int daemon, Loaded loaded, long ticket) {
        Item item = loaded.item();
        if (loaded.value() == null || item.ttl() == Item.NOT_KNOWN || !daemons[daemon].isHeardWithin(staleness, System.nanoTime())) {
            return;
        }
        boolean shares = options.isShared() || isUnchangeable(loaded.value());
        Copy copy = new Copy(key, shares ? loaded : new Loaded(item.copy(), null));
        // A change counts first and drops the copy then; both here and there the map holds the key meanwhile.
        Copy kept = copies.compute(key, (same, old) -> ticket(key) == ticket ? copy : old);
        if (kept == copy) {
            queue(copy);
        }
    }

    private static boolean isUnchangeable(Object value) {
        Class<?> type = value.getClass();
        return UNCHANGEABLE.contains(type) || type.isEnum() || type.getPackageName().equals("java.time");
    }

    private void queue(Copy copy) {
        synchronized (queue) {
            queue.add(copy);
            while (queue.size() > options.entries()) {
                Copy oldest = queue.remove();
                if (oldest.wasUsed && copies.get(oldest.key) == oldest) {
                    oldest.wasUsed = false;
                    queue.add(oldest);
                } else {
                    copies.remove(oldest.key, oldest);
                }
            }
        }
    }

    /** A row may have changed. */
    void drop(String key) {
        changes.incrementAndGet(stripe(key));
        copies.remove(key);
    }

    /** All rows may have changed. */
    void clear() {
        changesOfAll.incrementAndGet();
        copies.clear();
    }

    /** @return how many copies there are */
    public int size() {
        return copies.size();
    }

    /** @return how many reads a copy has answered */
    public long hits() {
        return hits.sum();
    }

    /** @return whether all daemons of the table are heard, so that copies are used */
    public boolean isHeard() {
        for (Subscription each : daemons) {
            if (!each.isHeardWithin(staleness, System.nanoTime())) {
                return false;
            }
        }
        return true;
    }

    /** Drops the copies, and keeps none any more. */
    @Override
    public void close() {
        for (Subscription each : daemons) {
            each.close();
        }
        clear();
    }
}

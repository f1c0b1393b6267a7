package org.sqlcached.client;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Values of a table: those of Java, read, written and computed once.
 *
 * <p>Of all who miss a value at once, one computes it; the others wait for it, or get the old value. A value whose row
 * was invalidated or written meanwhile is not stored, because it was computed from what was there before.
 */
public final class Loading {
    private final Table table;
    private final Values values;
    private final AtomicLong broken = new AtomicLong();

    /**
     * @param table where the rows are
     * @param values how they become values
     */
    public Loading(Table table, Values values) {
        this.table = table;
        this.values = values;
    }

    /** @return the table */
    public Table table() {
        return table;
    }

    /** @return how values become bytes */
    public Values values() {
        return values;
    }

    /** @return how many values did not load. They were removed */
    public long broken() {
        return broken.get();
    }

    /** @param why a read could not be sent: logged once in a minute */
    public void warn(SqlcachedException why) {
        Notices.warn("table " + table.definition().name(), why);
    }

    /**
     * @param key any text
     * @param item its row, or null
     * @return the value; null if there is none, or if it does not load. Then it is removed
     */
    public Object value(String key, Item item) {
        if (item == null) {
            return null;
        }
        try {
            return values.load(item);
        } catch (Values.LoadException why) {
            broken.incrementAndGet();
            Notices.warn("table " + table.definition().name() + ": a value did not load and was removed", why);
            // Somebody may have written another one.
            quietly(() -> table.delete(key, item.cas()), false);
            return null;
        }
    }

    /**
     * @param key any text
     * @return the value, or null
     */
    public Object get(String key) {
        return read(key).value();
    }

    /**
     * @param key any text
     * @return its row and its value, of a copy in this process if there is one
     */
    public Loaded read(String key) {
        Loaded copy = copy(key);
        if (copy != null) {
            return copy;
        }
        long ticket = ticket(key);
        Item item = table.get(key);
        return kept(key, new Loaded(item, value(key, item)), ticket);
    }

    /**
     * @param keys any texts
     * @return those that are there, with their values
     */
    public Map<String, Loaded> readAll(Collection<String> keys) {
        Map<String, Loaded> found = Table.mapOf(keys.size());
        if (table.copies() == null) {
            table.getAll(keys).forEach((key, item) -> put(found, key, item, 0));
            return found;
        }
        Map<String, Long> tickets = new LinkedHashMap<>();
        for (String key : keys) {
            Loaded copy = copy(key);
            if (copy == null) {
                tickets.put(key, ticket(key));
            } else {
                found.put(key, copy);
            }
        }
        table.getAll(tickets.keySet()).forEach((key, item) -> put(found, key, item, tickets.get(key)));
        return found;
    }

    private void put(Map<String, Loaded> found, String key, Item item, long ticket) {
        Object value = value(key, item);
        if (value != null) {
            found.put(key, kept(key, new Loaded(item, value), ticket));
        }
    }

    /**
     * Keeps copies of values in this process, which the daemon's announcements drop. Other processes' removals are seen
     * a tenth of a second later, those of this table object at once.
     *
     * @param options how many copies, and for how long they are used when the daemon is not heard
     * @return the copies, which may be closed
     */
    public NearCache near(Near options) {
        return table.copies(options, values);
    }

    /** A copy that may be used, or null. Nothing is read while a removal waits. */
    private Loaded copy(String key) {
        NearCache copies = table.copies();
        return copies == null || !table.isReadable(key) ? null : copies.get(key, table.place(key));
    }

    private long ticket(String key) {
        NearCache copies = table.copies();
        return copies == null ? 0 : copies.ticket(key);
    }

    private Loaded kept(String key, Loaded loaded, long ticket) {
        NearCache copies = table.copies();
        if (copies != null && loaded.item() != null) {
            copies.keep(key, table.place(key), loaded, ticket);
        }
        return loaded;
    }

    /**
     * @param key any text
     * @param value not null
     * @param ttl seconds, or {@link Write#FOREVER} or {@link Write#OF_TABLE}
     * @param tags by which it can be removed
     */
    public void set(String key, Object value, long ttl, String... tags) {
        table.set(write(key, value, ttl, List.of(tags)));
    }

    /**
     * @param key any text
     * @param value not null
     * @param ttl seconds, or {@link Write#FOREVER} or {@link Write#OF_TABLE}
     * @param tags by which it can be removed
     * @return a row to be stored
     */
    public Write write(String key, Object value, long ttl, Collection<String> tags) {
        Values.Dumped dumped = values.dump(value);
        return new Write(key, dumped.data(), dumped.flags(), ttl, tags, Write.Mode.SET, 0);
    }

    /**
     * Returns a value, or computes and stores it. Without a daemon everybody computes.
     *
     * @param key any text
     * @param ttl seconds, or {@link Write#FOREVER} or {@link Write#OF_TABLE}
     * @param tags of the value
     * @param compute makes the value; null is not stored
     * @return the value
     */
    public Object getOrCompute(String key, long ttl, Collection<String> tags, Function<? super String, ?> compute) {
        return getOrMake(key, tags, each -> new Made(compute.apply(each), ttl, tags));
    }

    /**
     * A value that was computed, and how it is stored.
     *
     * @param value null is not stored
     * @param ttl seconds, or {@link Write#FOREVER} or {@link Write#OF_TABLE}
     * @param tags by which it can be removed
     */
    public record Made(Object value, long ttl, Collection<String> tags) {
    }

    /**
     * As {@link #getOrCompute(String, long, Collection, Function)}, if the tags are known only with the value. Until
     * then every removal by a tag refuses it, because it may be one of its own.
     *
     * @param key any text
     * @param make computes the value
     * @return the value
     */
    public Object getOrMake(String key, Function<? super String, Made> make) {
        return getOrMake(key, List.of(Tags.UNKNOWN), make);
    }

    private Object getOrMake(String key, Collection<String> tags, Function<? super String, Made> make) {
        Loaded copy = copy(key);
        if (copy != null) {
            return copy.value();
        }
        long end = System.nanoTime() + Limits.LEASE_WAIT * 1_000_000;
        for (long pause = Limits.PAUSE_MIN; ; pause = Math.min(pause * 3 / 2, Limits.PAUSE_MAX)) {
            long ticket = ticket(key);
            Item item = quietly(() -> table.item(key, 0), null);
            if (item != null && !item.isReserved() && !item.isWon()) {
                Object value = value(key, item);
                if (value != null) {
                    return item.isStale() ? value : kept(key, new Loaded(item, value), ticket).value();
                }
                item = null;
            }
            Item seen = item;
            long cas = item == null ? quietly(() -> reserved(key, tags), -1L) : item.isWon() ? seen.cas() : 0;
            if (cas != 0 || System.nanoTime() - end > 0 || !paused(pause)) {
                return computed(key, make, Math.max(cas, 0), item == null);
            }
        }
    }

    /** The version of the place; 0 if somebody else has it, -1 if the value is not to be stored. */
    private long reserved(String key, Collection<String> tags) {
        return table.isReadable(key) ? table.reserve(key, tags, Limits.LEASE) : -1;
    }

    private Object computed(String key, Function<? super String, Made> make, long cas, boolean isNew) {
        boolean filled = false;
        try {
            Made made = make.apply(key);
            if (made.value() != null && cas != 0) {
                Write row = write(key, made.value(), made.ttl(), made.tags()).ifVersion(cas);
                filled = quietly(() -> {
                    table.set(row);
                    return true;
                }, false);
            }
            return made.value();
        } finally {
            if (!filled && cas != 0 && isNew) {
                // The place is left to the next who asks. A stale value stays, and its lease ends by itself.
                quietly(() -> table.delete(key, cas), false);
            }
        }
    }

    private static boolean paused(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException why) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** What a call returns, or an answer in its place if the daemon cannot be asked; then a warning is logged. */
    private <T> T quietly(Supplier<T> work, T answer) {
        try {
            return work.get();
        } catch (SqlcachedException why) {
            Notices.warn("table " + table.definition().name(), why);
            return answer;
        }
    }
}

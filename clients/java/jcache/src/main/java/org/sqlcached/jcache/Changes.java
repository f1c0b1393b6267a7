package org.sqlcached.jcache;

import java.util.function.Predicate;
import javax.cache.expiry.Duration;
import javax.cache.processor.EntryProcessor;
import javax.cache.processor.EntryProcessorException;

/** Changes of one key, each of one version of its row. A change that returns null is done again. */
final class Changes<K, V> {
    private final Store<K, V> store;
    private final Deadlines deadlines;
    private final Events<K, V> events;
    private final Outside<K, V> outside;
    private final Statistics statistics;

    Changes(Store<K, V> store, Deadlines deadlines, Events<K, V> events, Outside<K, V> outside, Statistics statistics) {
        this.store = store;
        this.deadlines = deadlines;
        this.events = events;
        this.outside = outside;
        this.statistics = statistics;
    }

    /** What a change did, and what was there before. */
    record Done<V>(boolean isDone, V old) {
    }

    /** Whether a value may be written without a look at the old one. */
    boolean isBlind() {
        return events.isEmpty() && deadlines.isSameForAll() && !Deadlines.isZero(deadlines.ofCreation());
    }

    /** Stores a value in any case. */
    Done<V> put(K key, V value) {
        return store.change(key, found -> {
            outside.write(key, value);
            Boolean placed = placed(found, value);
            return placed == null ? null : new Done<>(placed, found.value());
        });
    }

    /** Stores a value whose writer was asked already; whether it was stored. */
    boolean putQuietly(K key, V value) {
        return store.<Boolean>change(key, found -> placed(found, value));
    }

    /** Whether the value was stored in the place of what was found. Null if another client was faster. */
    private Boolean placed(Store.Found<K, V> found, V value) {
        return found.isThere() ? updated(found, value) : created(found, value);
    }

    private Boolean created(Store.Found<K, V> found, V value) {
        Duration duration = deadlines.ofCreation();
        if (Deadlines.isZero(duration)) {
            return false;
        }
        if (!store.write(found, value, duration)) {
            return null;
        }
        events.created(found.key(), value);
        return true;
    }

    private Boolean updated(Store.Found<K, V> found, V value) {
        Duration duration = deadlines.ofUpdate();
        boolean ends = Deadlines.isZero(duration);
        if (ends ? !store.delete(found) : !store.write(found, value, kept(duration))) {
            return null;
        }
        if (ends) {
            events.expired(found.key(), found.value());
        } else {
            events.updated(found.key(), value, found.value());
        }
        return true;
    }

    /** Where values are eternal, a deadline that stays is none: then the row is written by a shorter command. */
    private Duration kept(Duration duration) {
        return duration == null && deadlines.isSameForAll() ? Duration.ETERNAL : duration;
    }

    boolean putIfAbsent(K key, V value) {
        return store.<Boolean>change(key, found -> {
            if (found.isThere() || Deadlines.isZero(deadlines.ofCreation())) {
                return false;
            }
            outside.write(key, value);
            return created(found, value);
        });
    }

    Done<V> replace(K key, V value) {
        return store.change(key, found -> {
            if (!found.isThere()) {
                return new Done<>(false, null);
            }
            outside.write(key, value);
            return updated(found, value) == null ? null : new Done<>(true, found.value());
        });
    }

    Done<V> replace(K key, V before, V value) {
        return store.change(key, found -> {
            if (!before.equals(found.value())) {
                seen(found);
                return new Done<>(false, found.value());
            }
            outside.write(key, value);
            return updated(found, value) == null ? null : new Done<>(true, found.value());
        });
    }

    /** An access may move the deadline of what was read. */
    void seen(Store.Found<K, V> found) {
        if (found.isThere() && !deadlines.isAccessFree()) {
            store.access(found, deadlines.ofAccess());
        }
    }

    /** Removes what is there. The writer is asked in any case. */
    Done<V> remove(K key) {
        return store.change(key, found -> {
            outside.delete(key);
            return removed(found);
        });
    }

    /** Removes what is there, if the writer was asked already. */
    boolean removeQuietly(K key) {
        return store.change(key, this::removed).isDone();
    }

    private Done<V> removed(Store.Found<K, V> found) {
        if (!found.isThere()) {
            // The place of a value that is being loaded must not be filled with what was there before.
            if (found.item() != null && !store.delete(found)) {
                return null;
            }
            return new Done<>(false, null);
        }
        if (!store.delete(found)) {
            return null;
        }
        events.removed(found.key(), found.value());
        return new Done<>(true, found.value());
    }

    Done<V> remove(K key, Predicate<V> condition) {
        return store.change(key, found -> {
            if (!found.isThere() || !condition.test(found.value())) {
                seen(found);
                return new Done<>(false, found.value());
            }
            outside.delete(key);
            return removed(found);
        });
    }

    /** The result of a processor: null is one, too. */
    private record Answer<T>(T value) {
    }

    <T> T invoke(K key, EntryProcessor<K, V, T> processor, Object... arguments) {
        long since = System.nanoTime();
        return store.<Answer<T>>change(key, found -> {
            Processed<K, V> entry = new Processed<>(found, outside);
            T result;
            try {
                result = processor.process(entry, arguments);
            } catch (EntryProcessorException why) {
                throw why;
            } catch (RuntimeException why) {
                throw new EntryProcessorException(why);
            }
            if (!applied(found, entry, since)) {
                return null;
            }
            return new Answer<>(result);
        }).value();
    }

    private boolean applied(Store.Found<K, V> found, Processed<K, V> entry, long since) {
        boolean done = switch (entry.what()) {
            case NOTHING -> true;
            case ACCESS -> {
                store.access(found, deadlines.ofAccess());
                yield true;
            }
            case LOAD -> placed(found, entry.value()) != null;
            case CREATE, UPDATE -> {
                outside.write(found.key(), entry.value());
                yield placed(found, entry.value()) != null;
            }
            case REMOVE -> {
                outside.delete(found.key());
                yield removed(found) != null;
            }
        };
        if (done) {
            count(found, entry, since);
        }
        return done;
    }

    private void count(Store.Found<K, V> found, Processed<K, V> entry, long since) {
        statistics.looked(found.isThere(), since);
        switch (entry.what()) {
            case CREATE, UPDATE, LOAD -> statistics.put(1, since);
            case REMOVE -> statistics.removed(found.isThere() ? 1 : 0, since);
            default -> { }
        }
    }
}

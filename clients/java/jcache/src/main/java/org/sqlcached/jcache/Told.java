package org.sqlcached.jcache;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.sqlcached.client.Item;
import org.sqlcached.client.Write;

/**
 * What listeners know of rows that changed lately. The daemon announces this process's own changes, too, and several changes
 * of a row one by one: a state that was told is not told again.
 */
final class Told {
    /** Rows that are remembered. Of a row that was forgotten, a change by this process is told twice. */
    private static final int ROWS = 10_000;

    /** Locks that rows share. A call waits for one of another row once in so many times. */
    private static final int LOCKS = 64;

    private static final byte[] GONE = {};

    /** Whether announcements are heard, so that anything is to be remembered. */
    volatile boolean isOn;

    private final Map<String, byte[]> states = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, byte[]> eldest) {
            return size() > ROWS;
        }
    };

    /**
     * A call of this process that changes a row, and the reading of a row that was announced, go one after another: beside each
     * other, the reading could find the row of before and take it for the newer one.
     */
    private final Lock[] locks = Stream.generate(ReentrantLock::new).limit(LOCKS).toArray(Lock[]::new);

    /** What is read of a row that was announced. */
    record Announced(Item item, boolean isKnown) {
    }

    /** Reads a row that was announced, and says whether listeners know it. Now they do. */
    Announced announced(String key, Supplier<Item> read) {
        Lock lock = lock(key);
        lock.lock();
        try {
            Item item = read.get();
            return new Announced(item, isTold(key, state(item)));
        } finally {
            lock.unlock();
        }
    }

    private Lock lock(String key) {
        return locks[Math.floorMod(key.hashCode(), LOCKS)];
    }

    /** The state of a row; null: there is none. */
    private static byte[] state(Item item) {
        return item == null ? GONE : state(item.data(), item.flags());
    }

    private static byte[] state(byte[] data, int flags) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(Integer.toString(flags).getBytes());
            digest.update((byte) 0);
            return digest.digest(data);
        } catch (NoSuchAlgorithmException why) {
            throw new IllegalStateException("every Java has SHA-256", why);
        }
    }

    /** Whether listeners know this state. Now they do. */
    private synchronized boolean isTold(String key, byte[] state) {
        return Arrays.equals(states.put(key, state), state);
    }

    private synchronized void put(String key, byte[] state) {
        states.remove(key);
        states.put(key, state);
    }

    synchronized void clear() {
        states.clear();
    }

    /** Writes a row. */
    boolean writing(Write row, BooleanSupplier work) {
        return isOn ? noting(row.key(), state(row.data(), row.flags()), work) : work.getAsBoolean();
    }

    /** Removes a row. */
    boolean removing(String key, BooleanSupplier work) {
        return isOn ? noting(key, GONE, work) : work.getAsBoolean();
    }

    private boolean noting(String key, byte[] state, BooleanSupplier work) {
        Lock lock = lock(key);
        lock.lock();
        try {
            boolean done = work.getAsBoolean();
            if (done) {
                put(key, state);
            }
            return done;
        } finally {
            lock.unlock();
        }
    }
}

package org.sqlcached.jcache;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.sqlcached.client.Item;
import org.sqlcached.client.Write;

/**
 * What listeners know of rows that changed lately. The daemon announces this process's own changes, too, and several changes
 * of a row one by one: a state that was told is not told again.
 */
final class Told {
    /** Rows that are remembered. Of a row that was forgotten, a change by this process is told twice. */
    private static final int ROWS = 10_000;

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

    /** The state of a row; null: there is none. */
    static byte[] state(Item item) {
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
    synchronized boolean isTold(String key, byte[] state) {
        return Arrays.equals(states.put(key, state), state);
    }

    private synchronized void put(String key, byte[] state) {
        states.remove(key);
        states.put(key, state);
    }

    private synchronized void forget(String key) {
        states.remove(key);
    }

    synchronized void clear() {
        states.clear();
    }

    /** Writes a row. It is noted before, because the announcement may come before the answer. */
    boolean writing(Write row, BooleanSupplier work) {
        return isOn ? noting(row.key(), state(row.data(), row.flags()), work) : work.getAsBoolean();
    }

    /** Removes a row. */
    boolean removing(String key, BooleanSupplier work) {
        return isOn ? noting(key, GONE, work) : work.getAsBoolean();
    }

    private boolean noting(String key, byte[] state, BooleanSupplier work) {
        put(key, state);
        boolean done = false;
        try {
            done = work.getAsBoolean();
            return done;
        } finally {
            if (!done) {
                // Somebody else was faster: listeners know nothing of what is there now.
                forget(key);
            }
        }
    }
}

package org.sqlcached.client;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Closes connections whose call lasts too long. One thread looks at all of them, because a read with a timeout of its
 * own would cost two system calls more. The thread ends when no connection is left.
 */
final class Watch implements Runnable {
    private static final Watch ALL = new Watch();

    private final Set<Watched> open = ConcurrentHashMap.newKeySet();
    private boolean running;

    /** What is looked at from time to time. It must not wait for anything. */
    interface Watched {
        /** @param now in {@link System#nanoTime} */
        void look(long now);
    }

    private Watch() {
    }

    static void add(Watched connection) {
        ALL.open.add(connection);
        ALL.start();
    }

    static void remove(Watched connection) {
        ALL.open.remove(connection);
    }

    private synchronized void start() {
        if (!running) {
            running = true;
            Thread thread = new Thread(this, "sqlcached-watch");
            thread.setDaemon(true);
            // The thread outlives who started it, and must not hold the class loader of an application.
            thread.setContextClassLoader(null);
            thread.start();
        }
    }

    @Override
    public void run() {
        do {
            LockSupport.parkNanos(Limits.WATCH * 1_000_000);
            long now = System.nanoTime();
            open.forEach(connection -> connection.look(now));
        } while (!isOver());
    }

    private synchronized boolean isOver() {
        running = !open.isEmpty();
        return !running;
    }
}

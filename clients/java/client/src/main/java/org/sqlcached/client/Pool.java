package org.sqlcached.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** The connections to one daemon: so many at most, and the one that was used last first. */
final class Pool {
    private final Options options;
    private final Semaphore places;
    private final ConcurrentLinkedDeque<Connection> idle = new ConcurrentLinkedDeque<>();
    private volatile boolean closed;

    /** Until when the daemon is taken to be away, in {@link System#nanoTime}; 0 if it is not. */
    private volatile long away;

    Pool(Options options) {
        this.options = options;
        this.places = new Semaphore(options.connections());
    }

    /** A connection of one's own, until it is given back or ended. Whoever waits too long for one gets an error. */
    Connection take() {
        if (closed) {
            throw new IllegalStateException(options + ": the client is closed");
        }
        if (!places.tryAcquire()) {
            await();
        }
        Connection connection = idle.pollFirst();
        if (connection != null) {
            return connection;
        }
        try {
            return reached();
        } catch (RuntimeException why) {
            places.release();
            throw why;
        }
    }

    private void await() {
        try {
            if (!places.tryAcquire(options.timeout().toMillis(), TimeUnit.MILLISECONDS)) {
                throw new UnavailableException(
                        options + ": all " + options.connections() + " connections are in use");
            }
        } catch (InterruptedException why) {
            Thread.currentThread().interrupt();
            throw new UnavailableException(options + ": the thread was interrupted", why);
        }
    }

    void giveBack(Connection connection) {
        connection.done();
        idle.addFirst(connection);
        places.release();
        if (closed) {
            close();
        }
    }

    void end(Connection connection) {
        connection.close();
        places.release();
    }

    /** Closes the connections that are not in use: the daemon that they led to is gone. */
    void forget() {
        for (Connection each; (each = idle.pollFirst()) != null; ) {
            each.close();
        }
    }

    void close() {
        closed = true;
        forget();
    }

    /** A host that does not even refuse costs a second; nobody waits for it twice in a second. */
    private Connection reached() {
        long begin = System.nanoTime();
        long until = away;
        if (until != 0 && begin - until < 0) {
            throw new UnavailableException(options + ": there was no answer a moment ago");
        }
        try {
            Connection connection = open();
            away = 0;
            return connection;
        } catch (UnavailableException why) {
            long now = System.nanoTime();
            boolean slow = now - begin > options.connectTimeout().toNanos() / 2;
            // Who was interrupted says nothing about the daemon.
            if (slow && !Thread.currentThread().isInterrupted()) {
                away = Math.max(1, now + Limits.RETRY);
            }
            throw why;
        }
    }

    private Connection open() {
        Transport transport;
        try {
            transport = Place.of(options.location()).reach(options, Place.AT_ONCE);
        } catch (IOException why) {
            throw new UnavailableException(options + ": " + why.getMessage(), why);
        } catch (RuntimeException why) {
            throw new UnavailableException(options + ": " + why, why);
        }
        Connection connection = new Connection(transport, options.location(), options.timeout().toMillis());
        try {
            logIn(connection);
            return connection;
        } catch (RuntimeException why) {
            connection.close();
            throw why;
        }
    }

    private void logIn(Connection connection) {
        if (options.user() == null) {
            return;
        }
        byte[] login = (options.user() + " " + options.password()).getBytes(StandardCharsets.UTF_8);
        connection.begin();
        connection.put("set login 0 0 ").put(login.length).end().put(login).end().flush();
        String line = connection.line();
        if (!line.equals("STORED")) {
            throw connection.refused(line);
        }
    }
}

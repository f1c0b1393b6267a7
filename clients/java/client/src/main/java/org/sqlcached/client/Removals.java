package org.sqlcached.client;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/**
 * The removals of a table at one daemon, none of which may be lost. What cannot be sent is kept, and this process reads
 * nothing from the table until it got through.
 */
final class Removals {
    private final Statements statements;
    private final Deque<Removal> waiting = new ArrayDeque<>();
    private volatile boolean isEmpty = true;
    private long tried = System.nanoTime() - Limits.RETRY;

    Removals(Statements statements) {
        this.statements = statements;
    }

    private record Removal(String text, Object[] parameters) {
    }

    /** Whether nothing waits. What waits is sent now, at most once in a second, by one thread. */
    boolean areSent() {
        if (isEmpty) {
            return true;
        }
        synchronized (this) {
            long now = System.nanoTime();
            if (!isEmpty && now - tried < Limits.RETRY) {
                return false;
            }
            tried = now;
        }
        return sendWaiting();
    }

    private boolean sendWaiting() {
        try {
            for (Removal first; (first = first()) != null; ) {
                statements.run(true, first.text, first.parameters);
                drop(first);
            }
            return true;
        } catch (SqlcachedException why) {
            Notices.warn(statements + " is not read until its removals were sent", why);
            return false;
        }
    }

    private synchronized Removal first() {
        return waiting.peekFirst();
    }

    /** Too many may have been replaced meanwhile by one that removes all. */
    private synchronized void drop(Removal sent) {
        waiting.removeFirstOccurrence(sent);
        isEmpty = waiting.isEmpty();
    }

    /**
     * A removal that must not be lost: it is sent again to a daemon that restarts, and kept for one that stays away.
     *
     * @return how many rows; -1 if it waits
     */
    long send(String text, Object... parameters) {
        // Where others wait already, the daemon was away a moment ago.
        int attempts = isEmpty ? Limits.RETRIES.length : 0;
        for (int attempt = 0; ; attempt++) {
            try {
                return statements.run(true, text, parameters).count();
            } catch (UnavailableException why) {
                if (attempt >= attempts || !pause(Limits.RETRIES[attempt])) {
                    return keep(why, text, parameters);
                }
            }
        }
    }

    private static boolean pause(int millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException why) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Keeps a removal that cannot be sent, or logs that it is lost; -1. */
    long keep(UnavailableException why, String text, Object... parameters) {
        OnFailure choice = statements.onFailure();
        if (choice == OnFailure.LOG) {
            Notices.error(statements + ": an invalidation was not sent, old rows may be read", why);
            return -1;
        }
        if (add(new Removal(text, parameters))) {
            Notices.error(statements + " is not read until an invalidation was sent", why);
        }
        if (choice == OnFailure.RAISE) {
            throw why;
        }
        return -1;
    }

    private synchronized boolean add(Removal removal) {
        boolean first = waiting.isEmpty();
        if (waiting.size() >= Limits.PENDING) {
            waiting.clear();
            waiting.add(new Removal("DELETE FROM " + statements.definition().quoted(), new Object[0]));
        } else {
            waiting.add(removal);
        }
        isEmpty = false;
        return first;
    }

    /** Keeps the removal of rows by their keys. */
    void keepKeys(UnavailableException why, List<String> keys) {
        keep(why, ofKeys(keys), parameters(keys));
    }

    /** A write may have failed after an old row was there, which must not be read any more. */
    <T> T written(String key, Supplier<T> work) {
        try {
            return work.get();
        } catch (UnavailableException why) {
            keepKeys(why, List.of(key));
            throw why;
        }
    }

    String ofKeys(List<String> keys) {
        String places = String.join(", ", Collections.nCopies(keys.size(), "?"));
        return "DELETE FROM " + statements.definition().quoted() + " WHERE key IN (" + places + ")";
    }

    static Object[] parameters(List<String> keys) {
        return Arrays.copyOf(keys.stream().map(Keys::text).toArray(), keys.size(), Object[].class);
    }
}

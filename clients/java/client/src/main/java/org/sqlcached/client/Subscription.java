package org.sqlcached.client;

/** A listener of a table at one daemon, until it is closed. */
public final class Subscription implements AutoCloseable {
    private final Announcements from;
    private final Definition table;
    private final RowListener listener;

    /** The channel on which the table announces; null until that is known. */
    private volatile String channel;

    /** When the daemon was last known to be heard, in {@link System#nanoTime}. */
    private volatile long heard;
    private volatile boolean isHeard;

    Subscription(Announcements from, Definition table, RowListener listener) {
        this.from = from;
        this.table = table;
        this.listener = listener;
    }

    Definition table() {
        return table;
    }

    String channel() {
        return channel;
    }

    void channel(String name) {
        channel = name;
    }

    /** The daemon was heard at this moment, and all that it announced before. */
    void heardAt(long moment) {
        heard = moment;
        if (!isHeard) {
            // Copies are dropped before any is believed again.
            allMayHaveChanged();
            isHeard = true;
        }
    }

    void left(String key, RowListener.Cause cause) {
        tell(() -> listener.left(key, cause));
    }

    void allMayHaveChanged() {
        tell(listener::allMayHaveChanged);
    }

    /** A listener that fails does not keep others from hearing. */
    private void tell(Runnable call) {
        try {
            call.run();
        } catch (RuntimeException why) {
            Notices.warn("a listener of the table " + table.name() + " failed", why);
        }
    }

    void lost() {
        isHeard = false;
    }

    /** @return whether the daemon is heard, as far as is known */
    public boolean isHeard() {
        return isHeard;
    }

    /** Whether everything was heard that was announced so many nanoseconds before now. */
    boolean isHeardWithin(long nanos, long now) {
        return isHeard && now - heard < nanos;
    }

    /** Ends it. A call of the listener that is running is not waited for. */
    @Override
    public void close() {
        isHeard = false;
        from.remove(this);
    }
}

package org.sqlcached.client;

/** What becomes of an invalidation that cannot be sent. */
public enum OnFailure {
    /** It is kept, and nothing is read from the table until it got through. */
    SUSPEND,
    /** As {@code SUSPEND}, and the call throws. */
    RAISE,
    /** An error is logged. Old rows are read when the daemon is back. */
    LOG
}

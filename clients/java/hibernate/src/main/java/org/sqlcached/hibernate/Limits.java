package org.sqlcached.hibernate;

/** The bounds of this package, each with its reason. */
final class Limits {
    /** Seconds for which the place of a missing value is kept for the session that loads it: a load takes milliseconds. */
    static final int LEASE = 30;

    /**
     * Seconds after which a lock of a session that died no longer counts, and for which it is remembered when a value
     * changed: Hibernate's own number for transactions.
     */
    static final int LOCK = 60;

    /** Leases that a session holds. One that loads more keeps the newest, and what it loaded before is not stored. */
    static final int LEASES = 1_000;

    /** Attempts to change a row. Each fails only because another session succeeded. */
    static final int ATTEMPTS = 1_000;

    /** Letters of an identifier that is also a tag: longer ones are of no use in a condition. */
    static final int TAG = 200;

    private Limits() {
    }
}

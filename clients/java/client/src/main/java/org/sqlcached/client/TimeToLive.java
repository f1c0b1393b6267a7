package org.sqlcached.client;

/** Times to live of a table's rows, in seconds, as commands and statements have them. */
final class TimeToLive {
    /** The time to live that a table's option says, of the table with this name. */
    private static final String OF_TABLE = "(SELECT ttl FROM sqlcached_tables WHERE table_name = ?)";

    /** A thousand years, so that the sum with a clock does not overflow. */
    private static final long LONGEST = 31_557_600_000L;

    private final Definition definition;

    TimeToLive(Definition definition) {
        this.definition = definition;
    }

    /** memcached's number. */
    long exptime(long ttl) {
        long never = definition.hasTtl() ? Limits.FOREVER : 0;
        if (ttl == Write.OF_TABLE) {
            return 0;
        }
        if (ttl < 0) {
            return never;
        }
        if (ttl == 0) {
            return -1;
        }
        if (ttl <= Limits.MONTH) {
            return ttl;
        }
        long now = System.currentTimeMillis() / 1000;
        // memcached's clock ends in 2038.
        return ttl >= Limits.FOREVER - now ? never : ttl + now;
    }

    /** What a statement sets the hidden column {@code _ttl} to: an expression with one parameter. */
    static String expression(long ttl) {
        return ttl == Write.OF_TABLE ? OF_TABLE : "?";
    }

    /** The parameter of the expression. */
    Object parameter(long ttl) {
        if (ttl == Write.OF_TABLE) {
            return definition.name();
        }
        return ttl < 0 ? null : (Long) Math.min(ttl, LONGEST);
    }
}

package org.sqlcached.client;

/** The bounds of this package, each with its reason. */
final class Limits {
    /** The longest key of memcached's protocol, with the table's prefix. Longer keys go by SQL to the same rows. */
    static final int KEY = 250;

    /** A command line that the daemon takes has 2,048 bytes. This leaves room for the flags of the longest command. */
    static final int LINE = 1_900;

    /** Keys of one batch that is asked for: its commands fit into the kernel's buffers while nobody reads the answers. */
    static final int KEYS = 200;

    /** Commands and bytes of one batch that is written: a command more costs nothing then, and memory is not doubled. */
    static final int BATCH = 500;
    static final int BATCH_BYTES = 1_048_576;

    /** Bytes that are read at once. An answer to some dozens of small keys fits. */
    static final int IN = 65_536;

    /** Bytes in which the end of a line is looked for first: what the daemon says of a value is shorter. */
    static final int SHORT_LINE = 64;

    /** Bytes that are collected before they are sent. A larger value is sent from where it is. */
    static final int OUT = 16_384;

    /** Memory that is taken because an answer announced it. More is taken as the bytes arrive. */
    static final int BELIEVED = 1_048_576;

    /** The longest value that is believed: what a daemon can be told to store at most ({@code -I 1g}). */
    static final int VALUE = 1_073_741_824;

    /** The longest line of an answer: a row of a statement, whose result the daemon bounds (64 MiB). */
    static final int ROW = 134_217_728;

    /** memcached's last moment. A row with this deadline outlives the table's {@code ttl}. */
    static final long FOREVER = 2_147_483_647L;

    /** Above this number of seconds memcached takes an exptime for a Unix time. */
    static final long MONTH = 2_592_000;

    /** Removals that wait for a daemon that is away. Beyond them the table is emptied instead. */
    static final int PENDING = 1_000;

    /** Milliseconds before a removal is sent again: a daemon that restarts is back within a third of a second. */
    static final int[] RETRIES = {50, 250};

    /** Nanoseconds between two attempts to send what waits, or to reach a host that does not even refuse. */
    static final long RETRY = 1_000_000_000L;

    /** Nanoseconds between two warnings of a kind. A daemon that is away fails thousands of times a second. */
    static final long WARN_EVERY = 60_000_000_000L;

    /** Milliseconds between two looks for calls that last too long. A timeout of seconds is kept to some hundredths. */
    static final long WATCH = 50;

    /** Seconds for which a missing value is reserved for the one who computes it. */
    static final int LEASE = 30;

    /** Milliseconds that others wait for it before they compute it for themselves. */
    static final long LEASE_WAIT = 10_000;

    /** Milliseconds between two looks at a value that another computes: short at first, since most take little time. */
    static final long PAUSE_MIN = 5;
    static final long PAUSE_MAX = 100;

    /** Rows of a page: an iteration holds no more of a table than this. */
    static final int PAGE = 100;

    /** Tables that a connection knows to exist. A program that makes more of them asks again. */
    static final int TABLES = 1_000;

    /** Bytes that a compressed value may become. */
    static final int UNPACKED = 67_108_864;

    /** The longest message of PostgreSQL's protocol that is taken: an announcement has some hundreds of bytes. */
    static final int MESSAGE = 32_768;

    /** Rounds of a login by SCRAM: as much as a second of work. A daemon asks for 4,096. */
    static final int SCRAM_ROUNDS = 1_000_000;

    /** Nanoseconds between two questions whether the daemon still announces. They cost it a tenth of a millisecond. */
    static final long BEAT = 500_000_000L;

    /** Milliseconds before a connection for announcements is opened again, and before the next attempts at most. */
    static final long RECONNECT_MIN = 50;
    static final long RECONNECT_MAX = 1_000;

    /** Counters of changes that near copies share: a change of one key refuses what is being read of few others. */
    static final int NEAR_STRIPES = 1_024;

    /** Milliseconds of staleness that can be kept: two questions fit into them. */
    static final long STALENESS_MIN = 1_000;

    /**
     * Readers of shared memory that are kept while nobody uses them, and how many of them a thread looks at before it makes
     * one more. Each may hold the largest value that is read there (1 MiB).
     */
    static final int READERS = 64;
    static final int READERS_LOOK = 4;

    private Limits() {
    }
}

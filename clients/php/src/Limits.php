<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** The bounds of this package, each with its reason. */
final class Limits
{
    /** The longest key of memcached's protocol, with the table's prefix. Longer keys go by SQL to the same rows. */
    public const KEY = 250;

    /** A command line that the daemon takes has 2,048 bytes. This leaves room for the flags of the longest command. */
    public const LINE = 1_900;

    /** Keys of one batch that is asked for: its commands fit into the kernel's buffers while nobody reads the answers. */
    public const KEYS = 200;

    /** Commands and bytes of one batch that is written: a command more costs nothing then, and memory is not doubled. */
    public const BATCH = 500;
    public const BATCH_BYTES = 1_048_576;

    /** Bytes that are read at once. An answer to a hundred small keys fits. */
    public const CHUNK = 65_536;

    /** The longest value that is believed: what a daemon can be told to store at most (`-I 1g`). */
    public const VALUE = 1_073_741_824;

    /** memcached's last moment. A row with this deadline outlives the table's `ttl`. */
    public const FOREVER = 2_147_483_647;

    /** Above this number of seconds memcached takes an exptime for a Unix time. */
    public const MONTH = 2_592_000;

    /** The longest deadline that a statement is given: a thousand years. PHP's largest number is not a time. */
    public const TTL = 31_557_600_000;

    /** Bytes of removals that wait for a daemon that is away. Beyond them the table is emptied instead. */
    public const PENDING = 262_144;

    /** Pauses before a removal is sent again: a daemon that restarts is back within a third of a second. */
    public const RETRIES = [50_000, 250_000];

    /** Seconds between two attempts to send what waits. */
    public const RETRY = 1.0;

    /** Seconds between two warnings of a kind. A daemon that is away fails thousands of times a second. */
    public const WARN_EVERY = 60;

    /** Seconds for which a missing value is reserved for the one who computes it. */
    public const LEASE = 30;

    /** Seconds that others wait for it before they compute it for themselves. */
    public const LEASE_WAIT = 10.0;

    /** Microseconds between two looks at a value that another computes: short at first, since most values take little time. */
    public const PAUSE_MIN = 5_000;
    public const PAUSE_MAX = 100_000;

    /** Attempts of an arithmetic that the daemon cannot do. Each fails only because another client succeeded. */
    public const ATTEMPTS = 1_000;

    /** Sessions that a process knows to have read. A request reads one, and a new one when its id changes. */
    public const SESSIONS = 100;

    private function __construct()
    {
    }
}

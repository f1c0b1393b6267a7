//! The engine's limits, each with its reason.

use store::GiveLimits;

/// Bytes of the largest memcached value: memcached's default for `-I`.
pub const ITEM_SIZE_MAX: usize = 1 << 20;

/// Bytes of the largest SQL result over the text protocol. A result is made whole before it is sent, so that a slow
/// reader holds no row; 64 MiB is some hundred thousand rows, more than a cache's client should ask for at once.
pub const RESULT_SIZE_MAX: usize = 64 << 20;

/// Rounds of looking at a key and acting on it before a meta command gives up: each lost round means that another
/// client's write of the key went through.
pub(crate) const CONTENDED_ROUNDS: usize = 10_000;

/// The largest relative expiry time in seconds, 30 days; a larger number is a Unix time. memcached's rule.
pub(crate) const EXPTIME_RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// Values deeper than this in the parameters of a statement are refused; parameters are scalars, and the only object
/// that means something has depth one.
pub(crate) const PARAMETERS_MAX: usize = 32_766;

/// Bytes that the prepared statements of one session may take: ten thousand of the usual length.
pub(crate) const PREPARED_BYTES_MAX: usize = 16 << 20;

/// What a prepared statement takes beside its text and its columns.
pub(crate) const PREPARED_STATEMENT_BYTES: usize = 256;

/// Statements whose figures are kept: an application has some hundred, and each takes about 1 KiB.
pub(crate) const STATEMENTS_MAX: usize = 1_000;

/// Texts whose statement one thread knows without asking the others: as many as it has compiled, twice.
pub(crate) const KNOWN_STATEMENTS_MAX: usize = 512;
/// Texts with literals that one thread remembers by their hashes, 8 bytes each, to keep those that come again.
pub(crate) const MET_STATEMENTS: usize = 256;
/// Longest text that a thread knows: one of an `INSERT` of many rows comes once, and hundreds of these took megabytes.
/// A longer one is counted all the same; what it is counted under is made again each time, which is little beside its
/// rows.
pub(crate) const KNOWN_STATEMENT_BYTES_MAX: usize = 4 << 10;

/// So many first calls of a statement are timed, each of them.
pub(crate) const TIMED_CALLS: u64 = 1_000;

/// Of later calls one in so many is timed: two looks at the clock are a tenth of what the fastest statement takes.
pub(crate) const TIMED_SHARE: u64 = 16;

/// Tables that metrics name; all others are one, `other`. Each has some ten series, and a scrape of 2,000 lines takes
/// Prometheus and this server a millisecond.
pub(crate) const LABELLED_TABLES_MAX: usize = 200;

/// The housekeeping is alive if its last tick was this long ago at most: it ticks sixteen times a second, and
/// waits for a processor while other threads are busy.
pub(crate) const TICK_AGE_MAX_NS: u64 = 2_000_000_000;

/// Portals and cursors that one session has open, beside the unnamed one. Each may hold a result.
pub(crate) const PORTALS_MAX: usize = 256;

/// Values of the unnamed portal below this are not counted: they belong to the cost of a connection.
pub(crate) const HELD_FROM_BYTES: usize = 16 << 10;

/// Values for which a session keeps room from one unnamed portal to the next.
pub(crate) const SPARE_VALUES_MAX: usize = 64;

/// What a change of a setting takes that the end of the transaction may take back, beside the value.
pub(crate) const SETTING_CHANGE_BYTES: usize = 64;

/// What all settings of a session take at most that `RESET ALL` may have to set back: some thirty of a few KiB.
pub(crate) const SETTINGS_BYTES_MAX: usize = 128 << 10;

/// What a channel takes on which a session listens, beside its name.
pub(crate) const LISTENED_BYTES: usize = 128;

/// Rows that `COPY FROM STDIN` stores with one statement, outside a transaction also with one commit: enough to make
/// the statement's own cost small, and little to hold back.
pub(crate) const COPY_BATCH_ROWS: usize = 128;

/// Values of such a statement; far below the parameters that a statement may have.
pub(crate) const COPY_BATCH_VALUES: usize = 8_192;

/// Bytes of events that wait for one watcher; memcached's default for its buffer. Beyond, events are lost and counted.
pub(crate) const WATCHER_BYTES_MAX: usize = 256 << 10;

/// Refusals that are kept for who looks for the reason: a screenful or two.
pub(crate) const REFUSALS_KEPT: usize = 128;

/// Bytes of each text of a refusal. A peer makes up the name of a role, and statements are long.
pub(crate) const REFUSAL_TEXT_BYTES_MAX: usize = 256;

/// Prefixes of keys that `stats detail` counts: each takes some hundred bytes, and a page of statistics with more is
/// read by nobody.
pub(crate) const PREFIXES_MAX: usize = 10_000;

/// Bytes of notifications that wait for one session. Beyond, it is closed.
pub(crate) const INBOX_BYTES_MAX: usize = 8 << 20;

/// Bytes of notifications that are made replies of at once; the rest waits where it is counted.
pub(crate) const NOTIFICATIONS_SENT_BYTES: usize = 64 << 10;

/// What a notification takes beside its payload.
pub(crate) const NOTIFICATION_BYTES: usize = 64;

/// Bytes of a notification's payload; PostgreSQL's limit.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 8_000;

/// Notifications and wishes to listen of one transaction.
pub(crate) const PENDING_MAX: usize = 10_000;

/// Bytes of a name: of a prepared statement, cursor, channel or setting. PostgreSQL cuts names off at 63 bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Bytes of a setting's value.
pub(crate) const SETTING_BYTES_MAX: usize = 4 << 10;

/// Advisory locks that sessions hold or wait for: as many as PostgreSQL's defaults allow.
pub(crate) const ADVISORY_LOCKS_MAX: usize = 6_400;

/// Calls of functions of advisory locks that a statement may have made before it waits: each is kept with its answer.
pub(crate) const ADVISORY_CALLS_MAX: usize = 6_400;

/// How often sessions may overtake one another to break one circle of waits: each round breaks one of few.
pub(crate) const OVERTAKING_MAX: usize = 64;

/// One memcached command of a busy thread in so many is timed and sampled: two looks at the clock are a tenth of what
/// it takes.
pub(crate) const TIMED_COMMANDS: u32 = 64;

/// Samples that a thread wants to take in a tick: 4,096 commands a second are all sampled. That many take a thousandth
/// of a processor, and the hundred hottest keys of a minute stand out in them.
pub(crate) const SAMPLES_PER_TICK: u32 = 256;

/// Bytes of samples that wait for the housekeeping: those of a tick of a million commands a second.
pub(crate) const SAMPLES_BYTES_MAX: usize = 32 << 10;

/// Hot keys are counted in slices of so many ticks (10 s); with each the oldest is forgotten.
pub(crate) const HOT_SLICE_TICKS: u64 = 10 * store::TICKS_PER_SECOND;

/// Slices that are added up: a minute, of which the last one is not over.
pub(crate) const HOT_SLICES: usize = 6;

/// Keys that a slice counts: forty times as many as a table shows. With keys of 40 bytes all slices have 3 MB.
pub(crate) const HOT_SLICE_KEYS_MAX: usize = 4_096;

/// Keys of a table that are shown as read most, and as many that are written most.
pub(crate) const HOT_KEYS_SHOWN: usize = 100;

/// The same of SQL statements, which take ten times as long.
pub(crate) const TIMED_STATEMENTS: u32 = 16;

/// Slow statements that are kept: as many as refusals, a screenful or two.
pub(crate) const SLOW_KEPT: usize = 128;

/// Bytes of a statement, and of its parameters, that are kept of what happened: a screenful. All of it takes 2 MiB at
/// most.
pub(crate) const HAPPENED_TEXT_BYTES_MAX: usize = 1 << 10;

/// Who may read the audit log: the server's user and group, for it names roles and addresses.
pub(crate) const AUDIT_FILE_MODE: u32 = 0o640;

/// Invalidations that are kept: some minutes of an application that invalidates all the time.
pub(crate) const INVALIDATIONS_KEPT: usize = 1_024;

/// Of so many of the newest invalidations a new one may be another run: as many statements as an application repeats at
/// once, and few to compare.
pub(crate) const MERGE_AMONG: usize = 32;

/// Invalidations by the same statement of the same client within so many milliseconds are one.
pub(crate) const MERGE_MS: i64 = 1_000;

/// The same for expiry rules and sources, which repeat themselves.
pub(crate) const MERGE_OWN_MS: i64 = 10_000;

/// Invalidations of one open transaction that are noted when it commits: each takes some hundred bytes.
pub(crate) const HAPPENED_IN_BLOCK_MAX: usize = 128;

/// Points of a second in the history: five minutes.
pub(crate) const SECONDS_KEPT: usize = 300;

/// Points of a minute: a day.
pub(crate) const MINUTES_KEPT: usize = 1_440;

/// Tables whose memory each point has: those with the most, as many as a chart has colours for.
pub(crate) const TABLES_IN_POINT: usize = 5;

/// Keys of one source that may wait to be fetched. A query fetches a hundred, so the last of them waits for forty.
pub(crate) const FETCH_QUEUE_KEYS: usize = 4_096;

/// Keys that one query fetches: an index of the source finds so many in a millisecond, and nobody waits for more.
pub(crate) const FETCH_BATCH_KEYS: usize = 100;

/// Longest key that is fetched: four times the longest of memcached's.
pub(crate) const FETCH_KEY_BYTES_MAX: usize = 1 << 10;

/// How long a client waits for a missing row, where `fetch_timeout` says nothing.
pub const FETCH_TIMEOUT_MS: u64 = 2_000;

/// Keys of one source of which it is remembered that there is no row: enough for who asks at random, some megabytes.
pub(crate) const ABSENT_KEYS_MAX: usize = 65_536;

/// Bytes of such keys.
pub(crate) const ABSENT_BYTES_MAX: usize = 8 << 20;

/// How often a statement asks for rows that it misses: ten thousand keys, and then it is answered with what is there.
pub(crate) const FETCH_ROUNDS_MAX: usize = 10;

/// Bytes of a result that are kept back while rows may be missing: a statement by keys gives few, and a scan goes on.
pub(crate) const FETCH_SURE_BYTES: usize = 64 << 10;

/// How long a client that invalidates waits for the bus: an election among three servers of NATS may take longer, and
/// then the client hears that the others will be told later.
pub(crate) const ACKNOWLEDGE_NS: u64 = 2_000_000_000;

/// Operations of one table that wait for a bus; of more, all rows are told. As many as a source's changes name one by
/// one: beyond, emptying the table is cheaper than looking for each.
pub(crate) const OUTBOX_KEYS_MAX: usize = 10_000;

/// Bytes of these: a key has 250, a statement up to 64 KiB.
pub(crate) const OUTBOX_BYTES_MAX: usize = 4 << 20;

/// Writes of rows of one table that wait for a bus. Of more, all rows are told, and then no cache has any: so as many
/// as a bus takes in a second or two, and a few megabytes of keys.
pub(crate) const OUTBOX_ROWS_MAX: usize = 200_000;

/// Bytes of these. From half of it on rows are told as invalidations: the others do without them.
pub(crate) const OUTBOX_ROW_BYTES_MAX: usize = 64 << 20;

/// Bytes of a row that travels: half of what a message of NATS takes. A larger one is told as an invalidation.
pub(crate) const ROW_BYTES_MAX: usize = 512 << 10;

/// What a cache gives another one of a table at once. A quarter of what a message of NATS takes, so that heartbeats and
/// writes of others wait for a millisecond or two; and so many groups that an empty table is soon through.
pub(crate) const GIVE_LIMITS: GiveLimits =
    GiveLimits { groups: 4_096, rows: 4_000, bytes: 256 << 10, row_bytes: ROW_BYTES_MAX };

/// Bytes of what one transaction tells: NATS takes messages up to a megabyte, with what is around it.
pub(crate) const PARCEL_BYTES_MAX: usize = 512 << 10;

/// How often all rows of a table are made stale again because others wrote some of them meanwhile, before they go.
pub(crate) const DISTRUST_TRIES: usize = 5;

//! Bounds of this crate, with their reasons.

use std::time::Duration;

/// How often the definitions are compared with the sources that run: a new table waits so long for its first change.
pub(crate) const SUPERVISE_INTERVAL: Duration = Duration::from_millis(50);

/// The same while no server is defined: a process that sleeps should not wake up for nothing.
pub(crate) const IDLE_INTERVAL: Duration = Duration::from_millis(250);

/// How long a connection may take, where `connect_timeout` says nothing.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer to a question beside the stream may take: these look at the catalogue or at a snapshot.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a read of the stream waits before the source looks at the time, its definitions and whether it is to stop.
pub(crate) const STREAM_WAIT: Duration = Duration::from_millis(50);

/// The same while changes wait to be settled.
pub(crate) const SETTLE_WAIT: Duration = Duration::from_millis(5);

/// Changes that come so soon after the last were applied are applied together: each commit of the cache costs as much
/// as several changes. A lone change does not wait.
pub(crate) const GATHER: Duration = Duration::from_millis(1);

/// The first pause behind a connection that failed, and the longest: a database that starts again is met soon, and one
/// that is gone is not asked without end.
pub(crate) const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often the definitions of a source are compared, where answers of forwarded statements are kept: so long an
/// answer may be that of before a definition changed.
pub(crate) const DEFINITIONS_INTERVAL: Duration = Duration::from_secs(2);

/// How often the source is asked whether its commits wait for the stream: half of the time for which that is believed.
pub(crate) const AWAITED_INTERVAL: Duration = Duration::from_secs(1);

/// How long it is waited for somebody who wants a place of the log, or an inspection, before it is looked at anything
/// else.
pub(crate) const PLACES_WAIT: Duration = Duration::from_millis(50);
pub(crate) const INSPECTIONS_WAIT: Duration = Duration::from_millis(50);

/// The pause before a source that could not be asked for forwarded sessions is asked again.
pub(crate) const ASKER_PAUSE: Duration = Duration::from_secs(1);

/// How often the source is told how far it was read, and asked for a sign of life.
pub(crate) const FEEDBACK_INTERVAL: Duration = Duration::from_secs(1);

/// How old changes may be that were not applied, where `max_lag` says nothing.
pub(crate) const MAX_LAG: Duration = Duration::from_secs(5);

/// Least `max_lag`: below two signs of life every pause would pass for an outage.
pub(crate) const MAX_LAG_MIN: Duration = Duration::from_secs(2);

/// Most keys of one target in a batch: beyond, emptying the table is cheaper than looking for each.
pub(crate) const KEYS_MAX: usize = 10_000;

/// Most bytes of values that rows of one target have in a batch, and all that wait to be settled: beyond, rows are
/// invalidated, whose keys are short.
pub(crate) const VALUES_BYTES_MAX: usize = 16 << 20;

/// Most rows that the checker compares in a second, and keeps in mind because they differed.
pub(crate) const CHECKED_ROWS_MAX: usize = 1_000;

/// Groups of the hash index in which the checker looks for rows: those of a table with many, and then those of one with
/// few among many of others.
pub(crate) const SAMPLE_GROUPS: [u64; 2] = [64, 32 << 10];

/// Rows among which the checker chooses: some milliseconds.
pub(crate) const SAMPLE_ROWS: usize = 4_096;

/// Rows of a copy between two looks at the time: some milliseconds.
pub(crate) const COPY_ROWS: u64 = 1_000;

/// The first pause behind a copy that failed, and the longest: a table that does not fit is not copied without end.
pub(crate) const COPY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Keys, and bytes of values, from which a transaction under way is applied in parts where a table is mirrored, which
/// cannot be emptied instead.
pub(crate) const PART_KEYS: usize = 5_000;
pub(crate) const PART_BYTES: usize = VALUES_BYTES_MAX / 4;

/// Most keys that wait to be settled before the oldest half waits as one.
pub(crate) const UNSETTLED_KEYS_MAX: usize = 500_000;

/// Most pairs of a key that is settled and later transactions that wait, in which the key's newest row is looked for:
/// some milliseconds.
pub(crate) const SETTLE_LOOKS_MAX: usize = 100_000;

/// Most bytes of a key that is looked for: larger ones are no keys of a cache, and the table is emptied.
pub(crate) const KEY_BYTES_MAX: usize = 8 << 10;

/// Most transactions that wait to be settled one by one: beyond, the oldest half waits as one, for the last of it.
pub(crate) const UNSETTLED_MAX: usize = 4_096;

/// How long a slot may take to be free after its connection was ended there.
pub(crate) const SLOT_FREE_WAIT: Duration = Duration::from_secs(2);

/// How often the source is asked whether it still publishes what rows depend on, which its stream does not tell.
pub(crate) const PUBLISHED_INTERVAL: Duration = Duration::from_secs(2);

/// Longest wait of a start for the changes of the time before it: beyond, rows are not believed until they came.
pub(crate) const START_WAIT: Duration = Duration::from_secs(5);

/// Bytes that a read takes at once.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Largest message of a source: a row of PostgreSQL's has at most 1 GiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Bytes that the buffer keeps between messages: a large row gives its memory back.
pub(crate) const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// How often who waits for an answer looks whether it is to go on.
pub(crate) const ANSWER_LOOK: Duration = Duration::from_millis(50);

/// Connections to a source that run queries of materialized views at once: a source has better things to do.
pub(crate) const VIEW_CONNECTIONS: usize = 2;

/// How long such a connection stays without a query: views that are refreshed each half a minute keep theirs.
pub(crate) const VIEW_IDLE: Duration = Duration::from_mins(1);

/// A source has so much longer than its own timeout to say that this has passed.
pub(crate) const VIEW_GRACE: Duration = Duration::from_secs(2);

/// Rows of such a query between two looks whether it is to go on: a millisecond or two.
pub(crate) const VIEW_LOOK_ROWS: u64 = 1_000;

/// Most rows of an answer beside the stream: columns and tables of a publication.
pub(crate) const ANSWER_ROWS_MAX: usize = 100_000;

/// Most changes between two commits of the cache, where the source's transactions are small: one list of writes.
pub(crate) const BATCH_CHANGES_MAX: usize = 1_000;

/// How often a commit that met another one is made again before the table is emptied.
pub(crate) const COMMIT_TRIES: usize = 5;

/// Connections that fetch missing rows, where `fetch_connections` says nothing. Each fetches a hundred keys at a time.
pub(crate) const FETCH_CONNECTIONS: usize = 4;

/// How long a thread that fetches waits for work before it looks whether it is to stop, and its connection still there.
pub(crate) const FETCH_IDLE: Duration = Duration::from_millis(500);

/// How long nobody waits for a source to which no connection could be made.
pub(crate) const FETCH_AWAY: Duration = Duration::from_millis(500);

/// Most rows of a fetch: a query gives one for each of a hundred keys, and one that gives more lacks a condition.
pub(crate) const FETCH_ROWS_MAX: usize = 10_000;

/// Most bytes of a fetch: a hundred rows of a cache, or a few large ones.
pub(crate) const FETCH_BYTES_MAX: usize = 64 << 20;

/// Most groups of transactions that the gate knows: with signs of the source every 5 ms, seconds at any rate.
pub(crate) const GATE_EVENTS_MAX: usize = 4_096;

/// Most prepared transactions (`XA PREPARE`) whose changes are noted: all tables are emptied when another one takes
/// effect.
pub(crate) const PREPARED_MAX: usize = 256;

/// A MariaDB that said nothing for so many times `max_lag` is lost: it gives a sign each second.
pub(crate) const SILENCE: u32 = 2;

/// How long a message may take to be in the log: who sent it says so to his clients, or sends it once more.
pub(crate) const MESSAGE_WAIT: Duration = Duration::from_secs(2);

/// How long the slot that keeps a bus's messages may take to be moved on: the source reads its log for that.
pub(crate) const KEEPER_WAIT: Duration = Duration::from_mins(1);

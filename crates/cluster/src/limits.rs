//! Bounds of this crate, with their reasons.

use std::time::Duration;

/// How old what others told may be when it is applied, where `max_lag` says nothing: an election among three servers of
/// NATS takes five to ten seconds, and must not make all caches distrust their rows.
pub(crate) const MAX_LAG: Duration = Duration::from_secs(15);

/// Least `max_lag`: below two heartbeats every pause would pass for an outage.
pub(crate) const MAX_LAG_MIN: Duration = Duration::from_secs(2);

/// How often each cache says that it lives, in nanoseconds; with more than a hundred caches less often, so that all of
/// them together say it a hundred times a second.
pub(crate) const HEARTBEAT_NS: u64 = 1_000_000_000;

/// So many caches each say it once in that time.
pub(crate) const HEARTBEAT_NODES: u64 = 100;

/// Messages of which the chain is remembered: what a cache that is some seconds behind has seen is still compared.
pub(crate) const CHAIN_KEPT: usize = 4_096;

/// Caches that are told apart; beyond, the one that was silent longest is forgotten and met again.
pub(crate) const NODES_MAX: usize = 4_096;

/// A cache that was silent so long is not shown any more, in nanoseconds.
pub(crate) const NODE_SILENT_NS: u64 = 60_000_000_000;

/// Own messages that must have come back before a cache gives the stream a history by itself, or takes a sender that it
/// never met for one whose first message was lost: each other cache has said something by then.
pub(crate) const SETTLED_AFTER: u64 = 3;

/// Own messages under way of which the moment of their sending is kept; each is some bytes.
pub(crate) const SENT_KEPT: usize = 1_024;

/// Bytes of operations that are sent in one message: what comes while one is under way waits for the next, and a larger
/// message takes longer to be stored by three servers than two smaller ones.
pub(crate) const MESSAGE_BYTES: usize = 64 << 10;

/// Bytes of the largest message that is read: NATS' own limit, and more than a cache sends.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Operations of a message: each has at least so many bytes that no more fit.
pub(crate) const OPERATIONS_MAX: usize = 100_000;

/// Bytes of a cache's name: as many as a host's name has.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Columns of a row: more than a table may have.
pub(crate) const COLUMNS_MAX: usize = 4_096;

/// Parameters of a statement, PostgreSQL's limit.
pub(crate) const PARAMETERS_MAX: usize = 65_535;

/// How long a start waits for the caches' bus before it serves with distrusted rows: a cache must not be away because
/// the bus is.
pub(crate) const START_WAIT: Duration = Duration::from_secs(5);

/// How often the definitions are compared with the buses that run.
pub(crate) const SUPERVISE_INTERVAL: Duration = Duration::from_millis(50);

/// The same while no bus is defined: a process that sleeps should not wake up for nothing.
pub(crate) const IDLE_INTERVAL: Duration = Duration::from_millis(250);

/// How long a connection may take, where `connect_timeout` says nothing.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an acknowledgement may take before the connection is made again: the leader of a stream that was killed
/// answers nobody, and another one is elected meanwhile.
pub(crate) const PUBLISH_WAIT: Duration = Duration::from_secs(2);

/// The pause before a connection is made again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// How often the thread of a bus looks at the time, and whether it is to stop.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How often what was applied is written down for the next process.
pub(crate) const NOTE_NS: u64 = 1_000_000_000;

/// Nothing came of a stream of NATS for so long, though it stores what is sent: it is asked for again. Three
/// heartbeats.
pub(crate) const SILENCE_NS: u64 = 3_000_000_000;

/// How long the stream keeps messages: a cache that was away longer has nothing left that is worth keeping.
#[cfg(feature = "nats")]
pub(crate) const STREAM_AGE: Duration = Duration::from_mins(10);

/// Bytes of the stream: some million keys.
#[cfg(feature = "nats")]
pub(crate) const STREAM_BYTES: i64 = 256 << 20;

/// So long the stream knows a message again that is sent once more.
#[cfg(feature = "nats")]
pub(crate) const DUPLICATES: Duration = Duration::from_mins(2);

/// Messages that have come and were not applied; of more, NATS is told to wait.
pub(crate) const WAITING_MESSAGES: usize = 4_096;

/// How often NATS says that a stream without messages is there.
#[cfg(feature = "nats")]
pub(crate) const IDLE_HEARTBEAT: Duration = Duration::from_secs(2);

/// What waits longer in the outbox is written down, before its clients hear that the bus does not acknowledge it.
pub(crate) const OWES_AFTER_NS: u64 = 1_000_000_000;

/// How long a stop waits for the outbox to be sent.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// The same of a PostgreSQL: it reads its log from some minutes ago before it delivers, and says nothing meanwhile. A
/// network that is cut is noticed by the next message that is sent.
pub(crate) const POSTGRES_SILENCE_NS: u64 = 60_000_000_000;

/// How often a PostgreSQL is asked to forget the log that no cache needs. It reads its log for that.
pub(crate) const KEEP_STEP: Duration = Duration::from_secs(30);

/// So many steps of the log are kept: five minutes. A cache that starts has the database read all of it.
pub(crate) const KEEP_STEPS: usize = 10;

/// Bytes of log that are kept at most, whoever wrote it: the database reads so many in a second or two.
pub(crate) const KEPT_LOG_BYTES: u64 = 128 << 20;

/// How often a cache says that it lacks rows of a table, in nanoseconds.
pub(crate) const WANT_PAUSE_NS: u64 = 500_000_000;

/// So often it has said so at least when it takes it that nobody has any: by then each other cache has said that it
/// lives, so it is known who did not answer.
pub(crate) const WANTS_MIN: u32 = 3;

/// A cache that was silent so long answers nobody, in nanoseconds: five heartbeats.
pub(crate) const MUTE_NS: u64 = 5_000_000_000;

/// So long a cache waits for others that live and do not say whether they have rows, in nanoseconds. They may work at
/// a long statement.
pub(crate) const LOOK_FOR_GIVERS_NS: u64 = 30_000_000_000;

/// So long it waits for further offers, to choose among them, in nanoseconds.
pub(crate) const OFFERS_WAIT_NS: u64 = 100_000_000;

/// Offers that are kept; one would do.
pub(crate) const OFFERS_MAX: usize = 64;

/// Rows of a table are not looked for again sooner, in nanoseconds: what empties it again and again must not keep the
/// other caches busy.
pub(crate) const TAKE_PAUSE_NS: u64 = 1_000_000_000;

/// How long who was asked for rows may take, in nanoseconds: it may have to hear first what was heard here.
pub(crate) const GIVE_WAIT_NS: u64 = 1_000_000_000;

/// So often one cache is asked for the same rows before another one is.
pub(crate) const GIVE_TRIES: u32 = 3;

/// So often rows are read again because something changed any row of their table meanwhile. Reading takes some
/// milliseconds, so a bus with some hundred statements a second lets one of a few through.
pub(crate) const REREADS_MAX: u32 = 1_000;

/// Caches that are asked for rows of a table, one after the other. Then this one goes on with what it has.
pub(crate) const GIVERS_MAX: usize = 8;

/// Keys that are remembered because they changed since rows were asked for; more than change in that time. Beyond, the
/// rows are read again.
pub(crate) const NOTED_KEYS_MAX: usize = 50_000;

/// Bytes of these keys: each may have 64 KiB.
pub(crate) const NOTED_BYTES_MAX: usize = 8 << 20;

/// Caches that are given rows at once. Others ask again.
pub(crate) const TAKERS_MAX: usize = 16;

/// So many rows may be evicted here while rows are taken, and a part of the rows that were taken: others are written,
/// too. More say that the memory is full, and that each row which comes drives another one out.
pub(crate) const EVICTED_MIN: u64 = 1_000;

/// One in so many of the rows that were taken. See [`EVICTED_MIN`].
pub(crate) const EVICTED_PART: u64 = 8;

/// How long a word to another cache may wait for the connection. It may get lost, so nobody waits for it longer.
pub(crate) const SAY_WAIT: Duration = Duration::from_millis(50);

/// Rows that are given at once, as they are read: each has at least so many bytes that no more fit.
pub(crate) const GIVEN_ROWS_MAX: usize = 100_000;

//! Bounds of this crate, with their reasons.

use std::time::Duration;

/// Bytes of a group of requests that are looked at before they are forwarded: statements of applications are shorter,
/// and a longer group passes as it comes, without a place in memory.
pub(crate) const GROUP_BYTES_MAX: usize = 64 << 10;

/// Bytes of a message of the source that is looked at as a whole: a longer one passes as it comes.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 10;

/// Requests of a group that may be a read: more are a pipeline, which is only forwarded.
pub(crate) const GROUP_REQUESTS_MAX: usize = 8;

/// Bytes of an answer that is kept: one row of a table has no more in the slabs of memcached's clients either.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Statements of a source that are known at once. An application has some hundred; one that writes values into its
/// texts has no end of them, and those beyond are only forwarded.
pub(crate) const TEXTS_MAX: usize = 10_000;

/// Bytes of a text that is known: one that is longer is generated, and seldom comes again.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;

/// States of sessions for which one text is known: search paths, roles, time zones.
pub(crate) const STATES_MAX: usize = 64;

/// Settings that statements read: each is asked for with the state of every session. An application has one or two, and
/// statements that read more are only forwarded.
pub(crate) const SETTINGS_MAX: usize = 16;

/// How often a text comes before its source is asked what it depends on, which costs that some milliseconds.
pub(crate) const INSPECT_AFTER: u64 = 3;

/// Texts that wait to be inspected; others come again.
pub(crate) const INSPECTIONS_WAITING_MAX: usize = 256;

/// Prepared statements of one client that are known; others are only forwarded.
pub(crate) const NAMES_MAX: usize = 10_000;

/// Slots in which the gate notes when a tag was changed last. Two tags in one slot cost an answer that is not kept.
pub(crate) const GATE_SLOTS: usize = 1 << 16;

/// Groups of transactions that the source has not shown yet: beyond, two become one, which is shown when both are.
pub(crate) const UNSHOWN_MAX: usize = 1_024;

/// How long it is believed that commits of the source wait for this cache, once that was seen. It is asked each second.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// How long a hit waits until its answer is known to have all that was committed before. Then the database answers,
/// which takes less than that for most reads.
pub const CHECK_PATIENCE: Duration = Duration::from_millis(2);

/// How long after its first session what is prepared waits until the definitions of a source are known: they are read
/// in some hundred milliseconds, where they can be read.
pub(crate) const DEFINITIONS_PATIENCE: Duration = Duration::from_secs(2);

/// What a statement takes at least, so that who misses its answer waits for another session's: asking for less is as
/// cheap as being woken.
pub(crate) const JOINED_FROM: Duration = Duration::from_millis(1);

/// How long is waited for another session's answer, as often as its statement usually takes, and at most: the client of
/// that session may have stopped reading.
pub(crate) const JOINED_FOR: u32 = 2;
pub(crate) const JOINED_FOR_MAX: Duration = Duration::from_secs(10);

/// How long the stream may take to a place that its log had, before a message is written that brings it there: a commit
/// that the source does not flush at once lies there for 200 ms.
pub(crate) const PLACE_PATIENCE: Duration = Duration::from_millis(2);

/// A time in microseconds, as sessions count it.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

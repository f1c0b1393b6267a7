//! Statements that took long: `log_min_duration_statement`, as PostgreSQL has it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use sql::{Done, SlowFacts, SqlError, may_tell_secret};
use store::Clock;
use store::value::Value;

use super::happened::{Ring, Who, bounded, parameters};
use crate::limits::SLOW_KEPT;

/// No statement takes so long: nothing is logged.
const NEVER: u64 = u64::MAX;

/// A statement that ended.
pub(crate) struct Ended<'e> {
    /// Its text without literals.
    pub(crate) query: &'e str,
    /// Its text as it came.
    pub(crate) text: &'e str,
    pub(crate) values: &'e [Value],
    pub(crate) took_ns: u64,
    pub(crate) result: &'e Result<Done, SqlError>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SlowLog {
    clock: Clock,
    /// From so many nanoseconds on a statement is slow.
    from_ns: AtomicU64,
    /// Bytes of each parameter that are noted; 0: neither parameters nor literals are.
    value_bytes: AtomicUsize,
    last: Ring<SlowFacts>,
}

impl SlowLog {
    /// Off, in the time of this clock.
    pub(crate) fn new(clock: Clock) -> Self {
        let (from_ns, value_bytes) = (AtomicU64::new(NEVER), AtomicUsize::new(0));
        Self { clock, from_ns, value_bytes, last: Ring::new(SLOW_KEPT) }
    }

    /// From how many milliseconds on a statement is slow; none: never. `value_bytes`: how much of each value is noted.
    pub(crate) fn set(&self, from_ms: Option<u64>, value_bytes: usize) {
        // Relaxed: settings that take effect soon.
        self.value_bytes.store(value_bytes, Ordering::Relaxed);
        self.from_ns.store(from_ms.map_or(NEVER, |ms| ms.saturating_mul(1_000_000)), Ordering::Relaxed);
    }

    /// Whether each statement has to be timed.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.from_ns.load(Ordering::Relaxed) != NEVER
    }

    /// Bytes of each value that are noted; 0: values are left out, literals too.
    pub(crate) fn value_bytes(&self) -> usize {
        self.value_bytes.load(Ordering::Relaxed)
    }

    /// A statement's text, and its parameters, as far as they are to be noted. All lists and the log have them from
    /// here.
    pub(crate) fn shown(&self, query: &str, text: &str, values: &[Value]) -> (String, Option<String>) {
        match self.value_bytes() {
            0 => (bounded(query), None),
            _ if may_tell_secret(text) => (bounded(query), None),
            bytes => (bounded(text), parameters(values, bytes)),
        }
    }

    /// Whether a statement that took so long is slow.
    #[inline]
    pub(crate) fn is_slow(&self, took_ns: u64) -> bool {
        took_ns >= self.from_ns.load(Ordering::Relaxed) && self.is_on()
    }

    /// Takes note of a slow statement.
    #[cold]
    pub(crate) fn keep(&self, ended: &Ended<'_>, who: &Who) {
        let (statement, parameters) = self.shown(ended.query, ended.text, ended.values);
        let ms = ended.took_ns as f64 / 1e6;
        let values =
            parameters.as_deref().map_or_else(String::new, |values| format!("  parameters: {values}"));
        tracing::warn!("duration: {ms:.3} ms  role: {}  statement: {statement}{values}", who.role);
        let Who { role, pid, address, protocol } = who.clone();
        let slow = SlowFacts {
            at_ms: i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX),
            role,
            pid,
            address,
            protocol,
            statement,
            parameters,
            took_ns: ended.took_ns,
            rows: ended.result.as_ref().map_or(0, |done| done.affected),
            error: ended.result.as_ref().err().map(|error| error.state),
        };
        self.last.push(slow, 0, |_, _| false);
    }

    /// The last slow statements, the newest last.
    pub(crate) fn last(&self) -> Vec<SlowFacts> {
        self.last.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(log: &SlowLog, took_ms: u64) {
        let result = Err(SqlError::new("57014", "canceled"));
        let (query, text, values) = ("select ?", "SELECT 'hidden'", [Value::Text("secret".into())]);
        let ended = Ended { query, text, values: &values, took_ns: took_ms * 1_000_000, result: &result };
        if log.is_slow(ended.took_ns) {
            log.keep(&ended, &Who::default());
        }
    }

    /// A user mapping's password stood in the log.
    #[test]
    fn secrets_are_left_out() {
        let log = SlowLog::new(Clock::System);
        log.set(Some(0), 1_000);
        let values = [Value::Text("s3cr3t".into())];
        let text = "CREATE USER MAPPING FOR a SERVER s OPTIONS (password 's3cr3t')";
        let shown = log.shown("create user mapping for a server s options (password ?)", text, &values);
        assert!(!shown.0.contains("s3cr3t") && shown.1.is_none(), "{shown:?}");
        let shown = log.shown("select ?", "SELECT 's3cr3t'", &values);
        assert!(shown.0.contains("s3cr3t") && shown.1.is_some(), "{shown:?}");
    }

    #[test]
    fn the_threshold_decides_and_values_are_left_out() {
        let log = SlowLog::new(Clock::System);
        note(&log, u64::MAX / 1_000_000);
        assert!(log.last().is_empty(), "it is off");
        log.set(Some(10), 0);
        (9..12).for_each(|ms| note(&log, ms));
        let last = log.last();
        assert_eq!(last.iter().map(|slow| slow.took_ns / 1_000_000).collect::<Vec<_>>(), [10, 11]);
        assert_eq!((last[0].statement.as_str(), &last[0].parameters), ("select ?", &None));
        assert_eq!(last[0].error, Some("57014"));
        log.set(Some(0), 3);
        note(&log, 0);
        let last = log.last().pop().unwrap();
        assert_eq!(
            (last.statement.as_str(), last.parameters.as_deref()),
            ("SELECT 'hidden'", Some("$1 = 'sec...'"))
        );
        (0..2 * SLOW_KEPT).for_each(|_| note(&log, 1));
        assert_eq!(log.last().len(), SLOW_KEPT);
    }
}

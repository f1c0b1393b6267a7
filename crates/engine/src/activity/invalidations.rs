//! What made rows invalid, other than one row by its key: who did it, by which statement, how many rows.
//!
//! The same statement of the same client within a moment is one happening, so that a client which invalidates in a loop
//! does not push everything else out. A removal of one key of memcached's comes nowhere near here.

use std::sync::Arc;

use sql::{Invalidation, InvalidationFacts};
use store::Clock;

use super::happened::{Ring, Who};
use crate::limits::{INVALIDATIONS_KEPT, MERGE_AMONG, MERGE_MS, MERGE_OWN_MS};

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) who: Arc<Who>,
    pub(crate) statement: Arc<str>,
    pub(crate) parameters: Option<String>,
    /// None: all tables that memcached's clients reach.
    pub(crate) table: Option<String>,
    pub(crate) how: Invalidation,
    pub(crate) rows: u64,
    /// None: nobody looked at the clock.
    pub(crate) took_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct Kept {
    first_ms: i64,
    last_ms: i64,
    times: u64,
    what: Happening,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Invalidations {
    clock: Clock,
    last: Ring<Kept>,
}

impl Invalidations {
    /// None yet, in the time of this clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: Ring::new(INVALIDATIONS_KEPT) }
    }

    /// Takes note of one, at this moment.
    pub(crate) fn keep(&self, what: Happening) {
        let now = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        let within =
            if what.who.pid.is_some() || what.who.protocol == "memcached" { MERGE_MS } else { MERGE_OWN_MS };
        let new = Kept { first_ms: now, last_ms: now, times: 1, what };
        self.last.push(new, MERGE_AMONG, |known, new| {
            let same = known.what.is_like(&new.what) && now - known.first_ms < within && now >= known.last_ms;
            if same {
                known.add(new);
            }
            same
        });
    }

    /// The last ones, the newest last.
    pub(crate) fn last(&self) -> Vec<InvalidationFacts> {
        self.last.all().into_iter().map(Kept::facts).collect()
    }
}

impl Happening {
    /// Whether it is another run of the same. One that says its values is not.
    fn is_like(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.who, &other.who) || self.who == other.who)
            && (Arc::ptr_eq(&self.statement, &other.statement) || self.statement == other.statement)
            && self.how == other.how
            && self.table == other.table
            && self.parameters == other.parameters
    }
}

impl Kept {
    fn add(&mut self, other: &Self) {
        self.last_ms = other.last_ms;
        self.times += other.times;
        self.what.rows += other.what.rows;
        self.what.took_ns = self.what.took_ns.zip(other.what.took_ns).map(|(one, other)| one + other);
    }

    fn facts(self) -> InvalidationFacts {
        let Self { first_ms, last_ms, times, what } = self;
        let Happening { who, statement, parameters, table, how, rows, took_ns } = what;
        let Who { role, pid, address, protocol } = (*who).clone();
        InvalidationFacts {
            at_ms: last_ms,
            since_ms: first_ms,
            role,
            pid,
            address,
            protocol,
            statement: statement.to_string(),
            parameters,
            table,
            how: how.name(),
            rows,
            times,
            took_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::ManualClock;

    use super::*;

    fn happening(table: &str, rows: u64) -> Happening {
        Happening {
            who: Arc::new(Who { protocol: "memcached", ..Who::default() }),
            statement: Arc::from("delete from t where a = ?"),
            parameters: None,
            table: Some(table.to_owned()),
            how: Invalidation::Deleted,
            rows,
            took_ns: Some(1_000),
        }
    }

    #[test]
    fn what_comes_again_at_once_is_one() {
        let manual = ManualClock::new(1_800_000_000);
        let all = Invalidations::new(Clock::Manual(Arc::clone(&manual)));
        for rows in 1..=3 {
            all.keep(happening("t", rows));
        }
        all.keep(happening("u", 1));
        all.keep(Happening { parameters: Some("$1 = 'x'".to_owned()), ..happening("t", 1) });
        let last = all.last();
        assert_eq!(
            last.iter().map(|one| (one.times, one.rows)).collect::<Vec<_>>(),
            [(3, 6), (1, 1), (1, 1)]
        );
        assert_eq!((last[0].took_ns, last[0].how), (Some(3_000), "deleted"));
        manual.advance(Duration::from_millis(u64::try_from(MERGE_MS).unwrap()));
        all.keep(happening("t", 5));
        assert_eq!(all.last().len(), 4, "a second later it is another one");
        for number in 0..2 * INVALIDATIONS_KEPT {
            all.keep(happening(&number.to_string(), 1));
        }
        assert_eq!(all.last().len(), INVALIDATIONS_KEPT);
    }
}

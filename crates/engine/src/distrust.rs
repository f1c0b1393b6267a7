//! What becomes of rows that may have missed changes, and when: the same for tables that follow a source and for those
//! that hear other caches on a bus.

use std::time::{Duration, Instant};

use sql::SqlError;
use store::definition::{OnLag, TableDef};

use crate::limits::DISTRUST_TRIES;

/// The state of a commit that met another one.
const LOST: &str = "40001";

/// The statements by which the rows of a table are not believed any more.
#[derive(Clone, Debug)]
pub struct Distrust {
    /// Empties it.
    pub empties: String,
    /// Makes all of its rows stale, where these are not to go.
    pub ages: Option<String>,
}

impl Distrust {
    /// Those of a table, by its name as a statement of any session has it.
    pub fn of(def: &TableDef, name: &str) -> Self {
        let ages = (def.options.on_lag == OnLag::Stale).then(|| format!("UPDATE {name} SET _stale = TRUE"));
        Self { empties: format!("TRUNCATE {name}"), ages }
    }

    /// Makes rows stale, if they are not to go. `lost`: what they missed will not come any more, so leases that were
    /// taken before end, too; else rows that are stale already stay as they are. Returns the statement; none: the rows
    /// have to go. `run` runs one, and rolls it back if it fails.
    pub fn make_stale(
        &self,
        lost: bool,
        mut run: impl FnMut(&str) -> Result<(), SqlError>,
    ) -> Option<String> {
        let ages = self.ages.as_ref()?;
        let ages = if lost { ages.clone() } else { format!("{ages} WHERE NOT _stale") };
        for _ in 0..DISTRUST_TRIES {
            match run(&ages) {
                Ok(()) => return Some(ages),
                Err(error) if error.state == LOST => {}
                // Too many rows for one step, or no memory for their new versions.
                Err(_) => return None,
            }
        }
        None
    }
}

/// How long something was not followed, and what was done about it.
#[derive(Debug)]
pub struct Lag {
    max: Duration,
    /// When its tables were distrusted because it is not followed.
    distrusted: Instant,
    /// Its tables were told that it is not.
    behind: bool,
}

/// What is to be done about it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagVerdict {
    /// Nothing.
    Wait,
    /// It is followed again: the tables are told.
    Recovered,
    /// It is late: the tables that want to know are told, and distrusted.
    Behind,
    /// `max_lag` has passed once more: all of its tables are distrusted, so no row gets older than twice that.
    Distrust,
}

impl Lag {
    /// Of something whose changes may be so old when they are applied, and that is followed from now on.
    pub fn new(max: Duration, now: Instant) -> Self {
        Self { max, distrusted: now, behind: false }
    }

    /// The same, from when changes may be of another age.
    #[must_use]
    pub fn with_max(self, max: Duration) -> Self {
        Self { max, ..self }
    }

    /// How old changes may be.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Since when its tables are distrusted, or are to be.
    pub fn since(&self) -> Instant {
        self.distrusted
    }

    /// All of its tables were distrusted, and told.
    pub fn note_distrusted(&mut self, now: Instant) {
        (self.distrusted, self.behind) = (now, true);
    }

    /// What is to be done. `late`: nothing was heard of it for longer than `max_lag`.
    pub fn judge(&mut self, now: Instant, follows: bool, late: impl FnOnce() -> bool) -> LagVerdict {
        if follows {
            self.distrusted = now;
            return if std::mem::take(&mut self.behind) { LagVerdict::Recovered } else { LagVerdict::Wait };
        }
        if now.saturating_duration_since(self.distrusted) >= self.max {
            self.note_distrusted(now);
            return LagVerdict::Distrust;
        }
        if !self.behind && late() {
            self.behind = true;
            return LagVerdict::Behind;
        }
        LagVerdict::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_distrusted_each_time_that_the_lag_has_passed() {
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut lag = Lag::new(Duration::from_secs(5), start);
        let no = || false;
        assert_eq!(lag.judge(at(1), true, no), LagVerdict::Wait);
        assert_eq!(lag.judge(at(5), false, no), LagVerdict::Wait);
        assert_eq!(lag.judge(at(6), false, no), LagVerdict::Distrust);
        assert_eq!(lag.judge(at(7), false, || true), LagVerdict::Wait, "it is told already");
        assert_eq!(lag.judge(at(11), false, no), LagVerdict::Distrust);
        assert_eq!(lag.judge(at(12), true, no), LagVerdict::Recovered);
        assert_eq!(lag.judge(at(13), false, || true), LagVerdict::Behind);
        assert_eq!(lag.judge(at(17), false, no), LagVerdict::Distrust);
    }

    #[test]
    fn rows_that_cannot_be_made_stale_have_to_go() {
        let distrust =
            Distrust { empties: "TRUNCATE t".into(), ages: Some("UPDATE t SET _stale = TRUE".into()) };
        let mut seen = Vec::new();
        let stale = distrust.make_stale(false, |sql| {
            seen.push(sql.to_owned());
            if seen.len() < 3 { Err(SqlError::new(LOST, "")) } else { Ok(()) }
        });
        assert_eq!(stale.as_deref(), Some("UPDATE t SET _stale = TRUE WHERE NOT _stale"));
        assert_eq!(seen.len(), 3);
        assert_eq!(distrust.make_stale(true, |_| Err(SqlError::new("53200", ""))), None);
        let without = Distrust { ages: None, ..distrust };
        assert_eq!(without.make_stale(true, |_| panic!("there is nothing to run")), None);
    }
}

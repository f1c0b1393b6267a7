//! What is known of a table's expiry rules: when each runs next, and what it did.

use crate::clock::Tick;
use crate::definition::ExpiryRule;
use crate::table::{Table, TableState};

/// What a rule did since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFigures {
    /// How often it ran, to its end or to an error.
    pub runs: u64,
    /// Rows that expired by it.
    pub rows: u64,
    /// How often it failed.
    pub errors: u64,
    /// Time of all runs, the rests included.
    pub total_ns: u64,
    /// When it ran last, in milliseconds since 1970.
    pub last_run_ms: Option<i64>,
    /// Rows that expired by the last run.
    pub last_rows: u64,
    /// Time of the last run.
    pub last_ns: u64,
    /// Why it failed last; none after a run that worked.
    pub last_error: Option<String>,
    /// How it finds its rows.
    pub plan: Option<String>,
}

/// One run of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleRun {
    /// Rows that expired by it.
    pub rows: u64,
    /// How long it took.
    pub ns: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// How it finds its rows.
    pub plan: Option<String>,
}

/// A rule in its table's state.
#[derive(Debug)]
pub(crate) struct RuleState {
    pub(crate) name: String,
    /// The tick of the next run.
    pub(crate) next: Tick,
    pub(crate) figures: RuleFigures,
}

impl Table {
    pub(crate) fn is_due(&self, rule: &ExpiryRule, now: Tick) -> bool {
        self.state.rule(&rule.name, |kept| kept.next <= now)
    }

    /// What a rule of this table did since the start.
    pub fn rule_figures(&self, name: &str) -> RuleFigures {
        self.state.rule(name, |kept| kept.figures.clone())
    }
}

impl TableState {
    /// Looks at a rule's state; one that never ran is due.
    pub(crate) fn rule<T>(&self, name: &str, look: impl FnOnce(&mut RuleState) -> T) -> T {
        let mut rules = self.rules.lock();
        let at = rules.iter().position(|kept| kept.name.eq_ignore_ascii_case(name)).unwrap_or_else(|| {
            rules.push(RuleState { name: name.to_owned(), next: 0, figures: RuleFigures::default() });
            rules.len() - 1
        });
        look(&mut rules[at])
    }
}

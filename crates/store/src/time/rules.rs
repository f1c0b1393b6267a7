//! Expiry rules: how they come and go, when they are due, what they did, and how rows leave by one.
//!
//! The store computes no condition. Who does, brings rows here as it saw them; one that was written, touched or taken
//! since stays.

use std::sync::Arc;

use crate::clock::{Tick, moment_after};
use crate::define::{ddl, found};
use crate::definition::{ExpiryRule, check_name};
use crate::error::DdlError;
use crate::mutation::Mutation;
use crate::store::Store;
use crate::table::leaving::Leaving;
use crate::table::{Table, TableState, ticks};

/// Rules of one table at most: each is a search of its own, again and again.
const RULES_MAX: usize = 32;

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

/// A row as whoever judged it saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The encoded primary key.
    pub key: Vec<u8>,
    /// Its CAS value.
    pub cas: u64,
    /// Its expiry word.
    pub expiry: Tick,
}

/// A rule in its table's state.
#[derive(Debug)]
pub(crate) struct Kept {
    name: String,
    /// The tick of the next run.
    next: Tick,
    figures: RuleFigures,
}

impl Store {
    /// Makes a rule. It runs for the first time at once.
    pub fn create_rule(&self, table: &str, rule: ExpiryRule) -> Result<(), DdlError> {
        let _one = self.definitions.lock();
        let catalog = self.catalog();
        check_name("rule", &rule.name)?;
        let table = found(&catalog, table)?;
        if catalog.rule(&rule.name).is_some() {
            return Err(ddl("42710", format!("expiry rule \"{}\" exists already", rule.name)));
        }
        let mut def = table.def().clone();
        if def.rules.len() >= RULES_MAX {
            return Err(ddl("54000", format!("a table has at most {RULES_MAX} expiry rules")));
        }
        def.rules.push(rule);
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed).map(|_| ())
    }

    /// Removes a rule.
    pub fn drop_rule(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.definitions.lock();
        let catalog = self.catalog();
        let Some((table, _)) = catalog.rule(name) else {
            return Err(ddl("42704", format!("expiry rule \"{name}\" does not exist")));
        };
        let mut def = table.def().clone();
        def.rules.retain(|rule| !rule.name.eq_ignore_ascii_case(name));
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed)?;
        table.state.rules.lock().retain(|kept| !kept.name.eq_ignore_ascii_case(name));
        Ok(())
    }

    /// Whether a rule's time has come.
    pub fn has_rules_due(&self) -> bool {
        let now = self.now();
        self.catalog().tables().any(|table| table.def().rules.iter().any(|rule| table.is_due(rule, now)))
    }

    /// The rules whose time has come.
    pub fn due_rules(&self) -> Vec<(Arc<Table>, ExpiryRule)> {
        let now = self.now();
        let catalog = self.catalog();
        let with_table = |table: &Arc<Table>| {
            let due = table.def().rules.iter().filter(|rule| table.is_due(rule, now));
            due.map(|rule| (Arc::clone(table), rule.clone())).collect::<Vec<_>>()
        };
        catalog.tables().flat_map(with_table).collect()
    }

    /// Takes note of a run, from whose end the time to the next counts.
    pub fn note_rule_run(&self, table: &Table, rule: &ExpiryRule, run: RuleRun) {
        if self.catalog().rule(&rule.name).is_none() {
            return;
        }
        let next = moment_after(self.now(), ticks(Some(rule.every_ms)).into());
        let moment = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        table.state.rule(&rule.name, |kept| {
            kept.next = next;
            let figures = &mut kept.figures;
            figures.runs += 1;
            figures.rows += run.rows;
            figures.errors += u64::from(run.error.is_some());
            figures.total_ns += run.ns;
            figures.last_run_ms = Some(moment);
            figures.last_rows = run.rows;
            figures.last_ns = run.ns;
            figures.last_error = run.error;
            figures.plan = run.plan;
        });
    }

    /// Lets rows expire that are still what they were when they were judged. Returns how many.
    pub fn expire_rows(&self, table: &Table, rows: &[Judged]) -> u64 {
        let now = self.now();
        rows.iter().map(|row| u64::from(self.expire_row(table, row, now))).sum()
    }

    fn expire_row(&self, table: &Table, row: &Judged, now: Tick) -> bool {
        let hash = self.arena.hash(table.id(), &row.key);
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        // A commit is about to write it.
        if table.is_gone() || shard.mark_of(hash, table.id(), &row.key).is_some() {
            return false;
        }
        let Some(entry) = self.arena.find(&shard.token, hash, table.id(), &row.key) else { return false };
        let head = self.live_head(table, entry.location, now);
        let same = head.is_some_and(|head| head.cas() == row.cas && head.expiry == row.expiry);
        if same {
            self.unpublish(&mut shard, table, entry, Leaving::Rule);
        }
        same
    }
}

impl Table {
    fn is_due(&self, rule: &ExpiryRule, now: Tick) -> bool {
        self.state.rule(&rule.name, |kept| kept.next <= now)
    }

    /// What a rule of this table did since the start.
    pub fn rule_figures(&self, name: &str) -> RuleFigures {
        self.state.rule(name, |kept| kept.figures.clone())
    }
}

impl TableState {
    /// Looks at a rule's state; one that never ran is due.
    fn rule<T>(&self, name: &str, look: impl FnOnce(&mut Kept) -> T) -> T {
        let mut rules = self.rules.lock();
        let at = rules.iter().position(|kept| kept.name.eq_ignore_ascii_case(name)).unwrap_or_else(|| {
            rules.push(Kept { name: name.to_owned(), next: 0, figures: RuleFigures::default() });
            rules.len() - 1
        });
        look(&mut rules[at])
    }
}

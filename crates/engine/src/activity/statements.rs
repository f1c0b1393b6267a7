//! What each statement cost: counted by its text with the literals taken out.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rapidhash::fast::RapidHasher;
use sql::{ComputedBy, Done, Executor, SqlError, StatementFacts, StatementText};
use store::{Store, Table};

use crate::limits::{
    KNOWN_STATEMENT_BYTES_MAX, KNOWN_STATEMENTS_MAX, MET_STATEMENTS, STATEMENTS_MAX, TIMED_CALLS, TIMED_SHARE,
};

/// One statement's figures. Relaxed throughout: figures for people, in no order with anything.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    calls: AtomicU64,
    errors: AtomicU64,
    rows: AtomicU64,
    /// Calls that worked, by who computed them.
    native: AtomicU64,
    sqlite: AtomicU64,
    /// Calls whose time was taken.
    timed: AtomicU64,
    total_ns: AtomicU64,
    /// Stored as the complement, so that 0 is "none yet".
    least_ns_complement: AtomicU64,
    most_ns: AtomicU64,
    /// Taken out of the table, to make room for others.
    dropped: AtomicBool,
    query: Arc<str>,
    /// It calls functions of advisory locks.
    locks: bool,
    /// It may make rows invalid, so its time is wanted.
    invalidates: bool,
    /// What it is to tables that read through ([`Concern`]), in the last two bits, and before them the number of the
    /// definitions for which that holds.
    concern: AtomicU64,
    /// How its rows are found, and the number of the definitions for which that holds.
    plan: Mutex<Option<String>>,
    plan_generation: AtomicU64,
}

impl Counted {
    fn new(query: String) -> Self {
        let (locks, invalidates) = (calls_locks(&query), may_invalidate(&query));
        Self { query: query.into(), locks, invalidates, ..Self::default() }
    }

    /// Whether it may have to wait for an advisory lock.
    #[inline]
    pub(crate) fn locks(&self) -> bool {
        self.locks
    }

    /// What it is to tables that read through.
    #[inline]
    pub(crate) fn concern(&self, store: &Store) -> Concern {
        let known = self.concern.load(Ordering::Relaxed);
        if known >> 2 == store.generation() { Concern::of_bits(known) } else { self.find_concern(store) }
    }

    #[cold]
    fn find_concern(&self, store: &Store) -> Concern {
        let generation = store.generation();
        let catalog = store.catalog();
        let first = self.query.split([' ', '(']).next().unwrap_or_default();
        let reads = ["select", "values", "table"].iter().any(|word| first.eq_ignore_ascii_case(word))
            || first.eq_ignore_ascii_case("with") && !writes(&self.query);
        let concerned = catalog.tables().any(|table| table.reads_through() && self.names(table));
        // A view or a function may name the table.
        let by_others = catalog.tables().any(|table| table.reads_through())
            && (catalog.views().any(|view| names(&self.query, &view.name))
                || catalog.routines().iter().any(|routine| names(&self.query, &routine.name)));
        let concern = match concerned || by_others {
            false => Concern::None,
            true if reads => Concern::Reads,
            true => Concern::Writes,
        };
        self.concern.store(generation << 2 | concern as u64, Ordering::Relaxed);
        concern
    }

    /// Whether it names a table, or calls something that may.
    pub(crate) fn names(&self, table: &Table) -> bool {
        let first = self.query.split(' ').next().unwrap_or_default();
        let calls = ["call", "do"].iter().any(|word| first.eq_ignore_ascii_case(word));
        calls || names(&self.query, table.def().own_name())
    }

    /// Its text, without literals.
    pub(crate) fn query(&self) -> &Arc<str> {
        &self.query
    }

    /// Runs the statement and counts it: what every way to SQL goes through. `timed`: somebody wants to know how long
    /// it takes; without, its time is known of some runs.
    #[inline]
    pub(crate) fn run(
        &self,
        store: &Store,
        executor: &mut Executor,
        text: &str,
        timed: bool,
        run: impl FnOnce(&mut Executor) -> Result<Done, SqlError>,
    ) -> (Result<Done, SqlError>, Option<u64>) {
        let began = self.begin(store, timed);
        let result = run(executor);
        let took = self.end(store, began, &result);
        if self.plan_generation.load(Ordering::Relaxed) != store.generation() {
            self.explain(store, executor, text);
        }
        (result, took)
    }

    /// Notes a call. The moment to give to [`Counted::end`], if this call is to be timed.
    #[inline]
    fn begin(&self, store: &Store, timed: bool) -> Option<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let timed = timed || self.invalidates || call < TIMED_CALLS || call.is_multiple_of(TIMED_SHARE);
        timed.then(|| store.clock().precise_ns())
    }

    /// Notes how the call ended; nanoseconds that it took, if it was timed.
    #[inline]
    fn end(&self, store: &Store, began: Option<u64>, result: &Result<Done, SqlError>) -> Option<u64> {
        match result {
            Ok(done) => {
                self.rows.fetch_add(done.affected, Ordering::Relaxed);
                match done.by {
                    ComputedBy::Native => self.native.fetch_add(1, Ordering::Relaxed),
                    ComputedBy::Sqlite => self.sqlite.fetch_add(1, Ordering::Relaxed),
                    ComputedBy::Nobody => 0,
                };
            }
            Err(_) => {
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
        let took = store.clock().precise_ns().saturating_sub(began?);
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(took, Ordering::Relaxed);
        self.least_ns_complement.fetch_max(!took, Ordering::Relaxed);
        self.most_ns.fetch_max(took, Ordering::Relaxed);
        Some(took)
    }

    /// Asks how its rows are found: it is new, or the definitions changed.
    #[cold]
    fn explain(&self, store: &Store, executor: &mut Executor, text: &str) {
        self.plan_generation.store(store.generation(), Ordering::Relaxed);
        *self.plan.lock() = executor.plan_of(text);
    }

    fn facts(&self) -> StatementFacts {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (calls, timed) = (load(&self.calls), load(&self.timed));
        // The calls that were timed stand for all.
        let total = u128::from(load(&self.total_ns)) * u128::from(calls);
        let total = total.checked_div(u128::from(timed)).unwrap_or(0);
        StatementFacts {
            query: self.query.to_string(),
            calls,
            errors: load(&self.errors),
            total_ns: u64::try_from(total).unwrap_or(u64::MAX),
            min_ns: if timed == 0 { 0 } else { !load(&self.least_ns_complement) },
            max_ns: load(&self.most_ns),
            rows: load(&self.rows),
            plan: self.plan.lock().clone(),
            native_calls: load(&self.native),
            sqlite_calls: load(&self.sqlite),
        }
    }
}

/// What a statement is to tables that read through. By its words, so it may be taken for more than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// It names none.
    None = 1,
    /// It reads some.
    Reads = 2,
    /// It may write to some.
    Writes = 3,
}

impl Concern {
    fn of_bits(bits: u64) -> Self {
        match bits & 3 {
            2 => Self::Reads,
            3 => Self::Writes,
            _ => Self::None,
        }
    }
}

/// Whether a text has a name as one of its words.
fn names(text: &str, name: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let (text, name) = (text.as_bytes(), name.as_bytes());
    let mut windows = text.windows(name.len().max(1)).enumerate();
    windows.any(|(at, window)| {
        let behind = text.get(at + name.len());
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let alone = !behind.is_some_and(is_word) && !before.is_some_and(is_word);
        alone && window.eq_ignore_ascii_case(name)
    })
}

/// Whether a query writes in one of its parts.
fn writes(text: &str) -> bool {
    ["insert", "update", "delete", "merge", "replace"].iter().any(|word| names(text, word))
}

/// Whether a statement may make rows invalid by a condition, as far as its first word tells.
fn may_invalidate(query: &str) -> bool {
    let first = query.split(' ').next().unwrap_or_default();
    ["delete", "truncate", "call", "with"].contains(&first) || first == "update" && query.contains("_stale")
}

/// Whether a statement names a function of advisory locks.
fn calls_locks(query: &str) -> bool {
    const NAME: &[u8] = b"advisory_";
    let mut windows = query.as_bytes().windows(NAME.len()).enumerate();
    windows.any(|(at, window)| {
        let before = &query.as_bytes()[..at];
        let ends = |word: &[u8]| {
            before.len() >= word.len() && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
        };
        window.eq_ignore_ascii_case(NAME) && (ends(b"pg_") || ends(b"pg_try_"))
    })
}

/// All statements, at most [`STATEMENTS_MAX`] of them. The lock is taken when a thread meets a text for the first time.
#[derive(Debug, Default)]
pub(crate) struct Statements(Mutex<HashMap<Box<str>, Arc<Counted>>>);

impl Statements {
    /// The figures of a text's statement.
    pub(crate) fn find(&self, text: &str) -> Arc<Counted> {
        let query = sql::normalized(text);
        let mut all = self.0.lock();
        if let Some(known) = all.get(query.as_str()) {
            return Arc::clone(known);
        }
        if all.len() >= STATEMENTS_MAX {
            drop_least(&mut all);
        }
        let counted = Arc::new(Counted::new(query.clone()));
        all.insert(query.into_boxed_str(), Arc::clone(&counted));
        counted
    }

    /// What was counted of each.
    pub(crate) fn all(&self) -> Vec<StatementFacts> {
        self.0.lock().values().map(|counted| counted.facts()).collect()
    }

    /// Forgets everything.
    pub(crate) fn reset(&self) {
        for (_, counted) in self.0.lock().drain() {
            counted.dropped.store(true, Ordering::Relaxed);
        }
    }
}

/// Makes room: the statements that were called least go, one in twenty, so that this is rare.
fn drop_least(all: &mut HashMap<Box<str>, Arc<Counted>>) {
    let mut calls: Vec<u64> = all.values().map(|counted| counted.calls.load(Ordering::Relaxed)).collect();
    calls.sort_unstable();
    let least = calls.get(calls.len() / 20).copied().unwrap_or(0);
    all.retain(|_, counted| {
        let stays = counted.calls.load(Ordering::Relaxed) > least;
        counted.dropped.store(!stays, Ordering::Relaxed);
        stays
    });
}

/// The statements that one thread has met: each call looks here. One without literals is kept by its text, and so is
/// one that comes again as it was; all others by what they are without their literals, so that a text that never comes
/// again costs no entry.
#[derive(Debug)]
pub(crate) struct KnownStatements {
    known: HashMap<Box<str>, Arc<Counted>, BuildHasherDefault<RapidHasher<'static>>>,
    /// Hashes of the texts with literals that were met last, each in the place that it has by its last bits.
    met: Box<[u64; MET_STATEMENTS]>,
}

impl Default for KnownStatements {
    fn default() -> Self {
        Self { known: HashMap::default(), met: Box::new([0; MET_STATEMENTS]) }
    }
}

impl KnownStatements {
    /// The figures of a text's statement.
    #[inline]
    pub(crate) fn find(&mut self, text: &StatementText<'_>, all: &Statements) -> Arc<Counted> {
        self.known_as(text.sql).unwrap_or_else(|| self.meet(text, all))
    }

    #[inline]
    fn known_as(&self, text: &str) -> Option<Arc<Counted>> {
        self.known.get(text).filter(|known| !known.dropped.load(Ordering::Relaxed)).map(Arc::clone)
    }

    fn meet(&mut self, text: &StatementText<'_>, all: &Statements) -> Arc<Counted> {
        if text.sql.len() > KNOWN_STATEMENT_BYTES_MAX {
            return all.find(text.sql);
        }
        let Some((_, key)) = text.literals() else {
            let counted = all.find(text.sql);
            self.keep(text.sql, &counted);
            return counted;
        };
        let counted = self.known_as(key).unwrap_or_else(|| {
            let counted = all.find(text.sql);
            self.keep(key, &counted);
            counted
        });
        if self.was_met(text.sql) {
            self.keep(text.sql, &counted);
        }
        counted
    }

    fn keep(&mut self, text: &str, counted: &Arc<Counted>) {
        if self.known.len() >= KNOWN_STATEMENTS_MAX {
            self.known.clear();
        }
        self.known.insert(text.into(), Arc::clone(counted));
    }

    /// Whether a text came a short time ago.
    #[expect(clippy::cast_possible_truncation, reason = "the last bits are wanted")]
    fn was_met(&mut self, text: &str) -> bool {
        let hash = self.known.hasher().hash_one(text);
        let place = &mut self.met[hash as usize % MET_STATEMENTS];
        std::mem::replace(place, hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(known: &mut KnownStatements, text: &str, all: &Statements) -> Arc<Counted> {
        known.find(&StatementText::new(text), all)
    }

    #[test]
    fn texts_that_differ_in_literals_are_one_statement() {
        let all = Statements::default();
        let mut known = KnownStatements::default();
        let first = find(&mut known, "SELECT * FROM t WHERE a = 1", &all);
        let second = find(&mut known, "select * from t\n where a = 2 -- two", &all);
        assert!(Arc::ptr_eq(&first, &second), "{} {}", first.query(), second.query());
        all.reset();
        let third = find(&mut known, "SELECT * FROM t WHERE a = 1", &all);
        assert!(!Arc::ptr_eq(&first, &third));
        assert_eq!(all.all().len(), 1);
    }

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_used() {
        let all = Statements::default();
        let mut known = KnownStatements::default();
        let used = find(&mut known, "SELECT used FROM t", &all);
        used.calls.fetch_add(10, Ordering::Relaxed);
        for number in 0..3 * STATEMENTS_MAX {
            find(&mut known, &format!("SELECT column_{number} FROM t"), &all);
        }
        assert!(all.all().len() <= STATEMENTS_MAX);
        assert!(all.all().iter().any(|facts| *facts.query == **used.query()));
    }

    #[test]
    fn only_texts_that_come_again_are_kept_with_their_literals() {
        let all = Statements::default();
        let mut known = KnownStatements::default();
        let counted = find(&mut known, "SELECT a FROM t WHERE a = 0", &all);
        for number in 1..1000 {
            let found = find(&mut known, &format!("SELECT a FROM t WHERE a = {number}"), &all);
            assert!(Arc::ptr_eq(&counted, &found));
        }
        assert_eq!(known.known.len(), 1);
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&counted, &find(&mut known, "SELECT a FROM t WHERE a = 5", &all)));
        }
        assert_eq!(known.known.len(), 2);
        let negative = find(&mut known, "SELECT a FROM t WHERE a = -5", &all);
        assert_eq!(&**negative.query(), "select a from t where a = -?");
    }

    #[test]
    fn long_texts_are_counted_and_not_kept() {
        let all = Statements::default();
        let mut known = KnownStatements::default();
        let insert = |first: usize| {
            let rows: Vec<_> = (first..first + 1000).map(|number| format!("({number})")).collect();
            format!("INSERT INTO t VALUES {}", rows.join(", "))
        };
        let counted = find(&mut known, &insert(0), &all);
        for first in 1..KNOWN_STATEMENTS_MAX {
            assert!(Arc::ptr_eq(&counted, &find(&mut known, &insert(first), &all)));
        }
        let kept: usize = known.known.keys().map(|text| text.len()).sum();
        assert_eq!(kept, 0, "bytes of texts");
        find(&mut known, "SELECT 1", &all);
        assert_eq!(known.known.len(), 1);
    }
}

//! Every row that came is there, or is counted by why it left: through all rules, protocols and causes at once, on a
//! clock that is moved. `SEED=... cargo test -p sql --test it accounts` replays a run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on fails, and says its seed"
)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::Db;
use sql::{Cancel, RuleRunner};
use store::{Expect, RemovalCause, Table};

const CAUSES: [RemovalCause; 8] = [
    RemovalCause::Invalidated,
    RemovalCause::Flushed,
    RemovalCause::Ttl,
    RemovalCause::Operations,
    RemovalCause::Rule,
    RemovalCause::MaxRows,
    RemovalCause::MaxMemory,
    RemovalCause::Memory,
];

/// Tables with each of the rules, and one with all of them.
const TABLES: [(&str, &str); 6] = [
    ("plain", ""),
    ("timed", "ttl = '40 s', stale_for = '10 s', refresh_before = '5 s'"),
    ("worked", "max_ops = 2000"),
    ("many", "max_rows = 400"),
    ("large", "max_memory = '1 MB'"),
    ("all_of_it", "ttl = '2 min', max_ops = 3000, max_rows = 600, max_memory = '2 MB', stale_for = '5 s'"),
];
const STEPS: usize = 400;
/// Rows of one `INSERT`.
const BATCH: u64 = 40;

struct Account {
    table: Arc<Table>,
    name: &'static str,
    /// Rows that were not there before they were written.
    came: u64,
}

struct Books {
    db: Db,
    rules: RuleRunner,
    accounts: Vec<Account>,
    next: u64,
}

impl Books {
    fn open() -> Self {
        let mut db = Db::new();
        let mut accounts = Vec::new();
        for (name, options) in TABLES {
            let with = if options.is_empty() { String::new() } else { format!(" WITH ({options})") };
            db.run(&format!("CREATE TABLE {name} (k TEXT PRIMARY KEY, n INT, body TEXT){with}"));
            db.run(&format!("CREATE INDEX {name}_n ON {name} (n)"));
            db.run(&format!(
                "CREATE EXPIRY RULE {name}_rule ON {name} WHEN n % 7 = 0 AND _age > 20 EVERY '10 s'"
            ));
            let table = Arc::clone(db.store.catalog().table(name).unwrap());
            accounts.push(Account { table, name, came: 0 });
        }
        let rules = RuleRunner::new(Arc::clone(&db.store)).unwrap();
        Self { db, rules, accounts, next: 0 }
    }

    fn step(&mut self, random: &mut fastrand::Rng) {
        let at = random.usize(0..self.accounts.len());
        let name = self.accounts[at].name;
        match random.u32(0..100) {
            0..60 => self.insert(at, random),
            60..75 => {
                let n = random.u64(0..100);
                self.db.run(&format!("UPDATE {name} SET n = n + 1 WHERE n = {n}"));
            }
            75..80 => {
                let n = random.u64(0..100);
                self.db.run(&format!("UPDATE {name} SET _ttl = {} WHERE n = {n}", random.u64(1..30)));
            }
            80..85 => {
                self.db.run(&format!("UPDATE {name} SET _stale = TRUE WHERE n = {}", random.u64(0..100)));
            }
            85..92 => self.db.run(&format!("DELETE FROM {name} WHERE n = {}", random.u64(0..100))),
            92 => self.db.store.flush(&self.accounts[at].table),
            _ => self.pass(Duration::from_millis(random.u64(0..9_000))),
        }
    }

    fn insert(&mut self, at: usize, random: &mut fastrand::Rng) {
        let account = &mut self.accounts[at];
        let rows: Vec<String> = (0..BATCH)
            .map(|_| {
                self.next += 1;
                let ttl = ["NULL".to_owned(), random.u64(1..60).to_string()][random.usize(0..2)].clone();
                let body = random.u32(0..600);
                format!("('k{}', {}, printf('%{body}c', 'x'), {ttl})", self.next, random.u64(0..100))
            })
            .collect();
        let insert = format!("INSERT INTO {} (k, n, body, _ttl) VALUES {}", account.name, rows.join(", "));
        assert_eq!(self.db.affected(&insert), BATCH);
        account.came += BATCH;
        let known = format!("k{}", random.u64(1..=self.next));
        let now = self.db.store.now();
        self.db.store.delete(&account.table, known.as_bytes(), Expect::Anything, now).unwrap();
    }

    fn pass(&mut self, time: Duration) {
        self.db.clock.advance(time);
        self.db.store.tick();
        self.rules.run_due(&Cancel::new());
    }

    /// What came is there or has left.
    fn check(&mut self) {
        for account in &self.accounts {
            let stats = account.table.stats();
            let left: u64 = CAUSES.iter().map(|&cause| stats.left(cause)).sum();
            let by_cause: Vec<u64> = CAUSES.iter().map(|&cause| stats.left(cause)).collect();
            assert_eq!(
                account.came,
                stats.rows + left,
                "{}: {} there, left {by_cause:?}",
                account.name,
                stats.rows
            );
            let counted = self.db.query(&format!(
                "SELECT expired + evicted + invalidated + flushed FROM sqlcached_tables WHERE table_name = '{}'",
                account.name
            ));
            assert_eq!(counted, left.to_string(), "{}", account.name);
        }
    }
}

#[test]
fn what_came_is_there_or_counted() {
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    let mut books = Books::open();
    for _ in 0..STEPS {
        books.step(&mut random);
        books.check();
    }
    // When time has passed, what is there is what a query finds, but for the dead in segments that hold live rows.
    books.pass(Duration::from_mins(5));
    for _ in 0..40 {
        books.pass(Duration::from_millis(63));
    }
    books.check();
    for at in 0..books.accounts.len() {
        let (name, there) = (books.accounts[at].name, books.accounts[at].table.stats().rows);
        let found: u64 =
            books.db.query(&format!("SELECT count(*) FROM (SELECT k FROM {name})")).parse().unwrap();
        assert!(found <= there, "{name}: {found} found of {there}");
    }
    let seen = |cause| books.accounts.iter().map(|account| account.table.stats().left(cause)).sum::<u64>();
    for cause in [RemovalCause::Invalidated, RemovalCause::Ttl, RemovalCause::Rule, RemovalCause::MaxRows] {
        assert!(seen(cause) > 0, "nothing left by {cause:?}");
    }
}

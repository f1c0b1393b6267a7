//! Many sessions and memcached-style writers on the same rows: no increment is lost, no sum is ever wrong, no half of a
//! commit is seen, and nothing that was deleted comes back.
//!
//! `SEED=... OPERATIONS=1000000 cargo test -p sql --test it bank -- --nocapture` is the long run. Threads take
//! their own turns, so a seed repeats what is done, not in which order.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use crate::common::{Rows, open_store};
use fastrand::Rng;
use sql::{Cancel, Executor, Limits, Session, SqlError};
use store::value::Value;
use store::{Clock, Expect, Expiry, Item, Outcome, RowBuf, Store};

const ACCOUNTS: i64 = 24;
const MARKS: i64 = 8;
const GHOSTS: i64 = 4;
/// Rows of a table that is written as a whole: so many that the store swaps them in by slices.
const WIDE: i64 = 2_000;
const OWNERS: i64 = 5;
const TOTAL: i64 = ACCOUNTS * 100;
/// Threads with an executor each, and the sessions that each of them serves in turns.
const SQL_THREADS: u64 = 3;
const SESSIONS: usize = 5;
const OPERATIONS: u64 = 30_000;
/// After so many times the operations it ends even if no commit of a whole table found it unchanged.
const PATIENCE: u64 = 20;
/// Each memcached-style writer does one operation in so many of all, for it is far faster than SQL.
const SINGLE_SHARE: u64 = 6;

/// What all threads share.
struct World {
    store: Arc<Store>,
    /// Statements and single-key writes that were answered, and how many there shall be.
    operations: AtomicU64,
    wanted: u64,
    /// Increments of `touched` that were acknowledged, through whichever protocol.
    touched: AtomicI64,
    committed: AtomicU64,
    refused: AtomicU64,
    /// Statements that lost the versions they needed.
    too_old: AtomicU64,
    /// A commit of the whole wide table has succeeded.
    whole: AtomicBool,
    failed: AtomicBool,
}

/// A number that the environment tells.
fn told(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test replays the seed it is told")]
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn transfers_and_counters_hold_among_many_clients() {
    let seed = crate::common::seed();
    let world = World::new(told("OPERATIONS").unwrap_or(OPERATIONS));
    thread::scope(|scope| {
        for thread in 0..SQL_THREADS {
            let world = &world;
            scope.spawn(move || world.guard(|| Teller::new(world, seed ^ thread).serve()));
        }
        scope.spawn(|| world.guard(|| world.touch_items(seed ^ 0x10)));
        scope.spawn(|| world.guard(|| world.haunt(seed ^ 0x20)));
    });
    world.check_end();
}

impl World {
    fn new(wanted: u64) -> Self {
        let store = open_store(Clock::System);
        let world = Self {
            store,
            operations: AtomicU64::new(0),
            wanted,
            touched: AtomicI64::new(0),
            committed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            too_old: AtomicU64::new(0),
            whole: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        };
        let mut teller = Teller::new(&world, 0);
        for sql in [
            "CREATE TABLE account (key TEXT PRIMARY KEY, owner INT, balance INT, touched INT) WITH (prefix = 'a:', value = touched, ordered = on)",
            "CREATE INDEX account_owner ON account (owner)",
            "CREATE TABLE mark (key TEXT PRIMARY KEY, round INT, touched INT) WITH (prefix = 'm:', value = touched)",
            "CREATE TABLE wide (key TEXT PRIMARY KEY, round INT, touched INT) WITH (prefix = 'w:', value = touched)",
            "CREATE TABLE ghost (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'g:', value = body)",
        ] {
            teller.single(sql, &[]).unwrap();
        }
        for at in 0..ACCOUNTS {
            let owner = Value::Integer(at % OWNERS);
            teller.single("INSERT INTO account VALUES ($1, $2, 100, 0)", &[key(at), owner]).unwrap();
        }
        for at in 0..MARKS {
            teller.single("INSERT INTO mark VALUES ($1, 0, 0)", &[key(at)]).unwrap();
        }
        let numbers = "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1)";
        let fill = format!("INSERT INTO wide {numbers} SELECT 'k' || i, 0, 0 FROM n");
        teller.single(&fill, &[Value::Integer(WIDE)]).unwrap();
        drop(teller);
        world
    }

    fn goes_on(&self) -> bool {
        let done = self.operations.fetch_add(1, Ordering::Relaxed);
        let enough = done >= self.wanted && self.whole.load(Ordering::Relaxed);
        !enough && done < PATIENCE * self.wanted && !self.failed.load(Ordering::Relaxed)
    }

    /// The same for a memcached-style writer that did so many operations.
    fn goes_on_single(&self, own: &mut u64) -> bool {
        while *own * SINGLE_SHARE > self.operations.load(Ordering::Relaxed)
            && !self.failed.load(Ordering::Relaxed)
        {
            thread::yield_now();
        }
        *own += 1;
        self.goes_on()
    }

    /// Lets the other threads end when this one fails.
    fn guard(&self, body: impl FnOnce()) {
        struct Flag<'a>(&'a AtomicBool);
        impl Drop for Flag<'_> {
            fn drop(&mut self) {
                self.0.fetch_or(thread::panicking(), Ordering::Relaxed);
            }
        }
        let _flag = Flag(&self.failed);
        body();
    }

    /// A memcached client that increments.
    fn touch_items(&self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        let catalog = self.store.catalog();
        let mut own = 0;
        while self.goes_on_single(&mut own) {
            let (name, count) = match random.u32(0..100) {
                // Rarely, or no commit of the whole table would ever find it unchanged.
                0 => ("wide", WIDE),
                1..50 => ("mark", MARKS),
                _ => ("account", ACCOUNTS),
            };
            let table = catalog.table(name).unwrap();
            let key = format!("k{}", random.i64(0..count));
            let outcome =
                self.store.rewrite_item(table, key.as_bytes(), self.store.now(), &mut |old, new| {
                    let touched: i64 = std::str::from_utf8(old).unwrap().parse().unwrap();
                    new.extend_from_slice((touched + 1).to_string().as_bytes());
                    true
                });
            assert!(matches!(outcome, Ok(Outcome::Done(_))), "{name} {key}: {outcome:?}");
            self.touched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A memcached client that deletes, looks whether the row stays away, and stores it again.
    fn haunt(&self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        let catalog = self.store.catalog();
        let table = catalog.table("ghost").unwrap();
        let mut row = RowBuf::new();
        let mut own = 0;
        while self.goes_on_single(&mut own) {
            let key = format!("k{}", random.i64(0..GHOSTS));
            self.store.delete(table, key.as_bytes(), Expect::Anything, self.store.now()).unwrap();
            for _ in 0..random.usize(1..20) {
                assert!(
                    !self.store.read(table, key.as_bytes(), self.store.now(), &mut row),
                    "{key} came back"
                );
                thread::yield_now();
            }
            let item = Item {
                value: b"x",
                client_flags: 0,
                expiry: Expiry::Table,
                cas: None,
                lease: None,
                tags: None,
            };
            let put = self.store.put_item(table, key.as_bytes(), &item, Expect::Absent, self.store.now());
            assert!(matches!(put, Ok(Outcome::Done(_))), "{key} came back: {put:?}");
            thread::yield_now();
        }
    }

    fn check_end(&self) {
        let mut teller = Teller::new(self, 0);
        assert_eq!(teller.number("SELECT sum(balance) FROM account"), TOTAL);
        let sums = ["account", "mark", "wide"].map(|table| format!("SELECT sum(touched) FROM {table}"));
        let touched: i64 = sums.iter().map(|sum| teller.number(sum)).sum();
        assert_eq!(touched, self.touched.load(Ordering::Relaxed), "increments were lost or came twice");
        assert_eq!(teller.number("SELECT count(DISTINCT round) FROM mark"), 1);
        assert_eq!(teller.number("SELECT count(DISTINCT round) FROM wide"), 1);
        let wide = teller.number("SELECT max(round) FROM wide");
        assert!(wide > 0, "the whole table was never written");
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (committed, refused) = (count(&self.committed), count(&self.refused));
        println!(
            "{} operations: {committed} transactions committed, {refused} refused (40001), {} statements too old, {touched} increments",
            self.wanted,
            count(&self.too_old)
        );
        assert!(committed > self.wanted / 200, "{committed} of {} operations were commits", self.wanted);
        assert!(refused > 0, "nobody met anybody");
    }
}

fn key(at: i64) -> Value {
    Value::from(format!("k{at}").as_str())
}

/// A statement of a transaction, and the one number that it must answer if the transaction commits.
struct Step {
    sql: &'static str,
    parameters: Vec<Value>,
    answers: Option<i64>,
}

fn step(sql: &'static str, parameters: &[Value]) -> Step {
    Step { sql, parameters: parameters.to_vec(), answers: None }
}

fn asked(sql: &'static str, answers: i64) -> Step {
    Step { sql, parameters: Vec::new(), answers: Some(answers) }
}

/// One client in the middle of its transaction.
#[derive(Default)]
struct Client {
    session: Session,
    steps: VecDeque<Step>,
    /// Increments that count when it commits.
    touches: i64,
    /// It wrote the whole wide table.
    whole: bool,
    /// An answer that was other than expected: others interfered, so the commit must be refused.
    wrong: Option<String>,
}

/// A thread with one executor and several clients.
struct Teller<'w> {
    world: &'w World,
    executor: Executor,
    clients: Vec<Client>,
    random: Rng,
}

impl<'w> Teller<'w> {
    fn new(world: &'w World, seed: u64) -> Self {
        let executor = Executor::new(Arc::clone(&world.store), Limits::default()).unwrap();
        let clients = (0..SESSIONS).map(|_| Client::default()).collect();
        Self { world, executor, clients, random: Rng::with_seed(seed) }
    }

    fn serve(&mut self) {
        while self.world.goes_on() {
            if self.random.u32(0..4) == 0 {
                self.look();
            } else {
                let at = self.random.usize(0..SESSIONS);
                self.advance(at);
            }
        }
    }

    fn single(&mut self, sql: &str, parameters: &[Value]) -> Result<Rows, SqlError> {
        self.run(&mut Session::new(), sql, parameters).map(|(rows, _)| rows)
    }

    fn run(
        &mut self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
    ) -> Result<(Rows, u64), SqlError> {
        let mut rows = Rows::default();
        let done = self.executor.execute(session, sql, parameters, &Cancel::new(), &mut rows)?;
        Ok((rows, done.affected))
    }

    fn number(&mut self, sql: &str) -> i64 {
        integer(&self.single(sql, &[]).unwrap())
    }

    /// A statement outside of transactions, whose answer is fixed.
    fn look(&mut self) {
        let (sql, answer) = [
            ("SELECT sum(balance) FROM account", TOTAL),
            ("SELECT sum(balance) FROM account WHERE owner >= 0", TOTAL),
            ("SELECT sum(balance) FROM (SELECT balance FROM account ORDER BY owner DESC)", TOTAL),
            ("SELECT sum(balance) FROM account WHERE key IN (SELECT key FROM account)", TOTAL),
            ("SELECT sum(balance) FROM account WHERE key LIKE 'k%'", TOTAL),
            ("SELECT count(DISTINCT round) FROM mark", 1),
            ("SELECT count(*) FROM account", ACCOUNTS),
            ("SELECT count(DISTINCT round) FROM wide", 1),
        ][if self.random.u32(0..40) == 0 { 7 } else { self.random.usize(0..7) }];
        match self.single(sql, &[]) {
            Ok(rows) => assert_eq!(integer(&rows), answer, "{sql}"),
            Err(error) => self.too_old(sql, &error),
        }
    }

    fn too_old(&self, sql: &str, error: &SqlError) {
        assert_eq!(error.state, "72000", "{sql}: {error}");
        self.world.too_old.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the next step of a client's transaction.
    fn advance(&mut self, at: usize) {
        let mut client = std::mem::take(&mut self.clients[at]);
        match client.steps.pop_front() {
            None => client.steps = self.transaction(),
            Some(step) => self.take(&mut client, &step),
        }
        self.clients[at] = client;
    }

    fn take(&mut self, client: &mut Client, step: &Step) {
        let result = self.run(&mut client.session, step.sql, &step.parameters);
        match (step.sql, result) {
            ("COMMIT", Ok(_)) => {
                assert_eq!(client.wrong, None);
                self.world.committed.fetch_add(1, Ordering::Relaxed);
                self.world.touched.fetch_add(client.touches, Ordering::Relaxed);
                self.world.whole.fetch_or(client.whole, Ordering::Relaxed);
                *client = Client::default();
            }
            ("COMMIT", Err(error)) => {
                assert_eq!(error.state, "40001", "{error}");
                self.world.refused.fetch_add(1, Ordering::Relaxed);
                *client = Client::default();
            }
            (sql, Err(error)) => {
                self.too_old(sql, &error);
                *client = Client::default();
            }
            // What it saw may have been wrong: nothing says so when it is not to be committed.
            ("ROLLBACK", Ok(_)) => (client.wrong, client.whole) = (None, false),
            (sql, Ok((rows, affected))) => {
                if sql.contains("touched = touched + 1") {
                    client.touches += i64::try_from(affected).unwrap();
                }
                client.whole |= sql.starts_with("UPDATE wide");
                if step.answers.is_some_and(|answer| integer(&rows) != answer) {
                    client.wrong = Some(format!("{sql}: {} for {:?}", integer(&rows), step.answers));
                }
            }
        }
    }

    fn transaction(&mut self) -> VecDeque<Step> {
        let mut steps = vec![step("BEGIN", &[])];
        match self.random.u32(0..240) {
            // Rarely: it takes as long as a hundred others.
            0 => whole(&mut steps, "UPDATE wide SET round = (SELECT max(round) + 1 FROM wide)"),
            1..120 => self.transfer(&mut steps),
            120..180 => self.touch(&mut steps),
            180..210 => whole(&mut steps, "UPDATE mark SET round = (SELECT max(round) + 1 FROM mark)"),
            _ => self.ghosts(&mut steps),
        }
        steps.push(step(if self.random.u32(0..10) == 0 { "ROLLBACK" } else { "COMMIT" }, &[]));
        if steps.last().is_some_and(|last| last.sql == "ROLLBACK") {
            // What it incremented does not count.
            steps.push(step("BEGIN", &[]));
            steps.retain(|step| !step.sql.contains("touched = touched + 1"));
            steps.push(step("COMMIT", &[]));
        }
        steps.into()
    }

    fn transfer(&mut self, steps: &mut Vec<Step>) {
        let from = self.random.i64(0..ACCOUNTS);
        let to = (from + self.random.i64(1..ACCOUNTS)) % ACCOUNTS;
        let amount = self.random.i64(1..20);
        steps.push(step(
            "UPDATE account SET balance = balance - $1 WHERE key = $2",
            &[Value::Integer(amount), key(from)],
        ));
        steps.push(asked("SELECT sum(balance) FROM account", TOTAL - amount));
        if self.random.bool() {
            let owner = Value::Integer(self.random.i64(0..OWNERS));
            steps.push(step("SAVEPOINT s", &[]));
            steps.push(step(
                "UPDATE account SET balance = 0, owner = owner + 1 WHERE owner = $1",
                std::slice::from_ref(&owner),
            ));
            steps.push(step("DELETE FROM account WHERE owner > $1", &[owner]));
            steps.push(step("ROLLBACK TO s", &[]));
        }
        let upsert = "INSERT INTO account VALUES ($2, 0, $1, 0) ON CONFLICT (key) DO UPDATE SET balance = account.balance + excluded.balance";
        let update = "UPDATE account SET balance = balance + $1 WHERE key = $2";
        let credit = if self.random.bool() { upsert } else { update };
        steps.push(step(credit, &[Value::Integer(amount), key(to)]));
        steps.push(asked("SELECT sum(balance) FROM account WHERE owner >= 0", TOTAL));
    }

    fn touch(&mut self, steps: &mut Vec<Step>) {
        let owner = Value::Integer(self.random.i64(0..OWNERS));
        steps.push(step("UPDATE account SET touched = touched + 1 WHERE owner = $1", &[owner]));
        let at = self.random.i64(0..MARKS);
        steps.push(step("UPDATE mark SET touched = touched + 1 WHERE key = $1", &[key(at)]));
    }

    fn ghosts(&mut self, steps: &mut Vec<Step>) {
        steps.push(step("UPDATE ghost SET body = 'written by a transaction'", &[]));
        let at = self.random.i64(0..ACCOUNTS);
        steps.push(step("UPDATE account SET touched = touched + 1 WHERE key = $1", &[key(at)]));
    }
}

/// A table of which all rows bear the same number.
fn whole(steps: &mut Vec<Step>, sql: &'static str) {
    steps.push(step(sql, &[]));
    let asks = ["SELECT count(DISTINCT round) FROM mark", "SELECT count(DISTINCT round) FROM wide"];
    steps.push(asked(asks[usize::from(sql.contains("wide"))], 1));
}

fn integer(rows: &Rows) -> i64 {
    match rows.rows[..] {
        [ref row] => match row[..] {
            [Value::Integer(integer)] => integer,
            ref other => panic!("{other:?}"),
        },
        ref other => panic!("{other:?}"),
    }
}

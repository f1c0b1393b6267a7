//! Sixty-four clients want one row that ends again and again, whichever protocol they use: one of them is asked to
//! refresh it, once a period.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use engine::{
    Answer, Cancel, Engine, EngineOptions, Executor, Finished, ItemMeta, ItemSink, MetaDelete, MetaDone,
    MetaGet, MetaGot, MetaItem, MetaSet, MetaSink, Session, ThreadContext, Verb,
};
use store::{Clock, ManualClock, Store, StoreOptions};

const CLIENTS: usize = 64;
const PERIODS: usize = 40;
const KEY: &[u8] = b"page:17";

/// What a client was given.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    value: Option<String>,
    /// It is to refresh the row.
    told: bool,
    /// It was told that the value is stale.
    marked: bool,
}

#[derive(Default)]
struct Sink {
    item: MetaItem,
    bytes: Vec<u8>,
}

impl ItemSink for Sink {
    fn open(&mut self, _meta: &ItemMeta) -> &mut Vec<u8> {
        &mut self.bytes
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

impl MetaSink for Sink {
    fn open(&mut self, item: &MetaItem) -> &mut Vec<u8> {
        self.item = *item;
        &mut self.bytes
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

/// The way a client comes in.
#[derive(Clone, Copy, Debug)]
enum Door {
    Get,
    Meta,
    Sql,
}

struct Client {
    context: ThreadContext,
    listener: Door,
}

impl Client {
    fn new(engine: &Arc<Engine>, number: usize) -> Self {
        let listener = [Door::Get, Door::Meta, Door::Sql][number % 3];
        Self { context: engine.context(), listener }
    }

    fn ask(&mut self) -> Given {
        self.context.begin_batch();
        let session = Session::local();
        let mut sink = Sink::default();
        match self.listener {
            Door::Get => {
                let hit = session.get(&mut self.context, KEY, &mut sink).unwrap();
                plain(hit, sink)
            }
            Door::Meta => {
                let asked = MetaGet { value: true, ..MetaGet::default() };
                match session.meta_get(&mut self.context, KEY, &asked, &mut sink).unwrap() {
                    MetaGot::Miss => Given { told: true, ..Given::default() },
                    MetaGot::Head(_) | MetaGot::Fetch => unreachable!("the value was asked for"),
                    MetaGot::Value => Given {
                        told: sink.item.won,
                        marked: sink.item.stale,
                        value: Some(String::from_utf8(sink.bytes).unwrap()),
                    },
                }
            }
            Door::Sql => {
                // An executor belongs to its thread.
                let mut executor = self.context.engine().executor(None).unwrap();
                // Who sees that the row is due or stale claims it; of all who do one gets it.
                let claim = "UPDATE page SET _leased = TRUE \
                             WHERE key = '17' AND _due AND NOT _leased RETURNING body, _cas";
                let won = !sql(&mut self.context, &mut executor, claim).is_empty();
                let rows =
                    sql(&mut self.context, &mut executor, "SELECT body, _stale FROM page WHERE key = '17'");
                let body = rows.strip_prefix("{\"body\":\"").and_then(|rest| rest.split('"').next());
                let marked = rows.contains("\"_stale\":1");
                Given { told: won, value: body.map(str::to_owned), marked }
            }
        }
    }
}

fn plain(hit: bool, sink: Sink) -> Given {
    let value = hit.then(|| String::from_utf8(sink.bytes).unwrap());
    Given { told: !hit, value, marked: false }
}

fn sql(context: &mut ThreadContext, executor: &mut Executor, statement: &str) -> String {
    let mut out = Vec::new();
    let done = Session::local().sql(context, executor, statement.as_bytes(), None, &Cancel::new(), &mut out);
    assert!(!matches!(done, Finished::Failed(_)), "{done:?}");
    String::from_utf8(out).unwrap()
}

struct Town {
    engine: Arc<Engine>,
    hands: Arc<ManualClock>,
    clients: Vec<Client>,
    context: ThreadContext,
}

impl Town {
    fn new() -> Self {
        let hands = ManualClock::new(1_800_000_000);
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::Manual(Arc::clone(&hands)),
            row_bytes_max: 2 << 20,
        };
        let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
        let (mut context, mut executor) = (engine.context(), engine.executor(None).unwrap());
        let create = "CREATE TABLE page (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body', \
                      refresh_before = '10 s', stale_for = '60 s', lease = '5 s')";
        sql(&mut context, &mut executor, create);
        let clients = (0..CLIENTS).map(|number| Client::new(&engine, number)).collect();
        Self { engine, hands, clients, context }
    }

    fn advance(&mut self, seconds: u64) {
        self.hands.advance(Duration::from_secs(seconds));
        self.engine.tick();
        self.context.begin_batch();
    }

    fn set(&mut self, version: usize) {
        let value = format!("version {version}");
        let answer = Session::local().store(&mut self.context, Verb::Set, KEY, 0, 60, value.as_bytes());
        assert_eq!(answer, Answer::Stored);
    }

    fn invalidate(&mut self, by_sql: bool) {
        if by_sql {
            let mut executor = self.engine.executor(None).unwrap();
            sql(&mut self.context, &mut executor, "UPDATE page SET _stale = TRUE WHERE key LIKE '1%'");
        } else {
            let soft = MetaDelete { invalidate: true, ..MetaDelete::default() };
            let done = Session::local().meta_delete(&mut self.context, KEY, &soft).unwrap();
            assert!(matches!(done, MetaDone::Done(_)));
        }
    }

    /// All clients ask at the same moment. Returns what each was given.
    fn rush(&mut self) -> Vec<Given> {
        let barrier = Barrier::new(CLIENTS);
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .clients
                .iter_mut()
                .map(|client| {
                    scope.spawn(|| {
                        barrier.wait();
                        client.ask()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// A rush in which so many are asked to refresh the row, and all others are given this version.
    fn rush_for(&mut self, told: usize, version: usize, marked: bool) {
        let given = self.rush();
        assert_eq!(given.iter().filter(|given| given.told).count(), told, "{given:?}");
        let value = format!("version {version}");
        for (client, given) in self.clients.iter().zip(&given) {
            assert!(
                given.value.as_deref().is_none_or(|found| found == value),
                "{:?} {given:?}",
                client.listener
            );
            assert!(given.value.is_some() || given.told, "{:?} was given nothing", client.listener);
            let knows = matches!(client.listener, Door::Meta | Door::Sql);
            assert!(!knows || given.marked == marked, "{given:?}");
        }
    }
}

#[test]
fn one_client_a_period_makes_the_row_anew() {
    let mut town = Town::new();
    town.set(0);
    for period in 0..PERIODS {
        // Fresh for fifty seconds.
        town.rush_for(0, period, false);
        town.advance(49);
        town.rush_for(0, period, false);
        town.advance(2);
        match period % 4 {
            // Due: one is told, and then nobody until the row is new.
            0 => {
                town.rush_for(1, period, false);
                town.rush_for(0, period, false);
            }
            // The one who was told is gone; another is, when the lease has passed.
            1 => {
                town.rush_for(1, period, false);
                town.advance(4);
                town.rush_for(0, period, false);
                town.advance(2);
                town.rush_for(1, period, false);
            }
            // Nobody asked while it was due: past its deadline it is stale.
            2 => {
                town.advance(10);
                town.rush_for(1, period, true);
                town.rush_for(0, period, true);
            }
            // Invalidated softly, by either protocol: later readers learn that it is stale.
            _ => {
                town.invalidate(period % 8 == 3);
                town.rush_for(1, period, true);
                town.rush_for(0, period, true);
            }
        }
        town.set(period + 1);
    }
    // Past the time that it may be served stale it is gone for everybody.
    town.advance(121);
    let given = town.rush();
    assert!(given.iter().all(|given| given.value.is_none()), "{given:?}");
}

#[test]
fn of_many_who_miss_one_takes_the_place() {
    let mut town = Town::new();
    for round in 0..PERIODS {
        let won = AtomicUsize::new(0);
        let barrier = Barrier::new(CLIENTS);
        std::thread::scope(|scope| {
            for client in &mut town.clients {
                scope.spawn(|| {
                    let asked = MetaGet { value: true, vivify: Some(30), ..MetaGet::default() };
                    barrier.wait();
                    let mut sink = Sink::default();
                    Session::local().meta_get(&mut client.context, KEY, &asked, &mut sink).unwrap();
                    assert!(sink.item.won != sink.item.claimed, "{:?}", sink.item);
                    won.fetch_add(usize::from(sink.item.won), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(won.into_inner(), 1, "round {round}");
        assert_eq!(Session::local().delete(&mut town.context, KEY), Answer::Deleted);
    }
}

#[test]
fn a_stale_fill_is_refused() {
    let mut town = Town::new();
    let session = Session::local();
    let place = |context: &mut ThreadContext| {
        let asked = MetaGet { vivify: Some(30), ..MetaGet::default() };
        match session.meta_get(context, KEY, &asked, &mut Sink::default()).unwrap() {
            MetaGot::Head(item) => item,
            other => panic!("{other:?}"),
        }
    };
    let fill = |context: &mut ThreadContext, cas: u64| {
        let asked = MetaSet { compare: Some(cas), ..MetaSet::default() };
        session.meta_set(context, KEY, &asked, b"computed").unwrap()
    };
    let first = place(&mut town.context);
    assert!(first.won);
    assert_eq!(session.delete(&mut town.context, KEY), Answer::Deleted);
    assert_eq!(fill(&mut town.context, first.cas), MetaDone::NotFound);
    let second = place(&mut town.context);
    assert!(second.won && second.cas != first.cas);
    assert_eq!(fill(&mut town.context, first.cas), MetaDone::Exists);
    let soft = MetaDelete { invalidate: true, ..MetaDelete::default() };
    session.meta_delete(&mut town.context, KEY, &soft).unwrap();
    assert_eq!(fill(&mut town.context, second.cas), MetaDone::Exists);
    let third = place(&mut town.context);
    assert!(third.won && third.stale);
    assert!(matches!(fill(&mut town.context, third.cas), MetaDone::Done(_)));
}

/// The one number of an answer's first row.
fn number(row: &str) -> i64 {
    let digits = row.split([':', ',', '}']).nth(1).unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("{row}"))
}

#[test]
fn a_stale_fill_by_sql_is_refused() {
    let mut town = Town::new();
    let mut executor = town.engine.executor(None).unwrap();
    let mut run = |context: &mut ThreadContext, statement: &str| sql(context, &mut executor, statement);
    let place =
        "INSERT INTO page (key, _leased, _ttl) VALUES ('17', TRUE, 30) ON CONFLICT DO NOTHING RETURNING key";
    assert_eq!(run(&mut town.context, place), "{\"key\":\"17\"}\r\n");
    assert_eq!(run(&mut town.context, place), "");
    let seen = "SELECT _cas, _leased, _stale FROM page WHERE key = '17'";
    let first = run(&mut town.context, seen);
    assert!(first.ends_with(",\"_leased\":1,\"_stale\":0}\r\n"), "{first}");
    let fill = |cas: i64| {
        format!("UPDATE page SET body = 'computed' WHERE key = '17' AND _cas = {cas} RETURNING _leased")
    };
    run(&mut town.context, "UPDATE page SET _stale = TRUE WHERE key = '17'");
    assert_eq!(run(&mut town.context, &fill(number(&first))), "");
    // What a claim returns is what the fill asks for.
    let claim =
        "UPDATE page SET _leased = TRUE WHERE key = '17' AND _due AND NOT _leased RETURNING _cas, _stale";
    let second = run(&mut town.context, claim);
    assert!(second.ends_with(",\"_stale\":1}\r\n"), "{second}");
    assert_eq!(run(&mut town.context, claim), "");
    assert_eq!(run(&mut town.context, &fill(number(&second))), "{\"_leased\":0}\r\n");
    assert!(run(&mut town.context, seen).ends_with(",\"_leased\":0,\"_stale\":0}\r\n"));
    // Nor does a fill bring back what was deleted.
    let third = run(&mut town.context, seen);
    run(&mut town.context, "DELETE FROM page WHERE key = '17'");
    assert_eq!(run(&mut town.context, &fill(number(&third))), "");
}

/// A claim by SQL and a win by `mg` take the same lease: whoever comes second gets nothing.
#[test]
fn a_claim_by_sql_and_a_win_by_memcached_exclude_each_other() {
    let mut town = Town::new();
    let mut executor = town.engine.executor(None).unwrap();
    let claim = "UPDATE page SET _leased = TRUE WHERE key = '17' AND _due AND NOT _leased RETURNING key";
    for sql_first in [true, false] {
        town.set(0);
        town.advance(51);
        let win = |town: &mut Town| {
            let asked = MetaGet { value: true, ..MetaGet::default() };
            let mut sink = Sink::default();
            Session::local().meta_get(&mut town.context, KEY, &asked, &mut sink).unwrap();
            sink.item.won
        };
        let mut claimed = |town: &mut Town| !sql(&mut town.context, &mut executor, claim).is_empty();
        let outcome = if sql_first {
            (claimed(&mut town), win(&mut town))
        } else {
            (win(&mut town), claimed(&mut town))
        };
        assert_eq!(outcome, (true, false), "sql first: {sql_first}");
    }
}

/// A mark makes a row no younger: it ends when its table's `ttl` said before, whichever protocol marks it.
#[test]
fn soft_invalidation_and_claims_leave_the_age_of_a_row() {
    for by_sql in [true, false] {
        let mut town = Town::new();
        let mut executor = town.engine.executor(None).unwrap();
        let mut run = |context: &mut ThreadContext, statement: &str| sql(context, &mut executor, statement);
        run(&mut town.context, "ALTER TABLE page SET (ttl = '60 s')");
        run(&mut town.context, "INSERT INTO page (key, body) VALUES ('17', 'version 0')");
        let ttl = |context: &mut ThreadContext, run: &mut dyn FnMut(&mut ThreadContext, &str) -> String| {
            number(&run(context, "SELECT _ttl FROM page WHERE key = '17'"))
        };
        town.advance(40);
        assert_eq!(ttl(&mut town.context, &mut run), 20);
        if by_sql {
            run(&mut town.context, "UPDATE page SET _stale = TRUE WHERE key = '17'");
            assert_eq!(ttl(&mut town.context, &mut run), 20);
            run(&mut town.context, "UPDATE page SET _leased = TRUE WHERE key = '17'");
        } else {
            town.invalidate(false);
        }
        assert_eq!(ttl(&mut town.context, &mut run), 20);
        // Served as stale until its end and `stale_for` behind it, and not longer.
        town.advance(79);
        assert_ne!(run(&mut town.context, "SELECT body FROM page WHERE key = '17'"), "");
        town.advance(2);
        assert_eq!(run(&mut town.context, "SELECT body FROM page WHERE key = '17'"), "");
    }
}

/// A claim keeps the CAS value, so that a client which read the row before can still write it.
#[test]
fn a_claim_changes_nothing_that_was_read() {
    let mut town = Town::new();
    let mut executor = town.engine.executor(None).unwrap();
    town.set(0);
    let mut run = |context: &mut ThreadContext, statement: &str| sql(context, &mut executor, statement);
    let cas = "SELECT _cas FROM page WHERE key = '17'";
    let before = run(&mut town.context, cas);
    let claim = "UPDATE page SET _leased = TRUE WHERE key = '17' AND NOT _leased RETURNING _cas";
    assert_eq!(run(&mut town.context, claim), before);
    assert_eq!(run(&mut town.context, cas), before);
    // Given back, it can be claimed again.
    assert_eq!(run(&mut town.context, claim), "");
    assert_eq!(
        run(&mut town.context, "UPDATE page SET _leased = FALSE WHERE key = '17' RETURNING _cas"),
        before
    );
    assert_eq!(run(&mut town.context, claim), before);
}

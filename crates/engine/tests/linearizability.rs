//! What concurrent clients do to one row, through memcached's commands, the meta commands and SQL, is what some order
//! of their operations one after the other would do.
//!
//! A `touch` beside an `incr` was lost: the `incr` wrote the deadline back that it had read. No test could see that,
//! for none compared answers of concurrent commands that change different parts of a row. `OPERATIONS=10000000` asks
//! for a longer run, `SEED=...` begins with the same random numbers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod common;
mod linear;

use std::collections::HashSet;
use std::sync::Arc;

use engine::{
    Answer as Reply, Cancel, Condition, Engine, EngineOptions, Executor, Finished, ItemMeta, ItemSink,
    MetaArithmetic, MetaDelete, MetaDone, MetaGet, MetaGot, MetaItem, MetaSet, MetaSink, Session,
    ThreadContext, Verb,
};
use linear::row::State;
use linear::run::{Plan, Worker, check};
use linear::search::ends;
use linear::{Answer, Event, Op, Seen, Ttl, number};
use store::failpoint::{self, Point};
use store::{Clock, ManualClock, Store, StoreOptions};

/// One more than the processors of a small machine, so that clients are also interrupted.
const CLIENTS: usize = 3;

/// Where a command's item goes.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    flags: u32,
    cas: u64,
    item: MetaItem,
    is_closed: bool,
}

impl ItemSink for Sink {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        (self.flags, self.cas) = (meta.client_flags, meta.cas);
        &mut self.bytes
    }
    fn close(&mut self) {
        self.is_closed = true;
    }
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

impl MetaSink for Sink {
    fn open(&mut self, item: &MetaItem) -> &mut Vec<u8> {
        self.item = *item;
        &mut self.bytes
    }
    fn close(&mut self) {
        self.is_closed = true;
    }
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

impl Sink {
    fn of_get(self, hit: bool) -> Answer {
        let Self { bytes, flags, cas, is_closed, .. } = self;
        assert_eq!(hit, is_closed, "a value is closed once it is found");
        if !hit {
            return Answer::Not;
        }
        Answer::Row(Seen { value: Some(bytes), flags: Some(flags), cas: Some(cas), ..Seen::default() })
    }

    fn of_meta(self, got: MetaGot, touched: bool) -> Answer {
        let Self { bytes, item, is_closed, .. } = self;
        assert_eq!(got == MetaGot::Value, is_closed, "a value is closed once it is found");
        if got == MetaGot::Miss {
            return Answer::Not;
        }
        Answer::Row(Seen {
            value: Some(bytes),
            flags: Some(item.client_flags),
            ttl: (!touched).then(|| Ttl::shown(item.ttl)),
            stale: Some(item.stale),
            cas: Some(item.cas),
            won: Some(item.won),
            ..Seen::default()
        })
    }
}

/// A client of the engine, on a thread of its own.
struct Client {
    context: ThreadContext,
    session: Session,
    executor: Executor,
    random: fastrand::Rng,
}

fn plain(reply: Reply) -> Answer {
    match reply {
        Reply::Stored | Reply::Touched | Reply::Deleted | Reply::Ok => Answer::Done,
        Reply::NotStored | Reply::NotFound => Answer::Not,
        Reply::Exists => Answer::Exists,
        Reply::Number(number) => Answer::Number(number),
        Reply::NotANumber => Answer::NoNumber,
        other => panic!("{other:?}"),
    }
}

fn meta(done: Result<MetaDone, Reply>) -> Answer {
    match done {
        Ok(MetaDone::Done(_)) => Answer::Done,
        Ok(MetaDone::Exists) => Answer::Exists,
        Ok(MetaDone::NotStored | MetaDone::NotFound) => Answer::Not,
        Err(reply) => plain(reply),
    }
}

fn signed(exptime: u64) -> i64 {
    i64::try_from(exptime).unwrap()
}

impl Client {
    fn new(engine: &Arc<Engine>, seed: u64) -> Self {
        let (executor, random) = (engine.executor(None).unwrap(), fastrand::Rng::with_seed(seed));
        Self { context: engine.context(), session: Session::local(), executor, random }
    }

    /// Stores by memcached's command or by `ms`.
    fn store(&mut self, verb: Verb, key: usize, flags: u32, exptime: u64, value: &[u8]) -> Answer {
        let (name, exptime) = (format!("t:{key}"), signed(exptime));
        let Self { context, session, random, .. } = self;
        if random.bool() {
            return plain(session.store(context, verb, name.as_bytes(), flags, exptime, value));
        }
        let (condition, compare) = match verb {
            Verb::Set => (Condition::Always, None),
            Verb::Add => (Condition::Absent, None),
            Verb::Replace => (Condition::Present, None),
            Verb::Append => (Condition::Append, None),
            Verb::Prepend => (Condition::Prepend, None),
            Verb::Cas(cas) => (Condition::Always, Some(cas)),
        };
        let asked = MetaSet { condition, compare, client_flags: flags, exptime, ..MetaSet::default() };
        meta(session.meta_set(context, name.as_bytes(), &asked, value))
    }

    fn get(&mut self, key: usize, exptime: Option<u64>) -> Answer {
        let (name, mut sink) = (format!("t:{key}"), Sink::default());
        let Self { context, session, .. } = self;
        let hit = match exptime {
            None => session.get(context, name.as_bytes(), &mut sink),
            Some(exptime) => session.get_and_touch(context, signed(exptime), name.as_bytes(), &mut sink),
        };
        sink.of_get(hit.unwrap())
    }

    fn meta_get(&mut self, key: usize, exptime: Option<u64>) -> Answer {
        let (name, mut sink) = (format!("t:{key}"), Sink::default());
        let asked = MetaGet { value: true, exptime: exptime.map(signed), ..MetaGet::default() };
        let got = self.session.meta_get(&mut self.context, name.as_bytes(), &asked, &mut sink).unwrap();
        sink.of_meta(got, exptime.is_some())
    }

    fn meta_incr(&mut self, key: usize, delta: u64, exptime: u64) -> Answer {
        let asked = MetaArithmetic { delta, exptime: Some(signed(exptime)), ..MetaArithmetic::default() };
        match self.session.meta_arithmetic(&mut self.context, format!("t:{key}").as_bytes(), &asked) {
            Ok(MetaDone::Done(written)) => Answer::Number(written.number),
            done => meta(done),
        }
    }

    fn meta_delete(&mut self, key: usize, invalidate: bool) -> Answer {
        let asked = MetaDelete { invalidate, ..MetaDelete::default() };
        meta(self.session.meta_delete(&mut self.context, format!("t:{key}").as_bytes(), &asked))
    }

    /// A statement that changes rows, or shows one.
    fn sql(&mut self, statement: &str) -> Answer {
        let mut out = Vec::new();
        let Self { session, context, executor, .. } = self;
        match session.sql(context, executor, statement.as_bytes(), None, &Cancel::new(), &mut out) {
            Finished::Changed(0) => Answer::Not,
            Finished::Changed(1) => Answer::Done,
            Finished::Rows => linear::seen_in_json(&String::from_utf8(out).unwrap()),
            Finished::Failed(error) if error.state == "23505" && !statement.contains("CONFLICT") => {
                Answer::Not
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
}

impl Worker for Client {
    fn run(&mut self, key: usize, op: &Op) -> Answer {
        // Where the scheduler keeps all clients on one processor, they meet between the steps of a command all the
        // same.
        for point in [Point::Found, Point::Reserve] {
            if self.random.u8(..4) == 0 {
                failpoint::step_in(point, std::thread::yield_now);
            }
        }
        let answer = self.answer(key, op);
        failpoint::disarm();
        answer
    }
}

impl Client {
    fn answer(&mut self, key: usize, op: &Op) -> Answer {
        self.context.begin_batch();
        let text = |value: u64| value.to_string().into_bytes();
        match *op {
            Op::Set { value, flags, exptime } => self.store(Verb::Set, key, flags, exptime, &text(value)),
            Op::Add { value, flags, exptime } => self.store(Verb::Add, key, flags, exptime, &text(value)),
            Op::Replace { value, flags, exptime } => {
                self.store(Verb::Replace, key, flags, exptime, &text(value))
            }
            Op::Cas { cas, value, flags, exptime } => {
                self.store(Verb::Cas(cas), key, flags, exptime, &text(value))
            }
            Op::Append(byte) => self.store(Verb::Append, key, 0, 0, &[byte]),
            Op::Prepend(byte) => self.store(Verb::Prepend, key, 0, 0, &[byte]),
            Op::Incr(delta) | Op::Decr(delta) => {
                let up = matches!(op, Op::Incr(_));
                plain(self.session.arithmetic(&mut self.context, up, format!("t:{key}").as_bytes(), delta))
            }
            Op::Get => self.get(key, None),
            Op::GetAndTouch(exptime) => self.get(key, Some(exptime)),
            Op::Touch(exptime) => {
                plain(self.session.touch(&mut self.context, format!("t:{key}").as_bytes(), signed(exptime)))
            }
            Op::Delete if self.random.bool() => self.meta_delete(key, false),
            Op::Delete => plain(self.session.delete(&mut self.context, format!("t:{key}").as_bytes())),
            Op::MetaGet | Op::Near => self.meta_get(key, None),
            Op::MetaGetAndTouch(exptime) => self.meta_get(key, Some(exptime)),
            Op::MetaIncr { delta, exptime } => self.meta_incr(key, delta, exptime),
            Op::Invalidate => self.meta_delete(key, true),
            _ => self.sql(&linear::sql_of(key, op)),
        }
    }
}

/// An engine with the table that all work on.
fn engine() -> Arc<Engine> {
    // In the middle of a tick, where the clock stays: a deadline is rounded up to the next.
    let hands = ManualClock::new(1_800_000_000);
    hands.advance(std::time::Duration::from_micros(31_250));
    let clock = Clock::Manual(hands);
    let options =
        StoreOptions { path: None, memory_bytes: 64 << 20, cold: true, clock, row_bytes_max: 2 << 20 };
    let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
    let created = Client::new(&engine, 0).sql(
        "CREATE TABLE t (id INT PRIMARY KEY, body TEXT, n INT DEFAULT 0) WITH (prefix = 't:', value = 'body')",
    );
    assert_eq!(created, Answer::Not, "no row is changed");
    engine
}

#[test]
fn concurrent_commands_on_a_row_take_effect_one_after_the_other() {
    let seed = common::seed();
    let engine = engine();
    let plan = Plan { seed, operations: number("OPERATIONS").unwrap_or(100_000), clients: CLIENTS };
    let checked = check(plan, |client| Client::new(&engine, seed ^ client as u64), |_, _| {});
    println!("{}", checked.unwrap_or_else(|found| panic!("{found}")));
}

/// The search itself, by histories that were written by hand.
mod search {
    use super::*;

    fn event(op: Op, answer: Answer, began: u64, ended: u64) -> Event {
        Event { client: 0, op, answer, began, ended }
    }

    fn shown(value: &str, ttl: u64) -> Answer {
        let (value, ttl) = (Some(value.as_bytes().to_vec()), Some(Ttl::of(ttl)));
        Answer::Row(Seen { value, ttl, ..Seen::default() })
    }

    fn orders(events: &[Event]) -> usize {
        ends(&HashSet::from([State::default()]), events).len()
    }

    fn set() -> Event {
        event(Op::Set { value: 1, flags: 0, exptime: 5 }, Answer::Done, 0, 1)
    }

    #[test]
    fn a_lost_touch_is_found() {
        let history = |touched, ttl| {
            let select = event(Op::Select, shown("2", ttl), 7, 8);
            [set(), event(Op::Incr(1), Answer::Number(2), 2, 6), event(Op::Touch(9), touched, 3, 5), select]
        };
        assert_eq!(orders(&history(Answer::Done, 9)), 1);
        assert_eq!(orders(&history(Answer::Done, 5)), 0, "the touch was lost");
        assert_eq!(orders(&history(Answer::Not, 5)), 0, "the row was there");
        assert_eq!(orders(&history(Answer::Unknown, 5)), 1, "it may not have happened");
        assert_eq!(orders(&history(Answer::Unknown, 9)), 1, "it may have happened");
    }

    #[test]
    fn a_read_of_what_was_replaced_before_it_began_is_found() {
        let history = |began| {
            let replaced = event(Op::UpdateValue(2), Answer::Done, 2, 4);
            [set(), replaced, event(Op::Select, shown("1", 5), began, 6)]
        };
        assert_eq!(orders(&history(3)), 1, "they met");
        assert_eq!(orders(&history(5)), 0, "the update was acknowledged");
    }

    #[test]
    fn two_claims_of_one_lease_and_two_versions_of_one_cas_value_are_found() {
        let seen = |value: &str, cas| {
            Answer::Row(Seen { value: Some(value.into()), cas: Some(cas), ..Seen::default() })
        };
        let claim = |began| event(Op::Claim, seen("1", 7), began, began + 2);
        assert_eq!(orders(&[set(), claim(2)]), 1);
        assert_eq!(orders(&[set(), claim(2), claim(3)]), 0);
        let update = event(Op::UpdateValue(2), Answer::Done, 4, 5);
        let reads = |cas| [event(Op::Get, seen("1", 7), 2, 3), event(Op::Get, seen("2", cas), 6, 7)];
        let with = |reads: [Event; 2]| [&[set(), update.clone()][..], &reads].concat();
        assert_eq!(orders(&with(reads(8))), 1);
        assert_eq!(orders(&with(reads(7))), 0);
    }

    #[test]
    fn what_was_under_way_at_a_death_does_not_happen_in_the_next_life() {
        let history = |began| {
            let unknown = event(Op::Delete, Answer::Unknown, 2, 4);
            [set(), unknown, event(Op::Get, shown("1", 5), began, 6), event(Op::Get, Answer::Not, 7, 8)]
        };
        assert_eq!(orders(&history(3)), 1, "it may come after the read that it met");
        assert_eq!(orders(&history(5)), 0, "the row was still there in the next life");
    }
}

//! Of many sessions that miss one answer at the same time, one asks the database, and the others get what it says.

use std::thread;

use super::Shop;
use super::caching::WARES;
use super::talk::{Answer, Talk};
use crate::sources::{psql, until};

/// A statement that takes some tenths of a second, longer with a greater number.
const SLOW: &str =
    "SELECT count(*) FROM ware a, ware b, ware c, ware d WHERE a.id + b.id > c.id AND d.id <= $1";

/// Sessions that come while the database works for another.
const OTHERS: usize = 7;

/// A shop that keeps the answers of the slow statement.
fn shop() -> Shop {
    let shop = Shop::cached(WARES);
    let mut talk = Talk::with(&shop.through);
    until("its answers are kept", || {
        talk.prepared(SLOW, 1).unwrap();
        shop.count("kept", SLOW) > 0
    });
    shop
}

fn ask(shop: &Shop, number: i32) -> Answer {
    Talk::with(&shop.through).prepared(SLOW, number)
}

/// How many sessions the database works for, or has wait for a lock.
pub(super) fn working(shop: &Shop) -> String {
    psql(
        &shop.direct,
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND starts_with(query, 'SELECT count(*) FROM ware')",
    )
}

/// Has the database take a lock that no read passes until this ends.
pub(super) fn locked(shop: &Shop) -> Talk {
    let lock = Talk::with(&shop.direct);
    lock.must("BEGIN");
    lock.must("LOCK TABLE ware IN ACCESS EXCLUSIVE MODE");
    lock
}

/// Before, each of them had the database work.
#[test]
fn one_asks_for_all() {
    let shop = shop();
    let mut number = 1;
    // On a machine that does much else, the first may take longer than the others wait.
    until("one has asked for all", || {
        number += 1;
        let before = shop.count("forwarded", SLOW);
        let answers: Vec<Answer> = thread::scope(|scope| {
            let shop = &shop;
            let first = scope.spawn(move || ask(shop, number));
            until("the database works", || working(shop) == "1" || first.is_finished());
            let others: Vec<_> = (0..OTHERS).map(|_| scope.spawn(move || ask(shop, number))).collect();
            std::iter::once(first).chain(others).map(|one| one.join().unwrap()).collect()
        });
        let expected = Talk::with(&shop.direct).prepared(SLOW, number);
        assert!(expected.is_ok() && answers.iter().all(|answer| *answer == expected), "{answers:?}");
        shop.count("forwarded", SLOW) == before + 1 && shop.count("joined", SLOW) > 0
    });
}

/// The session whose answer is waited for loses its connection, and the one that waits asks by itself.
#[test]
fn who_waits_for_a_session_that_goes_asks_by_itself() {
    let shop = shop();
    let lock = locked(&shop);
    let (first, other) = thread::scope(|scope| {
        let shop = &shop;
        let first = scope.spawn(move || ask(shop, 2));
        until("the first waits for the lock", || working(shop) == "1");
        let other = scope.spawn(move || ask(shop, 2));
        psql(
            &shop.direct,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE state = 'active' AND starts_with(query, 'SELECT count(*) FROM ware')",
        );
        let first = first.join().unwrap();
        until("the other waits for the lock", || working(shop) == "1");
        lock.must("COMMIT");
        (first, other.join().unwrap())
    });
    assert!(first.is_err(), "{first:?}");
    assert_eq!(other, Talk::with(&shop.direct).prepared(SLOW, 2));
}

/// A request to cancel ends the wait of the session that it names, and nobody else's.
#[test]
fn who_waits_for_another_can_be_cancelled() {
    let shop = shop();
    let lock = locked(&shop);
    let (first, other) = thread::scope(|scope| {
        let shop = &shop;
        let first = scope.spawn(move || ask(shop, 2));
        until("the first waits for the lock", || working(shop) == "1");
        let mut talk = Talk::with(&shop.through);
        let cancel = talk.cancel();
        let other = scope.spawn(move || talk.prepared(SLOW, 2));
        until("the other is cancelled", || {
            cancel();
            other.is_finished()
        });
        lock.must("COMMIT");
        (first.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(other, Err("57014".to_owned()));
    assert_eq!(first, Talk::with(&shop.direct).prepared(SLOW, 2));
}

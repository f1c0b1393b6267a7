//! Sessions that send much at once, and those that keep prepared statements for long.

use super::Shop;
use super::caching::WARES;
use super::talk::Talk;
use crate::sources::{psql, until};

const READ: &str = "SELECT id, ratio FROM ware WHERE id = $1";

/// Statements that are sent at once.
const AT_ONCE: i32 = 6;

/// Before, a session was answered nothing from the cache after the first miss, as long as it sent several statements at
/// once.
#[test]
fn who_sends_several_at_once_is_answered_from_the_cache() {
    let shop = Shop::cached(WARES);
    let mut talk = Talk::with(&shop.through);
    let ids: Vec<i32> = (1..=AT_ONCE).collect();
    until("all of them are hits", || {
        let before = shop.count("hits", READ);
        let answers = talk.at_once(READ, &ids);
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        shop.count("hits", READ) == before + ids.len() as u64
    });
    psql(&shop.direct, "UPDATE ware SET ratio = 7 WHERE id = 3");
    shop.settle();
    let before = shop.count("hits", READ);
    let answers = talk.at_once(READ, &ids);
    let expected = Talk::with(&shop.direct).at_once(READ, &ids);
    assert_eq!(answers, expected);
    assert_eq!(shop.count("hits", READ), before + 2, "what stands before the one that was dropped");
    talk.at_once(READ, &ids);
    assert_eq!(
        shop.count("hits", READ),
        before + 2 + ids.len() as u64,
        "what was forwarded behind it is kept, too"
    );
}

/// Before, what was prepared before the definitions of the source were known was only forwarded, as long as its client
/// kept it.
#[test]
fn what_is_prepared_in_the_first_moments_is_answered_from_the_cache() {
    let shop = Shop::start("cache 'auto'", WARES);
    let mut talk = Talk::with(&shop.through);
    until("it is a hit", || {
        talk.prepared(READ, 1).unwrap();
        shop.count("hits", READ) > 0
    });
}

/// The source goes on with what a prepared statement meant when it was prepared: its tables, where another of the name
/// comes first later, and the types of its parameters. An answer to it must not be kept as one to the same text of now.
#[test]
fn a_prepared_statement_is_what_it_was_when_it_was_prepared() {
    let shop = Shop::cached(
        "CREATE SCHEMA first; CREATE SCHEMA second; CREATE SCHEMA late;
         CREATE TABLE first.t (id BIGINT PRIMARY KEY, v TEXT); INSERT INTO first.t VALUES (5, 'first');
         CREATE TABLE second.t (id NUMERIC PRIMARY KEY, v TEXT); INSERT INTO second.t VALUES (5, 'second')",
    );
    let sql = "SELECT v FROM t WHERE id = $1";
    let expected =
        |schema: &str| Talk::with(&shop.direct).simple(&format!("SELECT v FROM {schema}.t WHERE id = 5"));
    let asked = |talk: &Talk, text: &str| talk.simple(&text.replace("$1", "5"));
    let mut old = Talk::try_with(&shop.through, "-c search_path=first").unwrap();
    for _ in 0..super::caching::TIMES {
        old.prepared(sql, 5).unwrap();
    }
    // Another state: the source compares a bigint with a numeric now.
    old.must("SET search_path = second");
    for _ in 0..super::caching::TIMES {
        assert_eq!(old.prepared(sql, 5).unwrap().len(), 1);
    }
    psql(&shop.direct, "UPDATE second.t SET v = 'changed'");
    shop.settle();
    let answer = old.prepared(sql, 5).unwrap();
    let fresh = Talk::try_with(&shop.through, "-c search_path=second").unwrap();
    assert_eq!(asked(&fresh, sql), expected("second"));
    assert!(answer[0].contains("63, 68, 61"), "not 'changed': {answer:?}");
    // A table of the name that comes first from now on.
    let mut old = Talk::try_with(&shop.through, "-c search_path=late,first").unwrap();
    old.prepared(sql, 5).unwrap();
    psql(
        &shop.direct,
        "CREATE TABLE late.t (id BIGINT PRIMARY KEY, v TEXT); INSERT INTO late.t VALUES (5, 'late')",
    );
    shop.notice();
    for _ in 0..super::caching::TIMES {
        old.prepared(sql, 5).unwrap();
        let mut fresh = Talk::try_with(&shop.through, "-c search_path=late,first").unwrap();
        let answer = fresh.prepared(sql, 5).unwrap();
        assert!(answer[0].contains("6c, 61, 74, 65"), "not 'late': {answer:?}");
    }
}

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

/// Before, a statement that was prepared before any change of definitions was never answered from the cache again.
#[test]
fn prepared_statements_live_through_changes_of_definitions() {
    let shop = Shop::cached(WARES);
    let mut talk = Talk::with(&shop.through);
    let hits = |talk: &mut Talk| {
        until("it is answered from the cache", || {
            let before = shop.count("hits", READ);
            talk.prepared(READ, 1).unwrap();
            shop.count("hits", READ) > before
        });
    };
    hits(&mut talk);
    psql(&shop.direct, "CREATE TABLE another ()");
    shop.notice();
    hits(&mut talk);
    // The source refuses a statement whose columns are others now.
    let mut direct = Talk::with(&shop.direct);
    direct.prepared(READ, 1).unwrap();
    psql(&shop.direct, "ALTER TABLE ware ALTER ratio TYPE NUMERIC");
    shop.notice();
    let mut others = Talk::with(&shop.through);
    hits(&mut others);
    let expected = direct.prepared(READ, 1);
    assert_eq!(expected, Err("0A000".to_owned()));
    for _ in 0..4 {
        assert_eq!(talk.prepared(READ, 1), expected);
    }
}

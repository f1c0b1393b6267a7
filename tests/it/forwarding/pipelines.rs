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

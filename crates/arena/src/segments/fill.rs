//! The fill word of a segment: how much room is left in it, how many are in it, and whether more may come.
//!
//! Everything that decides about a segment is in this one word, and every change of it is one read-modify-write that
//! says what the word becomes of what it was. So nobody's count is overwritten, and no decision rests on another word
//! that may have changed meanwhile. `tests/protocol.rs` compiles this file and runs its steps through every
//! interleaving.
//!
//! ```text
//! 63      62    61..32    31..0
//! sealed  open  holders   room in bytes
//! ```
//!
//! A word of zero is that of a unit in which no segment begins: not open, and without room. So a thread that comes with
//! an old idea of a segment is refused without another look: tails, free units and what was never used are all alike.

/// No more reservations.
pub(crate) const SEALED: u64 = 1 << 63;
/// Whoever finds a row may hold the segment. Cleared when it is closed, set when it is allocated again.
pub(crate) const OPEN: u64 = 1 << 62;
/// One writer, or one who holds a row.
pub(crate) const HOLDER: u64 = 1 << 32;
/// The bytes that can still be reserved.
const ROOM_MASK: u64 = HOLDER - 1;
/// All who are in the segment.
const HOLDERS_MASK: u64 = (OPEN - 1) & !ROOM_MASK;

/// How many are in the segment.
#[inline]
pub(crate) fn holders(word: u64) -> u64 {
    (word & HOLDERS_MASK) / HOLDER
}

/// The bytes that can still be reserved.
#[inline]
pub(crate) fn room(word: u64) -> u64 {
    word & ROOM_MASK
}

/// The word of a segment that begins here with so much room. `None`: the last one is not closed.
pub(crate) fn opened(word: u64, room: u64) -> Option<u64> {
    debug_assert!(room <= ROOM_MASK, "the room of a segment fits its field");
    (word & (OPEN | HOLDERS_MASK) == 0).then_some(OPEN | (room & ROOM_MASK))
}

/// The word with bytes reserved for one more writer. `None`: it is sealed, or has no room for them.
#[inline]
pub(crate) fn reserved(word: u64, bytes: u64) -> Option<u64> {
    // What is not open is sealed, or has no room: one bit to look at less.
    (word & SEALED == 0 && room(word) >= bytes).then(|| word + HOLDER - bytes)
}

/// The word with one more who holds it. `None`: it is closed.
#[inline]
pub(crate) fn held(word: u64) -> Option<u64> {
    (word & OPEN != 0).then(|| word + HOLDER)
}

/// The word of a segment that nobody may enter any more. `None`: somebody is in it.
pub(crate) fn closed(word: u64) -> Option<u64> {
    (word & HOLDERS_MASK == 0).then_some((word & !OPEN) | SEALED)
}

/// The word with another room; who is in the segment stays in it.
pub(crate) fn with_room(word: u64, room: u64) -> u64 {
    (word & !ROOM_MASK) | (room & ROOM_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_zero_lets_nobody_in() {
        assert_eq!((held(0), reserved(0, 8)), (None, None));
        assert_eq!(opened(0, 64), Some(OPEN | 64));
    }

    #[test]
    fn each_step_keeps_the_other_fields() {
        let fresh = opened(0, 100).unwrap();
        let written = reserved(fresh, 40).unwrap();
        assert_eq!((holders(written), room(written)), (1, 60));
        assert_eq!((reserved(written, 61), closed(written), opened(written, 8)), (None, None, None));
        let sealed = held(written).unwrap() | SEALED;
        assert_eq!((holders(sealed), room(sealed), reserved(sealed, 8)), (2, 60, None));
        let shut = closed(sealed - 2 * HOLDER).unwrap();
        assert_eq!((held(shut), reserved(shut, 8), room(shut)), (None, None, 60));
        assert_eq!(closed(shut), Some(shut));
        assert_eq!(opened(shut, 8), Some(OPEN | 8));
        assert_eq!(with_room(sealed, 4), sealed - 56);
    }
}

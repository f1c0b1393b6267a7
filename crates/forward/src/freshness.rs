//! How fresh an answer has to be that is read from what is kept.

use store::definition::FRESHNESSES;

/// What is promised of an answer that is read from what is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It has what the session has written and heard of.
    #[default]
    Own,
    /// It is as old as the stream.
    Stream,
    /// It has all that was committed before the read began.
    Checked,
    /// The same, because a commit waits until its changes are applied here.
    Commit,
}

impl Freshness {
    /// Each, in the order of their words.
    const ALL: [Self; FRESHNESSES.len()] = [Self::Own, Self::Stream, Self::Checked, Self::Commit];

    /// The one that a word means.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let at = FRESHNESSES.iter().position(|own| own.eq_ignore_ascii_case(word))?;
        Self::at(at)
    }

    /// The one at a place of their order.
    pub(crate) fn at(place: usize) -> Option<Self> {
        Self::ALL.get(place).copied()
    }

    /// Its place.
    pub(crate) fn place(self) -> u8 {
        self as u8
    }
}

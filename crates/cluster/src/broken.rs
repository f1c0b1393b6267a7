//! What may be found wrong with the history of a stream.

use std::fmt;

/// Which log has the numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// A number that it was given when it was made.
    pub(crate) system: String,
    /// Another one goes on with its numbers, and may lack what was at its end.
    pub(crate) timeline: u32,
}

/// Why the history is not what it is said to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Another message came than the next.
    Gap { expected: u64, came: u64 },
    /// A sender's messages do not follow one another.
    Counter { node: u64, expected: u64, came: u64 },
    /// One of our own did not come back, though later ones did.
    OwnLost { expected: u64, came: u64 },
    /// Another cache has heard something else.
    History { node: u64, sequence: u64 },
    /// The stream ends before what was applied.
    Ended { applied: u64, end: u64 },
    /// The stream has another message now as a number that was heard.
    Replaced { sequence: u64 },
    /// Another cache has found the history broken, and began another one.
    Begun { node: u64, sequence: u64 },
    /// Another log has the messages from now on.
    Moved { from: Origin, to: Origin },
}

impl Break {
    /// Whether the stream itself has lost something, which others may have missed, too, and may not have noticed. Which
    /// log it is each cache sees for itself.
    pub(crate) fn is_everybodys(&self) -> bool {
        !matches!(self, Self::Gap { .. } | Self::Begun { .. } | Self::Moved { .. })
    }

    /// The check that finds it.
    #[cfg(test)]
    pub(crate) fn check(&self) -> u8 {
        match self {
            Self::Gap { .. } => check::GAP,
            Self::Counter { .. } => check::COUNTER,
            Self::OwnLost { .. } => check::OWN_LOST,
            Self::History { .. } => check::HISTORY,
            Self::Ended { .. } => check::ENDED,
            Self::Replaced { .. } => check::REPLACED,
            Self::Begun { .. } => check::BEGUN,
            Self::Moved { .. } => check::MOVED,
        }
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { expected, came } => {
                write!(
                    f,
                    "message {expected} of the stream is missing: {came} came, so it expired or was removed"
                )
            }
            Self::Counter { node, expected, came } => {
                write!(f, "message {expected} of node {node:016x} is missing: its message {came} came")
            }
            Self::OwnLost { expected, came } => {
                write!(f, "message {expected} of this cache did not come back: its message {came} did")
            }
            Self::History { node, sequence } => {
                write!(f, "node {node:016x} has heard something else up to message {sequence} of the stream")
            }
            Self::Replaced { sequence } => write!(
                f,
                "message {sequence} of the stream is another one than was heard: what the bus had acknowledged is lost"
            ),
            Self::Begun { node, sequence } => {
                write!(
                    f,
                    "node {node:016x} has found the stream broken, and began its history anew at message {sequence}"
                )
            }
            Self::Moved { from, to } if from.system == to.system => write!(
                f,
                "the database of the bus was promoted or restored (timeline {}, before {}), and may lack messages",
                to.timeline, from.timeline
            ),
            Self::Moved { from, to } => write!(
                f,
                "the bus is another database now (system {}, before {}): it does not have the messages of before",
                to.system, from.system
            ),
            Self::Ended { applied, end } => write!(
                f,
                "the stream ends at message {end}, and {applied} was applied: it was emptied, removed or made again"
            ),
        }
    }
}

/// The checks, as a test names those that it leaves out: a bit for each.
#[cfg(test)]
pub(crate) mod check {
    pub(crate) const GAP: u8 = 1;
    pub(crate) const COUNTER: u8 = 2;
    pub(crate) const OWN_LOST: u8 = 4;
    pub(crate) const HISTORY: u8 = 8;
    pub(crate) const ENDED: u8 = 16;
    pub(crate) const BEGUN: u8 = 32;
    pub(crate) const REPLACED: u8 = 64;
    pub(crate) const MOVED: u8 = 128;
}

//! What carries messages between caches: where a message is stored, how the stream of them is delivered, and what a
//! carrier has to keep. What the messages mean is no matter of it.
//!
//! A carrier stores each message that it acknowledges, in one order for all, with numbers that rise. It delivers them
//! in that order. It may lose, repeat and forget: `follow` finds out.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use engine::Bus;
use store::definition::ServerDef;

use crate::broken::Origin;
use crate::follow::Numbered;
use crate::member::{Flight, Stored};

/// Why a bus cannot be used, and what to do.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// Something that was asked of the bus.
    pub(crate) fn of(what: &str, error: &dyn fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of a message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Stored(Stored),
    /// It had been stored before, and no later than this. Where, nobody says.
    Known(u64),
    /// It was to be stored behind a certain message, and will never be.
    Refused,
}

/// An answer that is awaited.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Failure>>>>;

/// What comes of the stream.
#[derive(Debug)]
pub(crate) struct Delivered<B> {
    /// A message, and its number.
    pub(crate) message: Option<(u64, B)>,
    /// All up to this number has come with it.
    pub(crate) passed: u64,
}

/// A stream that was asked for.
pub(crate) enum Begun<D> {
    Delivers(D),
    /// What it was to begin with is not there any more; the first that may be there has this number.
    Gone(u64),
}

/// Who is to hear a word that is said beside the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    All,
    One(u64),
}

/// A kind of bus, for one cache.
pub(crate) trait Carrier {
    type Link: Link;

    /// What the numbers of its messages are.
    const NUMBERED: Numbered;

    /// A stream of which nothing came for so long is asked for again, in nanoseconds.
    const SILENCE_NS: u64;

    fn new(server: &Arc<ServerDef>, bus: &Arc<Bus>) -> Self;

    /// Connects, and checks what is there.
    async fn connect(&mut self) -> Result<Self::Link, Failure>;
}

/// A connection to a bus.
pub(crate) trait Link {
    type Delivery: Delivery;
    type Words: Words;

    /// Which log it is that has the numbers. Another one has others.
    fn origin(&self) -> Origin;

    /// Has a message stored.
    fn publish(&self, flight: &Flight) -> Answering;

    /// Hears the words that other caches say to this one beside the stream.
    async fn listen(&mut self, node: u64) -> Result<Self::Words, Failure>;

    /// Says something to other caches beside the stream. It may get lost.
    async fn say(&self, to: To, bytes: Vec<u8>);

    /// Has the stream delivered from this number on. Nothing is acknowledged: what is to be checked is checked here.
    async fn deliver(&mut self, from: u64) -> Result<Begun<Self::Delivery>, Failure>;
}

/// A stream that is delivered.
pub(crate) trait Delivery {
    /// The bytes of a message.
    type Bytes: AsRef<[u8]>;

    /// What comes next. Nothing is lost if nobody waits for it any more.
    async fn next(&mut self) -> Result<Delivered<Self::Bytes>, Failure>;
}

/// The words that are said to this cache beside the stream.
pub(crate) trait Words {
    /// The bytes of a word.
    type Bytes: AsRef<[u8]>;

    /// What comes next. Nothing is lost if nobody waits for it any more.
    async fn next(&mut self) -> Result<Self::Bytes, Failure>;
}

//! The user's PostgreSQL as the carrier, for small set-ups: messages in its log, each a transaction of its own.
//!
//! The database answers when a message is committed and flushed. It does not know a message again that is sent once
//! more, so connections of before are ended first: a message of theirs cannot come behind later ones. The numbers are
//! places in the log.

mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use engine::Bus;
use parking_lot::Mutex;
use source::messages::{self, Messages};
use store::definition::ServerDef;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::broken::Origin;
use crate::carrier::{Answer, Answering, Begun, Carrier, Delivered, Delivery, Failure, Link, To, Words};
use crate::follow::Numbered;
use crate::limits::{POSTGRES_SILENCE_NS, WAITING_MESSAGES};
use crate::member::{Flight, Stored};
use threads::{Keeping, Wish};

/// The processes at the database that served this cache, and may still do so.
type Processes = Arc<Mutex<Vec<u32>>>;

/// See the module.
pub(crate) struct Postgres {
    messages: Messages,
    bus: Arc<Bus>,
    processes: Processes,
    /// All up to this place has come. Relaxed: it says only how much of the log is old.
    passed: Arc<AtomicU64>,
}

impl Carrier for Postgres {
    type Link = Connected;

    const NUMBERED: Numbered = Numbered::ByPlaces;
    const SILENCE_NS: u64 = POSTGRES_SILENCE_NS;

    fn new(server: &Arc<ServerDef>, bus: &Arc<Bus>) -> Self {
        Self {
            messages: Messages::of(server),
            bus: Arc::clone(bus),
            processes: Processes::default(),
            passed: Arc::default(),
        }
    }

    async fn connect(&mut self) -> Result<Connected, Failure> {
        let ended = self.processes.lock().clone();
        let before = ended.len();
        let spoken = self.blocking(move |messages, caller| messages.speak(&ended, caller)).await;
        let (speaker, log) = spoken.map_err(|error| Failure::new(error.to_string()))?;
        // Those are gone. None came meanwhile.
        self.processes.lock().drain(..before);
        self.processes.lock().extend(speaker.process());
        let wishes = threads::speak(speaker)?;
        let keeping = Keeping::start(self.messages.clone(), &self.passed)?;
        Ok(Connected {
            messages: self.messages.clone(),
            origin: Origin { system: log.system, timeline: log.timeline },
            wishes,
            processes: Arc::clone(&self.processes),
            passed: Arc::clone(&self.passed),
            _keeping: keeping,
        })
    }
}

impl Postgres {
    /// Does something that takes a while. It ends soon when nobody waits for it any more.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Messages, &messages::Caller<'_>) -> Result<T, source::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (messages, bus) = (self.messages.clone(), Arc::clone(&self.bus));
        let waits = Arc::new(());
        let is_awaited = Arc::downgrade(&waits);
        let done = spawn_blocking(move || {
            let say = |said: String| bus.update(|facts| facts.last_error = Some(said));
            let is_gone = || is_awaited.strong_count() == 0;
            work(&messages, &messages::Caller { say: &say, is_gone: &is_gone })
        });
        let done = done.await.map_err(|error| Failure::of("a connection was not made", &error))?;
        drop(waits);
        done.map_err(|error| Failure::new(error.to_string()))
    }
}

/// No word is ever said.
pub(crate) struct Silence;

impl Words for Silence {
    type Bytes = Bytes;

    async fn next(&mut self) -> Result<Bytes, Failure> {
        std::future::pending().await
    }
}

/// A connection to a database.
pub(crate) struct Connected {
    messages: Messages,
    origin: Origin,
    /// What is to be said. Its thread ends when this does.
    wishes: mpsc::Sender<Wish>,
    processes: Processes,
    passed: Arc<AtomicU64>,
    _keeping: Keeping,
}

impl Link for Connected {
    type Delivery = Stream;
    type Words = Silence;

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    /// Rows do not travel here, so nobody says anything of them.
    async fn listen(&mut self, _: u64) -> Result<Silence, Failure> {
        Ok(Silence)
    }

    async fn say(&self, _: To, _: Vec<u8>) {}

    fn publish(&self, flight: &Flight) -> Answering {
        let (answer, answered) = oneshot::channel();
        let wish = Wish { content: Arc::clone(&flight.bytes), answer };
        let wishes = self.wishes.clone();
        Box::pin(async move {
            let gone = || Failure::new("the connection was closed");
            wishes.send(wish).await.map_err(|_| gone())?;
            let said = answered.await.map_err(|_| gone())?;
            let said = said.map_err(|error| Failure::of("the bus does not acknowledge", &error))?;
            // Nothing has the number right before the first place: records are aligned.
            Ok(Answer::Stored(Stored { behind: said.from.saturating_sub(1), by: said.before }))
        })
    }

    async fn deliver(&mut self, from: u64) -> Result<Begun<Stream>, Failure> {
        let messages = self.messages.clone();
        let begun = spawn_blocking(move || messages.listen(from)).await;
        let begun = begun.map_err(|error| Failure::of("the stream is not delivered", &error))?;
        match begun.map_err(|error| Failure::of("the stream is not delivered", &error))? {
            messages::Begun::Gone(first) => Ok(Begun::Gone(first)),
            messages::Begun::Listens(listener) => {
                self.processes.lock().extend(listener.process());
                let (sender, heard) = mpsc::channel(WAITING_MESSAGES);
                threads::listen(listener, self.messages.clone(), sender)?;
                Ok(Begun::Delivers(Stream { heard, passed: Arc::clone(&self.passed) }))
            }
        }
    }
}

/// What a thread hears.
pub(crate) struct Stream {
    heard: mpsc::Receiver<Result<messages::Heard, source::Error>>,
    passed: Arc<AtomicU64>,
}

impl Delivery for Stream {
    type Bytes = Bytes;

    async fn next(&mut self) -> Result<Delivered<Bytes>, Failure> {
        let heard = self.heard.recv().await.ok_or_else(|| Failure::new("the connection was closed"))?;
        let heard = heard.map_err(|error| Failure::of("the stream is not heard", &error))?;
        self.passed.store(heard.passed, Ordering::Relaxed);
        Ok(Delivered { message: heard.message, passed: heard.passed })
    }
}

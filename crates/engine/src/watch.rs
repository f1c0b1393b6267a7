//! `watch`: operators see what memcached clients do, as it happens.
//!
//! Nobody pays for it while nobody watches: a thread learns once for each batch of requests whether there is a watcher,
//! from one word. A watcher that reads too slowly loses events, which are counted and reported; it holds up nobody.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;
use store::{Clock, Eviction};

use crate::limits::WATCHER_BYTES_MAX;

/// What a watcher asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Keys that are looked up.
    pub fetchers: bool,
    /// Keys that are stored.
    pub mutations: bool,
    /// Keys that make room for others.
    pub evictions: bool,
    /// Connections that come and go.
    pub connections: bool,
    /// Keys that are removed.
    pub deletions: bool,
}

/// Something that happened, and when.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// What it was.
    pub what: Happening<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// A connection sent a command on a key.
    Command {
        /// The whole key.
        key: &'a [u8],
        /// The connection's descriptor.
        connection: i32,
        /// What it did.
        seen: Seen<'a>,
    },
    /// A row made room for others.
    Evicted(&'a Eviction),
    /// A connection came.
    Connected {
        /// Its descriptor.
        connection: i32,
        /// The peer's address, empty for one without.
        peer: &'a str,
        /// The peer's port.
        port: u16,
    },
    /// A connection went.
    Closed {
        /// Its descriptor.
        connection: i32,
        /// The peer's address, empty for one without.
        peer: &'a str,
        /// The peer's port.
        port: u16,
        /// Why, in a word.
        reason: &'static str,
    },
}

/// What a command did with a key.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// Looked it up; how many bytes its value has, if it was there.
    Fetched(Option<usize>),
    /// Stored it, or was refused.
    Stored {
        /// The command.
        command: &'a str,
        /// The outcome.
        status: &'a str,
        /// Bytes of the value.
        bytes: usize,
        /// The expiry time, as the peer wrote it.
        exptime: i64,
    },
    /// Removed it, or it was not there.
    Deleted {
        /// The command.
        command: &'a str,
        /// How many bytes its value had, if it was there.
        bytes: Option<usize>,
    },
}

/// How a protocol takes events in.
pub struct WatcherEnd {
    /// Appends the line of an event.
    pub write: fn(&Event<'_>, &mut Vec<u8>),
    /// Appends the line that says how many events were lost.
    pub skipped: fn(u64, &mut Vec<u8>),
    /// Called when lines wait.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for WatcherEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatcherEnd")
    }
}

/// What is watched, as bits, so that a command asks with one comparison whether it has anything to report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched(u8);

impl Watched {
    pub(crate) const NOTHING: Self = Self(0);
    pub(crate) const FETCHERS: Self = Self(1);
    pub(crate) const MUTATIONS: Self = Self(2);
    pub(crate) const EVICTIONS: Self = Self(4);
    pub(crate) const CONNECTIONS: Self = Self(8);
    pub(crate) const DELETIONS: Self = Self(16);
    /// No watcher, but counting by prefix: it looks at the same commands.
    pub(crate) const PREFIXES: Self = Self(32);

    fn of(wish: Watch) -> Self {
        let bit = |wanted: bool, bit: Self| if wanted { bit.0 } else { 0 };
        Self(
            bit(wish.fetchers, Self::FETCHERS)
                | bit(wish.mutations, Self::MUTATIONS)
                | bit(wish.evictions, Self::EVICTIONS)
                | bit(wish.connections, Self::CONNECTIONS)
                | bit(wish.deletions, Self::DELETIONS),
        )
    }

    #[inline]
    pub(crate) fn is_nothing(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Everybody who watches.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// What any of them watches. Relaxed: who begins to watch sees what happens from soon on.
    wanted: AtomicU8,
    /// Taken to begin, to end, and for each event while somebody watches.
    list: Mutex<Vec<Arc<Watcher>>>,
    /// Numbers the events.
    events: AtomicU64,
    /// Events that were handed to a watcher. Relaxed, as the next: for people to look at.
    sent: AtomicU64,
    /// Events that watchers were too slow for.
    skipped: AtomicU64,
}

/// One watcher.
#[derive(Debug)]
struct Watcher {
    wants: Watched,
    end: WatcherEnd,
    /// Lines that it has not taken yet. Taken for a push or a swap.
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Events lost since the last line.
    skipped: u64,
}

/// A watcher's own end. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watching {
    watcher: Arc<Watcher>,
    watchers: Arc<Watchers>,
}

impl Watching {
    /// Appends the lines that wait, and forgets them.
    pub fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.watcher.waiting.lock().lines);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watchers.remove(&self.watcher);
    }
}

impl Watchers {
    /// What anybody wants to see.
    #[inline]
    pub(crate) fn wanted(&self) -> Watched {
        Watched(self.wanted.load(Ordering::Relaxed))
    }

    /// Begins or ends what is no watcher's but looks at the same commands.
    pub(crate) fn set(&self, what: Watched, on: bool) {
        if on {
            self.wanted.fetch_or(what.0, Ordering::Relaxed);
        } else {
            self.wanted.fetch_and(!what.0, Ordering::Relaxed);
        }
    }

    /// How many watch, how many events were lost so far, and how many lines were sent.
    pub(crate) fn facts(&self) -> (usize, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (self.list.lock().len(), count(&self.skipped), count(&self.sent))
    }

    /// Begins to watch.
    pub(crate) fn add(self: &Arc<Self>, wish: Watch, end: WatcherEnd) -> Watching {
        let watcher = Arc::new(Watcher { wants: Watched::of(wish), end, waiting: Mutex::default() });
        self.list.lock().push(Arc::clone(&watcher));
        self.set(watcher.wants, true);
        Watching { watcher, watchers: Arc::clone(self) }
    }

    fn remove(&self, gone: &Arc<Watcher>) {
        let mut list = self.list.lock();
        list.retain(|watcher| !Arc::ptr_eq(watcher, gone));
        let left = list.iter().fold(0, |bits, watcher| bits | watcher.wants.0);
        // Under the lock, so that nobody who begins meanwhile is forgotten.
        self.set(Watched(gone.wants.0 & !left), false);
    }

    /// Tells those who watch this.
    pub(crate) fn notify(&self, kind: Watched, clock: &Clock, what: Happening<'_>) {
        let list = self.list.lock();
        let mut wanting = list.iter().filter(|watcher| watcher.wants.has(kind)).peekable();
        if wanting.peek().is_none() {
            return;
        }
        let number = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        let event = Event { number, unix_ms: clock.unix_ms(), what };
        for watcher in wanting {
            let counter = if watcher.push(&event) { &self.sent } else { &self.skipped };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Watcher {
    /// Adds an event. False: the watcher is too slow, and the event is lost.
    fn push(&self, event: &Event<'_>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() > WATCHER_BYTES_MAX {
            waiting.skipped += 1;
            return false;
        }
        let first = waiting.lines.is_empty();
        let skipped = std::mem::take(&mut waiting.skipped);
        if skipped > 0 {
            (self.end.skipped)(skipped, &mut waiting.lines);
        }
        (self.end.write)(event, &mut waiting.lines);
        drop(waiting);
        if first {
            (self.end.wake)();
        }
        true
    }
}

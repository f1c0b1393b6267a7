//! Where connections are while nobody serves them.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use engine::Cancel;
use parking_lot::{Mutex, MutexGuard};

use super::connection::Connection;

/// Places in one piece of the table. Pieces are made as they are needed and stay.
const PIECE: usize = 256;

/// Pieces at most: a million connections, the largest value of `max_connections`.
const PIECES: usize = 4_096;

/// A table of places that grows without moving.
#[derive(Debug)]
pub(crate) struct Places {
    pieces: Box<[OnceLock<Box<[Place]>>]>,
    /// Which are free, and how many there are. Taken when a connection comes or goes; no other lock is taken while
    /// it is held.
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    places: Vec<usize>,
    made: usize,
}

/// A place for one connection.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Something happened that nobody has looked at.
    marked: AtomicBool,
    /// The peer has sent its last byte: reading goes on until that byte is reached.
    half_closed: AtomicBool,
    /// It waits for a turn.
    queued: AtomicBool,
    /// The connection. Held by the thread that serves it, for as long as its statement runs, and never waited for.
    connection: Mutex<Option<Connection>>,
    /// What stops its statement. Held for a moment; taken last.
    cancel: Mutex<Option<Cancel>>,
}

impl Places {
    pub(crate) fn new() -> Self {
        let pieces = (0..PIECES).map(|_| OnceLock::new()).collect();
        Self { pieces, free: Mutex::new(Free::default()) }
    }

    /// The place of that number.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&Place> {
        self.pieces.get(place / PIECE)?.get()?.get(place % PIECE)
    }

    /// Puts a connection into a free place; `register` is told which while the place is locked.
    pub(crate) fn put(
        &self,
        mut connection: Connection,
        register: impl FnOnce(&mut Connection, usize) -> io::Result<()>,
    ) -> io::Result<usize> {
        let Some(place) = self.take_free() else { return Err(io::Error::other("no place for a connection")) };
        let Some(found) = self.get(place) else { return Err(io::Error::other("no such place")) };
        let mut guard = found.connection.lock();
        *found.cancel.lock() = Some(connection.cancel().clone());
        if let Err(error) = register(&mut connection, place) {
            *found.cancel.lock() = None;
            drop(guard);
            self.free.lock().places.push(place);
            return Err(error);
        }
        *guard = Some(connection);
        Ok(place)
    }

    fn take_free(&self) -> Option<usize> {
        let mut free = self.free.lock();
        if free.places.is_empty() && free.made < PIECES * PIECE {
            let made = free.made;
            self.pieces.get(made / PIECE)?.get_or_init(|| (0..PIECE).map(|_| Place::default()).collect());
            // The lowest is taken first: small numbers are near one another.
            free.places.extend((made..made + PIECE).rev());
            free.made += PIECE;
        }
        free.places.pop()
    }

    /// Closes the connection that `guard` holds, and frees its place.
    pub(crate) fn close(&self, place: usize, mut guard: MutexGuard<'_, Option<Connection>>) {
        let Some(connection) = guard.take() else { return };
        if let Some(found) = self.get(place) {
            *found.cancel.lock() = None;
            found.half_closed.store(false, Ordering::Relaxed);
        }
        drop(guard);
        self.free.lock().places.push(place);
        drop(connection);
    }

    /// Every place that was ever used.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Place)> {
        let made = self.free.lock().made;
        (0..made).filter_map(|place| self.get(place).map(|found| (place, found)))
    }
}

impl Place {
    /// Leaves a mark that something happened.
    #[inline]
    pub(crate) fn mark(&self) {
        self.marked.store(true, Ordering::Relaxed);
        // With the fence in `is_marked`: either the holder of the lock sees the mark after it let go, or whoever
        // leaves it finds the lock free.
        fence(Ordering::SeqCst);
    }

    /// Notes that the peer has sent its last byte. A mark follows, which orders it.
    pub(crate) fn half_close(&self) {
        self.half_closed.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    #[inline]
    pub(crate) fn is_half_closed(&self) -> bool {
        self.half_closed.load(Ordering::Relaxed)
    }

    /// Notes that it waits for a turn; false when it does already.
    pub(crate) fn enqueue(&self) -> bool {
        // The queue's lock orders it.
        !self.queued.swap(true, Ordering::Relaxed)
    }

    /// Notes that its turn has come: what happens from now on is worth another.
    pub(crate) fn dequeue(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }

    /// Whether there is a mark, after the lock was let go.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        fence(Ordering::SeqCst);
        self.marked.load(Ordering::Relaxed)
    }

    /// The connection, unless another thread has it. The mark is taken away: its holder looks at everything.
    #[inline]
    pub(crate) fn take(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        let guard = self.connection.try_lock()?;
        self.marked.store(false, Ordering::Relaxed);
        // The mark is taken away before anything is looked at.
        fence(Ordering::SeqCst);
        Some(guard)
    }

    /// The connection, unless another thread has it, for a look at what it is. The mark stays: whoever finds the lock
    /// taken by this look left it, and it is heeded afterwards.
    pub(crate) fn look(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        self.connection.try_lock()
    }

    /// Stops the statement that runs.
    pub(crate) fn cancel(&self) {
        if let Some(cancel) = &*self.cancel.lock() {
            cancel.cancel();
        }
    }
}

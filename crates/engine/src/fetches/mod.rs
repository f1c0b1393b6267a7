//! Read-through: rows that clients miss, on their way from the database behind the cache.
//!
//! Who misses a row asks the [`FetchQueue`] of the table's source and waits without a thread: a [`Waiter`] calls it
//! back. However many ask for a key, one query fetches it. The crate `source` takes keys out of the queue, asks the
//! database, stores what came, and says what became of each key. Everything here is bounded; what finds no room is a
//! plain miss.

mod absent;
mod queue;
mod waiter;

pub(crate) use absent::Place;
pub use queue::{FetchBatch, FetchQueue, WantedKey};
pub use waiter::{Fetched, FetchedRow, Waiter, Wake};

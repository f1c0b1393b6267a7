//! Reads sqlcached's tables in shared memory, and speaks to the daemon for everything else.
//!
//! A table `WITH (shared_memory = on)` is in a file that this process maps read-only. A row is found, copied and
//! validated without a lock, a system call or a request. The same call asks the daemon over its Unix socket if the file
//! cannot answer: a private table, a row too large to copy, a bucket that is being reorganised, no file at all. Writes,
//! deletes and SQL always go there.
//!
//! ```no_run
//! use sqlcached_client::{Client, Lookup, Options};
//!
//! let client = Client::connect(&Options::new("/dev/shm/sqlcached-1000/11211.sock"))?;
//! client.sql(
//!     "CREATE TABLE IF NOT EXISTS frag (key TEXT PRIMARY KEY, body TEXT)
//!      WITH (prefix = 'frag:', value = 'body', shared_memory = on)",
//!     &[],
//! )?;
//! client.set_key(b"frag:17:42", b"<p>hello</p>", 0, 300)?;
//! match client.get("frag", b"17:42")? {
//!     Lookup::Hit(value) | Lookup::Due(value) | Lookup::Stale(value) => println!("{} bytes", value.bytes.len()),
//!     Lookup::Miss => println!("to be made"),
//! }
//! # Ok::<(), sqlcached_client::Error>(())
//! ```
//!
//! A read that starts after the daemon acknowledged a write, in any protocol, sees that write or a later one. A row is
//! seen whole or not at all. An expired row is not returned, by the machine's monotonic clock (its coarse form, which
//! the kernel moves every few milliseconds and which costs no system call).
//!
//! A [`Client`] is shared between threads, and safe to use in a child after `fork`: the mapping stays valid, and the
//! child opens connections of its own.

#![forbid(unsafe_code)]

mod attach;
mod client;
mod error;
mod limits;
mod remote;
mod reply;
mod row;
mod socket;
mod table;
mod together;

pub use client::{Client, Options};
pub use error::Error;
pub use reply::{Pipeline, Reply};
pub use row::Row;
pub use store::value::Value as SqlValue;
pub use table::Table;

/// What a read came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T = Value> {
    /// There is a row, within its time.
    Hit(T),
    /// The row was invalidated softly, or is past its deadline and still served: a client should refresh it.
    Stale(T),
    /// The row is as close to its deadline as the table's `refresh_before`: a client should refresh it.
    Due(T),
    /// There is none.
    Miss,
}

impl<T> Lookup<T> {
    /// The row, whatever its state.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Hit(value) | Self::Stale(value) | Self::Due(value) => Some(value),
            Self::Miss => None,
        }
    }

    /// The same state with another content.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Hit(value) => Lookup::Hit(change(value)),
            Self::Stale(value) => Lookup::Stale(change(value)),
            Self::Due(value) => Lookup::Due(change(value)),
            Self::Miss => Lookup::Miss,
        }
    }
}

impl Lookup {
    /// Whether another client was asked to refresh the row.
    pub fn is_made_by_another(&self) -> bool {
        match self {
            Self::Hit(value) | Self::Stale(value) | Self::Due(value) => {
                value.meta.renewal == Renewal::Another
            }
            Self::Miss => false,
        }
    }
}

/// What a memcached client gets of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The value column's bytes.
    pub bytes: Vec<u8>,
    /// What goes with them.
    pub meta: Meta,
}

/// What goes with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The 32 bits that a client stored beside the value.
    pub flags: u32,
    /// The CAS value.
    pub cas: u64,
    /// Who refreshes the row.
    pub renewal: Renewal,
}

/// Who refreshes a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Nobody was told to.
    #[default]
    Nobody,
    /// Another client was told to.
    Another,
    /// This client is told to: it won.
    Yours,
}

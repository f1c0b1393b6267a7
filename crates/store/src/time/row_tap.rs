//! Where writes of rows are heard that other caches are to have, too (`replicated = 'rows'`).
//!
//! A write is told under the lock of its row's shard. So what is told of one key comes in the order in which it took
//! effect, and who applies what another cache has told can see, under the same lock, whether a write of this cache is
//! still under way: that one comes later in the stream of the bus, and decides.

use std::cell::Cell;
use std::fmt;

use super::Time;
use crate::row::RowBuf;
use crate::table::Table;

/// Hears what is written to tables whose rows travel. It is called under the lock of a shard, or of all of them, so it
/// takes no lock that anybody holds who waits for a shard.
pub trait RowTap: fmt::Debug + Send + Sync {
    /// The key has this row now; none: it was deleted, whether there was one or not.
    fn wrote(&self, time: &Time, table: &Table, key: &[u8], row: Option<&RowBuf>);

    /// All rows were removed in one step.
    fn emptied(&self, table: &Table);

    /// Whether a write of this cache to a key is under way, and comes later in the stream than what is applied now.
    /// None asks for any key of the table.
    fn is_under_way(&self, table: &Table, key: Option<&[u8]>) -> bool;
}

/// Whose writes those of a thread are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A client's: other caches are to have them, too.
    Client,
    /// This cache's alone: a value that was fetched, or rows that are not believed any more.
    Local,
    /// Another cache's. They spare the keys of which a write of this cache is under way.
    Peer,
}

thread_local! {
    static WRITER: Cell<Writer> = const { Cell::new(Writer::Client) };
}

/// Until it is dropped, the thread's writes are somebody else's.
#[derive(Debug)]
pub struct WritesAs(Writer);

/// Has the writes of this thread be somebody's until the answer is dropped.
#[must_use]
pub fn write_as(writer: Writer) -> WritesAs {
    WritesAs(WRITER.replace(writer))
}

impl Drop for WritesAs {
    fn drop(&mut self) {
        WRITER.set(self.0);
    }
}

/// Whose writes those of this thread are.
pub(crate) fn writer() -> Writer {
    WRITER.get()
}

//! Tells who hears of rows that travel ([`row_tap`](crate::time::row_tap)) what is written.

use crate::row::RowBuf;
use crate::table::Table;
use crate::time::row_tap::{Writer, writer};
use crate::versions::Versions;

/// Whether the thread applies what another cache has told of a table whose rows travel.
pub(crate) fn applies_peers(table: &Table) -> bool {
    table.replicates_rows() && writer() == Writer::Peer
}

impl Versions {
    /// Has a client's write of a row told. The caller holds the lock of its shard.
    #[cold]
    pub(crate) fn tell_row(&self, table: &Table, key: &[u8], row: Option<&RowBuf>) {
        if writer() == Writer::Client
            && let Some(tap) = self.row_tap.get()
        {
            tap.wrote(self, table, key, row);
        }
    }

    /// The same of all rows at once. The caller holds the locks of all shards.
    pub(crate) fn tell_emptied(&self, table: &Table) {
        if table.replicates_rows()
            && writer() == Writer::Client
            && let Some(tap) = self.row_tap.get()
        {
            tap.emptied(table);
        }
    }

    /// Whether what another cache has told has to spare a key, because a write of this cache is under way. None asks
    /// for any key. The caller holds the lock of the shard, or of all.
    pub(crate) fn is_under_way(&self, table: &Table, key: Option<&[u8]>) -> bool {
        self.row_tap.get().is_some_and(|tap| tap.is_under_way(table, key))
    }
}

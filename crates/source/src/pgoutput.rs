//! The stream of changes as PostgreSQL's plugin `pgoutput` writes it, read by `pg_walstream`. The interface of that
//! still moves, so nothing else here knows it.

use bytes::Bytes;
use pg_walstream::{ColumnData, LogicalReplicationMessage as Read, LogicalReplicationParser, TupleData};

use crate::error::Error;
use crate::row::{Cell, Cells, Relation};

/// What the stream says.
#[expect(clippy::large_enum_variant, reason = "it is read and met at once, and never kept")]
pub(crate) enum Message {
    /// A transaction begins. Where its end stands in the log.
    Begin { xid: u32, at: u64 },
    /// It ends: all of it is known. Where that stands in the log, and where the log goes on.
    Commit { at: u64, end: u64 },
    /// A table whose changes come next, or that was redefined.
    Relation(Relation),
    /// Rows came, changed or went: what is known of each before and after.
    Change { relation: u64, old: Option<Tuple>, new: Option<Tuple> },
    /// All rows of these tables went.
    Truncate { relations: Vec<u64> },
    /// What somebody wrote into the stream.
    Note { prefix: String, content: Bytes },
    /// Of no interest.
    Other,
}

/// The columns of a row, in the table's order.
pub(crate) struct Tuple(TupleData);

impl Cells for Tuple {
    fn cell(&self, at: usize) -> Cell<'_> {
        match self.0.get_column(at) {
            None => Cell::Unchanged,
            Some(column) if ColumnData::is_null(column) => Cell::Null,
            Some(column) if column.is_unchanged() => Cell::Unchanged,
            Some(column) => Cell::Text(column.as_bytes()),
        }
    }
}

/// Reads messages, one after the other.
pub(crate) struct Reader(LogicalReplicationParser);

impl Reader {
    pub(crate) fn new() -> Self {
        Self(LogicalReplicationParser::with_protocol_version(1))
    }

    pub(crate) fn read(&mut self, bytes: Bytes) -> Result<Message, Error> {
        let read = self.0.parse_wal_message_bytes(bytes);
        let read = read.map_err(|error| Error::connection(format!("the stream cannot be read: {error}")))?;
        Ok(match read.message {
            Read::Begin { xid, final_lsn, .. } => Message::Begin { xid, at: final_lsn },
            Read::Commit { commit_lsn, end_lsn, .. } => Message::Commit { at: commit_lsn, end: end_lsn },
            Read::Relation { relation_id, namespace, relation_name, replica_identity, columns } => {
                let types = columns.iter().map(|column| (column.type_id, column.type_modifier)).collect();
                let columns = columns.iter().map(|column| (column.name.to_string(), column.is_key()));
                Message::Relation(Relation {
                    id: u64::from(relation_id),
                    schema: namespace.to_string(),
                    name: relation_name.to_string(),
                    full: replica_identity == b'f',
                    columns: columns.collect(),
                    types,
                })
            }
            Read::Insert { relation_id, tuple } => {
                Message::Change { relation: u64::from(relation_id), old: None, new: Some(Tuple(tuple)) }
            }
            Read::Update { relation_id, old_tuple, new_tuple, .. } => {
                let old = old_tuple.map(Tuple);
                Message::Change { relation: u64::from(relation_id), old, new: Some(Tuple(new_tuple)) }
            }
            Read::Delete { relation_id, old_tuple, .. } => {
                Message::Change { relation: u64::from(relation_id), old: Some(Tuple(old_tuple)), new: None }
            }
            Read::Truncate { relation_ids, .. } => {
                Message::Truncate { relations: relation_ids.into_iter().map(u64::from).collect() }
            }
            Read::Message { prefix, content, .. } => Message::Note { prefix, content },
            _ => Message::Other,
        })
    }
}

/// A text as a statement has it. One with a NUL is none that PostgreSQL knows.
pub(crate) fn literal(text: &str) -> String {
    pg_walstream::quote_literal(text).unwrap_or_else(|_| "''".to_owned())
}

/// A name as a statement has it.
pub(crate) fn quoted(name: &str) -> String {
    pg_walstream::quote_ident(name).unwrap_or_else(|_| "\"\"".to_owned())
}

//! What every stream of changes tells: tables, and values of rows.

/// A table of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) id: u64,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// Old rows come whole: `REPLICA IDENTITY FULL`, `binlog_row_image = FULL`.
    pub(crate) full: bool,
    /// Each column, and whether it comes with old rows.
    pub(crate) columns: Vec<(String, bool)>,
    /// Their types, by PostgreSQL's numbers, where rows are copied.
    pub(crate) types: Vec<(u32, i32)>,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'t> {
    Null,
    /// It is large, did not change, and was not sent.
    Unchanged,
    Text(&'t [u8]),
}

/// A row of a stream.
pub(crate) trait Cells {
    /// A column's value; a column that is not there is not known.
    fn cell(&self, at: usize) -> Cell<'_>;
}

//! Bounds, each with its reason.

/// Entries of one `FROM` that are looked at: SQLite joins no more tables.
pub const RELATIONS_MAX: usize = 64;
/// A longer text is not searched for indexed expressions: for each of them each of its expressions is looked at.
pub const INDEXED_BYTES_MAX: usize = 64 << 10;
/// Views that may lie within each other: the types of deeper ones are not looked for.
pub const VIEWS_DEPTH_MAX: usize = 8;
/// Queries of one text whose arms must be brought to decimal numbers, each by another walk. Of more the numbers stay as
/// they are.
pub const WALKS_MAX: usize = 16;
/// Functions of users that stand within one another in a statement: each stands as a text within the other, in which
/// signs are doubled.
pub const INLINED_DEPTH_MAX: usize = 8;
/// Bodies of functions that are looked at for one statement.
pub const INLINED_MAX: usize = 128;
/// Queries of a text that are joined by `UNION` and its like: SQLite joins 500, but any number where they are
/// `VALUES`, and each takes some of the thread's stack.
pub const JOINED_MAX: usize = 1_000;
/// Bytes of a function's query with all that stand within it.
pub const INLINED_BYTES_MAX: usize = 64 << 10;

//! Bounds, each with its reason.

/// Operators and parentheses that lie within each other: what walks a tree, and what drops it, is recursive.
pub const NESTING_MAX: usize = 1_000;
/// Calls of the parser within each other: a statement that nests deeper is not read. In a build for tests each takes 4
/// (a parenthesis) to 30 KiB (a query) of a SQL thread's stack of 2 MiB.
pub const DEPTH_MAX: usize = 50;
/// Parentheses around tables, and queries in the place of tables, within each other: each takes up to 40 KiB of it.
pub const TABLES_NESTED_MAX: usize = 20;
/// Most parameters of a statement: SQLite's own maximum, which `INSERT` of many rows does reach.
pub const PARAMETERS_MAX: usize = 32_766;

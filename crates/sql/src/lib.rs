//! SQL text to effects: SQLite computes, the store applies.

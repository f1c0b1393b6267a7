//! Numbers of sequences that were given out.

/// Whose number it is: a sequence's of its own, or that of a table's numbered column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// The sequence of this number.
    Own(u16),
    /// The table of this number.
    Table(u16),
}

/// Numbers that were given out, each sequence's last one; the newest last.
pub type Numbers = Vec<(Numbered, i64)>;

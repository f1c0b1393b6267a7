//! A large value that is received where it is going to lie.

use engine::InPlace;

/// A storage command whose value is on its way into its row. Its line is the beginning of the connection's input; at
/// most the first byte of the line end behind the value follows it there.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) in_place: InPlace,
    /// Bytes of the line.
    pub(crate) line: usize,
    /// Bytes of the line end behind the value.
    pub(crate) end: usize,
}

impl Receiving {
    /// Begins, with what has come of the value.
    pub(crate) fn new(mut in_place: InPlace, come: &[u8], line: usize, end: usize) -> Self {
        in_place.append(come);
        Self { in_place, line, end }
    }
}

//! A large value that is received where it is going to lie.

use engine::Landing;

/// A storage command whose value is on its way into its row. Its line is the beginning of the connection's input; at
/// most the first byte of the line end behind the value follows it there.
#[derive(Debug)]
pub(crate) struct InPlace {
    pub(crate) landing: Landing,
    /// Bytes of the line.
    pub(crate) line: usize,
    /// Bytes of the line end behind the value.
    pub(crate) end: usize,
}

impl InPlace {
    /// Begins, with what has come of the value.
    pub(crate) fn new(mut landing: Landing, come: &[u8], line: usize, end: usize) -> Self {
        landing.land(come);
        Self { landing, line, end }
    }
}

//! The library's limits, each with its reason.

/// Bytes of a message that are kept. One that quotes a whole statement is cut.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;

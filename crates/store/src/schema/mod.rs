//! The definitions in force: as bytes in the arena, and what is computed by them.

pub(crate) mod catalogue;
pub(crate) mod compute;
pub(crate) mod number;

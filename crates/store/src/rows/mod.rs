//! Rows by their keys: reads and writes of one row, and items as memcached clients see them.

pub(crate) mod dump;
pub(crate) mod item;
pub(crate) mod landing;
pub(crate) mod read;
pub(crate) mod rewrite;
pub(crate) mod write;

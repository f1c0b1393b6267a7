//! Tables: schema, rows as immutable versions, ordered secondary indexes, expiry, eviction, commits.

pub mod codec;
pub mod definition;
pub mod ghost;
pub mod ordered;
#[cfg(test)]
mod testing;
pub mod value;

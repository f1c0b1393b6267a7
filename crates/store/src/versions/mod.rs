//! Which version stands under a key: shards of the hash index, marks of commits, old versions for statements.

pub(crate) mod flush;
pub(crate) mod kept;
pub(crate) mod order;
pub(crate) mod shard;
pub(crate) mod statement;

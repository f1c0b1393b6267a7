//! The file of an arena: made, proved, mapped; its superblock.

pub(crate) mod constants;
pub(crate) mod map;
pub(crate) mod superblock;
pub(crate) mod warm;

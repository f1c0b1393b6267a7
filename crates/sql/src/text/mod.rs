//! SQL text before anything runs: what kind of statement it is, and its parameters.

pub(crate) mod call;
pub(crate) mod explain;
pub(crate) mod kind;
pub(crate) mod normal;
pub(crate) mod parts;
pub(crate) mod reader;
pub(crate) mod rows;
pub(crate) mod split;
pub(crate) mod transaction;

pub(crate) use sqltext::token;

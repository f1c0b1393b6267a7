//! SQL text before anything runs: what kind of statement it is, its parameters, and the grammar's tree of it.

pub(crate) mod kind;
pub(crate) mod literal;
pub(crate) mod normal;
pub(crate) mod parameter;
pub(crate) mod parse;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod split;
pub(crate) mod storage;
pub(crate) mod transaction;

pub(crate) use sqltext::token;

//! What time does to rows: operations that count as time, rules, refreshing.

pub(crate) mod operations;
pub(crate) mod renew;
pub(crate) mod rules;

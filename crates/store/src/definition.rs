//! definition

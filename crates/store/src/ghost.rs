//! ghost

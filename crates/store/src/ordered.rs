//! ordered

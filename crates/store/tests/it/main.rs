//! The store through its public interface: against a simple model with a movable clock, and the settled cases of
//! docs/consistency.md under real concurrency.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod behind;
mod commits;
mod common;
mod crafted;
mod deadlines;
mod definitions;
mod definitions_torture;
mod dropped;
mod due;
mod elements;
mod eviction;
mod expiry;
mod followed;
mod generated;
mod given;
mod hours;
mod in_place;
mod limits;
mod loads;
mod model;
mod moving;
mod namespaces;
mod pinned;
mod policy;
mod preempted;
mod refused;
mod removal_events;
mod removals;
mod restart;
mod rewrite;
mod room;
mod sharing;
mod torture;
mod unique;
mod whole;
mod write_set;

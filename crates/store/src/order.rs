//! The memory orderings between statements and commits of many rows.
//!
//! `tests/protocol.rs` runs their encounters with them through every interleaving, weakens each in turn, and says of each
//! what breaks.

use std::sync::atomic::Ordering;

/// Puts a commit in flight, or changes what it keeps. With [`ACTIVE_LOAD`], [`ACTIVE_STORE`] and [`FLIGHT_LOAD`] in one
/// order for all: of a statement and a commit that begin together one sees the other.
pub(crate) const FLIGHT_STORE: Ordering = Ordering::SeqCst;
/// Which commits are in flight, and whether they keep.
pub(crate) const FLIGHT_LOAD: Ordering = Ordering::SeqCst;
/// Registers a statement.
pub(crate) const ACTIVE_STORE: Ordering = Ordering::SeqCst;
/// Whether statements are running.
pub(crate) const ACTIVE_LOAD: Ordering = Ordering::SeqCst;
/// Between a commit that keeps nothing more and the stamp that says so.
pub(crate) const GIVE_UP_FENCE: Ordering = Ordering::Release;
/// The stamp that says so.
pub(crate) const GIVEN_UP_STORE: Ordering = Ordering::Release;
/// Whether a statement may lack versions.
pub(crate) const GIVEN_UP_LOAD: Ordering = Ordering::Acquire;
/// A commit keeps nothing more: who swaps a row of it without keeping finds the statements warned.
pub(crate) const KEEP_STORE: Ordering = Ordering::Release;
/// Whether it keeps.
pub(crate) const KEEP_LOAD: Ordering = Ordering::Acquire;
/// Between an odd version of the notes and what is changed.
pub(crate) const NOTES_FENCE: Ordering = Ordering::Release;
/// An even version again.
pub(crate) const NOTES_STORE: Ordering = Ordering::Release;
/// The version before notes are taken.
pub(crate) const NOTES_LOAD: Ordering = Ordering::Acquire;
/// Between notes and the second look at their version.
pub(crate) const NOTES_AGAIN: Ordering = Ordering::Acquire;

//! The memory orderings between statements and commits of many rows.
//!
//! `tests/protocol.rs` runs their encounters with them through every interleaving, weakens each in turn, and says of
//! each what breaks.

use std::sync::atomic::Ordering;

/// Puts a commit in flight, changes what it keeps, or ends it.
pub(crate) const FLIGHT_STORE: Ordering = Ordering::Release;
/// Between a commit that is in flight and its look at the statements. With [`ACTIVE_FENCE`] in one order for all: of a
/// statement and a commit that begin together one sees the other.
pub(crate) const FLIGHT_FENCE: Ordering = Ordering::SeqCst;
/// Which commits are in flight, and whether they keep.
pub(crate) const FLIGHT_LOAD: Ordering = Ordering::Acquire;
/// Between a statement that is registered and its look at the commits.
pub(crate) const ACTIVE_FENCE: Ordering = Ordering::SeqCst;
/// A commit has ended: who counts it sees that it is not in flight any more.
pub(crate) const PUBLISHED_STORE: Ordering = Ordering::AcqRel;
/// How many have ended, before versions are dropped.
pub(crate) const PUBLISHED_LOAD: Ordering = Ordering::Acquire;
/// Between that number and the look at the statements: one that is not seen there sees the commits ended.
pub(crate) const PURGE_FENCE: Ordering = Ordering::SeqCst;
/// A version is kept, before its slot changes.
pub(crate) const KEPT_STORE: Ordering = Ordering::Release;
/// Whether versions are kept.
pub(crate) const KEPT_LOAD: Ordering = Ordering::Acquire;
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

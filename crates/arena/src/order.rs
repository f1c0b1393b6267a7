//! The memory orderings of the protocol between those who write and those who read without a lock.
//!
//! `tests/protocol.rs` runs the protocol with them through every interleaving that loom can think of, weakens each in
//! turn, and says of each what breaks.

use std::sync::atomic::Ordering;

/// Publishes a row, another version, or that there is none: who sees the slot sees the row's words.
pub(crate) const SLOT_STORE: Ordering = Ordering::Release;
/// The first look at a slot.
pub(crate) const SLOT_LOAD: Ordering = Ordering::Acquire;
/// The second look, after the generation: the slot was in force under it.
pub(crate) const SLOT_AGAIN: Ordering = Ordering::Acquire;
/// Raises the generation of a unit whose slots are cleared.
pub(crate) const GENERATION_STORE: Ordering = Ordering::Release;
/// The first look at a generation: one that is raised comes with cleared slots.
pub(crate) const GENERATION_LOAD: Ordering = Ordering::Acquire;
/// Between raised generations and whatever overwrites the bytes.
pub(crate) const RECYCLE_FENCE: Ordering = Ordering::Release;
/// Before the first word of a row: who sees a word of it sees the generations raised before its bytes were reserved.
pub(crate) const WRITE_FENCE: Ordering = Ordering::Release;
/// Between words that were looked at and the second look at the generation.
pub(crate) const READ_FENCE: Ordering = Ordering::Acquire;
/// Advances the index word: the new bucket is complete behind it.
pub(crate) const INDEX_STORE: Ordering = Ordering::Release;
/// Which bucket is a key's.
pub(crate) const INDEX_LOAD: Ordering = Ordering::Acquire;
/// Links a further bucket, which is filled.
pub(crate) const LINK_STORE: Ordering = Ordering::Release;
/// Follows a link.
pub(crate) const LINK_LOAD: Ordering = Ordering::Acquire;
/// Between an odd version and the entries that move.
pub(crate) const SPLIT_FENCE: Ordering = Ordering::Release;
/// An even version again: the entries stand where they belong.
pub(crate) const VERSION_STORE: Ordering = Ordering::Release;
/// The version before a bucket is walked.
pub(crate) const VERSION_LOAD: Ordering = Ordering::Acquire;
/// Between a walk that found nothing and the second look at version and index word.
pub(crate) const MISS_FENCE: Ordering = Ordering::Acquire;
/// A chain of an earlier process is proved.
pub(crate) const PROVED_STORE: Ordering = Ordering::Release;
/// Whether it is.
pub(crate) const PROVED_LOAD: Ordering = Ordering::Acquire;
/// One chain less to prove: who proves the last passes on what the others did.
pub(crate) const LEFT: Ordering = Ordering::AcqRel;
/// All chains are proved.
pub(crate) const PENDING_STORE: Ordering = Ordering::Release;
/// Whether they are.
pub(crate) const PENDING_LOAD: Ordering = Ordering::Acquire;
/// Before a bucket is filled that another chain may have had: who sees a word of it sees what the chain's owner did
/// before the bucket was free.
pub(crate) const BUCKET_FENCE: Ordering = Ordering::Release;
/// A segment begins: who is let in sees its kind, and the generations raised since the last one ended there.
pub(crate) const FILL_OPEN: Ordering = Ordering::Release;
/// Reserves room: the kind that says where it lies comes behind.
pub(crate) const FILL_RESERVE: Ordering = Ordering::Acquire;
/// Holds a segment: the generation that says whether the row is still there comes behind.
pub(crate) const FILL_HOLD: Ordering = Ordering::Acquire;
/// A writer, or one who holds a row, is done with the bytes.
pub(crate) const FILL_RELEASE: Ordering = Ordering::Release;
/// Nobody reserves from here on.
pub(crate) const FILL_SEAL: Ordering = Ordering::AcqRel;
/// How many are in a segment, and how much room it has: where nobody is left, what they wrote is there.
pub(crate) const FILL_LOOK: Ordering = Ordering::Acquire;
/// Nobody is in the segment, and what they did there comes before.
pub(crate) const FILL_CLOSE: Ordering = Ordering::Acquire;
/// Replaces a word by what follows from it. A commit becomes doomed or committed: what was staged comes before.
pub(crate) const EXCHANGE: Ordering = Ordering::AcqRel;
/// The same where it was something else already.
pub(crate) const EXCHANGE_REFUSED: Ordering = Ordering::Acquire;
/// What a commit is: of a committed one the stamps and the record are seen.
pub(crate) const COMMIT_LOOK: Ordering = Ordering::Acquire;

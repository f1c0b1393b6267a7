//! The shared arena's file at a start: taken over with its private one, or put out of use.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::layout::{Location, MAGIC, STATE_RETIRED, word};
use crate::recovery::{Attach, Unusable, open_own};
use crate::{Arena, ArenaError, Geometry, RedoEntry};

/// What an arena is to its owner while it is recovered.
pub(crate) enum Role<'r> {
    /// The first; behind it comes the shared one.
    Private(&'r mut SharedFile),
    /// The shared one of this private arena.
    Shared {
        /// The private arena.
        owner: &'r Arena,
        /// Every stamp that the owner issued is smaller.
        ceiling: u64,
        /// What committed transactions had not swapped in here.
        redo: Vec<RedoEntry>,
    },
}

impl Role<'_> {
    pub(crate) fn owner(&self) -> Option<&Arena> {
        match self {
            Self::Private(_) => None,
            Self::Shared { owner, .. } => Some(owner),
        }
    }
}

/// The shared file that belongs to an arena which is being recovered.
#[derive(Debug, Default)]
pub(crate) struct SharedFile {
    pub(crate) path: Option<PathBuf>,
    pub(crate) geometry: Option<Geometry>,
    pub(crate) found: Option<Arena>,
    /// Why a file that is there could not be looked at.
    pub(crate) failed: Option<ArenaError>,
}

impl SharedFile {
    /// Takes the file over if it is the owner's, with these rows of committed transactions. One that cannot be is put
    /// out of use: its rows are forgotten.
    pub(crate) fn recover(&mut self, owner: &Arena, ceiling: u64, redo: Vec<RedoEntry>) {
        let (Some(path), Some(geometry)) = (&self.path, &self.geometry) else { return };
        let redo = redo.into_iter().map(|entry| RedoEntry {
            new: entry.new.map(Location::in_file),
            old: entry.old.map(Location::in_file),
            ..entry
        });
        let mut role = Role::Shared { owner, ceiling, redo: redo.collect() };
        match Arena::attach_as(path, geometry, &mut role) {
            Ok(Attach::Warm(arena)) => self.found = Some(arena),
            // Its rows are there for the next start.
            Ok(Attach::Unusable(Unusable { refused: Some(error), .. })) => self.failed = Some(error),
            // A file of somebody else's is none of ours; who needs its place will say so.
            Ok(Attach::Unusable(unusable)) => {
                // Its lock is taken again.
                drop(unusable);
                self.failed =
                    discard(path).err().filter(|error| !matches!(error, ArenaError::InTheWay { .. }));
            }
            Err(ArenaError::NotFound(_)) => {}
            Err(_) if path.is_symlink() => {}
            Err(error) => self.failed = Some(error),
        }
    }

    /// Whether the rows in it may still be had another time: nothing may be finished without them.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

/// Puts a shared file out of use: who has it mapped is told, and its name is free. A file of somebody else's is left
/// where it is, with an error.
pub(crate) fn discard(path: &Path) -> Result<(), ArenaError> {
    let refuse = |reason: &str| ArenaError::InTheWay { path: path.to_owned(), reason: reason.to_owned() };
    let Ok(stat) = fs::symlink_metadata(path) else { return Ok(()) };
    if stat.file_type().is_symlink() {
        return Err(refuse("it is a symbolic link"));
    }
    let file = open_own(path)?.map_err(|unusable| refuse(&unusable.reason))?;
    let mut magic = [0; 8];
    if rustix::io::pread(&file, &mut magic, 0).is_ok_and(|read| read == 8) && magic == MAGIC.to_le_bytes() {
        // The place of this word is the same in every layout, so that readers of any version understand it. That it
        // could not be written is no worse than a file that was removed by hand.
        let _ = rustix::io::pwrite(&file, &STATE_RETIRED.to_le_bytes(), word::STATE * 8);
    }
    fs::remove_file(path).map_err(|source| ArenaError::Io { call: "unlink", path: path.to_owned(), source })
}

/// Whether a file may have been an arena: one that holds something else belongs to somebody. An empty one, or one whose
/// maker died before it wrote the first word, holds nothing.
pub fn begins_as_arena(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(true);
    }
    let mut magic = [0; 8];
    let read = rustix::io::pread(fs::File::open(path)?, &mut magic, 0)?;
    Ok(read == 0 || magic == [0; 8] || magic == MAGIC.to_le_bytes())
}

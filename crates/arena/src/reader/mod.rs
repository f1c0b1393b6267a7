//! An arena that another process owns, mapped read-only.
//!
//! A reader writes nothing, takes no lock, and trusts no word: each number is bounded before it is followed, and what
//! was copied counts only when the generation says so. The owner may write, stop, die, and begin again meanwhile.

pub(crate) mod hits_file;
pub(crate) mod wait;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::file::constants::{Reason, prove_constants};
use crate::file::map::Map;
use crate::file::superblock::{system, unmapped};
use crate::layout::{CHECKPOINT_ENTRIES, CHECKPOINT_LEVELS, STATE_READY, word};
use crate::{ArenaError, Mapped};

/// Looks at the definitions before a reader gives up on an owner that keeps changing them.
const CATALOGUE_ROUNDS: usize = 64;
/// Permission bits that let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An arena of another process.
#[derive(Debug)]
pub struct Reader {
    pub(crate) mapped: Mapped,
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
}

impl std::ops::Deref for Reader {
    type Target = Mapped;

    #[inline]
    fn deref(&self) -> &Mapped {
        &self.mapped
    }
}

impl Reader {
    /// Maps the arena at a path, whose file must belong to one of these users and be writable by nobody else: who can
    /// write it decides what readers are told.
    pub fn open(path: &Path, owners: &[u32]) -> Result<Self, ArenaError> {
        let refuse = |reason: String| ArenaError::Refused { path: path.to_owned(), reason };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT => ArenaError::NotFound(path.to_owned()),
            Errno::LOOP => refuse("it is a symbolic link".into()),
            errno => system("open", path, errno),
        })?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| system("fstat", path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refuse("it is not a regular file".into()));
        }
        if !owners.contains(&stat.st_uid) {
            return Err(refuse(format!("it belongs to user {}, not to {owners:?}", stat.st_uid)));
        }
        if stat.st_mode & WRITABLE_BY_OTHERS != 0 {
            return Err(refuse("other users than its owner can write it".into()));
        }
        let mapped = Self::map(file, path).map_err(|reason| match reason {
            Reason::Content(reason) => refuse(reason),
            Reason::Refused(error) => error,
        })?;
        Ok(Self { mapped, path: path.to_owned(), identity: (stat.st_dev, stat.st_ino) })
    }

    fn map(file: OwnedFd, path: &Path) -> Result<Mapped, Reason> {
        let (layout, seed) = prove_constants(&file, path)?;
        let unmapped = |source| unmapped(path, layout.total_bytes, source);
        let map = Map::read_only(file, layout.total_bytes).map_err(unmapped)?;
        let mapped = Mapped::new(map, layout, seed, 0).map_err(unmapped)?;
        let is_shared = mapped.map.load(word::OWNER, Ordering::Relaxed) != 0;
        let mapped = Mapped { reader: true, is_shared, ..mapped };
        // Acquire: pairs with the Release that made the file ready.
        if mapped.map.load(word::STATE, Ordering::Acquire) != STATE_READY {
            return Err("it is retired, or was never completed".into());
        }
        Ok(mapped)
    }

    /// Whether it is the arena of the tables that others may read, or the private one.
    pub fn is_shared(&self) -> bool {
        self.mapped.is_shared
    }

    /// The file that was mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the owner still uses the file, as far as the file says.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        // Acquire: pairs with the Release of who retires the file, before another one is served.
        self.mapped.map.load(word::STATE, Ordering::Acquire) == STATE_READY
    }

    /// Whether the path still leads to the file that is mapped.
    pub fn is_at_its_path(&self) -> bool {
        rustix::fs::lstat(&self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// The owner's last sign of life on the monotonic clock.
    #[inline]
    pub fn last_heartbeat_ns(&self) -> u64 {
        self.mapped.map.load(word::HEARTBEAT, Ordering::Relaxed)
    }

    /// The number of the definitions in force: another number, other definitions.
    #[inline]
    pub fn definitions(&self) -> u64 {
        // Acquire: pairs with the Release in `set_catalogue`.
        self.mapped.map.load(word::CATALOGUE, Ordering::Acquire)
    }

    /// The definitions in force. `None`: there are none, or they kept changing.
    pub fn catalogue(&self) -> Option<Vec<u8>> {
        for _ in 0..CATALOGUE_ROUNDS {
            match self.mapped.read_catalogue() {
                Ok(found) => return found,
                // The half was written again while it was copied.
                Err(_) => std::hint::spin_loop(),
            }
        }
        None
    }

    /// As [`crate::Checkpoints::first_after`], by the file.
    pub fn first_stamp_after(&self, tick: u32) -> Option<u64> {
        let mut least: Option<(u32, u64)> = None;
        for level in 0..CHECKPOINT_LEVELS {
            let mut reaches_back = false;
            for entry in 0..CHECKPOINT_ENTRIES {
                let Some((noted, stamp)) = self.checkpoint(level, entry) else { continue };
                if noted <= tick {
                    reaches_back = true;
                } else if least.is_none_or(|(least, _)| noted < least) {
                    least = Some((noted, stamp));
                }
            }
            // A ring that knows an earlier tick knows the first one after it; coarser ones add nothing.
            if reaches_back {
                break;
            }
        }
        least.map(|(_, stamp)| stamp)
    }

    /// An entry of a ring; none where there is none, or it is being written.
    fn checkpoint(&self, level: usize, entry: u64) -> Option<(u32, u64)> {
        let map = &self.mapped.map;
        let at = self.mapped.layout.checkpoints + (level as u64 * CHECKPOINT_ENTRIES + entry) * 2;
        // Acquire: pairs with the Release of the tick, behind which the stamp is written.
        let tick = map.load(at, Ordering::Acquire);
        let stamp = map.load(at + 1, Ordering::Acquire);
        // The owner clears the tick before it stores another stamp: an unchanged tick vouches for the stamp.
        fence(Ordering::Acquire);
        let whole = tick != 0 && map.load(at, Ordering::Relaxed) == tick;
        whole.then_some(((tick >> 32) as u32, stamp))
    }
}

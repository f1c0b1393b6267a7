//! What can go wrong when an arena is opened.

use std::path::PathBuf;
use std::{fmt, io};

/// Why an arena could not be created or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArenaError {
    /// There is no file at the path.
    NotFound(PathBuf),
    /// A file exists already at the path where a new arena was to be created.
    Exists(PathBuf),
    /// Another process holds the arena.
    Locked(PathBuf),
    /// The file system is too small even for the smallest arena.
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Bytes that could not be committed.
        bytes: u64,
    },
    /// The system gives no addresses to map the file at.
    Unmapped {
        /// Which.
        path: PathBuf,
        /// Its bytes, most of which take no memory.
        bytes: u64,
        /// Its answer.
        source: io::Error,
    },
    /// The file is not to be read from.
    Refused {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that is not ours stands where ours is to be.
    InTheWay {
        /// Where.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// The memory asked for does not fit the address range of a location, or is nothing.
    Geometry(u64),
    /// The system refused a call.
    Io {
        /// Which call.
        call: &'static str,
        /// On what.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(f, "there is no arena at {}", path.display()),
            Self::Exists(path) => write!(f, "{} exists already", path.display()),
            Self::Locked(path) => write!(f, "{} is in use by another process", path.display()),
            Self::NoSpace { path, bytes } => write!(
                f,
                "the file system of {} cannot hold another {bytes} bytes; enlarge it (for Docker: --shm-size) \
                 or choose another path (--arena)",
                path.display()
            ),
            Self::Unmapped { path, bytes, source } => write!(
                f,
                "{} cannot be mapped: {bytes} bytes of addresses: {source}; raise the limit of addresses \
                 (ulimit -v), or lower the daemon's memory (-m)",
                path.display()
            ),
            Self::Refused { path, reason } => {
                write!(f, "{} cannot be read: {reason}", path.display())
            }
            Self::InTheWay { path, reason } => write!(
                f,
                "{} cannot be used: {reason}; remove it or choose another path (--shared-memory-file)",
                path.display()
            ),
            Self::Geometry(bytes) => write!(f, "an arena cannot have {bytes} bytes of memory"),
            Self::Io { call, path, source } => write!(f, "{call} on {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for ArenaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unmapped { source, .. } | Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The index has no room for another row: its reserved range is full. The caller evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFull;

impl fmt::Display for IndexFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the arena's index is full")
    }
}

impl std::error::Error for IndexFull {}

/// The catalogue is larger than [`crate::MAX_CATALOGUE_BYTES`], or its pages cannot be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueError {
    /// Too many bytes.
    TooLarge(usize),
    /// The file system is full.
    NoSpace,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => {
                write!(f, "table definitions take {bytes} bytes; the limit is {}", crate::MAX_CATALOGUE_BYTES)
            }
            Self::NoSpace => f.write_str("no space left for table definitions"),
        }
    }
}

impl std::error::Error for CatalogueError {}

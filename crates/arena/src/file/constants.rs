//! The words of a file that never change, proved before anything is mapped.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use crate::error::ArenaError;
use crate::file::superblock::{boot_id, constants_check, system};
use crate::layout::{BYTE_ORDER_MARK, LAYOUT_VERSION, Layout, MAGIC, SUPERBLOCK_BYTES, word};

/// Why a file is not used.
#[derive(Debug)]
pub(crate) enum Reason {
    /// What it holds.
    Content(String),
    /// The system refused a call, whatever the file holds.
    Refused(ArenaError),
}

impl From<&str> for Reason {
    fn from(what: &str) -> Self {
        Self::Content(what.to_owned())
    }
}

impl From<String> for Reason {
    fn from(what: String) -> Self {
        Self::Content(what)
    }
}

impl From<ArenaError> for Reason {
    fn from(error: ArenaError) -> Self {
        Self::Refused(error)
    }
}

/// Proves the words that never change, before anything is mapped; yields layout and seed.
pub(crate) fn prove_constants(file: &OwnedFd, path: &Path) -> Result<(Layout, u64), Reason> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(file, &mut bytes[read..], read as u64) {
            Ok(0) => return Err("it is shorter than a superblock".into()),
            Ok(n) => read += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(system("read", path, errno).into()),
        }
    }
    let words = bytes.as_chunks::<8>().0;
    let load = |at: u64| u64::from_le_bytes(words[at as usize]);
    if load(word::MAGIC) != MAGIC || load(word::BYTE_ORDER) != BYTE_ORDER_MARK {
        return Err("it is not an arena".into());
    }
    if load(word::VERSION) != LAYOUT_VERSION {
        return Err(format!("its layout is version {}, this is {LAYOUT_VERSION}", load(word::VERSION)).into());
    }
    if load(word::CHECK) != constants_check(load) {
        return Err("the check field of its superblock is wrong".into());
    }
    let boot = boot_id().ok_or("the machine has no boot id")?;
    if [load(word::BOOT), load(word::BOOT + 1)] != boot {
        return Err("it is from before the machine was restarted".into());
    }
    let layout = Layout::new(load(word::RESERVE)).ok_or("its size is not valid")?;
    let stat = rustix::fs::fstat(file).map_err(|errno| system("fstat", path, errno))?;
    if load(word::TOTAL) != layout.total_bytes || u64::try_from(stat.st_size) != Ok(layout.total_bytes) {
        return Err("its length does not fit its layout".into());
    }
    Ok((layout, load(word::SEED)))
}

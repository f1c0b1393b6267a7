//! The file in which the history of the server's figures outlives the process.

use std::fs::File;
use std::io;
use std::path::Path;

use engine::Engine;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use store::{Start, history_path};
use tracing::warn;

/// Goes on with the history beside the arena. Without a file there is still one, which ends with the process.
pub(crate) fn keep(engine: &Engine, arena: Option<&Path>, start: &Start) {
    let Some(path) = arena.map(history_path) else { return };
    let tables_are_known = matches!(start, Start::Warm { .. });
    if let Err(error) = open(&path).and_then(|file| engine.keep_history(file, tables_are_known)) {
        warn!("{}: {error}; the history of the server's figures ends with this process", path.display());
    }
}

/// A plain file of this user's; a link in its place leads nowhere.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if is_plain && stat.st_uid == rustix::process::geteuid().as_raw() {
        Ok(file.into())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file of this user"))
    }
}

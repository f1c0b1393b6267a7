//! The names of the files beside the arena.

use std::path::{Path, PathBuf};

/// What the name of the shared file has behind that of the arena where nobody names it.
const EXTENSION: &str = ".shared";

/// Where the tables that other processes may read live if nobody says: beside the arena.
pub fn shared_path_beside(arena: &Path) -> PathBuf {
    let mut path = arena.as_os_str().to_owned();
    path.push(EXTENSION);
    path.into()
}

/// What the name of the file of readers' hits has behind that of the shared file.
const HITS: &str = ".hits";

/// Where readers of a shared file tell of hits: in a file beside it.
pub fn hits_path(shared: &Path) -> PathBuf {
    let mut path = shared.as_os_str().to_owned();
    path.push(HITS);
    path.into()
}

/// What the name of the history's file has behind that of the arena.
const HISTORY: &str = ".history";

/// Where the history of the server's figures outlives the process: in a file beside the arena.
pub fn history_path(arena: &Path) -> PathBuf {
    let mut path = arena.as_os_str().to_owned();
    path.push(HISTORY);
    path.into()
}

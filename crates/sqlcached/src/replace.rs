//! How a file is replaced. Nothing else in the project renames over a file, which `make tidy` checks.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Nobody but the owner reads it or writes it.
pub(crate) const SECRET: u32 = 0o600;
/// Everybody reads it, whatever mask the daemon was started with.
pub(crate) const PUBLIC: u32 = 0o644;

/// Names that are tried: all of them are taken only where somebody took them on purpose.
const ATTEMPTS: u32 = 1_000;

/// Replaces a file, or makes it, so that a crash and a reader see the old one or the new one, and nobody sees the text
/// who may not read the file. A link in its place is replaced, and where it leads is not touched.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    refuse_special(path)?;
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let (mut file, mut unfinished) = Unfinished::beside(folder, mode)?;
    // The process's mask took bits away when it was made.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished.path, path)?;
    unfinished.remains = false;
    File::open(folder)?.sync_all()
}

/// A device or a pipe is no file that could be replaced.
fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(known) if !known.is_file() && !known.is_symlink() => {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file that has not got its name yet. It is removed if it never gets it.
struct Unfinished {
    path: PathBuf,
    remains: bool,
}

impl Unfinished {
    /// A new one in this folder, under a name that no other process and no other file has: two daemons with files of
    /// one stem wrote each other's. It must not be there before, not as a link either.
    fn beside(folder: &Path, mode: u32) -> io::Result<(File, Self)> {
        let process = std::process::id();
        for attempt in 0..ATTEMPTS {
            let path = folder.join(format!(".sqlcached-{process}-{attempt}.new"));
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok((file, Self { path, remains: true })),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "no free name beside it; remove .sqlcached-*.new"))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.remains {
            // What cannot be removed stays, and does no harm.
            let _stays = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("replace-{name}-{}", std::process::id()));
            let _before = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _stays = fs::remove_dir_all(&self.0);
        }
    }

    /// `roles` and `roles.mat` were both written by way of `roles.new`: a third of the writes failed, and a file had
    /// the roles of the other daemon.
    #[test]
    fn files_of_one_stem_keep_their_own_text() {
        let folder = Folder::new("stem");
        thread::scope(|threads| {
            for name in ["roles", "roles.mat", "roles.11211", "roles.new"] {
                let path = folder.0.join(name);
                threads.spawn(move || {
                    for round in 0..50 {
                        let text = format!("{name} {round}");
                        replace(&path, &text, SECRET).unwrap();
                        assert_eq!(fs::read_to_string(&path).unwrap(), text);
                    }
                });
            }
        });
        assert_eq!(folder.names(), ["roles", "roles.11211", "roles.mat", "roles.new"]);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = Folder::new("link");
        let (target, path) = (folder.0.join("target"), folder.0.join("roles"));
        fs::write(&target, "stays").unwrap();
        symlink(&target, &path).unwrap();
        // Some that somebody laid where the new text is written first.
        for attempt in 0..3 {
            let name = format!(".sqlcached-{}-{attempt}.new", std::process::id());
            symlink(&target, folder.0.join(name)).unwrap();
        }
        replace(&path, "new", SECRET).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "stays");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!path.is_symlink());
    }

    #[test]
    fn the_mode_is_the_one_asked_for() {
        let folder = Folder::new("mode");
        let path = folder.0.join("file");
        for (before, wanted) in [(0o777, SECRET), (0o600, PUBLIC), (0o644, SECRET)] {
            fs::write(&path, "before").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            replace(&path, "after", wanted).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, wanted);
        }
    }

    #[test]
    fn a_failure_leaves_everything_as_it_was() {
        let folder = Folder::new("failure");
        let path = folder.0.join("folder");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, "new", SECRET).is_err());
        assert!(replace(Path::new("/dev/null"), "new", SECRET).is_err());
        assert!(replace(&folder.0.join("absent").join("file"), "new", SECRET).is_err());
        assert_eq!(folder.names(), ["folder"]);
    }
}

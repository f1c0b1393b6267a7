//! What concerns the process itself: who it is, and the file that says its number.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use tracing::warn;

use crate::replace::{PUBLIC, replace};

/// Where users are.
const USERS: &str = "/etc/passwd";

/// Becomes a user, if root starts us; somebody else stays who they are. To be called while there is one thread only: to
/// the kernel each thread is somebody, and those that are started later are who starts them.
pub(crate) fn become_user(name: &Path) -> Result<(), String> {
    let name = name.to_string_lossy();
    if name == "none" || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let users = fs::read_to_string(USERS).map_err(|error| format!("user: {USERS}: {error}"))?;
    let Some((uid, gid)) = find_user(&users, &name) else {
        return Err(format!("user: there is no user '{name}' in {USERS}"));
    };
    if uid.is_root() {
        return Ok(());
    }
    // The groups first: afterwards it may not change them any more.
    set_thread_groups(&[gid])
        .and_then(|()| set_thread_gid(gid))
        .and_then(|()| set_thread_uid(uid))
        .map_err(|error| format!("user: cannot switch to '{name}': {error}"))
}

/// Reads all settings and files again, as after SIGHUP from outside.
pub(crate) fn ask_to_reload() {
    // It fails for no process of its own.
    let _sent = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP);
}

/// The numbers of a user and its group.
fn find_user(users: &str, name: &str) -> Option<(Uid, Gid)> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [user, _, uid, gid, ..] if *user == name => {
                Some((Uid::from_raw(uid.parse().ok()?), Gid::from_raw(gid.parse().ok()?)))
            }
            _ => None,
        }
    })
}

/// What stands in the file.
fn own_line() -> String {
    format!("{}\n", std::process::id())
}

/// A file with the number of this process, as long as it serves.
#[derive(Debug)]
pub(crate) struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes it. One that cannot be written is no reason not to serve: memcached goes on, too.
    pub(crate) fn write(path: &Path) -> Self {
        if path.as_os_str() == "none" {
            return Self(None);
        }
        match replace(path, &own_line(), PUBLIC) {
            Ok(()) => Self(Some(path.to_path_buf())),
            Err(error) => {
                warn!("pid_file: {}: {error}", path.display());
                Self(None)
            }
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let is_ours = |path: &&PathBuf| fs::read_to_string(path).is_ok_and(|text| text == own_line());
        if let Some(path) = self.0.as_ref().filter(is_ours) {
            // Somebody may have taken it away already.
            let _absent = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With no mask it was born writable to everybody, who could name a process for root to kill.
    #[test]
    fn the_pid_file_is_its_owners() {
        let path = std::env::temp_dir().join(format!("pid-file-{}", std::process::id()));
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        let file = PidFile::write(&path);
        rustix::process::umask(before);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o7777, 0o644);
        fs::write(&path, "1\n").unwrap();
        drop(file);
        assert!(path.exists(), "the file of another process was removed");
        drop(PidFile::write(&path));
        assert!(!path.exists());
    }

    #[test]
    fn users_are_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\nmemcache:x:105:108::/nonexistent:/bin/false\nbroken\n";
        let found = find_user(users, "memcache").map(|(uid, gid)| (uid.as_raw(), gid.as_raw()));
        assert_eq!(found, Some((105, 108)));
        assert!(find_user(users, "mem").is_none());
        assert!(find_user(users, "broken").is_none());
    }
}

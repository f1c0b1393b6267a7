//! Where the arena and the Unix socket lie when nobody says.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::settings::{
    ANY_PORT, ARENA, Address, Chosen, HTTP_PORT, LISTEN_ADDRESSES, PORT, SHARED_MEMORY_FILE, SQL_PORT,
    SQL_SOCKET_DIR, UNIX_SOCKET_PATH,
};

/// Files here are memory; they last until the machine restarts.
pub(crate) const MEMORY_FILES: &str = "/dev/shm";

/// Where this daemon keeps its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The arena; none for memory of the daemon's own.
    pub(crate) arena: Option<PathBuf>,
    /// The file of the tables that others may read; none when there can be no such.
    pub(crate) shared: Option<PathBuf>,
    /// The Unix socket; none when it is switched off.
    pub(crate) socket: Option<PathBuf>,
    /// The Unix socket of the PostgreSQL listener.
    pub(crate) sql_socket: Option<PathBuf>,
}

impl Places {
    /// Takes the paths from the settings, and makes the private directory when one of them is `auto`.
    pub(crate) fn prepare(chosen: &Chosen) -> Result<Self, String> {
        let socket = chosen.path(&UNIX_SOCKET_PATH);
        let name = file_name(port(chosen), socket);
        let place = |path: &Path, extension: &str| -> Result<Option<PathBuf>, String> {
            match path.to_str() {
                Some("none") => Ok(None),
                Some("auto") => {
                    let Some(name) = &name else { return Ok(None) };
                    let directory = private_directory(Path::new(MEMORY_FILES))?;
                    Ok(Some(directory.join(format!("{name}.{extension}"))))
                }
                _ => Ok(Some(path.to_path_buf())),
            }
        };
        let arena = place(chosen.path(&ARENA), "arena")?;
        let shared = chosen.path(&SHARED_MEMORY_FILE);
        for (setting, path) in [("arena", chosen.path(&ARENA)), ("shared_memory_file", shared)] {
            spare_others(setting, path)?;
        }
        Ok(Self {
            shared: match shared.to_str() {
                Some("none") => None,
                Some("auto") => arena.as_deref().map(store::shared_path_beside),
                _ => Some(shared.to_path_buf()),
            },
            arena,
            socket: place(socket, "sock")?,
            sql_socket: sql_socket(chosen)?,
        })
    }
}

impl Places {
    /// Whether the files that nobody asked for are those of a daemon that serves in another network namespace: it
    /// answers at the socket, and our port is free. One that is about to stop does not answer any more, and the next
    /// start needs its rows.
    pub(crate) fn are_of_another_namespace(&self, chosen: &Chosen) -> bool {
        let asked = chosen.is_given(&ARENA) || chosen.is_given(&UNIX_SOCKET_PATH);
        let answers = || self.socket.as_ref().is_some_and(|path| UnixStream::connect(path).is_ok());
        let Some(port) = u16::try_from(port(chosen)).ok().filter(|port| *port > 0) else { return false };
        let free = |address: &Address| TcpListener::bind((address.ip, address.port.unwrap_or(port))).is_ok();
        !asked && answers() && chosen.addresses(&LISTEN_ADDRESSES).iter().all(free)
    }
}

/// Whether only a path for the Unix socket was given: then TCP is off, as in memcached. Nobody asked for a port that
/// the machine's other users can reach.
fn is_socket_alone(chosen: &Chosen) -> bool {
    let path = chosen.path(&UNIX_SOCKET_PATH);
    let own = ![Path::new("auto"), Path::new("none")].contains(&path);
    own && !chosen.is_given(&PORT) && !chosen.is_given(&LISTEN_ADDRESSES)
}

/// The TCP port for memcached clients, 0 for none, [`ANY_PORT`] for any.
pub(crate) fn port(chosen: &Chosen) -> u64 {
    if is_socket_alone(chosen) { 0 } else { chosen.number(&PORT) }
}

/// The TCP port for SQL clients, in the same way.
pub(crate) fn sql_port(chosen: &Chosen) -> u64 {
    let unasked = is_socket_alone(chosen) && !chosen.is_given(&SQL_PORT);
    if unasked { 0 } else { chosen.number(&SQL_PORT) }
}

/// The TCP port for HTTP, in the same way.
pub(crate) fn http_port(chosen: &Chosen) -> u64 {
    let unasked = is_socket_alone(chosen) && !chosen.is_given(&HTTP_PORT);
    if unasked { 0 } else { chosen.number(&HTTP_PORT) }
}

/// What the files of a daemon are called: after its port, so that the next start finds them; without one after its
/// socket, so that two daemons have two. `None`: nobody would find them again.
fn file_name(port: u64, socket: &Path) -> Option<String> {
    match (port, socket.to_str()) {
        (ANY_PORT, _) => None,
        (0, Some("auto" | "none") | None) => Some("0".to_owned()),
        (0, Some(path)) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
            Some(whole.to_string_lossy().trim_start_matches('/').replace('/', "-"))
        }
        (port, _) => Some(port.to_string()),
    }
}

/// Refuses a path that somebody gave by mistake: a file that never was an arena would be overwritten. What begins as
/// one and is damaged, or has another layout, is ours to replace.
fn spare_others(setting: &str, path: &Path) -> Result<(), String> {
    if [Path::new("auto"), Path::new("none")].contains(&path) {
        return Ok(());
    }
    match store::begins_as_arena(path) {
        Ok(false) => Err(format!(
            "{setting}: {} is not an arena and would be overwritten; remove it or choose another path",
            path.display()
        )),
        // That there is none, or that it cannot be read, is for those to tell who open it.
        Ok(true) | Err(_) => Ok(()),
    }
}

/// The PostgreSQL listener's socket, by the name that libpq looks for.
fn sql_socket(chosen: &Chosen) -> Result<Option<PathBuf>, String> {
    let port = chosen.number(&SQL_PORT);
    let path = chosen.path(&SQL_SOCKET_DIR);
    let directory = match path.to_str() {
        // libpq finds the socket by the port.
        _ if port == 0 || port == ANY_PORT => return Ok(None),
        Some("none") => return Ok(None),
        Some("auto") => private_directory(Path::new(MEMORY_FILES))?,
        _ => path.to_path_buf(),
    };
    Ok(Some(directory.join(format!(".s.PGSQL.{port}"))))
}

/// `sqlcached-<uid>` in `parent`, ours alone. Anybody may write to `/dev/shm`, so a directory that somebody else put
/// there first, a symbolic link, or one that others may enter is refused, never used.
fn private_directory(parent: &Path) -> Result<PathBuf, String> {
    let user = rustix::process::geteuid().as_raw();
    let path = parent.join(format!("sqlcached-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(format!(
                "cannot create {}: {error}; choose other paths with --arena and -s",
                path.display()
            ));
        }
    }
    let found = fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(format!(
            "{} must be a directory of user {user} that nobody else may enter (mode 0700); \
             remove it, or choose other places with --arena and -s",
            path.display()
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::private_directory;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("sqlcached-place-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_directory_is_ours_alone() {
        let folder = Folder::new("ours");
        let path = private_directory(&folder.0).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(private_directory(&folder.0).unwrap(), path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(private_directory(&folder.0).unwrap_err().contains("mode 0700"));
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let folder = Folder::new("link");
        let path = private_directory(&folder.0).unwrap();
        fs::remove_dir(&path).unwrap();
        symlink(std::env::temp_dir(), &path).unwrap();
        assert!(private_directory(&folder.0).is_err());
    }
}

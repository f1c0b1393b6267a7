//! The arena of the daemon: which file it is, whether it may be believed, and when to look again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use store::{ArenaError, Clock, Reader};

use crate::error::Error;
use crate::limits::LOOK_AGAIN;
use crate::reply::{Pipeline, Reply};
use crate::socket::Connections;

/// The name under which `stats settings` tells where the file is.
pub(crate) const SETTING: &str = "shared_memory_file";

/// The user whose files are believed without a word from the daemon.
const ROOT: u32 = 0;

/// The file that is mapped now, if there is one.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// The file, where the caller named it.
    named: Option<PathBuf>,
    reader: ArcSwapOption<Reader>,
    clock: Clock,
    /// When a file that was not there may be looked for again.
    look_at_ns: AtomicU64,
}

impl Attachment {
    pub(crate) fn new(named: Option<&Path>) -> Self {
        Self {
            named: named.map(Path::to_owned),
            reader: ArcSwapOption::empty(),
            clock: Clock::System,
            look_at_ns: AtomicU64::new(0),
        }
    }

    /// The arena in use; a file that is retired is replaced by its successor.
    pub(crate) fn reader(&self, connections: &Connections) -> Option<Arc<Reader>> {
        if let Some(reader) = self.reader.load_full() {
            if reader.begin().is_some() {
                return Some(reader);
            }
            self.reader.store(None);
        }
        let now = self.clock.now_ns();
        // Relaxed: two threads that look at the same time find the same.
        if now < self.look_at_ns.load(Ordering::Relaxed) {
            return None;
        }
        let pause = u64::try_from(LOOK_AGAIN.as_nanos()).unwrap_or(u64::MAX);
        self.look_at_ns.store(now.saturating_add(pause), Ordering::Relaxed);
        // What cannot be read is read over the socket.
        self.look(connections).ok().flatten()
    }

    /// Opens the file. None: there is none, or none that this process has addresses for. An error: there is one, and it
    /// is not to be believed.
    pub(crate) fn look(&self, connections: &Connections) -> Result<Option<Arc<Reader>>, Error> {
        let (asked, daemon) = match Self::ask(connections) {
            Ok((path, user)) => (path, Some(user)),
            // Without a daemon a file is as its last owner left it.
            Err(error) if self.named.is_none() => return Err(error),
            Err(_) => (None, None),
        };
        let Some(path) = self.named.clone().or(asked) else { return Ok(None) };
        let owners =
            daemon.map_or_else(|| vec![rustix::process::geteuid().as_raw(), ROOT], |daemon| vec![daemon]);
        match Reader::open(&path, &owners, self.clock.clone()) {
            Ok(reader) => {
                self.reader.store(Some(Arc::new(reader)));
                Ok(self.reader.load_full())
            }
            Err(ArenaError::NotFound(_)) => Ok(None),
            // This process is out of addresses; the daemon answers the same over its socket.
            Err(ArenaError::Unmapped { .. }) if daemon.is_some() => Ok(None),
            Err(error) => Err(Error::Arena(error.to_string())),
        }
    }

    /// Asks the daemon for the file, and the kernel for the daemon's user.
    fn ask(connections: &Connections) -> Result<(Option<PathBuf>, u32), Error> {
        let mut connection = connections.take()?;
        let user = connection.peer_user()?;
        let mut pipeline = Pipeline::new();
        pipeline.settings();
        let replies = pipeline.run_on(&mut connection)?;
        connections.give_back(connection);
        let path = replies.into_iter().find_map(|reply| match reply {
            Ok(Reply::Rows(rows)) => rows
                .iter()
                .find(|row| row.text("name") == Some(SETTING))
                .and_then(|row| row.text("value"))
                .filter(|path| path.starts_with('/'))
                .map(PathBuf::from),
            _ => None,
        });
        Ok((path, user))
    }
}

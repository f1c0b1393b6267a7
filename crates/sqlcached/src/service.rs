//! What the service manager is told (systemd's `Type=notify`): that the daemon serves, reads its settings again, or
//! stops. The manager keeps its listening sockets while it restarts the daemon.
//!
//! Nobody listens where no service manager started it, and a message that is lost stops nothing: each is said once,
//! and what follows from its absence is the manager's to decide.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use engine::Engine;
use listenfd::ListenFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sd_notify::NotifyState;
use server::{Handover, Kept};

/// The name under which the manager keeps sockets. Behind it stands the number of the file of one that has a path.
const SOCKETS: &str = "listener";

/// How long the manager may take to forget sockets.
const BARRIER_PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// The sockets that a manager hands over, from the process before or from a unit of its own.
pub(crate) struct Sockets {
    pub(crate) handover: Handover,
    /// The names by which it knows them.
    names: Vec<String>,
}

impl Sockets {
    /// What was handed over to this process; none: no manager started it. To be asked before anything else is opened:
    /// descriptors that are announced and not there would be others.
    pub(crate) fn of_manager() -> Option<Self> {
        // An error: they are not there, or are none.
        let names: Vec<String> = sd_notify::listen_fds_with_names()
            .map(|passed| passed.map(|(_, name)| name).collect())
            .unwrap_or_default();
        let mut passed = if names.is_empty() { ListenFd::empty() } else { ListenFd::from_env() };
        let file = |name: &String| name.strip_prefix(SOCKETS)?.strip_prefix('-')?.parse().ok();
        let kept = |(at, name)| Some(Kept { socket: taken(&mut passed, at)?, file: file(name) });
        let kept: Vec<Kept> = names.iter().enumerate().filter_map(kept).collect();
        (is_managed() || !kept.is_empty()).then(|| Self { handover: Handover::new(kept), names })
    }

    /// Lets those go that listen where the daemon is not to listen: they would be in the way.
    pub(crate) fn let_others_go(&self, addresses: &[SocketAddr], paths: &[&Path]) {
        if self.handover.close_others(addresses, paths) == 0 {
            return;
        }
        self.forget();
        if let Err(error) = barrier() {
            tracing::warn!(%error, "cannot wait for the service manager");
        }
    }

    /// Has the manager keep those that the daemon listens on, and no others.
    pub(crate) fn keep(&self) {
        self.forget();
        for Kept { socket, file } in self.handover.take_opened() {
            let name = file.map_or_else(|| SOCKETS.to_owned(), |file| format!("{SOCKETS}-{file}"));
            let state = [NotifyState::FdStore, NotifyState::FdName(&name)];
            if let Err(error) = sd_notify::notify_with_fds(&state, &[socket.as_fd()]) {
                tracing::warn!(%error, "cannot have the service manager keep a socket");
            }
        }
    }

    fn forget(&self) {
        for name in &self.names {
            tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]);
        }
    }
}

/// Waits until the manager has done what it was told.
fn barrier() -> io::Result<()> {
    let (done, held) = io::pipe()?;
    sd_notify::notify_with_fds(&[NotifyState::Custom("BARRIER=1")], &[held.as_fd()])?;
    // The manager closes its own when it comes to that.
    drop(held);
    poll(&mut [PollFd::new(&done, PollFlags::IN)], Some(&BARRIER_PATIENCE))?;
    Ok(())
}

fn is_managed() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// One of them, of either kind.
fn taken(passed: &mut ListenFd, at: usize) -> Option<OwnedFd> {
    if let Ok(Some(socket)) = passed.take_tcp_listener(at) {
        return Some(socket.into());
    }
    passed.take_unix_listener(at).ok().flatten().map(OwnedFd::from)
}

/// It serves. `status`: a line for `systemctl status`.
pub(crate) fn say_ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells the manager that it works, twice in each period of its watchdog, as long as the housekeeping thread has its
/// turns. A manager that hears nothing for a period restarts it, and its rows are there.
pub(crate) fn begin_watchdog(engine: &Arc<Engine>) {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let engine = Arc::downgrade(engine);
    let watch = move || {
        while let Some(engine) = engine.upgrade() {
            if engine.is_alive() {
                tell(&[NotifyState::Watchdog]);
            }
            drop(engine);
            std::thread::sleep(period / 2);
        }
    };
    if let Err(error) = Builder::new().name("watchdog".into()).spawn(watch) {
        tracing::error!(%error, "cannot start the watchdog's thread");
    }
}

/// It reads its settings again; [`say_ready`] ends that.
pub(crate) fn say_reloading() {
    // The time is what tells the manager that the readiness that follows is of this reload.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// It accepts nothing new, and ends.
pub(crate) fn say_stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing what was begun")]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}

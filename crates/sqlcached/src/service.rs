//! What the service manager is told (systemd's `Type=notify`): that the daemon serves, reads its settings again, or
//! stops. The manager keeps its listening sockets while it restarts the daemon.
//!
//! Nobody listens where no service manager started it, and a message that is lost stops nothing: each is said once,
//! and what follows from its absence is the manager's to decide.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::Builder;

use engine::Engine;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use server::Handover;

/// The name under which the manager keeps sockets.
const SOCKETS: NotifyState<'static> = NotifyState::FdName("listener");

/// The sockets that a manager hands over, from the process before or from a unit of its own; none: no manager started
/// this process.
pub(crate) fn handover() -> Option<Handover> {
    let mut passed = ListenFd::from_env();
    let kept: Vec<OwnedFd> = (0..passed.len()).filter_map(|at| taken(&mut passed, at)).collect();
    (is_managed() || !kept.is_empty()).then(|| Handover::new(kept))
}

#[expect(clippy::disallowed_methods, reason = "the manager's variable, which is no setting")]
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

/// Has the manager keep the sockets that the daemon listens on, and no others: those of settings of before.
pub(crate) fn keep_sockets(handover: &Handover) {
    tell(&[NotifyState::FdStoreRemove, SOCKETS]);
    for socket in handover.take_opened() {
        if let Err(error) = sd_notify::notify_with_fds(&[NotifyState::FdStore, SOCKETS], &[socket.as_fd()]) {
            tracing::warn!(%error, "cannot have the service manager keep a socket");
        }
    }
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

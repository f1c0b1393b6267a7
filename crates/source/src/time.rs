//! The time of the network: what waits for others waits in real time, whatever clock the rows have.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "timeouts of sockets are the system's")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

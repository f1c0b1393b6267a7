//! Where a peer comes from, as the rules of who may connect ask it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use engine::Failure;
use engine::auth::Origin;

/// The origin of a connection, which is encrypted or not.
pub(crate) fn origin_of(fd: impl AsFd, encrypted: bool) -> Origin {
    match address_of(&fd) {
        Some(address) => Origin::Network(address, encrypted),
        None => Origin::Unix(user_of(&fd)),
    }
}

/// The address that a peer comes from; none for a Unix socket.
pub(crate) fn address_of(fd: impl AsFd) -> Option<IpAddr> {
    let peer = rustix::net::getpeername(fd).ok().flatten()?;
    SocketAddr::try_from(peer).ok().map(|peer| peer.ip().to_canonical())
}

/// The user whose process is at the other end of a Unix socket, by its name in `/etc/passwd`.
fn user_of(fd: impl AsFd) -> Option<String> {
    let peer = rustix::net::sockopt::socket_peercred(fd).ok()?;
    let uid = peer.uid.as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let found = users.lines().find(|line| line.split(':').nth(2) == Some(&uid))?;
    found.split(':').next().map(str::to_owned)
}

/// An address as the log shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(pub(crate) Option<IpAddr>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("the Unix socket"),
        }
    }
}

/// What sessions and the list of refusals call memcached's protocols.
pub(crate) const MEMCACHED: &str = "memcached";

/// A peer that is not let in, for the list of refusals.
pub(crate) fn failed<'f>(
    role: Option<&'f str>,
    address: Option<IpAddr>,
    protocol: &'static str,
    reason: &'f str,
) -> Failure<'f> {
    Failure { role, address, protocol, reason }
}

//! Which port speaks what, for peers that came to the wrong one.

use std::fmt;
use std::net::SocketAddr;

/// The first port of each protocol, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) memcached: Option<u16>,
    pub(crate) postgresql: Option<u16>,
    pub(crate) http: Option<u16>,
}

impl Ports {
    /// Those of these addresses.
    pub(crate) fn of(memcached: &[SocketAddr], postgresql: &[SocketAddr], http: &[SocketAddr]) -> Self {
        let first = |addresses: &[SocketAddr]| addresses.first().map(SocketAddr::port);
        Self { memcached: first(memcached), postgresql: first(postgresql), http: first(http) }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("sqlcached speaks memcached's protocol here");
        }
        f.write_str("sqlcached speaks ")?;
        let all = [
            ("memcached's protocol", self.memcached),
            ("PostgreSQL's protocol", self.postgresql),
            ("HTTP", self.http),
        ];
        let spoken = all.into_iter().filter_map(|(protocol, port)| Some((protocol, port?)));
        for (at, (protocol, port)) in spoken.enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}{protocol} on port {port}")?;
        }
        Ok(())
    }
}

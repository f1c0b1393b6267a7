//! Peers that speak another protocol than their port: they are closed, and the log says what to change.

use std::sync::atomic::{AtomicU32, Ordering};

use engine::{TICKS_PER_SECOND, Tick, ticks_between};
use memcache::binary::MAGIC;

use crate::limits::STRANGER_LOG_INTERVAL;
use crate::ports::Ports;

/// What a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// TLS.
    Tls,
    /// PostgreSQL's, on the port for memcached.
    Postgres,
    /// Redis's.
    Redis,
    /// HTTP.
    Http,
    /// memcached's, on the port for SQL.
    Memcached,
    /// No TLS, on a port for it.
    Plain,
}

/// How many kinds there are.
const KINDS: usize = Stranger::Plain as usize + 1;

/// How often each of them is mentioned.
#[derive(Debug, Default)]
pub(crate) struct StrangerLog([Mentions; KINDS]);

/// When a kind of stranger was mentioned last, and how many came since.
#[derive(Debug, Default)]
struct Mentions {
    /// 0: never.
    last: AtomicU32,
    since: AtomicU32,
}

impl Stranger {
    /// Who begins so on the port for memcached.
    pub(crate) fn on_memcached_port(first: &[u8]) -> Option<Self> {
        Some(match memcache::stranger(first)? {
            memcache::Stranger::Tls => Self::Tls,
            memcache::Stranger::Postgres => Self::Postgres,
            memcache::Stranger::Redis => Self::Redis,
            _ => return None,
        })
    }

    /// Who begins so on the port for SQL.
    pub(crate) fn on_sql_port(first: &[u8]) -> Option<Self> {
        let begins = |words: &[&[u8]]| words.iter().any(|word| first.starts_with(word));
        match Self::on_memcached_port(first) {
            None if begins(&[b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"]) => Some(Self::Http),
            None if begins(&[b"get ", b"gets", b"set ", b"add ", b"stat", b"vers", b"mg ", b"mn\r"]) => {
                Some(Self::Memcached)
            }
            None if first.first() == Some(&MAGIC) => Some(Self::Memcached),
            stranger => stranger.filter(|stranger| *stranger != Self::Postgres),
        }
    }

    /// Tells a peer on the port for memcached, in the words of its own protocol, which port speaks what. Who begins by
    /// asking for encryption does not read a line.
    pub(crate) fn answer(self, ports: &Ports, out: &mut Vec<u8>) {
        match self {
            Self::Redis => out.extend_from_slice(format!("-ERR {ports}, and no Redis\r\n").as_bytes()),
            Self::Http => out.extend_from_slice(page(ports).as_bytes()),
            Self::Tls | Self::Postgres | Self::Memcached | Self::Plain => {}
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Tls => {
                "a client begins with TLS on a port without it; switch TLS on here (ssl), or off in the client (for \
                 PostgreSQL: sslnegotiation=postgres)"
            }
            Self::Postgres => {
                "a client speaks PostgreSQL's protocol on the port for memcached; use the other port (sql_port)"
            }
            Self::Redis => {
                "a client speaks Redis's protocol; this server speaks memcached's and PostgreSQL's"
            }
            Self::Http => "a client speaks HTTP; this is not a web server",
            Self::Memcached => {
                "a client speaks memcached's protocol on the port for SQL (sql_port); use the other port (-p)"
            }
            Self::Plain => {
                "a client does not speak TLS on a port for memcached with TLS; switch it on in the client, or listen on \
                 another port without it (-l notls:ADDRESS:PORT)"
            }
        }
    }
}

/// What a browser shows. It holds nothing that the request said, and no other page may read it.
fn page(ports: &Ports) -> String {
    let line = format!("{ports}\r\n");
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{line}",
        line.len()
    )
}

impl StrangerLog {
    /// Mentions a peer that is being closed, unless one of its kind was mentioned a moment ago.
    #[cold]
    pub(crate) fn mention(&self, stranger: Stranger, now: Tick) {
        let mentions = &self.0[stranger as usize];
        // Relaxed throughout: two threads at once mention it twice at worst.
        let last = mentions.last.load(Ordering::Relaxed);
        if last != 0 && ticks_between(last, now) < STRANGER_LOG_INTERVAL.as_secs() * TICKS_PER_SECOND {
            mentions.since.fetch_add(1, Ordering::Relaxed);
            return;
        }
        mentions.last.store(now, Ordering::Relaxed);
        match mentions.since.swap(0, Ordering::Relaxed) {
            0 => tracing::warn!("closed a connection: {}", stranger.advice()),
            more => tracing::warn!("closed a connection, and {more} before it: {}", stranger.advice()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Stranger, StrangerLog};

    #[test]
    fn strangers_on_the_sql_port_are_told_by_their_first_bytes() {
        for (input, stranger) in [
            (&b"\x16\x03\x01\x02\0"[..], Some(Stranger::Tls)),
            (b"\x80\x0b\0\0", Some(Stranger::Memcached)),
            (b"GET / HTTP/1.1\r\n", Some(Stranger::Http)),
            (b"version\r\n", Some(Stranger::Memcached)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", None),
        ] {
            assert_eq!(Stranger::on_sql_port(input), stranger, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn each_kind_is_mentioned_once_a_minute() {
        let log = StrangerLog::default();
        for (stranger, now, waits) in [
            (Stranger::Redis, 1, 0),
            (Stranger::Redis, 2, 1),
            (Stranger::Redis, 900, 2),
            (Stranger::Redis, 1 + 960, 0),
            (Stranger::Tls, 962, 0),
        ] {
            log.mention(stranger, now);
            let since = log.0[stranger as usize].since.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(since, waits, "{stranger:?} at {now}");
        }
    }
}

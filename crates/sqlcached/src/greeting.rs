//! What the daemon says when it serves: how it started, how to reach it, what to try.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use store::Start;

use crate::place::Places;

/// What there is to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) start: &'a Start,
    pub(crate) tables_made: usize,
    pub(crate) addresses: &'a [SocketAddr],
    pub(crate) socket: Option<&'a Path>,
    pub(crate) sql_addresses: &'a [SocketAddr],
    pub(crate) sql_socket: Option<&'a Path>,
    pub(crate) http_addresses: &'a [SocketAddr],
    pub(crate) places: &'a Places,
    pub(crate) memory_mb: u64,
    /// Memcached clients speak TLS, if not on the Unix socket.
    pub(crate) tls: bool,
}

/// Prints it to standard output. A closed standard output is no reason to stop serving.
pub(crate) fn print(facts: &Facts<'_>) {
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(text(facts).as_bytes()).and_then(|()| out.flush());
}

fn text(facts: &Facts<'_>) -> String {
    let mut text = format!("sqlcached {}\n", env!("CARGO_PKG_VERSION"));
    let arena = match &facts.places.arena {
        Some(path) => format!("{} ({} MiB)", path.display(), facts.memory_mb),
        None => format!("memory of its own ({} MiB)", facts.memory_mb),
    };
    let _ = match facts.start {
        Start::Warm { bytes, redone } => writeln!(
            text,
            "  warm start: {} MiB of rows in {arena}, checked as they are used; {redone} rows of commits finished",
            bytes.div_ceil(1 << 20)
        ),
        Start::Cold { reason } => writeln!(text, "  cold start: {reason}; {arena}"),
    };
    if facts.tables_made > 0 {
        let _ = writeln!(text, "  init file: {} statements", facts.tables_made);
    }
    for address in facts.addresses {
        let _ = writeln!(text, "  memcached and SQL on {address}");
    }
    if let Some(path) = facts.socket {
        let _ = writeln!(text, "  memcached and SQL on {}", path.display());
    }
    for address in facts.sql_addresses {
        let _ = writeln!(text, "  PostgreSQL clients on {address}");
    }
    if let Some(path) = facts.sql_socket {
        let _ = writeln!(text, "  PostgreSQL clients on {}", path.display());
    }
    for address in facts.http_addresses {
        let _ = writeln!(text, "  console, metrics and health on http://{address}/");
    }
    let plain = facts.addresses.first().filter(|_| !facts.tls);
    let listener = match (plain, facts.socket) {
        (Some(address), _) => format!("{} {}", address.ip(), address.port()),
        (None, Some(path)) => format!("-U {}", path.display()),
        (None, None) => return text,
    };
    let statement = "SELECT key, value FROM memcached";
    let _ = write!(
        text,
        "try:\n  \
           printf 'set greeting 0 0 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n' | nc {listener}\n  \
           printf 'sql {}\\r\\n{statement}\\r\\nquit\\r\\n' | nc {listener}\n",
        statement.len()
    );
    if let Some(address) = facts.sql_addresses.first() {
        let _ = writeln!(text, "  psql -h {} -p {} -c '{statement}'", address.ip(), address.port());
    }
    text
}

#[cfg(test)]
mod tests {
    use store::Start;

    use super::{Facts, text};
    use crate::place::Places;

    #[test]
    fn it_says_how_to_reach_it() {
        let places = Places {
            arena: Some("/dev/shm/a".into()),
            shared: None,
            socket: Some("/tmp/s".into()),
            sql_socket: None,
        };
        let start = Start::Warm { bytes: 3 << 20, redone: 2 };
        let addresses = ["127.0.0.1:11211".parse().unwrap()];
        let sql_addresses = ["127.0.0.1:5433".parse().unwrap()];
        let http_addresses = ["127.0.0.1:11280".parse().unwrap()];
        let facts = Facts {
            start: &start,
            tables_made: 0,
            addresses: &addresses,
            socket: places.socket.as_deref(),
            sql_addresses: &sql_addresses,
            sql_socket: None,
            http_addresses: &http_addresses,
            places: &places,
            memory_mb: 64,
            tls: false,
        };
        let by_tls = text(&Facts { tls: true, ..facts });
        let text = text(&facts);
        assert!(text.contains(
            "warm start: 3 MiB of rows in /dev/shm/a (64 MiB), checked as they are used; 2 rows of commits finished\n"
        ));
        assert!(text.contains("| nc 127.0.0.1 11211\n"));
        assert!(by_tls.contains("| nc -U /tmp/s\n"));
        assert!(text.contains("psql -h 127.0.0.1 -p 5433 -c 'SELECT"));
        assert!(text.contains("console, metrics and health on http://127.0.0.1:11280/\n"));
        assert!(text.contains("'sql 32\\r\\nSELECT"));
    }
}

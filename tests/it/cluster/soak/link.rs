//! A connection to a cache that may be away at any time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

/// See the module.
pub(super) struct Link {
    path: PathBuf,
    client: Option<Client>,
}

impl Link {
    pub(super) fn to(path: &Path) -> Self {
        Self { path: path.to_owned(), client: None }
    }

    /// False: it is away, or was.
    pub(super) fn send(&mut self, bytes: &str) -> bool {
        if self.client.is_none() {
            self.client = Client::try_unix(&self.path).ok();
        }
        let sent = self.client.as_mut().is_some_and(|client| client.try_send(bytes.as_bytes()).is_ok());
        if !sent {
            self.client = None;
        }
        sent
    }

    /// None: it has gone.
    pub(super) fn line(&mut self) -> Option<String> {
        let line = self.client.as_mut()?.try_line().ok().filter(|line| !line.is_empty());
        if line.is_none() {
            self.client = None;
        }
        line
    }

    /// How long a cache has not heard the bus, and when it was asked; none: it does not know, or is away.
    pub(super) fn lag(&mut self) -> Option<(Instant, Duration)> {
        const ASKED: &str = "SELECT lag_ms FROM sqlcached_buses WHERE state = 'streaming'";
        let began = Instant::now();
        if !self.send(&format!("sql {}\r\n{ASKED}\r\n", ASKED.len())) {
            return None;
        }
        let row = self.line().filter(|line| line != "END")?;
        if row.starts_with("ERROR ") {
            return None;
        }
        assert_eq!(self.line()?, "END");
        let row: Value = serde_json::from_str(&row).unwrap();
        let ms = row["lag_ms"].as_f64().or_else(|| row[0].as_f64())?;
        Some((began, Duration::from_secs_f64(ms / 1_000.0)))
    }

    /// The rows of some keys, with their versions.
    pub(super) fn get(&mut self, keys: impl Iterator<Item = usize>) -> Option<Vec<(usize, u64)>> {
        let names = keys.map(|key| format!(" page:{key}")).collect::<Vec<_>>().concat();
        if !self.send(&format!("get{names}\r\n")) {
            return None;
        }
        let mut rows = Vec::new();
        loop {
            let head = self.line()?;
            if head == "END" {
                return Some(rows);
            }
            let key = head.strip_prefix("VALUE page:")?.split(' ').next()?.parse().ok()?;
            rows.push((key, self.line()?.parse().ok()?));
        }
    }
}

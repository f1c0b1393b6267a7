//! Caches that know only keys: memcached with the client's own index, and Redis with sets of keys.

use crate::client::{Client, Reply};
use crate::failure::{Failure, Result};
use crate::pages::Fragment;
use crate::server::Server;

use super::cache::{Cache, Owner};

/// Requests on their way at the same time while rows are stored.
const PIPELINE: usize = 1_000;

/// memcached, by a client that knows the keys of every page and user.
#[derive(Debug)]
pub(super) struct Memcached {
    client: Client,
    /// All deletes of an owner are sent at once.
    batch: bool,
}

impl Memcached {
    pub(super) fn connect(server: &Server, batch: bool) -> Result<Self> {
        Ok(Self { client: Client::connect(&server.address)?, batch })
    }

    fn put_delete(&mut self, row: &Fragment) {
        self.client.out.extend_from_slice(format!("delete {}\r\n", row.key()).as_bytes());
    }
}

impl Cache for Memcached {
    fn define(&mut self) -> Result<()> {
        Ok(())
    }

    fn expire_all(&mut self) -> Result<()> {
        self.client.out.extend_from_slice(b"flush_all\r\n");
        self.client.send()?;
        self.client.expect(b"OK")
    }

    fn refill(&mut self, rows: &[Fragment]) -> Result<()> {
        for rows in rows.chunks(PIPELINE) {
            for row in rows {
                let body = row.body();
                let request = format!("set {} 0 0 {}\r\n{body}\r\n", row.key(), body.len());
                self.client.out.extend_from_slice(request.as_bytes());
            }
            self.client.send()?;
            for _ in rows {
                self.client.expect(b"STORED")?;
            }
        }
        Ok(())
    }

    fn expire(&mut self, _owner: Owner, _number: u64, rows: &[Fragment]) -> Result<u64> {
        for rows in rows.chunks(if self.batch { rows.len().max(1) } else { 1 }) {
            for row in rows {
                self.put_delete(row);
            }
            self.client.send()?;
            for _ in rows {
                self.client.expect(b"DELETED")?;
            }
        }
        Ok(rows.len() as u64)
    }

    fn read(&mut self, _page: u64, rows: &[Fragment]) -> Result<()> {
        self.client.out.extend_from_slice(b"get");
        for row in rows {
            self.client.out.push(b' ');
            self.client.out.extend_from_slice(row.key().as_bytes());
        }
        self.client.out.extend_from_slice(b"\r\n");
        self.client.send()?;
        self.client.read_values(|_, _| {})
    }
}

/// Redis, with a set of keys for every page and every user. An expiry asks for the set, then deletes its keys and it;
/// keys stay behind in the sets of the other kind, as they do in tagged caches.
#[derive(Debug)]
pub(super) struct Redis {
    client: Client,
}

impl Redis {
    pub(super) fn connect(server: &Server) -> Result<Self> {
        Ok(Self { client: Client::connect(&server.address)? })
    }
}

fn tag(owner: Owner, number: u64) -> String {
    format!("tag:{}:{number}", owner.name())
}

impl Cache for Redis {
    fn define(&mut self) -> Result<()> {
        Ok(())
    }

    fn expire_all(&mut self) -> Result<()> {
        self.client.put_command(&[b"FLUSHDB"]);
        self.client.send()?;
        self.client.read_reply()?;
        Ok(())
    }

    fn refill(&mut self, rows: &[Fragment]) -> Result<()> {
        for rows in rows.chunks(PIPELINE) {
            for row in rows {
                let key = row.key();
                self.client.put_command(&[b"SET", key.as_bytes(), row.body().as_bytes()]);
                for owner in [Owner::Page, Owner::User] {
                    let tag = tag(owner, owner.number(row));
                    self.client.put_command(&[b"SADD", tag.as_bytes(), key.as_bytes()]);
                }
            }
            self.client.send()?;
            for _ in 0..3 * rows.len() {
                self.client.read_reply()?;
            }
        }
        Ok(())
    }

    fn expire(&mut self, owner: Owner, number: u64, _rows: &[Fragment]) -> Result<u64> {
        let tag = tag(owner, number);
        self.client.put_command(&[b"SMEMBERS", tag.as_bytes()]);
        self.client.send()?;
        let Reply::List(members) = self.client.read_reply()? else {
            return Err(Failure::new("SMEMBERS did not answer with a list"));
        };
        let keys = members.iter().filter_map(|member| match member {
            Reply::Bytes(key) => Some(key.as_slice()),
            _ => None,
        });
        let words: Vec<&[u8]> = [&b"DEL"[..], tag.as_bytes()].into_iter().chain(keys).collect();
        self.client.put_command(&words);
        self.client.send()?;
        match self.client.read_reply()? {
            // The set itself is not a row.
            Reply::Number(deleted) => Ok(u64::try_from(deleted - 1).unwrap_or(0)),
            other => Err(Failure::new(format!("DEL answered {other:?}"))),
        }
    }

    fn read(&mut self, _page: u64, rows: &[Fragment]) -> Result<()> {
        let keys: Vec<String> = rows.iter().map(Fragment::key).collect();
        let words: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
        self.client.put_command(&words);
        self.client.send()?;
        self.client.read_reply()?;
        Ok(())
    }
}

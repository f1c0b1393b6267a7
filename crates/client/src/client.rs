//! The client: reads in shared memory where it can, everything else over the socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use store::{Clock, Found, RowBuf};

use crate::attach::Attachment;
use crate::error::Error;
use crate::limits::{ASK_AGAIN, LEASE_LOOK, REPLY_TIMEOUT};
use crate::remote::Remote;
use crate::reply::{Pipeline, Reply};
use crate::row::Row;
use crate::socket::Connections;
use crate::table::{Shared, Table, state_of};
use crate::{Lookup, Meta, Renewal, SqlValue, Value};

/// How to reach the daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its Unix socket.
    pub socket: PathBuf,
    /// The file of its shared tables; without it the daemon is asked.
    pub arena: Option<PathBuf>,
    /// Whether to read in shared memory at all.
    pub shared_memory: bool,
    /// How long a reply may take.
    pub timeout: Duration,
}

impl Options {
    /// The daemon behind this socket.
    pub fn new(socket: impl AsRef<Path>) -> Self {
        Self { socket: socket.as_ref().to_owned(), arena: None, shared_memory: true, timeout: REPLY_TIMEOUT }
    }

    /// Where a daemon of this user has its socket when nobody says.
    pub fn default_socket() -> PathBuf {
        let user = rustix::process::geteuid().as_raw();
        PathBuf::from(format!("/dev/shm/sqlcached-{user}/11211.sock"))
    }
}

/// A client, shared by threads.
#[derive(Debug)]
pub struct Client {
    connections: Connections,
    attachment: Option<Attachment>,
}

impl Client {
    /// Opens the shared memory of a daemon, and its socket when it is needed. It is an error that neither can be
    /// reached, and that the file is one not to be believed.
    pub fn connect(options: &Options) -> Result<Self, Error> {
        let connections = Connections::new(&options.socket, options.timeout);
        let attachment = options.shared_memory.then(|| Attachment::new(options.arena.as_deref()));
        match &attachment {
            Some(attachment) => {
                attachment.look(&connections)?;
            }
            None => connections.give_back(connections.take()?),
        }
        Ok(Self { connections, attachment })
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        self.connections.socket()
    }

    /// The file of the shared tables, where it is mapped.
    pub fn arena(&self) -> Option<PathBuf> {
        let reader = self.attachment.as_ref()?.reader(&self.connections)?;
        Some(reader.path().to_owned())
    }

    /// A table, to be read often. Whether it is in shared memory is found out at each read, so that it may be dropped
    /// and made again meanwhile.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let table = Table::new(name);
        if self.resolve(&table).is_none() {
            self.remote(&table)?;
        }
        Ok(table)
    }

    /// The value under a key of a table. The key is written as memcached's clients write it, without the table's
    /// prefix: the bytes of a text or blob, the digits of a number, the parts of a composite key joined with `:`.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Lookup, Error> {
        self.get_from(&Table::new(table), key)
    }

    /// As [`Client::get`], of a table that was looked up before.
    pub fn get_from(&self, table: &Table, key: &[u8]) -> Result<Lookup, Error> {
        let mut bytes = Vec::new();
        Ok(self.get_into(table, key, &mut bytes)?.map(|meta| Value { bytes, meta }))
    }

    /// As [`Client::get_from`]; the value is appended to `out`, so that a read allocates nothing once it has grown.
    #[inline]
    pub fn get_into(&self, table: &Table, key: &[u8], out: &mut Vec<u8>) -> Result<Lookup<Meta>, Error> {
        let begin = out.len();
        if let Some(shared) = &*table.shared.load()
            && let Some(now) = shared.moment()
        {
            match shared.value(key, now, out)? {
                Found::Hit(seen) => return Ok(state_of(&seen)),
                Found::Miss => return Ok(Lookup::Miss),
                Found::Unanswered => out.truncate(begin),
            }
            return self.value_by_socket(table, key, out);
        }
        self.get_resolved(table, key, out)
    }

    /// As [`Client::get_into`], for a table whose place is not known, or not any more.
    #[cold]
    fn get_resolved(&self, table: &Table, key: &[u8], out: &mut Vec<u8>) -> Result<Lookup<Meta>, Error> {
        let begin = out.len();
        if let Some((shared, now)) = self.resolve(table) {
            match shared.value(key, now, out)? {
                Found::Hit(seen) => return Ok(state_of(&seen)),
                Found::Miss => return Ok(Lookup::Miss),
                Found::Unanswered => out.truncate(begin),
            }
        }
        self.value_by_socket(table, key, out)
    }

    /// Finds a table in shared memory, by the definitions in force.
    fn resolve(&self, table: &Table) -> Option<(Arc<Shared>, store::Tick)> {
        let found = self.attachment.as_ref().and_then(|attachment| {
            let reader = attachment.reader(&self.connections)?;
            let definition = reader.definitions().table(table.name()).cloned()?;
            let shared = Arc::new(Shared { reader, table: definition });
            let now = shared.moment()?;
            Some((shared, now))
        });
        table.shared.store(found.as_ref().map(|(shared, _)| Arc::clone(shared)));
        found
    }

    pub(crate) fn value_by_socket(
        &self,
        table: &Table,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Lookup<Meta>, Error> {
        let found = self.remote(table)?.value(self, key)?;
        Ok(found.map(|value| {
            out.extend_from_slice(&value.bytes);
            value.meta
        }))
    }

    fn remote(&self, table: &Table) -> Result<Arc<Remote>, Error> {
        if let Some(remote) = table.remote.load_full().filter(|remote| remote.is_recent()) {
            return Ok(remote);
        }
        let remote = Arc::new(Remote::ask(self, table.name())?);
        table.remote.store(Some(Arc::clone(&remote)));
        Ok(remote)
    }

    /// The whole row under a key.
    pub fn row(&self, table: &str, key: &[u8]) -> Result<Lookup<Row>, Error> {
        let table = Table::new(table);
        if let Some((shared, now)) = self.resolve(&table) {
            let mut row = RowBuf::new();
            let read = |key: &[u8]| shared.reader.row(&shared.table, key, now, &mut row);
            match shared.with_key(key, Found::Miss, read)? {
                Found::Hit(seen) => return Ok(state_of(&seen).map(|_| row_of(&shared, &row))),
                Found::Miss if shared.reads_through() => self.have_fetched(&table, key)?,
                Found::Miss => return Ok(Lookup::Miss),
                Found::Unanswered => {}
            }
        }
        let row = self.remote(&table)?.row(self, key)?;
        Ok(row.map_or(Lookup::Miss, Lookup::Hit))
    }

    /// Has the daemon fetch a row that is missing, which it does for who asks for its value.
    #[cold]
    fn have_fetched(&self, table: &Table, key: &[u8]) -> Result<(), Error> {
        self.value_by_socket(table, key, &mut Vec::new()).map(drop)
    }

    /// One column of the row under a key.
    pub fn column(&self, table: &str, key: &[u8], column: &str) -> Result<Lookup<SqlValue>, Error> {
        let table = Table::new(table);
        if let Some((shared, now)) = self.resolve(&table) {
            let at = shared.table.def().column_index(column);
            let at = at.ok_or_else(|| Error::NoColumn(column.to_owned()))?;
            let mut row = RowBuf::new();
            let read = |key: &[u8]| shared.reader.row(&shared.table, key, now, &mut row);
            match shared.with_key(key, Found::Miss, read)? {
                Found::Hit(seen) => {
                    return Ok(state_of(&seen).map(|_| shared.table.column(&row, at).to_owned()));
                }
                Found::Miss if shared.reads_through() => self.have_fetched(&table, key)?,
                Found::Miss => return Ok(Lookup::Miss),
                Found::Unanswered => {}
            }
        }
        match self.remote(&table)?.row(self, key)? {
            None => Ok(Lookup::Miss),
            Some(row) => {
                let value = row.get(column).cloned();
                value.map(Lookup::Hit).ok_or_else(|| Error::NoColumn(column.to_owned()))
            }
        }
    }

    /// As [`Client::get_from`], from shared memory or not at all; the value is appended to `out`. None: it is the
    /// daemon's to answer.
    #[inline]
    pub fn peek(&self, table: &Table, key: &[u8], out: &mut Vec<u8>) -> Result<Option<Lookup<Meta>>, Error> {
        let begin = out.len();
        let known = table.shared.load();
        let known = known.as_ref().and_then(|shared| Some((Arc::clone(shared), shared.moment()?)));
        let Some((shared, now)) = known.or_else(|| self.resolve(table)) else { return Ok(None) };
        Ok(match shared.value(key, now, out)? {
            Found::Hit(seen) => Some(state_of(&seen)),
            Found::Miss => Some(Lookup::Miss),
            Found::Unanswered => {
                out.truncate(begin);
                None
            }
        })
    }

    /// The answer of a memcached `get` of this key, whichever table it belongs to. If a client should refresh the
    /// value, the daemon is asked, which chooses one client for that.
    pub fn get_key(&self, key: &[u8]) -> Result<Lookup, Error> {
        let mut bytes = Vec::new();
        match self.peek_key(key, &mut bytes) {
            Some(found) => Ok(found.map(|meta| Value { bytes, meta })),
            None => self.get_key_by_socket(key),
        }
    }

    /// As [`Client::get_key`]; the value is appended to `out`.
    pub fn get_key_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<Lookup<Meta>, Error> {
        let begin = out.len();
        if let Some(found) = self.peek_key(key, out) {
            return Ok(found);
        }
        out.truncate(begin);
        Ok(self.get_key_by_socket(key)?.map(|value| {
            out.extend_from_slice(&value.bytes);
            value.meta
        }))
    }

    /// As [`Client::get_key`] for several keys, in their order; those that shared memory does not answer are asked of
    /// the daemon together.
    pub fn multi_get_key(&self, keys: &[&[u8]]) -> Result<Vec<Lookup>, Error> {
        let mut found = self.peek_keys(keys);
        let mut pipeline = Pipeline::new();
        for (key, _) in keys.iter().zip(&found).filter(|(_, found)| found.is_none()) {
            pipeline.get(key)?;
        }
        if !pipeline.is_empty() {
            let mut replies = self.run(pipeline)?.into_iter();
            for place in found.iter_mut().filter(|place| place.is_none()) {
                match replies.next() {
                    Some(Ok(Reply::Value(lookup))) => *place = Some(lookup),
                    Some(Ok(other)) => return Err(unexpected(&other)),
                    Some(Err(error)) => return Err(error),
                    None => return Err(Error::Protocol("there are too few answers".into())),
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// As [`Client::peek_key`] for several keys, in their order.
    pub fn peek_keys(&self, keys: &[&[u8]]) -> Vec<Option<Lookup>> {
        let mut bytes = Vec::new();
        let mut read = |key: &&[u8]| {
            bytes.clear();
            let found = self.peek_key(key, &mut bytes)?;
            Some(found.map(|meta| Value { bytes: bytes.clone(), meta }))
        };
        keys.iter().map(&mut read).collect()
    }

    /// As [`Client::get_key`], from shared memory or not at all; the value is appended to `out`. None: it is the
    /// daemon's to answer.
    pub fn peek_key(&self, key: &[u8], out: &mut Vec<u8>) -> Option<Lookup<Meta>> {
        let reader = self.attachment.as_ref()?.reader(&self.connections)?;
        let definitions = reader.definitions();
        let (table, rest) = definitions.route(key)?;
        let shared = Shared { reader: Arc::clone(&reader), table: Arc::clone(table) };
        let now = shared.moment()?;
        match shared.value(rest, now, out).ok()? {
            Found::Hit(seen) => {
                let state = state_of(&seen);
                let settled = matches!(state, Lookup::Hit(_)) || seen.lease != 0;
                settled.then_some(state)
            }
            Found::Miss => Some(Lookup::Miss),
            Found::Unanswered => None,
        }
    }

    /// The value under a key of a table once nobody refreshes it any more, or after `at_most`, as it is then. In shared
    /// memory nobody is asked meanwhile: this thread sleeps until the row is written, removed or flushed, or its lease
    /// lapses. Returns at once where nobody refreshes the row.
    pub fn wait(&self, table: &Table, key: &[u8], at_most: Duration) -> Result<Lookup, Error> {
        let clock = Clock::System;
        let end = u128::from(clock.now_ns()) + at_most.as_nanos();
        loop {
            let shared = self.resolve(table).map(|(shared, _)| shared);
            let ticket = shared.as_ref().map_or(Ok(None), |shared| shared.ticket(key))?;
            let found = self.get_from(table, key)?;
            let left = end.saturating_sub(u128::from(clock.now_ns()));
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            if !found.is_made_by_another() || left.is_zero() {
                return Ok(found);
            }
            match shared.zip(ticket) {
                Some((shared, ticket)) => shared.reader.wait(ticket, left.min(LEASE_LOOK)),
                None => std::thread::sleep(left.min(ASK_AGAIN)),
            }
        }
    }

    /// The value under a memcached key; the place of a missing one is taken for so many seconds. Of many who ask, one
    /// is told that the value is theirs to make ([`Renewal::Yours`]); the others may [`Client::wait`].
    pub fn get_or_claim(&self, key: &[u8], seconds: u32) -> Result<Lookup, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.get_or_claim(key, seconds)?;
        match self.run_one(pipeline)? {
            Reply::Value(lookup) => Ok(lookup),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn get_key_by_socket(&self, key: &[u8]) -> Result<Lookup, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.get(key)?;
        match self.run_one(pipeline)? {
            Reply::Value(lookup) => Ok(lookup),
            other => Err(unexpected(&other)),
        }
    }

    /// Stores a value under a memcached key. `exptime` is memcached's: seconds, 0 for the table's `ttl`.
    pub fn set_key(&self, key: &[u8], value: &[u8], flags: u32, exptime: i64) -> Result<(), Error> {
        let mut pipeline = Pipeline::new();
        pipeline.set(key, value, flags, exptime)?;
        self.run_one(pipeline).map(|_| ())
    }

    /// Stores a value under a key of a table that has a prefix.
    pub fn set(&self, table: &str, key: &[u8], value: &[u8], flags: u32, exptime: i64) -> Result<(), Error> {
        self.set_key(&self.full_key(table, key)?, value, flags, exptime)
    }

    /// Stores a value if nobody has written, invalidated or removed the row since its CAS was seen; whether it was
    /// stored.
    pub fn cas_key(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        exptime: i64,
        cas: u64,
    ) -> Result<bool, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.cas(key, value, flags, exptime, cas)?;
        self.done(pipeline)
    }

    /// Stores a value if the key is not there; whether it was stored.
    pub fn add_key(&self, key: &[u8], value: &[u8], flags: u32, exptime: i64) -> Result<bool, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.add(key, value, flags, exptime)?;
        self.done(pipeline)
    }

    /// Removes the row under a memcached key; whether there was one.
    pub fn delete_key(&self, key: &[u8]) -> Result<bool, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.delete(key)?;
        self.done(pipeline)
    }

    /// Removes the row under a key of a table that has a prefix; whether there was one.
    pub fn delete(&self, table: &str, key: &[u8]) -> Result<bool, Error> {
        self.delete_key(&self.full_key(table, key)?)
    }

    /// Gives the row under a memcached key another deadline; whether there is one.
    pub fn touch_key(&self, key: &[u8], exptime: i64) -> Result<bool, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.touch(key, exptime)?;
        self.done(pipeline)
    }

    /// Adds to the number under a memcached key; a negative delta takes away and stops at 0. None: there is no row.
    pub fn incr_key(&self, key: &[u8], delta: i64) -> Result<Option<u64>, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.incr(key, delta)?;
        match self.run_one(pipeline)? {
            Reply::Number(number) => Ok(number),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs one statement with these values for `?1`, `?2` and so on.
    pub fn sql(&self, statement: &str, parameters: &[SqlValue]) -> Result<Reply, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.sql(statement, parameters);
        self.run_one(pipeline)
    }

    /// Closes the connections that are kept for the next request, which then opens one.
    pub fn disconnect(&self) {
        self.connections.close();
    }

    /// Sends requests together; the answers in their order.
    pub fn run(&self, pipeline: Pipeline) -> Result<Vec<Result<Reply, Error>>, Error> {
        pipeline.run(&self.connections)
    }

    fn run_one(&self, pipeline: Pipeline) -> Result<Reply, Error> {
        let first = self.run(pipeline)?.into_iter().next();
        first.unwrap_or_else(|| Err(Error::Protocol("there is no answer".into())))
    }

    fn done(&self, pipeline: Pipeline) -> Result<bool, Error> {
        match self.run_one(pipeline)? {
            Reply::Done(done) => Ok(done),
            other => Err(unexpected(&other)),
        }
    }

    /// The memcached key of a row.
    fn full_key(&self, table: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
        let remote = self.remote(&Table::new(table))?;
        remote.full_key(key).ok_or_else(|| Error::Unreachable(table.to_owned()))
    }
}

fn row_of(shared: &Shared, row: &RowBuf) -> Row {
    let columns = shared.table.def().visible_columns();
    Row::new(
        columns.map(|(at, column)| (column.name.clone(), shared.table.column(row, at).to_owned())).collect(),
    )
}

fn unexpected(reply: &Reply) -> Error {
    Error::Protocol(format!("the answer belongs to another request: {reply:?}"))
}

impl Meta {
    /// Nobody else does, and this client was told to.
    pub fn is_yours(&self) -> bool {
        self.renewal == Renewal::Yours
    }
}

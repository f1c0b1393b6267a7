//! Who is read: the same rows at a daemon of ours, in LMDB, in memcached, and in a hash table of this process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use hashbrown::HashMap;
use lmdb::Transaction;
use sqlcached_client::{Client, Options as ClientOptions, Pipeline, Table};

use crate::address::Address;
use crate::client::Client as Wire;
use crate::clock;
use crate::cores::Cores;
use crate::failure::{Context, Failure, Result};
use crate::load::{KEY_BYTES, key, value};
use crate::server::{Kind, Server, Setup};

use super::Candidate;

/// Key space of these rows.
const SPACE: u64 = 11;
/// Rows of a pipeline, or of a transaction, while the rows are put there.
const BATCH: u64 = 500;
/// Keys read together.
pub(super) const TOGETHER: usize = 8;
/// A server that is not up after so long is given up.
const START_NS: u64 = 10_000_000_000;

/// Somebody whose rows are read and written.
pub(super) trait Peer {
    /// What tables call it.
    fn label(&self) -> String;
    /// Whether a read is answered by another process, so that its time is wall time.
    fn is_remote(&self) -> bool;
    /// Copies a row's value out.
    fn read(&mut self, index: u64, out: &mut Vec<u8>) -> Result<()>;
    /// Replaces the values of so many rows from this one on, together.
    fn write(&mut self, first: u64, count: u64, value: &[u8]) -> Result<()>;

    /// Writes rows of one size, from the first on.
    fn fill(&mut self, rows: u64, bytes: usize) -> Result<()> {
        let (value, mut first) = (value(bytes), 0);
        while first < rows {
            let count = BATCH.min(rows - first);
            self.write(first, count, &value)?;
            first += count;
        }
        Ok(())
    }
}

/// A row that was put and is not there makes every figure worthless.
fn lost() -> Failure {
    Failure::new("a row that was put is not there")
}

/// The daemon, and rows of one size in its shared memory.
pub(super) struct Ours {
    pub(super) client: Client,
    table: Table,
    label: String,
    _server: Option<Server>,
}

impl Ours {
    /// Each candidate with this many rows, the memory of those that are started in a folder.
    pub(super) fn each(of: &[Candidate], folder: &Path, rows: u64, bytes: usize) -> Result<Vec<Self>> {
        let with_rows = |candidate: &Candidate| -> Result<Self> {
            let mut ours = match candidate {
                Candidate::Build(kind) => Self::start(kind, folder, rows, bytes)?,
                Candidate::Running(address) => Self::emptied(address)?,
            };
            candidate.label().clone_into(&mut ours.label);
            ours.fill(rows, bytes)?;
            Ok(ours)
        };
        of.iter().map(with_rows).collect()
    }

    /// A daemon that has room for this many rows, its memory in a folder.
    fn start(kind: &Kind, folder: &Path, rows: u64, bytes: usize) -> Result<Self> {
        let memory_mib = ((rows * (bytes as u64 + 100)) >> 20) * 3 / 2 + 256;
        let arena_folder = Some(folder.to_owned());
        let setup = Setup { arena_folder, ..Setup::new(memory_mib, Cores::choose()) };
        let server = Server::start(kind, &setup)?;
        let ours = Self::shared(server.nearest())?;
        Ok(Self { _server: Some(server), ..ours })
    }

    /// A daemon that runs already, without the rows that it had.
    fn emptied(address: &Address) -> Result<Self> {
        let ours = Self::shared(address)?;
        ours.client.sql("TRUNCATE memcached", &[])?;
        Ok(ours)
    }

    /// The daemon at a Unix socket, its built-in table put into shared memory.
    fn shared(address: &Address) -> Result<Self> {
        let Address::Unix(socket) = address else {
            return Err(Failure::new(format!(
                "{address} is no Unix socket, and only there rows can be shared"
            )));
        };
        let client = Client::connect(&ClientOptions::new(socket))?;
        client.sql("ALTER TABLE memcached SET (shared_memory = on)", &[])?;
        Self::at(socket)
    }

    /// The daemon behind a socket.
    pub(super) fn at(socket: &Path) -> Result<Self> {
        let client = Client::connect(&ClientOptions::new(socket))?;
        Ok(Self { table: shared_table(&client)?, client, label: "sqlcached".into(), _server: None })
    }

    /// Reads several rows in one call; the bytes seen are added up.
    pub(super) fn read_together(&self, indexes: &[u64; TOGETHER], seen: &mut usize) -> Result<()> {
        let keys = indexes.map(|index| key(SPACE, index));
        let keys: [&[u8]; TOGETHER] = std::array::from_fn(|at| &keys[at][..]);
        Ok(self.client.multi_get_with(&self.table, &keys, &mut |_, bytes| *seen += bytes.len())?)
    }
}

fn shared_table(client: &Client) -> Result<Table> {
    let table = client.table("memcached")?;
    if table.is_shared() { Ok(table) } else { Err(Failure::new("the table is not in shared memory")) }
}

impl Peer for Ours {
    fn label(&self) -> String {
        self.label.clone()
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn read(&mut self, index: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let found = self.client.get_into(&self.table, &key(SPACE, index), out)?;
        if found == sqlcached_client::Lookup::Miss { Err(lost()) } else { Ok(()) }
    }

    fn write(&mut self, first: u64, count: u64, value: &[u8]) -> Result<()> {
        let mut batch = Pipeline::new();
        for index in first..first + count {
            batch.set(&key(SPACE, index), value, 0, 0)?;
        }
        for reply in self.client.run(batch)? {
            reply?;
        }
        Ok(())
    }
}

/// LMDB's file, removed at the end by the process that made it.
pub(super) struct Lmdb {
    environment: lmdb::Environment,
    database: lmdb::Database,
    pub(super) directory: PathBuf,
    own: bool,
}

impl Lmdb {
    /// A file with this many rows, in the folder that our shared memory lies in.
    pub(super) fn fill(folder: &Path, rows: u64, bytes: usize) -> Result<Self> {
        let directory = folder.join(format!("sqlcached-bench-lmdb-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let map_bytes = usize::try_from(rows).unwrap_or(usize::MAX / 4096) * (bytes + 200) * 4 + (256 << 20);
        let lmdb = Self::open(directory, map_bytes, true)?;
        lmdb.reader().fill(rows, bytes)?;
        Ok(lmdb)
    }

    /// The file that another process made.
    pub(super) fn at(directory: PathBuf) -> Result<Self> {
        // A map of no size is as large as the file says.
        Self::open(directory, 0, false)
    }

    fn open(directory: PathBuf, map_bytes: usize, own: bool) -> Result<Self> {
        let mut builder = lmdb::Environment::new();
        if map_bytes > 0 {
            builder.set_map_size(map_bytes);
        }
        let environment = builder
            .set_flags(lmdb::EnvironmentFlags::NO_SYNC)
            .open(&directory)
            .context(|| "open LMDB".into())?;
        let database = environment.open_db(None).context(|| "open LMDB".into())?;
        Ok(Self { environment, database, directory, own })
    }

    /// A reader, which keeps its transaction between reads.
    pub(super) fn reader(&self) -> LmdbReader<'_> {
        LmdbReader { lmdb: self, inactive: None }
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        if self.own {
            // What cannot be removed lies in memory until the machine's end; the name says whose it is.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// Reads of LMDB, each in a transaction of its own, renewed as LMDB recommends it, and copied out of it, since its
/// bytes end with it.
pub(super) struct LmdbReader<'l> {
    lmdb: &'l Lmdb,
    inactive: Option<lmdb::InactiveTransaction<'l>>,
}

impl Peer for LmdbReader<'_> {
    fn label(&self) -> String {
        "LMDB".into()
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn read(&mut self, index: u64, out: &mut Vec<u8>) -> Result<()> {
        let transaction = match self.inactive.take() {
            Some(inactive) => inactive.renew(),
            None => self.lmdb.environment.begin_ro_txn(),
        };
        let transaction = transaction.context(|| "LMDB".into())?;
        out.clear();
        let found = transaction.get(self.lmdb.database, &key(SPACE, index));
        out.extend_from_slice(found.context(|| "LMDB get".into())?);
        self.inactive = Some(transaction.reset());
        Ok(())
    }

    fn write(&mut self, first: u64, count: u64, value: &[u8]) -> Result<()> {
        let mut transaction = self.lmdb.environment.begin_rw_txn().context(|| "LMDB".into())?;
        for index in first..first + count {
            let (key, flags) = (key(SPACE, index), lmdb::WriteFlags::empty());
            transaction.put(self.lmdb.database, &key, &value, flags).context(|| "LMDB put".into())?;
        }
        transaction.commit().context(|| "LMDB commit".into())
    }
}

/// A memcached on a Unix socket.
pub(super) struct Memcached {
    wire: Wire,
    pub(super) socket: PathBuf,
    /// The server and its folder, where this process started it.
    server: Option<(Child, PathBuf)>,
}

impl Memcached {
    /// A server with this many rows.
    pub(super) fn start(rows: u64, bytes: usize) -> Result<Self> {
        let directory =
            std::env::temp_dir().join(format!("sqlcached-bench-memcached-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let socket = directory.join("socket");
        let memory_mib = ((rows * (bytes as u64 + 200)) >> 20) * 3 / 2 + 64;
        let mut command = Command::new("memcached");
        command.args(["-t", "1", "-U", "0", "-m", &memory_mib.to_string(), "-s"]).arg(&socket);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "root"]);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let child = Cores::choose().start_server(|| command.spawn().context(|| "memcached".into()))?;
        let began = clock::now_ns();
        while !socket.exists() && clock::now_ns() - began < START_NS {
            thread::sleep(Duration::from_millis(10));
        }
        let mut memcached = Self::at(socket)?;
        memcached.server = Some((child, directory));
        memcached.fill(rows, bytes)?;
        Ok(memcached)
    }

    /// The server behind a socket.
    pub(super) fn at(socket: PathBuf) -> Result<Self> {
        Ok(Self { wire: Wire::connect(&Address::Unix(socket.clone()))?, socket, server: None })
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let Some((mut child, directory)) = self.server.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
        let _ = std::fs::remove_dir_all(directory);
    }
}

impl Peer for Memcached {
    fn label(&self) -> String {
        "memcached, Unix socket".into()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn read(&mut self, index: u64, out: &mut Vec<u8>) -> Result<()> {
        self.wire.out.extend_from_slice(b"get ");
        self.wire.out.extend_from_slice(&key(SPACE, index));
        self.wire.out.extend_from_slice(b"\r\n");
        self.wire.send()?;
        out.clear();
        self.wire.read_values(|_, value| out.extend_from_slice(value))?;
        if out.is_empty() { Err(lost()) } else { Ok(()) }
    }

    fn write(&mut self, first: u64, count: u64, value: &[u8]) -> Result<()> {
        for index in first..first + count {
            self.wire.out.extend_from_slice(b"set ");
            self.wire.out.extend_from_slice(&key(SPACE, index));
            self.wire.out.extend_from_slice(format!(" 0 0 {}\r\n", value.len()).as_bytes());
            self.wire.out.extend_from_slice(value);
            self.wire.out.extend_from_slice(b"\r\n");
        }
        self.wire.send()?;
        for _ in 0..count {
            self.wire.expect(b"STORED")?;
        }
        Ok(())
    }
}

/// What no read of another process's rows can be faster than: a hash table of this process, unprotected.
pub(super) struct Bound {
    places: HashMap<[u8; KEY_BYTES], usize>,
    values: Vec<u8>,
    bytes: usize,
}

impl Bound {
    /// This many rows.
    pub(super) fn fill(rows: u64, bytes: usize) -> Self {
        let (mut places, mut values) = (HashMap::new(), Vec::new());
        let value = value(bytes);
        for index in 0..rows {
            places.insert(key(SPACE, index), values.len());
            values.extend_from_slice(&value);
        }
        Self { places, values, bytes }
    }

    fn place(&self, index: u64) -> Result<usize> {
        self.places.get(&key(SPACE, index)).copied().ok_or_else(lost)
    }
}

impl Peer for Bound {
    fn label(&self) -> String {
        "bound".into()
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn read(&mut self, index: u64, out: &mut Vec<u8>) -> Result<()> {
        let place = self.place(index)?;
        out.clear();
        out.extend_from_slice(self.values.get(place..place + self.bytes).ok_or_else(lost)?);
        Ok(())
    }

    fn write(&mut self, first: u64, count: u64, value: &[u8]) -> Result<()> {
        for index in first..first + count {
            let place = self.place(index)?;
            self.values.get_mut(place..place + self.bytes).ok_or_else(lost)?.copy_from_slice(value);
        }
        Ok(())
    }
}

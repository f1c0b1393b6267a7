//! Reads in shared memory beside LMDB's, and beside a memcached `get` over a Unix socket.
//!
//! All of it runs in this process but the servers and the second reader. Figures are processor time of the reading
//! thread, so that other users of the machine count as little as they can; those of requests over a socket are wall time,
//! since the time of a request is spent in two processes. Peers are measured in turn, slice by slice.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lmdb::Transaction;
use sqlcached_client::{Client, Options as ClientOptions, Pipeline, Table};

use crate::clock;
use crate::cores::Cores;
use crate::failure::{Context, Failure, Result};
use crate::load::{key, value};
use crate::server::{Kind, Server, Setup};
use crate::summary::{Summary, digits};

/// Key space of these rows.
const SPACE: u64 = 11;
/// Slices of each measurement; the median counts.
const SLICES: usize = 9;
/// Writes sent together.
const BATCH: usize = 500;
/// Keys read together.
const TOGETHER: usize = 8;
/// How long another reader's slice takes.
const READER_SLICE: Duration = Duration::from_millis(700);

/// What `shared` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A build of ours, as PATH; without it the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// How many rows of 100 bytes.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How many rows of 1 KiB.
    #[arg(long, default_value_t = 1 << 20)]
    large_rows: u64,
    /// Read one row of 1 KB behind this socket for a while, and print the reads and their processor time.
    #[arg(long, hide = true)]
    read_at: Option<PathBuf>,
}

/// The daemon, and rows of one size in its shared memory.
struct Ours {
    client: Client,
    table: Table,
    rows: u64,
    _server: Server,
}

/// The same rows in LMDB, on the same file system.
struct Lmdb {
    environment: lmdb::Environment,
    database: lmdb::Database,
    directory: PathBuf,
}

/// A memcached on a Unix socket.
struct Memcached {
    child: Child,
    directory: PathBuf,
    stream: BufReader<UnixStream>,
}

/// Measures everything and prints it.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(socket) = &options.read_at {
        return read_for_another(socket);
    }
    let program = options.program.as_ref().map(|path| path.display().to_string());
    let kind = crate::builds(&program.into_iter().collect::<Vec<_>>()).remove(0);
    println!("ns of processor time for a read; median of {SLICES} slices (quartiles)");
    hot(&kind, 1_000)?;
    hot(&kind, 100)?;
    random(&kind, options.rows, 100)?;
    random(&kind, options.large_rows, 1 << 10)?;
    two_readers(&kind)?;
    beside_a_writer(&kind)
}

impl Ours {
    fn start(kind: &Kind, rows: u64, bytes: usize) -> Result<Self> {
        let memory_mib = ((rows * (bytes as u64 + 100)) >> 20) * 3 / 2 + 256;
        let server = Server::start(kind, &Setup::new(memory_mib, Cores::choose()))?;
        let client = client(Path::new(&server.nearest().to_string()))?;
        client.sql("ALTER TABLE memcached SET (shared_memory = on)", &[])?;
        let ours = Self { table: table(&client)?, client, rows, _server: server };
        ours.fill(&value(bytes))?;
        Ok(ours)
    }

    fn fill(&self, value: &[u8]) -> Result<()> {
        for first in (0..self.rows).step_by(BATCH) {
            let mut batch = Pipeline::new();
            for index in first..(first + BATCH as u64).min(self.rows) {
                batch.set(&key(SPACE, index), value, 0, 0)?;
            }
            for reply in self.client.run(batch)? {
                reply?;
            }
        }
        Ok(())
    }

    fn read(&self, index: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let found = self.client.get_into(&self.table, &key(SPACE, index), out)?;
        if found == sqlcached_client::Lookup::Miss {
            return Err(Failure::new("a row that was put is not there"));
        }
        Ok(())
    }

    fn read_together(&self, indexes: &[u64; TOGETHER], seen: &mut usize) -> Result<()> {
        let keys = indexes.map(|index| key(SPACE, index));
        let keys: [&[u8]; TOGETHER] = std::array::from_fn(|at| &keys[at][..]);
        Ok(self.client.multi_get_with(&self.table, &keys, &mut |_, bytes| *seen += bytes.len())?)
    }
}

fn client(socket: &Path) -> Result<Client> {
    Ok(Client::connect(&ClientOptions::new(socket))?)
}

fn table(client: &Client) -> Result<Table> {
    let table = client.table("memcached")?;
    if table.is_shared() { Ok(table) } else { Err(Failure::new("the table is not in shared memory")) }
}

impl Lmdb {
    fn fill(rows: u64, value: &[u8]) -> Result<Self> {
        let directory = PathBuf::from(format!("/dev/shm/sqlcached-bench-lmdb-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let map_bytes =
            usize::try_from(rows).unwrap_or(usize::MAX / 4096) * (value.len() + 200) * 4 + (256 << 20);
        let environment = lmdb::Environment::new()
            .set_map_size(map_bytes)
            .set_flags(lmdb::EnvironmentFlags::NO_SYNC)
            .open(&directory)
            .context(|| "open LMDB".into())?;
        let database = environment.open_db(None).context(|| "open LMDB".into())?;
        for first in (0..rows).step_by(100_000) {
            let mut transaction = environment.begin_rw_txn().context(|| "LMDB".into())?;
            for index in first..(first + 100_000).min(rows) {
                transaction
                    .put(database, &key(SPACE, index), &value, lmdb::WriteFlags::empty())
                    .context(|| "LMDB put".into())?;
            }
            transaction.commit().context(|| "LMDB commit".into())?;
        }
        Ok(Self { environment, database, directory })
    }

    /// Reads a row as it is now: in a transaction of its own, renewed as LMDB recommends it, and copied out of it, since
    /// its bytes end with it.
    fn read<'e>(
        &'e self,
        inactive: lmdb::InactiveTransaction<'e>,
        index: u64,
        out: &mut Vec<u8>,
    ) -> Result<lmdb::InactiveTransaction<'e>> {
        let transaction = inactive.renew().context(|| "LMDB".into())?;
        out.clear();
        out.extend_from_slice(
            transaction.get(self.database, &key(SPACE, index)).context(|| "LMDB get".into())?,
        );
        Ok(transaction.reset())
    }

    fn measure(&self, slice: u64, mut next: impl FnMut() -> u64) -> Result<f64> {
        let mut out = Vec::new();
        let began = clock::thread_cpu_ns();
        let mut inactive = self.environment.begin_ro_txn().context(|| "LMDB".into())?.reset();
        for _ in 0..slice {
            inactive = self.read(inactive, next(), &mut out)?;
        }
        Ok((clock::thread_cpu_ns() - began) as f64 / slice as f64)
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Memcached {
    fn start(value: &[u8]) -> Result<Self> {
        let directory =
            std::env::temp_dir().join(format!("sqlcached-bench-memcached-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let socket = directory.join("socket");
        let mut command = Command::new("memcached");
        command.args(["-t", "1", "-U", "0", "-m", "64", "-s"]).arg(&socket);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "root"]);
        }
        let child =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().context(|| "memcached".into())?;
        let began = clock::now_ns();
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(_) if clock::now_ns() - began < 10_000_000_000 => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error.into()),
            }
        };
        let mut memcached = Self { child, directory, stream: BufReader::new(stream) };
        let stream = memcached.stream.get_mut();
        stream.write_all(format!("set hot 0 0 {}\r\n", value.len()).as_bytes())?;
        stream.write_all(value)?;
        stream.write_all(b"\r\n")?;
        memcached.stream.read_line(&mut String::new())?;
        Ok(memcached)
    }

    fn get(&mut self, line: &mut Vec<u8>) -> Result<()> {
        self.stream.get_mut().write_all(b"get hot\r\n")?;
        for _ in 0..3 {
            line.clear();
            self.stream.read_until(b'\n', line)?;
        }
        Ok(())
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Processor time of one of many reads by this thread.
fn measure(slice: u64, mut read: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = clock::thread_cpu_ns();
    for _ in 0..slice {
        read()?;
    }
    Ok((clock::thread_cpu_ns() - began) as f64 / slice as f64)
}

/// Wall time of one of many reads.
fn measure_wall(slice: u64, mut read: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = clock::now_ns();
    for _ in 0..slice {
        read()?;
    }
    Ok((clock::now_ns() - began) as f64 / slice as f64)
}

fn line(what: &str, figures: &[f64]) {
    let Summary { median, low, high } = Summary::of(figures);
    println!("{what:<46} {:>8} ({}-{})", digits(median), digits(low), digits(high));
}

fn ratio(what: &str, ours: &[f64], peers: &[f64]) {
    let Summary { median, low, high } = Summary::of_ratios(peers, ours);
    println!("{what:<46} {:>7}x ({}-{})", digits(median), digits(low), digits(high));
}

/// One row that is read again and again.
fn hot(kind: &Kind, bytes: usize) -> Result<()> {
    let ours = Ours::start(kind, 1, bytes)?;
    let lmdb = Lmdb::fill(1, &value(bytes))?;
    let mut memcached = Memcached::start(&value(bytes))?;
    let (mut out, mut text) = (Vec::new(), Vec::new());
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..SLICES {
        figures[0].push(measure(1_000_000, || ours.read(0, &mut out))?);
        figures[1].push(lmdb.measure(300_000, || 0)?);
        figures[2].push(measure_wall(1_000_000, || ours.read(0, &mut out))?);
        figures[3].push(measure_wall(10_000, || memcached.get(&mut text))?);
    }
    line(&format!("hot row of {bytes} B"), &figures[0]);
    line("  LMDB", &figures[1]);
    ratio("  LMDB by ours", &figures[0], &figures[1]);
    line("  wall time", &figures[2]);
    line("  memcached get over a Unix socket, wall time", &figures[3]);
    ratio("  memcached by ours, wall time", &figures[2], &figures[3]);
    Ok(())
}

/// Many rows, one after the other at random and several together.
fn random(kind: &Kind, rows: u64, bytes: usize) -> Result<()> {
    let ours = Ours::start(kind, rows, bytes)?;
    let lmdb = Lmdb::fill(rows, &value(bytes))?;
    let (mut random, mut out, mut seen) = (fastrand::Rng::with_seed(0x5eed), Vec::new(), 0);
    let mut figures = [const { Vec::new() }; 3];
    for _ in 0..SLICES {
        figures[0].push(measure(400_000, || ours.read(random.u64(..rows), &mut out))?);
        let together = measure(50_000, || {
            let indexes = std::array::from_fn(|_| random.u64(..rows));
            ours.read_together(&indexes, &mut seen)
        })?;
        figures[1].push(together / TOGETHER as f64);
        figures[2].push(lmdb.measure(200_000, || random.u64(..rows))?);
    }
    line(&format!("{rows} rows of {bytes} B at random"), &figures[0]);
    line(&format!("  {TOGETHER} together, each"), &figures[1]);
    line("  LMDB", &figures[2]);
    ratio("  LMDB by ours", &figures[0], &figures[2]);
    Ok(())
}

/// The child of `two_readers`.
fn read_for_another(socket: &Path) -> Result<()> {
    let client = client(socket)?;
    let table = table(&client)?;
    let mut out = Vec::new();
    let (began, began_cpu, mut reads) = (clock::now_ns(), clock::thread_cpu_ns(), 0_u64);
    while u128::from(clock::now_ns() - began) < READER_SLICE.as_nanos() {
        for _ in 0..10_000 {
            out.clear();
            client.get_into(&table, &key(SPACE, 0), &mut out)?;
        }
        reads += 10_000;
    }
    println!("{reads} {}", clock::thread_cpu_ns() - began_cpu);
    Ok(())
}

/// Starts so many readers at once; the sum of their reads in a second of processor time of each.
fn readers(socket: &str, count: usize) -> Result<f64> {
    let children: Vec<Child> = (0..count)
        .map(|_| {
            Command::new(std::env::current_exe()?)
                .args(["shared", "--read-at", socket])
                .stdout(Stdio::piped())
                .spawn()
                .context(|| "a reader".into())
        })
        .collect::<Result<_>>()?;
    let mut sum = 0.0;
    for child in children {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [reads, cpu_ns] = numbers[..] else { return Err(Failure::new(format!("a reader said: {text}"))) };
        sum += reads * 1e9 / cpu_ns;
    }
    Ok(sum)
}

fn two_readers(kind: &Kind) -> Result<()> {
    let ours = Ours::start(kind, 1, 1_000)?;
    let socket = ours.client.socket().display().to_string();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..SLICES {
        one.push(readers(&socket, 1)?);
        two.push(readers(&socket, 2)?);
    }
    line("one reader process, 1 KB, reads a CPU second", &one);
    ratio("  two readers by one", &one, &two);
    Ok(())
}

/// A row that is read while another thread writes as fast as the daemon takes it: other rows, and this one too.
fn beside_a_writer(kind: &Kind) -> Result<()> {
    const ROWS: u64 = 10_000;
    let ours = Ours::start(kind, ROWS, 1_000)?;
    let stop = AtomicBool::new(true);
    let end = AtomicBool::new(false);
    let writer = || -> Result<()> {
        let mut random = fastrand::Rng::with_seed(7);
        let value = value(1_000);
        // Relaxed: a hint to begin and to stop.
        while !end.load(Ordering::Relaxed) {
            if stop.load(Ordering::Relaxed) {
                thread::yield_now();
                continue;
            }
            let mut batch = Pipeline::new();
            for _ in 0..50 {
                batch.set(&key(SPACE, random.u64(..ROWS)), &value, 0, 0)?;
            }
            ours.client.run(batch)?;
        }
        Ok(())
    };
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let writing = scope.spawn(writer);
        let mut out = Vec::new();
        for _ in 0..SLICES {
            stop.store(true, Ordering::Relaxed);
            alone.push(measure(500_000, || ours.read(0, &mut out))?);
            stop.store(false, Ordering::Relaxed);
            beside.push(measure(500_000, || ours.read(0, &mut out))?);
        }
        end.store(true, Ordering::Relaxed);
        writing.join().map_err(|_| Failure::new("the writer panicked"))?
    })?;
    line("hot row of 1,000 B, nobody writes", &alone);
    line("  beside a writer", &beside);
    ratio("  beside a writer by undisturbed", &alone, &beside);
    Ok(())
}

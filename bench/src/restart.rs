//! The start after `kill -9`: how long until the first get is answered, and until every row is checked.

use std::io::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::builds;
use crate::client::Client;
use crate::clock;
use crate::cores::Cores;
use crate::failure::{Failure, Result};
use crate::load::value;
use crate::server::{Server, Setup};
use crate::summary::thousands;

/// Rows that are sent before their answers are read.
const BATCH: u64 = 1_000;
/// A start that takes longer is given up.
const PATIENCE_NS: u64 = 600_000_000_000;
/// How often the daemon is asked how far it has come.
const GLANCE: Duration = Duration::from_millis(10);
/// Rows that are asked for after each start.
const PROBES: u64 = 100_000;

/// What `restart` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How many rows.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Bytes of every value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// The memory limit in MiB.
    #[arg(long, default_value_t = 4096)]
    memory_mib: u64,
    /// How often it is killed.
    #[arg(long, default_value_t = 3)]
    deaths: u32,
    /// The daemon's program; the one beside this program if it is not named.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Fills a daemon, then kills and starts it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let named: Vec<String> = options.program.iter().map(|path| path.display().to_string()).collect();
    let kind = &builds(&named)[0];
    let mut server = Server::start(kind, &Setup::new(options.memory_mib, Cores::free()))?;
    println!("{}", server.command);
    fill(&server, options)?;
    for death in 1..=options.deaths {
        let began = clock::now_ns();
        server.die_and_start_again()?;
        let mut client = first_get(&server, options, began)?;
        let first = clock::now_ns() - began;
        while client.stat("recovery_complete")? != Some(1) {
            patience(began)?;
            thread::sleep(GLANCE);
        }
        let checked = clock::now_ns() - began;
        let rows = client.stat("recovery_rows")?.unwrap_or(0);
        let dropped = client.stat("recovery_dropped")?.unwrap_or(0);
        let missed = missed(&mut client, options)?;
        println!(
            "death {death}: first get after {:.1} ms, {} rows checked after {:.2} s, {dropped} dropped; \
             {missed} of {PROBES} keys missed",
            first as f64 / 1e6,
            thousands(rows as f64),
            clock::seconds(checked)
        );
    }
    Ok(())
}

fn key(number: u64) -> String {
    format!("restart:{number:010}")
}

fn fill(server: &Server, options: &Options) -> Result<()> {
    let mut client = Client::connect(server.nearest())?;
    let value = value(options.value_bytes);
    let began = clock::now_ns();
    for first in (0..options.rows).step_by(usize::try_from(BATCH).unwrap_or(usize::MAX)) {
        let batch = first..options.rows.min(first + BATCH);
        for number in batch.clone() {
            // A write to a vector cannot fail.
            let _ = write!(client.out, "set {} 0 0 {}\r\n", key(number), value.len());
            client.out.extend_from_slice(&value);
            client.out.extend_from_slice(b"\r\n");
        }
        client.send()?;
        for _ in batch {
            if client.read_line()? != b"STORED" {
                return Err(Failure::new("a row was not stored"));
            }
        }
    }
    let seconds = clock::seconds(clock::now_ns() - began);
    println!("{} rows of {} bytes in {seconds:.1} s", thousands(options.rows as f64), options.value_bytes);
    Ok(())
}

/// Tries until a get of a row is answered with it.
fn first_get(server: &Server, options: &Options, began: u64) -> Result<Client> {
    loop {
        patience(began)?;
        let Ok(mut client) = Client::connect(server.nearest()) else {
            thread::yield_now();
            continue;
        };
        if !has(&mut client, options.rows / 2)? {
            return Err(Failure::new("the first get missed"));
        }
        return Ok(client);
    }
}

fn has(client: &mut Client, number: u64) -> Result<bool> {
    let _ = write!(client.out, "get {}\r\n", key(number));
    client.send()?;
    let mut found = false;
    client.read_values(|_, _| found = true)?;
    Ok(found)
}

/// How many of some keys, spread over all, are not there.
fn missed(client: &mut Client, options: &Options) -> Result<u64> {
    let mut missed = 0;
    for probe in 0..PROBES.min(options.rows) {
        missed += u64::from(!has(client, probe * (options.rows / PROBES).max(1) % options.rows)?);
    }
    Ok(missed)
}

fn patience(began: u64) -> Result<()> {
    if clock::now_ns() - began > PATIENCE_NS {
        return Err(Failure::new("the daemon does not come back"));
    }
    Ok(())
}

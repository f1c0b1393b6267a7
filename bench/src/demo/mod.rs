//! The demo: a web application's ORM cache, read and filled by memcached, expired by SQL.
//!
//! The accesses of a trace are replayed in order. Each key is asked for by `get orm:<type>:<id>:<index>`; what
//! misses is filled by `set`, as an application would after asking its database. Now and then an object
//! changes, and `DELETE FROM orm WHERE type = ? AND id = ?` expires all its parts; more rarely, a whole type.
//!
//! Up to [`BATCH`] different keys are asked for in one `get`, as one page needs many objects. While nothing is
//! evicted, the answers are those of single requests: a key that misses is filled before it is asked for
//! again. With `--rows` the cache evicts, so there every access is a request of its own.

mod model;
mod replay;

use std::path::PathBuf;

use crate::address::Address;
use crate::client::Client;
use crate::cores::Cores;
use crate::failure::{Context, Failure, Result};
use crate::histogram::Histogram;
use crate::policy::{self, Policy};
use crate::protocol::Protocol;
use crate::server::{Server, Setup};
use crate::summary::thousands;
use crate::trace::Trace;

use replay::{Replay, Tally};

/// What `demo` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A trace (*.be32, *.be32.zst). Without one: ../shared/traces/orm-busy.be32.zst if there, or a generated one.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Replay only so many accesses.
    #[arg(long)]
    accesses: Option<usize>,
    /// Bound the table to so many rows; the daemon's miss ratio is then compared with S3-FIFO's.
    #[arg(long)]
    rows: Option<usize>,
    /// Nothing is expired by SQL.
    #[arg(long)]
    no_expiry: bool,
    /// Our program, in place of the one built beside this one.
    #[arg(long)]
    sqlcached: Option<String>,
    /// A server that runs already (HOST:PORT or a Unix socket), in place of one started here.
    #[arg(long)]
    server: Option<Address>,
}

/// The daemon's memory limit in the demo.
const MEMORY_MIB: u64 = 128;
/// One object is expired each time so many accesses have passed.
const OBJECT_EVERY: usize = 2_000;
/// One type is expired each time so many accesses have passed.
const TYPE_EVERY: usize = 250_000;
/// Keys in one `get`.
const BATCH: usize = 32;
/// Progress lines in a whole run.
const LINES: usize = 20;
/// The daemon's miss ratio lies so close to the simulated S3-FIFO's.
const MISS_RATIO_MARGIN: f64 = 0.01;

/// Runs the demo.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut trace = Trace::find(options.trace.as_ref())?;
    trace.keys.truncate(options.accesses.unwrap_or(usize::MAX));
    println!("trace {}: {} accesses", trace.origin, thousands(trace.keys.len() as f64));
    let server = start(options)?;
    println!("daemon: {}", server.command);
    let mut client = Client::connect(server.nearest())?;
    create_table(&mut client, options.rows)?;
    let batch = if options.rows.is_some() { 1 } else { BATCH };
    let mut replay = Replay::new(client, batch);
    drive(&mut replay, &trace, &server, options)?;
    summarise(&replay, &trace, options)
}

fn start(options: &Options) -> Result<Server> {
    let Some(address) = &options.server else {
        let kinds = crate::builds(options.sqlcached.as_slice());
        let kind = kinds.first().ok_or_else(|| Failure::new("no program to start"))?;
        return Server::start(kind, &Setup::new(MEMORY_MIB, Cores::free()));
    };
    Server::running(address, Protocol::Memcached)
}

fn create_table(client: &mut Client, rows: Option<usize>) -> Result<()> {
    let bound = rows.map(|rows| format!(", max_rows = {rows}")).unwrap_or_default();
    let statement = format!(
        "CREATE TABLE orm (type INTEGER, id INTEGER, idx INTEGER, body TEXT NOT NULL, PRIMARY KEY (type, id, idx)) \
         WITH (prefix = 'orm:', value = 'body'{bound})"
    );
    println!("{statement}\n");
    client.execute(&statement, "[]").context(|| "create the table".into())?;
    Ok(())
}

/// Replays the trace with its expiries and a line of progress now and then.
fn drive(replay: &mut Replay, trace: &Trace, server: &Server, options: &Options) -> Result<()> {
    println!("   accesses        hits     misses  expired by SQL  an expiry  accesses/s     memory");
    let line_every = (trace.keys.len() / LINES).max(1);
    for (number, &key) in trace.keys.iter().enumerate() {
        replay.access(key)?;
        let done = number + 1;
        if !options.no_expiry && done.is_multiple_of(TYPE_EVERY) {
            replay.expire_type(key)?;
        } else if !options.no_expiry && done.is_multiple_of(OBJECT_EVERY) {
            replay.expire_object(key)?;
        }
        if done.is_multiple_of(line_every) {
            replay.finish()?;
            progress(&mut replay.tally, server)?;
        }
    }
    replay.finish()
}

/// One line: totals, and the times since the line before.
fn progress(tally: &mut Tally, server: &Server) -> Result<()> {
    let expiry = tally.recent_expiry.percentile(0.5);
    println!(
        "{:>11} {:>11} {:>10} {:>15} {:>7} us {:>11} {:>6} MiB",
        thousands(tally.accesses() as f64),
        thousands(tally.hits as f64),
        thousands(tally.misses as f64),
        thousands(tally.expired_rows as f64),
        if tally.recent_expiry.count() == 0 { "-".into() } else { format!("{:.0}", expiry as f64 / 1e3) },
        thousands(tally.recent_rate()),
        server.memory()?.total() >> 20,
    );
    tally.recent_expiry.clear();
    Ok(())
}

/// The end: what was served, what was checked, and whether it is what it should be.
fn summarise(replay: &Replay, trace: &Trace, options: &Options) -> Result<()> {
    let tally = &replay.tally;
    let accesses = tally.accesses().max(1) as f64;
    println!("\n{} accesses in {:.1} s", thousands(accesses), tally.elapsed_seconds());
    println!(
        "hits {} ({:.2} %), misses {}: {} never seen, {} expired by SQL, {} evicted",
        thousands(tally.hits as f64),
        100.0 * tally.hits as f64 / accesses,
        thousands(tally.misses as f64),
        thousands(tally.first_misses as f64),
        thousands((tally.misses - tally.first_misses - tally.unexpected_misses) as f64),
        thousands(tally.unexpected_misses as f64),
    );
    show_expiries("objects", &tally.objects, tally.expired_rows - tally.expired_rows_by_type);
    show_expiries("types", &tally.types, tally.expired_rows_by_type);
    println!("values served after their expiry: {}", tally.stale);
    check(tally.stale == 0, "a value was served after its expiry")?;
    if let Some(rows) = options.rows {
        return compare(tally.misses as f64 / accesses, rows, trace, options.no_expiry);
    }
    println!("expiries that removed other rows than the model: {}", tally.wrong_expiries);
    let evicted = tally.unexpected_misses > 0;
    check(evicted || tally.wrong_expiries == 0, "an expiry removed other rows than it should")
}

fn show_expiries(what: &str, times: &Histogram, rows: u64) {
    let micros = |share| times.percentile(share) as f64 / 1e3;
    println!(
        "{} {what} expired by SQL, {} rows: round trip p50 {:.0} us, p99 {:.0} us",
        thousands(times.count() as f64),
        thousands(rows as f64),
        micros(0.5),
        micros(0.99)
    );
}

/// The miss ratio beside that of simulated policies of the same size on the same accesses.
fn compare(ratio: f64, rows: usize, trace: &Trace, no_expiry: bool) -> Result<()> {
    println!("miss ratio of the daemon with {} rows: {ratio:.4}", thousands(rows as f64));
    if !no_expiry {
        println!("(the simulated policies know no expiry: compare with --no-expiry)");
    }
    let mut reference = 0.0;
    for (name, mut policy) in policy::all(rows) {
        reference = policy::miss_ratio(policy.as_mut() as &mut dyn Policy, &trace.keys);
        println!("  simulated {name:<8} {reference:.4}");
    }
    let close = (ratio - reference).abs() <= MISS_RATIO_MARGIN;
    let text = if close { "within" } else { "not within" };
    println!("{text} {MISS_RATIO_MARGIN} of S3-FIFO");
    check(close || !no_expiry, "the miss ratio is not S3-FIFO's")
}

fn check(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Failure::new(otherwise)) }
}

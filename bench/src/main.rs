//! `sqlcached-bench`: experiments with sqlcached beside its neighbours, and the demo.
//!
//! Every experiment has the same parts. A [`server::Server`] is started on a free port and a core of its own,
//! or one that runs already is found by its address. A load is put on it: the [`load`] program for requests,
//! the blocking [`client`] for statements. What the server spent is read from the kernel's account of its
//! threads, so a figure is processor time of an operation and not what the machine's other users left over.
//! Peers are measured in turn with us, repetition by repetition, and a [`report::Report`] keeps every figure
//! and shows medians, ratios and their spread.
//!
//!     sqlcached-bench experiments                # the experiments of the papers, drawn, below twenty minutes
//!     sqlcached-bench entry                      # the entry figures, below five minutes
//!     sqlcached-bench lead                       # every line of the lead in memcached's protocol
//!     sqlcached-bench sql                        # PostgreSQL's protocol beside PostgreSQL and memcached
//!     sqlcached-bench shared                     # shared memory beside LMDB and memcached
//!     sqlcached-bench expiry                     # memory under sizes that move, expiry of many rows, times to live
//!     sqlcached-bench source                     # the database behind, a real PostgreSQL
//!     sqlcached-bench tls                        # TLS beside memcached's
//!     sqlcached-bench demo                       # five million accesses of an ORM cache
//!     sqlcached-bench load --server 127.0.0.1:11211 --operation get --value-bytes 32
//!     sqlcached-bench restart --rows 10000000    # kill -9, and the start after it
//!     sqlcached-bench simulate --size 7634       # what a cache of so many objects misses

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "results and progress are this program's output")]

mod address;
mod client;
mod clock;
mod cores;
mod demo;
mod entry;
mod experiments;
mod expiry;
mod failure;
mod figures;
mod histogram;
mod inside;
mod lead;
mod load;
mod machine;
mod mariadb;
mod pages;
mod paired;
mod plot;
mod policy;
mod postgres;
mod protocol;
mod report;
mod restart;
mod server;
mod shared;
mod single;
mod source;
mod sql;
mod sqlite;
mod summary;
mod tls;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::failure::Result;
use crate::server::Kind;
use crate::trace::Trace;

/// Experiments with sqlcached beside its neighbours, and the demo.
#[derive(Debug, Parser)]
#[command(version)]
enum Command {
    /// Requests beside memcached and Redis, memory of a row, expiry of a page and of a user.
    Entry(entry::Options),
    /// Every line of the lead over memcached and Redis: requests, first fill, deletion of everything, memory.
    Lead(lead::Options),
    /// Replay an ORM cache's accesses, with expiry by SQL.
    Demo(demo::Options),
    /// One load on one running server.
    Load(single::Options),
    /// Reads and writes of a store inside this process, without a socket.
    Inside(inside::Options),
    /// The SQL layer beside plain SQLite's in-memory tables, in this process.
    Sqlite(sqlite::Options),
    /// The experiments of the papers beside today's systems, with plots.
    Experiments(experiments::Options),
    /// Memory under sizes that move, rows that end together, mixes of times to live, expiry by an index.
    Expiry(expiry::Options),
    /// Statements through PostgreSQL's protocol beside PostgreSQL and memcached.
    Sql(sql::Options),
    /// Reads in shared memory beside LMDB and memcached.
    Shared(shared::Options),
    /// The database behind: changes, misses that it answers, stale rows, a mirror.
    Source(source::Options),
    /// TLS beside memcached's: requests, new connections, memory of idle ones.
    Tls(paired::Options),
    /// A daemon that is killed full of rows: how long until the first get, and until every row is checked.
    Restart(restart::Options),
    /// Miss ratios of FIFO, LRU and S3-FIFO on a trace.
    Simulate(Simulation),
}

/// What `simulate` is told.
#[derive(Clone, Debug, clap::Args)]
struct Simulation {
    /// A trace: *.be32 or *.be64, also compressed as *.zst. Without one: the demo's.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// How many objects the cache holds.
    #[arg(long)]
    size: usize,
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Entry(options) => entry::run(&options),
        Command::Lead(options) => lead::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Load(options) => single::run(&options),
        Command::Inside(options) => inside::run(&options),
        Command::Sqlite(options) => sqlite::run(&options),
        Command::Expiry(options) => expiry::run(&options),
        Command::Sql(options) => sql::run(&options),
        Command::Shared(options) => shared::run(&options),
        Command::Source(options) => source::run(&options),
        Command::Tls(options) => tls::run(&options),
        Command::Restart(options) => restart::run(&options),
        Command::Experiments(options) => experiments::run(&options),
        Command::Simulate(simulation) => simulate(&simulation),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("sqlcached-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn simulate(simulation: &Simulation) -> Result<()> {
    let trace = Trace::find(simulation.trace.as_ref())?;
    println!("{}: {} accesses, {} distinct keys", trace.origin, trace.keys.len(), trace.distinct());
    for (name, mut policy) in policy::all(simulation.size) {
        println!("{name:<8} {:.4}", policy::miss_ratio(policy.as_mut(), &trace.keys));
    }
    Ok(())
}

/// Our builds as named on the command line; without any, the one that was built beside this program.
fn builds(named: &[String]) -> Vec<Kind> {
    if named.is_empty() {
        return vec![Kind::Sqlcached { program: sibling_program(), label: "sqlcached".into() }];
    }
    let build = |text: &String| match text.split_once('=') {
        Some((label, path)) => Kind::Sqlcached { program: path.into(), label: label.into() },
        None => Kind::Sqlcached { program: text.into(), label: "sqlcached".into() },
    };
    named.iter().map(build).collect()
}

/// `sqlcached` in the folder this program runs from.
fn sibling_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name("sqlcached")
}

/// Seconds of the command line as nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a day before the cast"
)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.001, 86_400.0) * 1e9) as u64
}

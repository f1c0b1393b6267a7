//! One load on one running server.

use crate::address::Address;
use crate::clock;
use crate::failure::Result;
use crate::load::{Blend, Load, Until, Workload};
use crate::postgres::{POINTS, Wire};
use crate::protocol::{Operation, Protocol};
use crate::server::Server;
use crate::summary::{digits, thousands};

/// What `load` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// HOST:PORT, or the path of a Unix socket.
    #[arg(long)]
    server: Address,
    /// Where that server speaks PostgreSQL's protocol: the load goes there, as statements on a table named points,
    /// which is made again.
    #[arg(long, conflicts_with = "protocol")]
    sql_server: Option<Address>,
    /// What the server speaks.
    #[arg(long, value_enum, default_value = "memcached")]
    protocol: Protocol,
    /// What to ask for.
    #[arg(long, value_enum, default_value = "get")]
    operation: Operation,
    /// Bytes of every value.
    #[arg(long, default_value_t = 32)]
    value_bytes: usize,
    /// How many keys.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Open connections.
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Requests sent before the first answer is waited for.
    #[arg(long, default_value_t = 1)]
    depth: u64,
    /// How long.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Gets of so many keys each.
    #[arg(long, conflicts_with = "set_in")]
    keys_each: Option<u64>,
    /// One in so many requests is a set, the others are gets.
    #[arg(long)]
    set_in: Option<std::num::NonZero<u64>>,
    /// The keys are there already.
    #[arg(long)]
    filled: bool,
}

/// Fills, runs, prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let server = Server::running(&options.server, options.protocol)?;
    let (address, protocol) = match &options.sql_server {
        Some(address) => (address, Protocol::Postgres),
        None => (&server.address, server.protocol),
    };
    let space = options.value_bytes as u64;
    let blend = match (options.keys_each, options.set_in) {
        (Some(keys), _) => Blend::Together(keys),
        (None, Some(share)) => Blend::SetIn(share.get()),
        (None, None) => Blend::Alike,
    };
    let base = Workload::fixed(options.operation, options.value_bytes, options.keys, space);
    let workload = Workload { blend, ..base };
    if !options.filled {
        if let Some(address) = &options.sql_server {
            let mut wire = Wire::connect(address)?;
            wire.run("DROP TABLE IF EXISTS points")?;
            wire.run(POINTS)?;
        }
        Load::connect(address, protocol, 4)?.fill(&workload)?;
    }
    let mut load = Load::connect(address, protocol, options.connections)?;
    let before = server.cpu_ns()?;
    let seen = load.run(&workload, options.depth, Until::Elapsed(crate::nanoseconds(options.seconds)))?;
    let server_ns = server.cpu_ns()? - before;
    let each = |ns: u64| digits(ns as f64 / seen.operations.max(1) as f64);
    println!(
        "{} operations, {} a second, server CPU {} ns each, load CPU {} ns each",
        thousands(seen.operations as f64),
        thousands(seen.operations as f64 / clock::seconds(seen.wall_ns)),
        each(server_ns),
        each(seen.load_cpu_ns)
    );
    let micros = |share| digits(seen.latency.percentile(share) as f64 / 1e3);
    println!("a batch of {}: p50 {} us, p99 {} us", options.depth, micros(0.5), micros(0.99));
    Ok(())
}

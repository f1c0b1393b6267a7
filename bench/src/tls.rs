//! TLS beside memcached's: server CPU of requests and of new connections, and memory of idle ones.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::address::{self, Address, Stream};
use crate::failure::{Failure, Result};
use crate::load::{Load, Shape, Workload};
use crate::machine::Noise;
use crate::paired::{self, Bench, Line, Options, Side, at_most};
use crate::protocol::Operation;
use crate::report::{Figure, Report};
use crate::server::{Kind, Server, Setup};
use crate::summary::{Summary, digits, thousands};

/// Connections of every line of requests.
const CONNECTIONS: usize = 50;
/// Memory limit of each server: room for both sizes.
const MEMORY_MIB: u64 = 512;
/// Value size and number of keys.
const SIZES: [(usize, u64); 2] = [(32, 100_000), (1_024, 100_000)];
/// Requests sent before the first answer is waited for.
const DEPTHS: [u64; 2] = [1, 32];
/// New connections of one measurement.
const NEW: u32 = 300;
/// Idle connections.
const IDLE: usize = 250;
/// KiB that each may take.
const IDLE_REACH: f64 = 40.0;

/// Measures all and writes a report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options);
    bench.cores.pin_load()?;
    let mut report = Report::new("tls");
    let noise = Noise::sample();
    bench.introduce("TLS", &mut report);
    let keys = Keys::make()?;
    address::trust(&keys.certificate)?;
    let setup = |extra| Setup { extra, ..bench.setup(MEMORY_MIB) };
    let theirs = Bench::start(&Kind::Memcached, &setup(keys.for_memcached()), &mut report);
    let ours = bench.start_ours(&setup(keys.for_sqlcached()), &mut report);
    let mut servers: Vec<Server> = theirs.into_iter().chain(ours).collect();
    for server in &mut servers {
        if let Address::Tcp(address) = server.address {
            server.address = Address::Tls(address);
        }
    }
    let all: Vec<&Server> = servers.iter().collect();
    new_connections(&bench, &all, &mut report)?;
    idle_connections(&all, &mut report)?;
    requests(&bench, &all, &mut report)?;
    report.say(&format!("Noise: {}.", noise.since()));
    let path = report.write(&options.results)?;
    println!("written: {}", path.display());
    Ok(())
}

/// A certificate and a key in a folder of their own.
struct Keys {
    folder: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Keys {
    fn make() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("sqlcached-bench-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output()?;
        if !made.status.success() {
            return Err(Failure::new("openssl makes no certificate"));
        }
        Ok(Self { folder, certificate, key })
    }

    fn for_memcached(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let options = format!("ssl_chain_cert={},ssl_key={}", text(&self.certificate), text(&self.key));
        vec!["-Z".into(), "-o".into(), options]
    }

    /// memcached's flags mean the same here.
    fn for_sqlcached(&self) -> Vec<String> {
        self.for_memcached()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// A connection that has asked something once.
fn connect(server: &Server) -> Result<Stream> {
    let mut stream = server.address.connect()?;
    stream.write_all(b"mn\r\n")?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(stream)
}

/// Server CPU of a connection that comes, agrees on keys, asks once and goes.
fn new_connections(bench: &Bench, servers: &[&Server], report: &mut Report) -> Result<()> {
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); servers.len()];
    for repetition in 0..bench.repetitions {
        for turn in 0..servers.len() {
            let at = (turn + repetition) % servers.len();
            let before = servers[at].cpu_ns()?;
            for _ in 0..NEW {
                connect(servers[at])?;
            }
            let value = (servers[at].cpu_ns()? - before) as f64 / f64::from(NEW) / 1e3;
            let (server, metric) = (servers[at].label.as_str(), "us");
            report.figure(&Figure { line: "new connection", server, repetition, metric, value });
            costs[at].push(value);
        }
    }
    let row = |(at, server): (usize, &&Server)| {
        let median = Summary::of(&costs[at]).median;
        let (ratio, reach) = if at == 0 {
            Default::default()
        } else {
            at_most(&Summary::of_ratios(&costs[at], &costs[0]), 1.0)
        };
        vec![server.label.clone(), digits(median), thousands(1e6 / median), ratio, reach]
    };
    report.say("\n## New connections\n");
    report
        .say("Server CPU of a connection with a full handshake (TLS 1.3, P-256), one request, and its end.");
    let rows: Vec<_> = servers.iter().enumerate().map(row).collect();
    report.table(&["server", "CPU us", "a second of one core", "ratio", "reach"], &rows);
    Ok(())
}

fn idle_connections(servers: &[&Server], report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let first: Result<Vec<_>> = (0..10).map(|_| connect(server)).collect();
        drop(first?);
        let before = server.memory()?.private_bytes;
        let open: Result<Vec<_>> = (0..IDLE).map(|_| connect(server)).collect();
        let open = open?;
        let grown = server.memory()?.private_bytes.saturating_sub(before);
        let value = grown as f64 / open.len() as f64 / 1024.0;
        let (line, metric) = ("idle connection", "kib");
        report.figure(&Figure { line, server: &server.label, repetition: 0, metric, value });
        let verdict = if value <= IDLE_REACH { "holds" } else { "missed" };
        let reach = if at == 0 { String::new() } else { format!("<= {IDLE_REACH:.0} {verdict}") };
        rows.push(vec![server.label.clone(), digits(value), reach]);
    }
    report.say("\n## Idle connections\n");
    report.say(&format!("Private memory that a server grew by with {IDLE} connections that asked once."));
    report.table(&["server", "KiB each", "reach"], &rows);
    Ok(())
}

fn requests(bench: &Bench, servers: &[&Server], report: &mut Report) -> Result<()> {
    for server in servers {
        report.progress(&format!("fill {}: {}", server.label, server.command));
        let mut load = Load::connect(&server.address, server.protocol, 4)?;
        for (space, (bytes, keys)) in (0..).zip(SIZES) {
            load.fill(&Workload::fixed(Operation::Set, bytes, keys, space))?;
        }
    }
    let mut rows = Vec::new();
    for (space, (bytes, keys)) in (0..).zip(SIZES) {
        for depth in DEPTHS {
            for operation in [Operation::Get, Operation::Set] {
                let shape = Shape { connections: CONNECTIONS, depth };
                let line = Line::of(Workload::fixed(operation, bytes, keys, space), shape, false);
                let side = Side { servers, with_peer: true, reach: 1.0 };
                rows.extend(paired::measure(bench, &line, &side, report)?);
            }
        }
    }
    report.say("\n## Requests\n");
    report.say(&format!("{CONNECTIONS} connections, TLS 1.3, AES-256-GCM, one server thread, all hits."));
    report.table(&paired::HEAD, &rows);
    Ok(())
}

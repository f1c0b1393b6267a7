//! The database behind the cache: invalidations a second, what each takes, how long a miss takes that the database
//! answers, and whether anybody reads a row that is older than a change that was waited for.

mod shop;
mod stale;

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::clock;
use crate::failure::{Context, Failure, Result};
use crate::machine::{self, Noise};
use crate::postgres::Wire;
use crate::report::{Figure, Report};
use crate::server::Kind;
use crate::summary::{digits, thousands};
use shop::Shop;

/// Rows of the table whose changes are counted, and how often all of them change.
const ROWS: u64 = 100_000;
const ROUNDS: u64 = 5;
/// Rows of a transaction.
const TRANSACTION: u64 = 1_000;
/// Single changes a second, and for how many seconds.
const RATE: u64 = 5_000;
const SECONDS: u64 = 10;
/// Misses that are timed, each beside a direct query.
const MISSES: u64 = 5_000;
/// Clients that miss one key at once.
const CROWD: usize = 1_000;
/// Rows of the table that is mirrored.
const MIRRORED: u64 = 1_000_000;

/// The query of tables that read through.
const QUERY: &str = "SELECT id, version, price FROM product WHERE id = ANY($1)";
const COLUMNS: &str = "id INT PRIMARY KEY, version INT, price INT";

/// The options of `source`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Our program, written PATH or LABEL=PATH.
    #[arg(long, value_name = "[LABEL=]PATH")]
    sqlcached: Vec<String>,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Reads of the part `stale`.
    #[arg(long, default_value_t = 10_000_000)]
    reads: u64,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

/// A part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Changes a second, and what each takes.
    Events,
    /// Misses that the database answers.
    Fill,
    /// Rows that are older than what was waited for.
    Stale,
    /// A mirror of a million rows.
    Mirror,
}

/// Measures all and writes a report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let kinds = crate::builds(&options.sqlcached);
    let kind = kinds.first().ok_or_else(|| Failure::new("no program of ours"))?;
    let mut report = Report::new("source");
    let noise = Noise::sample();
    report.say("# The database behind\n");
    report.say(&format!("Machine: {}; nothing is pinned.", machine::describe()));
    for kind in [kind, &Kind::PostgreSql] {
        report.say(&format!("- {}: {}", kind.label(), kind.version().unwrap_or_else(|| "not found".into())));
    }
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    if wanted(Part::Events) {
        events(kind, &mut report)?;
    }
    if wanted(Part::Fill) {
        fill(kind, &mut report)?;
    }
    if wanted(Part::Stale) {
        stale::run(kind, options.reads, &mut report)?;
    }
    if wanted(Part::Mirror) {
        mirror(kind, &mut report)?;
    }
    report.say(&format!("\nNoise: {}.", noise.since()));
    println!("written: {}", report.write(&options.results)?.display());
    Ok(())
}

/// Keeps and says one figure.
fn say(report: &mut Report, line: &str, metric: &str, value: f64) {
    report.figure(&Figure { line, server: "sqlcached", repetition: 0, metric, value });
    report.say(&format!("- {line}: {} {metric}", digits(value)));
}

/// Changes a second, and what each takes here: many of a transaction, and one of each.
fn events(kind: &Kind, report: &mut Report) -> Result<()> {
    report.say("\n## Changes\n");
    let mut shop = Shop::open(kind, ROWS)?;
    shop.create(&format!(
        "CREATE TABLE page ({COLUMNS}) WITH (prefix = 'page:', value = 'version', source = 'pg', depends = 'product(id)')"
    ))?;
    for round in 0..ROUNDS {
        fill_pages(&mut shop)?;
        let (began, before) = (clock::now_ns(), shop.daemon.cpu()?);
        change_all(&mut shop)?;
        let took = (clock::now_ns() - began) as f64 / 1e9;
        let cpu = shop.daemon.cpu_since(&before)? as f64 / 1_000.0 / ROWS as f64;
        let left = shop.figure("SELECT count(*) FROM page")?;
        if left > 0.0 {
            return Err(Failure::new(format!("{left} rows were not invalidated")));
        }
        let line = format!("{TRANSACTION} rows a transaction, round {}", round + 1);
        say(report, &line, "changes a second, the source's own work among them", ROWS as f64 / took);
        say(report, &line, "us of CPU a change", cpu);
    }
    single(&mut shop, report)
}

/// The first and last row of each transaction that changes many.
fn transactions() -> impl Iterator<Item = (u64, u64)> {
    (0..ROWS / TRANSACTION).map(|number| (number * TRANSACTION + 1, (number + 1) * TRANSACTION))
}

/// Changes as many rows at the source, and waits until that is applied here.
fn change_all(shop: &mut Shop) -> Result<()> {
    for (first, last) in transactions() {
        shop.source
            .run(&format!("UPDATE product SET price = price + 1 WHERE id BETWEEN {first} AND {last}"))?;
    }
    shop.settle()
}

fn fill_pages(shop: &mut Shop) -> Result<()> {
    shop.cache.run("TRUNCATE page")?;
    for (first, last) in transactions() {
        let rows: Vec<String> = (first..=last).map(|id| format!("({id}, 0, {id})")).collect();
        shop.cache.run(&format!("INSERT INTO page VALUES {}", rows.join(",")))?;
    }
    Ok(())
}

/// pgbench changes one row a transaction at a fixed rate.
fn single(shop: &mut Shop, report: &mut Report) -> Result<()> {
    fill_pages(shop)?;
    let before = shop.daemon.cpu()?;
    let events = shop.figure("SELECT events FROM sqlcached_sources")?;
    let script =
        format!("\\set id random(1, {ROWS})\nUPDATE product SET price = price + 1 WHERE id = :id;\n");
    let mut pgbench =
        pgbench(shop, &script, &["-c", "4", "-R", &RATE.to_string(), "-T", &SECONDS.to_string()])?;
    let mut lags = Vec::new();
    while pgbench.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(100));
        lags.push(shop.figure("SELECT coalesce(lag_ms, 0) FROM sqlcached_sources")?);
    }
    shop.settle()?;
    let events = shop.figure("SELECT events FROM sqlcached_sources")? - events;
    let cpu = shop.daemon.cpu_since(&before)? as f64 / 1_000.0 / events;
    let line = format!("one row a transaction, {RATE} a second");
    say(report, &line, "changes", events);
    say(report, &line, "us of CPU a change, the questions about the lag among them", cpu);
    lags.sort_by(f64::total_cmp);
    say(report, &line, "ms of lag at the most", lags.last().copied().unwrap_or_default());
    Ok(())
}

/// pgbench with a script, against the shop's database.
fn pgbench(shop: &Shop, script: &str, arguments: &[&str]) -> Result<std::process::Child> {
    let path = std::env::temp_dir().join(format!("sqlcached-bench-{}.pgbench", std::process::id()));
    std::fs::write(&path, script)?;
    let crate::address::Address::Tcp(address) = &shop.database.address else {
        return Err(Failure::new("the database listens elsewhere"));
    };
    let mut command = Command::new("/usr/lib/postgresql/15/bin/pgbench");
    command.args([
        "-n",
        "-h",
        "127.0.0.1",
        "-p",
        &address.port().to_string(),
        "-U",
        "postgres",
        "-M",
        "prepared",
    ]);
    command.arg("-f").arg(path).args(arguments).arg("postgres");
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command.spawn().context(|| "pgbench".into())
}

/// A miss that the database answers, beside the same query sent to the database.
fn fill(kind: &Kind, report: &mut Report) -> Result<()> {
    report.say("\n## Misses that the database answers\n");
    let mut shop = Shop::open(kind, ROWS)?;
    shop.create(&format!(
        "CREATE TABLE item ({COLUMNS}) WITH (prefix = 'item:', value = 'version', source = 'pg', depends = 'product(id)',
             query = '{QUERY}')"
    ))?;
    let mut direct = Wire::connect(&shop.database.address)?;
    direct.prepare("direct", QUERY)?;
    let mut client = Client::connect(&shop.daemon.address)?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for id in 1..=MISSES {
        let began = clock::now_ns();
        direct.execute("direct", &[format!("{{{id}}}").as_bytes()])?;
        let between = clock::now_ns();
        let found = values(&mut client, &format!("get item:{id}\r\n"))?;
        let end = clock::now_ns();
        if found != 1 {
            return Err(Failure::new(format!("item:{id} was not fetched")));
        }
        theirs.push((between - began) as f64 / 1_000.0);
        ours.push((end - between) as f64 / 1_000.0);
    }
    let fills = shop.figure("SELECT fills FROM sqlcached_sources")?;
    for (what, all) in [("the query itself", &mut theirs), ("a get that misses", &mut ours)] {
        all.sort_by(f64::total_cmp);
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            say(report, what, &format!("us, {name}"), all[(all.len() - 1) * percent / 100]);
        }
    }
    say(report, "rows that were stored", &format!("of {}", thousands(MISSES as f64)), fills);
    crowd(&mut shop, report)
}

/// Many clients miss one key at once.
fn crowd(shop: &mut Shop, report: &mut Report) -> Result<()> {
    let before = shop.figure("SELECT fetches FROM sqlcached_sources")?;
    let mut clients: Vec<Client> =
        (0..CROWD).map(|_| Client::connect(&shop.daemon.address)).collect::<Result<_>>()?;
    for client in &mut clients {
        client.out.extend_from_slice(format!("get item:{ROWS}\r\n").as_bytes());
        client.send()?;
    }
    let mut found = 0;
    for client in &mut clients {
        client.read_values(|_, _| found += 1)?;
    }
    let queries = shop.figure("SELECT fetches FROM sqlcached_sources")? - before;
    say(report, &format!("{CROWD} clients that miss one key at once, {found} answers"), "queries", queries);
    Ok(())
}

/// How many values a request finds.
fn values(client: &mut Client, request: &str) -> Result<u64> {
    client.out.extend_from_slice(request.as_bytes());
    client.send()?;
    let mut found = 0;
    client.read_values(|_, _| found += 1)?;
    Ok(found)
}

/// A table that is copied whole and followed.
fn mirror(kind: &Kind, report: &mut Report) -> Result<()> {
    report.say("\n## A mirror\n");
    let mut shop = Shop::open(kind, MIRRORED)?;
    let began = clock::now_ns();
    let before = shop.daemon.cpu()?;
    shop.create(&format!(
        "CREATE TABLE item ({COLUMNS}) WITH (source = 'pg', depends = 'product(id)', mode = 'mirror')"
    ))?;
    let took = (clock::now_ns() - began) as f64 / 1e9;
    let line = format!("a copy of {} rows", thousands(MIRRORED as f64));
    say(report, &line, "s", took);
    say(report, &line, "us of CPU a row", shop.daemon.cpu_since(&before)? as f64 / 1_000.0 / MIRRORED as f64);
    let (began, before) = (clock::now_ns(), shop.daemon.cpu()?);
    change_all(&mut shop)?;
    let took = (clock::now_ns() - began) as f64 / 1e9;
    let line = format!("changes of it, {TRANSACTION} rows a transaction");
    say(report, &line, "a second, the source's own work among them", ROWS as f64 / took);
    say(report, &line, "us of CPU each", shop.daemon.cpu_since(&before)? as f64 / 1_000.0 / ROWS as f64);
    let sums = "SELECT sum(price) FROM";
    let (there, here) =
        (shop::one(&mut shop.source, &format!("{sums} product"))?, shop.fact(&format!("{sums} item"))?);
    if there == here {
        Ok(())
    } else {
        Err(Failure::new(format!("the mirror has {here}, the source {there}")))
    }
}

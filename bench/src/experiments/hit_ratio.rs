//! Who has more of what is asked for, in equal memory: traces of real applications are replayed, each access a read,
//! and a write where it missed.

use std::fs;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;

use crate::address::Address;
use crate::client::{Client, Reply};
use crate::failure::{Context, Failure, Result};
use crate::load::value;
use crate::plot::{Axis, Chart, Series};
use crate::policy::{self, Lru};
use crate::protocol::Protocol;
use crate::report::{Figure, Report};
use crate::server::{Kind, Server, Setup};
use crate::summary::{Summary, thousands};
use crate::trace::{self, Trace};

use super::lab::{self, Lab, start_each};

/// Bytes of all values of a trace together: a key's value has its share of them.
const BYTES: usize = 400 << 20;
/// Memory limits, in MiB: 2 to 40 % of it.
const MEMORY_MIB: [u32; 5] = [8, 20, 40, 80, 160];
/// The ones of a quick run.
const FEW_MEMORY_MIB: [u32; 2] = [20, 80];
/// A value is not longer, so that it fits the caches' limits of an item.
const VALUE_BYTES_MAX: usize = 200_000;
/// Keys asked for at once, as a page needs many: the order within is the application's.
const BATCH: usize = 16;
/// How Redis chooses what goes.
const REDIS_POLICIES: [&str; 2] = ["allkeys-lru", "allkeys-lfu"];
/// What the caches are compared with: no overhead, and exactly the longest unused goes.
const REFERENCE: &str = "LRU, simulated, values alone";

/// Replays every trace on every cache.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let traces = match &lab.traces {
        Some(folder) => traces_of(folder)?,
        None if Path::new(trace::SIBLINGS).is_dir() => traces_of(Path::new(trace::SIBLINGS))?,
        None => vec![Trace::find(None)?],
    };
    let limit = lab.running().map(limit_mib).transpose()?;
    let replayed = traces.into_iter().try_for_each(|mut trace| {
        trace.keys.truncate(lab.effort.of(100_000, 1_000_000, usize::MAX));
        replay_trace(lab, &trace, report)
    });
    if let (Some(address), Some(limit)) = (lab.running(), limit) {
        resize(address, limit)?;
    }
    replayed
}

/// The memory limit of a server that runs already.
fn limit_mib(address: &Address) -> Result<u64> {
    let limit = Client::connect(address)?.stat("limit_maxbytes")?;
    Ok(limit.ok_or_else(|| Failure::new("the server does not say its memory limit"))? >> 20)
}

/// Gives a server that runs already another memory limit, and empties it.
fn resize(address: &Address, memory_mib: u64) -> Result<()> {
    let mut client = Client::connect(address)?;
    client.out.extend_from_slice(format!("flush_all\r\ncache_memlimit {memory_mib}\r\n").as_bytes());
    client.send()?;
    client.expect(b"OK")?;
    client.expect(b"OK")
}

/// The folder's traces by name.
fn traces_of(folder: &Path) -> Result<Vec<Trace>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        if [".be32", ".be64", ".be32.zst", ".be64.zst"].iter().any(|end| name.ends_with(end)) {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| Trace::read(path)).collect()
}

fn replay_trace(lab: &Lab, trace: &Trace, report: &mut Report) -> Result<()> {
    let (distinct, name) = (trace.distinct(), short_name(&trace.origin));
    let value = value((BYTES / distinct.max(1)).clamp(1, VALUE_BYTES_MAX));
    report.say(&format!(
        "\n### {name}\n\n{} accesses of {} keys, values of {} B; {BATCH} keys in a read, what misses is written.\n",
        thousands(trace.keys.len() as f64),
        thousands(distinct as f64),
        thousands(value.len() as f64)
    ));
    let mut series: Vec<Series> = Vec::new();
    let mut rows = Vec::new();
    for &memory_mib in lab.effort.of(&FEW_MEMORY_MIB[..], &MEMORY_MIB, &MEMORY_MIB) {
        let mut ratios = Vec::new();
        if let Some(address) = lab.running() {
            resize(address, u64::from(memory_mib))?;
        }
        for server in start(lab, memory_mib, report) {
            ratios.push((server.label.clone(), replay(&server, trace, &value)?));
            report.progress(&format!("{name}, {memory_mib} MiB: {}", server.label));
        }
        let objects = (usize::try_from(memory_mib).unwrap_or(0) << 20) / value.len();
        ratios.push((REFERENCE.into(), 1.0 - policy::miss_ratio(&mut Lru::new(objects.max(1)), &trace.keys)));
        for (label, ratio) in ratios {
            let line = format!("{name} {memory_mib} MiB");
            let metric = "hit_ratio";
            report.figure(&Figure { line: &line, server: &label, repetition: 0, metric, value: ratio });
            rows.push(vec![memory_mib.to_string(), label.clone(), format!("{ratio:.4}")]);
            push(&mut series, label, (f64::from(memory_mib), Summary::of(&[100.0 * ratio])));
        }
    }
    report.table(&["MiB", "who", "hit ratio"], &rows);
    let chart = Chart {
        title: format!("{name}: hits in equal memory"),
        x: Axis::logarithmic("memory limit, MiB"),
        y: Axis::linear("% of the accesses that hit"),
        series,
        walls: Vec::new(),
    };
    report.picture(&format!("7-{}", name.replace('.', "-")), chart.svg()?);
    Ok(())
}

/// A file's name, as far as it names the trace.
fn short_name(origin: &str) -> String {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    name.split('.').next().unwrap_or(name).to_owned()
}

fn push(series: &mut Vec<Series>, label: String, point: (f64, Summary)) {
    match series.iter_mut().find(|series| series.label == label) {
        Some(series) => series.points.push(point),
        None => series.push(Series { label, points: vec![point] }),
    }
}

/// Every cache, empty, with this memory limit.
fn start(lab: &Lab, memory_mib: u32, report: &mut Report) -> Vec<Server> {
    let setup = lab.setup(u64::from(memory_mib));
    let mut servers = start_each(&[Kind::Memcached], &setup, report);
    for policy in REDIS_POLICIES {
        let extra = vec!["--maxmemory-policy".into(), policy.into()];
        let setup = Setup { extra, ..setup.clone() };
        if let Some(mut server) = lab::start(&Kind::Redis, &setup, report) {
            server.label = format!("{} {policy}", server.label);
            servers.push(server);
        }
    }
    servers.extend(lab.start_ours(&setup, report));
    servers
}

/// The share of accesses that hit. An access that repeats one of its batch hits, or would have, had it come alone.
fn replay(server: &Server, trace: &Trace, value: &[u8]) -> Result<f64> {
    let mut client = Client::connect(server.nearest())?;
    let resp = server.protocol == Protocol::Resp;
    let mut misses = 0;
    for batch in trace.keys.chunks(BATCH) {
        let mut seen = HashSet::new();
        let keys: Vec<String> =
            batch.iter().filter(|&&key| seen.insert(key)).map(|key| format!("t:{key:x}")).collect();
        let missing = if resp { read_redis(&mut client, &keys)? } else { read(&mut client, &keys)? };
        misses += missing.len();
        write(&mut client, &missing, value, resp)?;
    }
    Ok(1.0 - misses as f64 / trace.keys.len().max(1) as f64)
}

/// The keys that a multiple `get` does not find.
fn read<'k>(client: &mut Client, keys: &'k [String]) -> Result<Vec<&'k str>> {
    client.out.extend_from_slice(format!("get {}\r\n", keys.join(" ")).as_bytes());
    client.send()?;
    let mut missing: Vec<&str> = keys.iter().map(String::as_str).collect();
    client.read_values(|found, _| missing.retain(|key| key.as_bytes() != found))?;
    Ok(missing)
}

/// The keys that `MGET` does not find.
fn read_redis<'k>(client: &mut Client, keys: &'k [String]) -> Result<Vec<&'k str>> {
    let words: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
    client.put_command(&words);
    client.send()?;
    let Reply::List(found) = client.read_reply()? else { return Ok(Vec::new()) };
    let missing = keys.iter().zip(found).filter(|(_, found)| *found == Reply::Nothing);
    Ok(missing.map(|(key, _)| key.as_str()).collect())
}

/// Writes what missed. A server that is short of memory may refuse one; it then misses again.
fn write(client: &mut Client, keys: &[&str], value: &[u8], resp: bool) -> Result<()> {
    for key in keys {
        if resp {
            client.put_command(&[b"SET", key.as_bytes(), value]);
        } else {
            client.out.extend_from_slice(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes());
            client.out.extend_from_slice(value);
            client.out.extend_from_slice(b"\r\n");
        }
    }
    client.send()?;
    keys.iter().try_for_each(|_| client.read_line().map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn a_trace_is_named_after_its_file() {
        assert_eq!(short_name("/some/where/orm-busy.be32.zst"), "orm-busy");
        assert_eq!(short_name("generated"), "generated");
    }
}

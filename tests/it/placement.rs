//! Two daemons behind clients that share keys by ketama: every key lies where two memcacheds at the same addresses
//! have it. The addresses are part of what ketama hashes, so both pairs stand on the same, one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::Client;
use crate::daemon::{program, run};
use crate::skipped;

/// Keys that are shared.
const KEYS: usize = 2_000;

/// Ports of nobody else: each pair has loopback addresses of its own.
const PORT: u16 = 11_911;

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Memcached,
    Sqlcached,
}

fn start(kind: Kind, address: &str) -> Option<Server> {
    let mut command = match kind {
        Kind::Memcached => {
            let mut command = Command::new("memcached");
            command.args(["-u", "root"]);
            command
        }
        Kind::Sqlcached => {
            let mut command = program();
            command.args(["-s", "none", "--arena", "none"]);
            command
        }
    };
    command.args(["-l", address, "-p", &PORT.to_string(), "-m", "64"]);
    let server = Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?);
    for _ in 0..4_000 {
        if Client::try_at(address, PORT).is_ok() {
            return Some(server);
        }
        // It tells nobody when it is ready.
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{kind:?} does not listen on {address}");
}

/// The keys that lie on a server.
fn keys(address: &str) -> BTreeSet<String> {
    let mut client = Client::try_at(address, PORT).unwrap();
    client.send(b"lru_crawler metadump all\r\n");
    let lines = std::iter::from_fn(|| Some(client.line()).filter(|line| line != "END"));
    let key =
        |line: String| line.split(' ').next().and_then(|word| word.strip_prefix("key=")).map(str::to_owned);
    lines.map(|line| key(line).unwrap()).collect()
}

/// Where the keys lie when a client has shared them among two servers; none if these cannot be started.
fn placed(
    kind: Kind,
    addresses: [&str; 2],
    client: &dyn Fn(&[String]) -> Command,
) -> Option<[BTreeSet<String>; 2]> {
    let [first, second] = addresses.map(|address| start(kind, address));
    let _servers = (first?, second?);
    let servers = addresses.map(|address| format!("{address}:{PORT}"));
    let (code, out, error) = run(client(&servers).arg(KEYS.to_string()));
    assert!(code == Some(0) && out.trim() == "shared", "{kind:?}: {out}{error}");
    Some(addresses.map(keys))
}

fn shares_as_memcached_does(addresses: [&str; 2], client: &dyn Fn(&[String]) -> Command) {
    let Some(theirs) = placed(Kind::Memcached, addresses, client) else {
        skipped("memcached is not installed, so its keys cannot be compared");
        return;
    };
    let ours = placed(Kind::Sqlcached, addresses, client).unwrap();
    assert_eq!(theirs, ours);
    // All but the one that was deleted, the counter, and on each server a fair share.
    let counts = ours.each_ref().map(BTreeSet::len);
    assert_eq!(counts.iter().sum::<usize>(), KEYS);
    assert!(counts.iter().all(|count| *count > KEYS / 5), "{counts:?}");
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn spymemcached() {
    let jars = folder().join("target/drivers/spymemcached");
    assert!(jars.join("fetched").exists(), "spymemcached is not installed; make tools does it");
    shares_as_memcached_does(["127.77.1.1", "127.77.1.2"], &|servers| {
        let mut command = Command::new("java");
        command.arg("-cp").arg(jars.join("*"));
        command.arg(folder().join("tests/drivers/spymemcached/Placement.java")).args(servers);
        command
    });
}

#[test]
fn pylibmc() {
    if !Path::new("/usr/lib/python3/dist-packages/pylibmc").exists() {
        skipped("pylibmc is not installed; make tools does it");
        return;
    }
    shares_as_memcached_does(["127.77.2.1", "127.77.2.2"], &|servers| {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(folder().join("tests/clients/pylibmc_placement.py")).args(servers);
        command
    });
}

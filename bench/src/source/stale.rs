//! Whether anybody reads a row that is older than a change that was waited for.
//!
//! pgbench changes rows all the time. A reader takes the versions of all rows at the source, and then a place in its
//! log that is behind all of them. When that place is applied here, no row may have a smaller version. Meanwhile
//! commits are held back and let go again, as where a synchronous standby is slow: then the change is streamed, and
//! a query still reads the old row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::shop::{Shop, applied, one};
use super::{COLUMNS, QUERY, pgbench, say};
use crate::address::Address;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::postgres::Wire;
use crate::report::Report;
use crate::server::Kind;
use crate::summary::thousands;

/// Rows that are changed and read.
const ROWS: usize = 1_000;
/// Keys of one request.
const KEYS: usize = 100;
/// Commits are held back so long, and let go for so long.
const HELD: Duration = Duration::from_millis(100);
const FREE: Duration = Duration::from_millis(400);

pub(super) fn run(kind: &Kind, reads: u64, report: &mut Report) -> Result<()> {
    report.say("\n## Rows that are older than what was waited for\n");
    let mut shop = Shop::open(kind, ROWS as u64)?;
    shop.create(&format!(
        "CREATE TABLE item ({COLUMNS}) WITH (prefix = 'item:', value = 'version', source = 'pg', depends = 'product(id)',
             query = '{QUERY}')"
    ))?;
    let script =
        format!("\\set id random(1, {ROWS})\nUPDATE product SET version = version + 1 WHERE id = :id;\n");
    let mut changing = pgbench(&shop, &script, &["-c", "16", "-R", "2000", "-T", "100000"])?;
    let over = Arc::new(AtomicBool::new(false));
    let standby = hold_commits(&shop.database.address, Arc::clone(&over))?;
    let read = Reader::open(&shop)?.read(reads);
    // Relaxed: the flag carries no data.
    over.store(true, Ordering::Relaxed);
    let held = standby.join().map_err(|_| Failure::new("who holds commits back has failed"))?;
    let _gone = changing.kill();
    changing.wait()?;
    let (read, held) = (read?, held?);
    let line = format!("{} reads at {} places of the log", thousands(read.rows as f64), read.places);
    say(report, &line, "were stale", read.stale as f64);
    say(report, &line, "times commits were held back", held as f64);
    for (metric, column) in [
        ("changes", "events"),
        ("rows fetched and stored", "fills"),
        ("fetched and refused", "fills_refused"),
    ] {
        let count = shop.figure(&format!("SELECT {column} FROM sqlcached_sources"))?;
        say(report, &line, metric, count);
    }
    if read.stale == 0 { Ok(()) } else { Err(Failure::new("rows were stale")) }
}

/// Switches a synchronous standby on that does not answer, and off again; returns how often.
fn hold_commits(database: &Address, over: Arc<AtomicBool>) -> Result<thread::JoinHandle<Result<u64>>> {
    let mut wire = Wire::connect(database)?;
    Ok(thread::spawn(move || {
        let mut times = 0;
        // Relaxed: the flag carries no data.
        while !over.load(Ordering::Relaxed) {
            for (names, wait) in [("nobody", HELD), ("", FREE)] {
                wire.run(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"))?;
                wire.run("SELECT pg_reload_conf()")?;
                thread::sleep(wait);
            }
            times += 1;
        }
        Ok(times)
    }))
}

/// Compares rows here with what the source had before.
struct Reader {
    source: Wire,
    cache: Wire,
    client: Client,
}

#[derive(Default)]
struct Read {
    rows: u64,
    places: u64,
    stale: u64,
}

impl Reader {
    fn open(shop: &Shop) -> Result<Self> {
        let sql = shop.daemon.sql.as_ref().ok_or_else(|| Failure::new("the daemon has no SQL port"))?;
        Ok(Self {
            source: Wire::connect(&shop.database.address)?,
            cache: Wire::connect(sql)?,
            client: Client::connect(&shop.daemon.address)?,
        })
    }

    fn read(&mut self, reads: u64) -> Result<Read> {
        let mut read = Read::default();
        while read.rows < reads {
            let versions = self.versions()?;
            // Behind all that the query before has seen: nobody sees what is not flushed.
            let lsn = one(&mut self.source, "SELECT pg_current_wal_flush_lsn()")?;
            applied(&mut self.cache, &lsn)?;
            for first in (1..=ROWS).step_by(KEYS) {
                self.compare(first, &versions, &mut read)?;
            }
            read.places += 1;
        }
        Ok(read)
    }

    fn versions(&mut self) -> Result<Vec<usize>> {
        let mut versions = vec![0; ROWS + 1];
        for row in self.source.rows("SELECT id, version FROM product")? {
            let number = |at: usize| row.get(at).and_then(|text| text.as_deref()?.parse::<usize>().ok());
            if let (Some(id), Some(version)) = (number(0), number(1)) {
                versions[id] = version;
            }
        }
        Ok(versions)
    }

    fn compare(&mut self, first: usize, versions: &[usize], read: &mut Read) -> Result<()> {
        let keys: Vec<String> = (first..first + KEYS).map(|id| format!(" item:{id}")).collect();
        self.client.out.extend_from_slice(format!("get{}\r\n", keys.concat()).as_bytes());
        self.client.send()?;
        let mut found = 0;
        self.client.read_values(|key, value| {
            let number =
                |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok());
            let id = key.strip_prefix(b"item:").and_then(number).unwrap_or(0);
            read.stale += u64::from(number(value).is_none_or(|version| version < versions[id]));
            found += 1;
        })?;
        read.rows += found;
        Ok(())
    }
}

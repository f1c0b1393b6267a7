//! What goes wrong between a source and us: the network, and definitions that change there.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{TABLE, asked, cache, fill, make_shop, psql, server, shop, stored, until, until_stored, wait};
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::skipped;

/// Carries bytes between the daemon and its source, as a network does: late, or not at all.
struct Network {
    port: u16,
    /// Where it leads.
    to: Arc<AtomicU16>,
    /// Milliseconds that each piece takes; [`CUT`]: none arrives, and nobody is told.
    delay: Arc<AtomicU64>,
}

const CUT: u64 = u64::MAX;

impl Network {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, delay) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(0)));
        let (all, to) = (Arc::clone(&delay), Arc::new(AtomicU16::new(port)));
        let target = Arc::clone(&to);
        thread::spawn(move || {
            for client in listener.incoming() {
                let to = ("127.0.0.1", target.load(Ordering::Relaxed));
                // Nobody is there: the client is told by the end of its connection.
                let (Ok(client), Ok(source)) = (client, TcpStream::connect(to)) else { continue };
                carry(client.try_clone().unwrap(), source.try_clone().unwrap(), Arc::clone(&all));
                carry(source, client, Arc::clone(&all));
            }
        });
        Self { port: own, to, delay }
    }

    fn takes(&self, ms: u64) {
        self.delay.store(ms, Ordering::Relaxed);
    }
}

/// A piece that meets a cut is lost with its connection: as for TCP, no later one can arrive in its place.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Arc<AtomicU64>) {
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            match delay.load(Ordering::Relaxed) {
                CUT => loop {
                    thread::sleep(Duration::from_mins(1));
                },
                ms => thread::sleep(Duration::from_millis(ms)),
            }
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
        let _closed = to.shutdown(std::net::Shutdown::Both);
    });
}

/// A daemon that reaches its source by a network.
fn cache_behind(network: &Network, database: &PostgreSql, slot: bool) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(
        &daemon.place,
        &format!("ALTER SERVER pg OPTIONS (SET port '{}', ADD connect_timeout '1')", network.port),
    );
    if slot {
        psql(&daemon.place, "ALTER SERVER pg OPTIONS (ADD slot 'cache')");
    }
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    daemon
}

/// A slow network makes changes late, and the lag says so.
#[test]
fn a_slow_network_is_lag() {
    let database = shop(&[]);
    let network = Network::to(database.place.port);
    let daemon = cache_behind(&network, &database, false);
    let mut client = daemon.daemon.connect();
    network.takes(100);
    until("the lag is known", || psql(&daemon.place, "SELECT lag_ms >= 100 FROM sqlcached_sources") == "t");
    fill(&daemon, &mut client);
    psql(&database.place, "UPDATE product SET price = 7 WHERE id = 3");
    until_stored(&daemon, &mut client, &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
}

/// A network that carries nothing any more tells nobody. Rows go all the same, within twice `max_lag`; when it is back,
/// the slot is taken from our own connection that the source believes in still.
#[test]
fn a_cut_network_is_noticed() {
    let database = shop(&["max_slot_wal_keep_size=1GB", "wal_sender_timeout=10min"]);
    let network = Network::to(database.place.port);
    let daemon = cache_behind(&network, &database, true);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    network.takes(CUT);
    let began = std::time::Instant::now();
    until_stored(&daemon, &mut client, &[]);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(8), "max_lag is 2 s, and rows were there for {took:?}");
    psql(&database.place, "UPDATE product SET price = 7 WHERE id = 3");
    network.takes(0);
    wait(&daemon, "streaming");
    let facts = "SELECT coalesce(last_break, 'none') FROM sqlcached_sources";
    assert_eq!(psql(&daemon.place, facts), "none", "the slot's stream goes on");
    fill(&daemon, &mut client);
    psql(&database.place, "UPDATE product SET price = 8 WHERE id = 4");
    until_stored(&daemon, &mut client, &[1, 2, 3, 5, 6, 7, 8, 9, 10]);
}

/// Commits of the outage in the next test; at 5,000 a second an hour has 18,000,000 (`COMMITS=n` for more).
const COMMITS: u64 = 50_000;

/// A source that is cut off and goes on: its log waits there, and nothing here. When it is back, the changes take no
/// more memory than those of a short time, and what each takes of the processor is printed.
#[test]
fn an_outage_takes_no_memory() {
    let commits = std::env::var("COMMITS").ok().and_then(|text| text.parse().ok()).unwrap_or(COMMITS);
    let database = shop(&["max_slot_wal_keep_size=4GB", "max_wal_size=8GB"]);
    let network = Network::to(database.place.port);
    let daemon = cache_behind(&network, &database, true);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    let before = daemon.daemon.resident_bytes();
    network.takes(CUT);
    let began = std::time::Instant::now();
    psql(
        &database.place,
        &format!(
            "DO $$ BEGIN FOR n IN 1..{commits} LOOP
                 UPDATE product SET price = n WHERE id = n % 10 + 1; COMMIT;
             END LOOP; END $$"
        ),
    );
    let (took, away) = (began.elapsed(), daemon.daemon.resident_bytes());
    until_stored(&daemon, &mut client, &[]);
    let cpu = cpu_ticks(&daemon);
    network.takes(0);
    let back = std::time::Instant::now();
    wait(&daemon, "streaming");
    let lsn = psql(&database.place, "SELECT pg_current_wal_lsn()");
    until("it is applied", || {
        psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '30 s')")) == "t"
    });
    let events: u64 = psql(&daemon.place, "SELECT events FROM sqlcached_sources").parse().unwrap();
    assert!(events >= commits, "{events} events of {commits} commits");
    let after = daemon.daemon.resident_bytes();
    println!(
        "{commits} commits in {took:?} while cut off: {} KiB more; applied {:?} after the network was back: {} KiB more, {:.1} us of the processor each",
        away.saturating_sub(before) >> 10,
        back.elapsed(),
        after.saturating_sub(before) >> 10,
        (cpu_ticks(&daemon) - cpu) as f64 * 10_000.0 / events as f64,
    );
    assert!(away.saturating_sub(before) < 16 << 20 && after.saturating_sub(before) < 48 << 20);
}

/// Hundredths of a second that the source's thread took.
fn cpu_ticks(daemon: &SqlDaemon) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.daemon.pid())).unwrap();
    let stats = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let ours = stats.filter(|stat| stat.contains("(source-"));
    let ticks = |stat: String| -> u64 {
        let rest = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    };
    ours.map(ticks).sum()
}

/// What the stream does not tell: tables that go, tables that are not published any more.
#[test]
fn definitions_that_the_stream_does_not_tell() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    let lost = |state: &str| {
        until(&format!("it is lost with {state}"), || {
            psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains(state)
        });
    };
    for (change, back, state) in [
        ("ALTER PUBLICATION cache DROP TABLE review", "ALTER PUBLICATION cache ADD TABLE review", "42704"),
        ("ALTER TABLE review REPLICA IDENTITY DEFAULT", "ALTER TABLE review REPLICA IDENTITY FULL", "55000"),
        (
            "DROP TABLE review",
            "CREATE TABLE review (id INT PRIMARY KEY, product_id INT, body TEXT);
             ALTER TABLE review REPLICA IDENTITY FULL; ALTER PUBLICATION cache ADD TABLE review",
            "42P01",
        ),
    ] {
        fill(&daemon, &mut client);
        psql(source, change);
        lost(state);
        until_stored(&daemon, &mut client, &[]);
        psql(source, back);
        wait(&daemon, "streaming");
    }
    fill(&daemon, &mut client);
    // Types that change, and what is known by them.
    psql(source, "ALTER TABLE product ALTER COLUMN id TYPE BIGINT");
    until_stored(&daemon, &mut client, &[]);
    wait(&daemon, "streaming");
    until("all is settled", || psql(&daemon.place, "SELECT max(unsettled) FROM sqlcached_sources") == "0");
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET price = 3 WHERE id = 3; INSERT INTO review VALUES (1, 5, 'x')");
    until_stored(&daemon, &mut client, &[1, 2, 4, 6, 7, 8, 9, 10]);
}

/// Each kind of replica identity, partitions, generated columns, a publication by schema: what can be told is, and what
/// cannot is refused.
#[test]
fn identities_partitions_and_generated_columns() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TABLE offer (id INT PRIMARY KEY, shop INT NOT NULL, item INT NOT NULL, twice INT GENERATED ALWAYS AS (item * 2) STORED);
         CREATE UNIQUE INDEX offer_of ON offer (shop, item);
         ALTER TABLE offer REPLICA IDENTITY USING INDEX offer_of;
         CREATE TABLE measure (id INT, year INT, value INT, PRIMARY KEY (id, year)) PARTITION BY LIST (year);
         CREATE TABLE measure_1 PARTITION OF measure FOR VALUES IN (1);
         CREATE TABLE measure_2 PARTITION OF measure FOR VALUES IN (2);
         ALTER PUBLICATION cache ADD TABLE offer, measure",
    );
    psql(&daemon.place, &server(&database));
    let table = |name: &str, depends: &str| {
        format!(
            "CREATE TABLE {name} (id INT PRIMARY KEY, body TEXT) WITH (prefix = '{name}:', value = 'body', source = 'pg', depends = '{depends}')"
        )
    };
    for (depends, state, hint) in [
        ("offer(id)", "55000", "REPLICA IDENTITY"),
        ("offer(twice => id)", "0A000", "computed from"),
        ("measure(id)", "42704", "publish_via_partition_root"),
    ] {
        let said = asked(&daemon.place, &table("t", depends)).unwrap_err();
        assert!(said.contains(state) && said.contains(hint), "{depends}: {said}");
    }
    psql(source, "ALTER PUBLICATION cache SET (publish_via_partition_root = true)");
    psql(&daemon.place, &table("page", "offer(item => id), measure(id)"));
    wait(&daemon, "streaming");
    let mut client = daemon.daemon.connect();
    psql(
        source,
        "INSERT INTO offer VALUES (1, 1, 1), (2, 1, 2); INSERT INTO measure VALUES (3, 1, 0), (4, 2, 0)",
    );
    fill_when_settled(&daemon, &mut client);
    // By an index: the old row tells its columns, also where the key of the table stays.
    psql(source, "UPDATE offer SET item = 5 WHERE id = 1");
    until_stored(&daemon, &mut client, &[2, 3, 4, 6, 7, 8, 9, 10]);
    psql(source, "DELETE FROM offer WHERE id = 2");
    until_stored(&daemon, &mut client, &[3, 4, 6, 7, 8, 9, 10]);
    // A row of a partition, one that moves to another, one of a partition that was made later.
    psql(source, "UPDATE measure SET value = 1 WHERE id = 3");
    until_stored(&daemon, &mut client, &[4, 6, 7, 8, 9, 10]);
    psql(source, "UPDATE measure SET year = 1 WHERE id = 4");
    until_stored(&daemon, &mut client, &[6, 7, 8, 9, 10]);
    psql(
        source,
        "CREATE TABLE measure_3 PARTITION OF measure FOR VALUES IN (3); INSERT INTO measure VALUES (6, 3, 0)",
    );
    until_stored(&daemon, &mut client, &[]);
}

fn fill_when_settled(daemon: &SqlDaemon, client: &mut crate::client::Client) {
    until("all is applied", || {
        psql(&daemon.place, "SELECT transactions >= 1 AND unsettled = 0 FROM sqlcached_sources") == "t"
    });
    fill(daemon, client);
}

/// The primary goes, and its standby takes its place: with a copy of the slot no change is missed, but rows may have
/// been made of commits that the standby never had.
#[test]
fn a_promoted_standby_is_followed() {
    let settings = ["wal_level=logical", "max_slot_wal_keep_size=1GB", "hot_standby_feedback=on"];
    let Some(mut primary) = PostgreSql::start_17(&settings) else {
        return skipped("PostgreSQL 17 is not there, or its user cannot read it");
    };
    make_shop(&primary.place);
    psql(&primary.place, "SELECT pg_create_physical_replication_slot('standby', true)");
    let standby = primary.standby(&["primary_slot_name=standby", "sync_replication_slots=on"]);
    let network = Network::to(primary.place.port);
    let daemon = cache_behind(&network, &primary, true);
    assert_eq!(
        psql(&primary.place, "SELECT failover FROM pg_replication_slots WHERE slot_name = 'cache'"),
        "t"
    );
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    psql(&primary.place, "UPDATE product SET price = 7 WHERE id = 1");
    until_stored(&daemon, &mut client, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    until("the standby has the slot and the change", || {
        psql(
            &standby.place,
            "SELECT synced AND NOT temporary FROM pg_replication_slots WHERE slot_name = 'cache'",
        ) == "t"
            && psql(&standby.place, "SELECT price FROM product WHERE id = 1") == "7"
    });
    primary.stop();
    network.to.store(standby.place.port, Ordering::Relaxed);
    // A standby that is not promoted yet says nothing of what is believed. Once its statistics passed for a crash's.
    until("the standby's copy of the slot is met", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("is a standby's copy")
    });
    psql(&standby.place, "SELECT pg_promote()");
    psql(&standby.place, "UPDATE product SET price = 8 WHERE id = 2");
    wait(&daemon, "streaming");
    let facts = psql(&daemon.place, "SELECT slot, last_break FROM sqlcached_sources");
    assert!(facts.starts_with("cache|the source was promoted"), "{facts}");
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    fill(&daemon, &mut client);
    psql(&standby.place, "UPDATE product SET price = 9 WHERE id = 3");
    until_stored(&daemon, &mut client, &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
}

/// A database that only replays the log of another one does not say what its rows contain. They answer clients and are
/// not stored; changes of rows that clients store themselves arrive.
#[test]
fn rows_of_a_standby_answer_and_are_not_stored() {
    let settings = ["wal_level=logical", "hot_standby_feedback=on"];
    let Some(mut primary) = PostgreSql::start_17(&settings) else {
        return skipped("PostgreSQL 17 is not there, or its user cannot read it");
    };
    make_shop(&primary.place);
    psql(&primary.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    psql(&primary.place, "SELECT pg_create_physical_replication_slot('standby', true)");
    let standby = primary.standby(&["primary_slot_name=standby"]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&standby));
    psql(
        &daemon.place,
        "CREATE TABLE product (id INT PRIMARY KEY, name TEXT)
             WITH (prefix = 'product:', value = 'name', source = 'pg', depends = 'product(id)',
                   query = 'SELECT id, name FROM product WHERE id = ANY($1)')",
    );
    // A slot of a standby waits for what the primary says of its transactions.
    until("the standby is followed", || {
        psql(&primary.place, "SELECT pg_log_standby_snapshot()");
        psql(&daemon.place, "SELECT state FROM sqlcached_sources") == "streaming"
    });
    let mut client = daemon.daemon.connect();
    for refused in 1..=3 {
        assert_eq!(client.get("product:1").as_deref(), Some(&b"product 1"[..]));
        assert_eq!(psql(&daemon.place, "SELECT fills_refused FROM sqlcached_sources"), refused.to_string());
    }
    assert_eq!(client.set("product:2", b"own"), "STORED");
    psql(&primary.place, "UPDATE product SET name = 'new' WHERE id = 2");
    until("the change is here", || client.get("product:2").as_deref() == Some(b"new"));
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM product"), "0");
}

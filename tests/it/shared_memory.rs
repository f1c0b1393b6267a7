//! Shared memory: what another process reads in the daemon's file is what its sockets answer.

use fastrand::Rng;
use sqlcached_client::{Client, Lookup, Options, Reply, SqlValue};

use crate::daemon::Daemon;
use crate::seed;

/// A client that reads in the daemon's file.
fn client(daemon: &Daemon) -> Client {
    let options = Options { arena: Some(daemon.folder.0.join("arena")), ..Options::new(daemon.socket()) };
    Client::connect(&options).unwrap()
}

/// A client that only has the socket.
fn by_socket(daemon: &Daemon) -> Client {
    Client::connect(&Options { shared_memory: false, ..Options::new(daemon.socket()) }).unwrap()
}

fn bytes(lookup: Lookup) -> Option<Vec<u8>> {
    lookup.value().map(|value| value.bytes)
}

#[test]
fn a_write_is_seen_and_a_delete_and_a_flush() {
    let daemon = Daemon::start(&[]);
    let client = client(&daemon);
    let table = client.table("memcached").unwrap();
    assert!(table.is_shared());
    assert_eq!(client.get_from(&table, b"k").unwrap(), Lookup::Miss);
    client.set_key(b"k", b"first", 7, 0).unwrap();
    let Lookup::Hit(value) = client.get_from(&table, b"k").unwrap() else { panic!("it was stored") };
    assert_eq!((&value.bytes[..], value.meta.flags), (&b"first"[..], 7));
    assert!(client.cas_key(b"k", b"second", 0, 0, value.meta.cas).unwrap());
    assert!(!client.cas_key(b"k", b"third", 0, 0, value.meta.cas).unwrap());
    assert_eq!(bytes(client.get_key(b"k").unwrap()).as_deref(), Some(&b"second"[..]));
    assert!(client.delete_key(b"k").unwrap());
    assert_eq!(client.get_from(&table, b"k").unwrap(), Lookup::Miss);
    client.set_key(b"k", b"10", 0, 0).unwrap();
    assert_eq!(client.incr_key(b"k", 5).unwrap(), Some(15));
    assert_eq!(client.incr_key(b"k", -20).unwrap(), Some(0));
    assert_eq!(bytes(client.get_from(&table, b"k").unwrap()).as_deref(), Some(&b"0 "[..]));
    daemon.connect().ask("flush_all");
    assert_eq!(client.get_from(&table, b"k").unwrap(), Lookup::Miss);
}

#[test]
fn tables_rows_columns_and_prefixes() {
    let daemon = Daemon::start(&[]);
    let client = client(&daemon);
    let create = "CREATE TABLE frag (page INT, part TEXT, body TEXT, size INT, raw BLOB, PRIMARY KEY (page, part)) \
                  WITH (prefix = 'frag:', value = 'body')";
    assert_eq!(client.sql(create, &[]).unwrap(), Reply::Changed(0));
    let insert = "INSERT INTO frag VALUES (?1, ?2, ?3, ?4, ?5)";
    let row = [17.into(), "head".into(), "<h1>".into(), 4.into(), SqlValue::Blob(vec![0, 255])];
    assert_eq!(client.sql(insert, &row).unwrap(), Reply::Changed(1));
    assert_eq!(bytes(client.get("frag", b"17:head").unwrap()).as_deref(), Some(&b"<h1>"[..]));
    assert_eq!(bytes(client.get_key(b"frag:17:head").unwrap()).as_deref(), Some(&b"<h1>"[..]));
    assert_eq!(client.get("frag", b"18:head").unwrap(), Lookup::Miss);
    assert_eq!(client.get("frag", b"seventeen:head").unwrap(), Lookup::Miss);
    let Lookup::Hit(found) = client.row("frag", b"17:head").unwrap() else { panic!("it was stored") };
    assert_eq!(found.columns().iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), row);
    assert_eq!(client.column("frag", b"17:head", "SIZE").unwrap(), Lookup::Hit(4.into()));
    assert!(client.column("frag", b"17:head", "nobody").is_err());
    // By the socket alone all of it is the same.
    let other = by_socket(&daemon);
    assert_eq!(other.row("frag", b"17:head").unwrap(), Lookup::Hit(found));
    assert_eq!(other.column("frag", b"17:head", "raw").unwrap(), Lookup::Hit(SqlValue::Blob(vec![0, 255])));
    assert_eq!(bytes(other.get("frag", b"17:head").unwrap()).as_deref(), Some(&b"<h1>"[..]));
    // A table that goes is gone for who holds it, and one that comes again is found.
    let table = client.table("frag").unwrap();
    client.sql("DROP TABLE frag", &[]).unwrap();
    assert!(client.get_from(&table, b"17:head").is_err());
    client.sql(create, &[]).unwrap();
    assert_eq!(client.get_from(&table, b"17:head").unwrap(), Lookup::Miss);
    client.set("frag", b"1:a", b"new", 0, 0).unwrap();
    assert_eq!(bytes(client.get_from(&table, b"1:a").unwrap()).as_deref(), Some(&b"new"[..]));
}

#[test]
fn random_requests_read_alike_in_memory_and_by_socket() {
    let daemon = Daemon::start(&[]);
    let (shared, socket) = (client(&daemon), by_socket(&daemon));
    let mut rng = Rng::with_seed(seed());
    for prefix in ["a:", "a:b:"] {
        let table = prefix.replace(':', "_");
        let create = format!(
            "CREATE TABLE {table}t (key TEXT PRIMARY KEY, v TEXT) WITH (prefix = '{prefix}', value = 'v')"
        );
        shared.sql(&create, &[]).unwrap();
    }
    let key = |rng: &mut Rng| {
        let prefix = ["", "a:", "a:b:", "a:c"][rng.usize(..4)];
        format!("{prefix}{}", rng.u8(..20)).into_bytes()
    };
    for step in 0..3_000 {
        let key = key(&mut rng);
        match rng.u8(..8) {
            0 => drop(socket.delete_key(&key).unwrap()),
            1 => drop(socket.incr_key(&key, 1)),
            2 if step % 50 == 0 => drop(daemon.connect().ask("flush_all")),
            3 => drop(socket.touch_key(&key, 100).unwrap()),
            4 => drop(socket.sql("UPDATE a_t SET v = v || 'x' WHERE length(v) < 50", &[]).unwrap()),
            _ => {
                let len = [0, 1, 10, 300, 9_000, 70_000, 600_000][rng.usize(..7)];
                let value: Vec<u8> = std::iter::repeat_with(|| rng.alphanumeric() as u8).take(len).collect();
                socket.set_key(&key, &value, rng.u32(..), 0).unwrap();
            }
        }
        assert_eq!(shared.get_key(&key).unwrap(), socket.get_key(&key).unwrap(), "{key:?}");
    }
    let keys: Vec<String> = (0..20).map(|at| at.to_string()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let together = shared.multi_get("a_t", &keys).unwrap();
    for (key, found) in keys.iter().zip(together) {
        assert_eq!(found, socket.get("a_t", key).unwrap());
    }
}

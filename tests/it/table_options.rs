//! `flush` and `strict_keys`: what they mean to memcached's protocols, to SQL and to readers of shared memory; and the
//! rows that a new prefix takes from the built-in table.

use serde_json::json;
use sqlcached_client::{Client as Reader, Lookup, Options};

use crate::binary::frame;
use crate::client::Client;
use crate::daemon::Daemon;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const FLUSH: u8 = 0x08;

/// A table with a composite key, with or without shared memory.
fn create(client: &mut Client, options: &str) {
    client.change(&format!(
        "CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part)) \
         WITH (prefix = 'frag:', value = 'body'{options})"
    ));
}

/// The status of a binary request.
fn binary(client: &mut Client, opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> (u16, Vec<u8>) {
    client.send(&frame(opcode, 7, 0, extras, key, value));
    let head = client.bytes(24).unwrap();
    let body = client.bytes(u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize).unwrap();
    (u16::from_be_bytes([head[6], head[7]]), body[usize::from(head[4])..].to_vec())
}

fn reader(daemon: &Daemon, shared_memory: bool) -> Reader {
    Reader::connect(&Options { shared_memory, ..Options::new(daemon.socket()) }).unwrap()
}

fn value(found: Lookup) -> Option<Vec<u8>> {
    found.value().map(|value| value.bytes)
}

#[test]
fn a_flush_leaves_the_tables_that_say_so() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    client.change("CREATE TABLE session (id TEXT PRIMARY KEY, data TEXT) WITH (prefix = 's:', value = 'data', flush = off, shared_memory = on)");
    create(&mut client, ", shared_memory = on");
    let here = reader(&daemon, true);
    let fill = |client: &mut Client| {
        for key in ["s:1", "frag:1:a", "other"] {
            assert_eq!(client.set(key, b"v"), "STORED");
        }
    };
    let check = |client: &mut Client, how: &str| {
        for (key, stays) in [("s:1", true), ("frag:1:a", false), ("other", false)] {
            assert_eq!(client.get(key).is_some(), stays, "{how}: {key}");
            assert_eq!(value(here.get_key(key.as_bytes()).unwrap()).is_some(), stays, "{how}: {key}");
        }
    };
    fill(&mut client);
    assert_eq!(client.ask("flush_all"), "OK");
    check(&mut client, "text");
    fill(&mut client);
    assert_eq!(binary(&mut daemon.connect(), FLUSH, b"", b"", b"").0, 0);
    check(&mut client, "binary");
    client.change("DELETE FROM session WHERE id = '1'");
    assert_eq!(client.get("s:1"), None, "SQL deletes as ever");
    client.set("s:1", b"v");
    client.change("TRUNCATE session");
    assert_eq!(client.get("s:1"), None, "SQL empties as ever");
    assert_eq!(
        client.rows("SELECT array_to_string(reloptions, ',') AS o FROM pg_class WHERE relname = 'session'"),
        [json!({"o": "prefix=s:,value=data,flush=off,shared_memory=on,key=id"})]
    );
    client.set("s:1", b"v");
    client.change("ALTER TABLE session RESET (flush)");
    assert_eq!(client.ask("flush_all"), "OK");
    assert_eq!(client.get("s:1"), None);
}

/// A flush that is to come leaves them, too, also where the option is set in between.
#[cfg(debug_assertions)]
#[test]
fn a_later_flush_leaves_them_too() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    assert_eq!(client.ask("debugtime p"), "OK");
    client.change("CREATE TABLE a (id TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'a:', value = 'v')");
    client.change(
        "CREATE TABLE b (id TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'b:', value = 'v', flush = off)",
    );
    for key in ["a:1", "b:1", "other"] {
        client.set(key, b"v");
    }
    assert_eq!(client.ask("flush_all 10"), "OK");
    client.change("ALTER TABLE a SET (flush = off)");
    assert_eq!(client.ask("debugtime 11"), "OK");
    assert_eq!(client.get("other"), None);
    for key in ["a:1", "b:1"] {
        assert!(client.get(key).is_some(), "{key}");
    }
}

#[test]
fn a_key_that_does_not_fit_is_refused_with_its_reason() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    create(&mut client, "");
    let why = "table frag: the key must be frag:<page INT>:<part TEXT>; 'None' is not a whole number";
    assert_eq!(client.set("frag:None:a", b"v"), format!("CLIENT_ERROR {why}"));
    assert_eq!(client.store("ms frag:None:a", b"v"), format!("CLIENT_ERROR {why}"));
    let parts = "CLIENT_ERROR table frag: the key must be frag:<page INT>:<part TEXT>; it has 1 of 2 parts";
    assert_eq!(client.set("frag:7", b"v"), parts);
    assert_eq!(client.get("frag:None:a"), None);
    let (status, message) = binary(&mut daemon.connect(), SET, &[0; 8], b"frag:None:a", b"v");
    assert_ne!(status, 0);
    assert_eq!(String::from_utf8(message).unwrap(), why);
}

#[test]
fn a_key_that_does_not_fit_falls_into_the_built_in_table() {
    for shared_memory in [", shared_memory = on", ""] {
        let daemon = Daemon::start(&[]);
        let mut client = daemon.connect();
        create(&mut client, &format!(", strict_keys = off{shared_memory}"));
        assert_eq!(client.set("frag:17:a", b"fits"), "STORED");
        // By each protocol; each sees what the others stored.
        assert_eq!(client.set("frag:None:a", b"text"), "STORED");
        assert_eq!(client.store("ms frag:007:a", b"meta"), "HD");
        assert_eq!(binary(&mut daemon.connect(), SET, &[0; 8], b"frag:x", b"binary").0, 0);
        let [here, there] = [true, false].map(|shared| reader(&daemon, shared));
        for (key, stored) in
            [("frag:None:a", "text"), ("frag:007:a", "meta"), ("frag:x", "binary"), ("frag:17:a", "fits")]
        {
            let stored = Some(stored.as_bytes().to_vec());
            assert_eq!(client.get(key), stored, "{key}");
            let (status, found) = binary(&mut daemon.connect(), GET, b"", key.as_bytes(), b"");
            assert_eq!((status, Some(found)), (0, stored.clone()), "{key}");
            for reader in [&here, &there] {
                assert_eq!(value(reader.get_key(key.as_bytes()).unwrap()), stored, "{key}");
                let table = reader.table("frag").unwrap();
                let own = key.strip_prefix("frag:").unwrap();
                assert_eq!(value(reader.get_from(&table, own.as_bytes()).unwrap()), stored, "{key}");
            }
        }
        assert_eq!(client.ask("mg frag:007:a v"), "VA 4");
        assert_eq!(client.line(), "meta");
        // Other commands than storing and fetching find them there.
        assert_eq!(client.store("append frag:x 0 0", b"+"), "STORED");
        assert_eq!(client.get("frag:x").as_deref(), Some(&b"binary+"[..]));
        let own = client.rows("SELECT key FROM memcached ORDER BY key");
        assert_eq!(own.len(), 3, "{own:?}");
        assert_eq!(client.rows("SELECT page, part FROM frag"), [json!({"page": 17, "part": "a"})]);
        // SQL may write there what memcached's clients look for there, and nothing else.
        assert_eq!(client.change("INSERT INTO memcached VALUES ('frag:y', 'sql')"), 1);
        assert_eq!(client.get("frag:y").as_deref(), Some(&b"sql"[..]));
        let refused = format!("{:?}", client.sql("INSERT INTO memcached VALUES ('frag:18:a', 'sql')"));
        assert!(refused.contains("belongs to table"), "{refused}");
        assert_eq!(client.ask("delete frag:y"), "DELETED");
        // Strict again: nobody would find them.
        client.change("ALTER TABLE frag SET (strict_keys = on)");
        assert!(client.rows("SELECT key FROM memcached").is_empty());
        assert_eq!(client.get("frag:17:a").as_deref(), Some(&b"fits"[..]));
        assert!(client.set("frag:None:a", b"text").starts_with("CLIENT_ERROR table frag: "));
    }
}

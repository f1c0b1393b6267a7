//! Shared memory: what another process reads in the daemon's file is what its sockets answer.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use sqlcached_client::{Client, Lookup, Options, Reply, SqlValue};

use crate::daemon::{Daemon, Folder};
use crate::{seed, skipped};

/// A client that reads in the daemon's file, where the built-in table is, too.
fn client(daemon: &Daemon) -> Client {
    daemon.connect().change("ALTER TABLE memcached SET (shared_memory = on)");
    Client::connect(&Options::new(daemon.socket())).unwrap()
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

/// Runs in a process of its own, which has too few addresses for the file.
#[test]
#[ignore = "run by `a_client_without_addresses_is_answered_over_the_socket`"]
fn a_client_without_addresses() {
    let Some(socket) = std::env::var_os("TEST_SOCKET") else { return };
    let client = Client::connect(&Options::new(Path::new(&socket))).unwrap();
    assert_eq!(client.arena(), None);
    let table = client.table("memcached").unwrap();
    assert!(!table.is_shared());
    assert_eq!(bytes(client.get_from(&table, b"k").unwrap()).as_deref(), Some(&b"v"[..]));
    assert_eq!(bytes(client.get_key(b"k").unwrap()).as_deref(), Some(&b"v"[..]));
    client.set_key(b"k", b"new", 0, 0).unwrap();
}

/// A client whose process could not map the file was refused altogether, though the socket answers the same.
#[test]
fn a_client_without_addresses_is_answered_over_the_socket() {
    let daemon = Daemon::start(&[]);
    let client = client(&daemon);
    client.set_key(b"k", b"v", 0, 0).unwrap();
    let test = "shared_memory::a_client_without_addresses";
    let output = Command::new("sh")
        .args(["-c", crate::start::FEW_ADDRESSES])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--test-threads", "1"])
        .env("TEST_SOCKET", daemon.socket())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(bytes(client.get_key(b"k").unwrap()).as_deref(), Some(&b"new"[..]));
}

#[test]
fn tables_rows_columns_and_prefixes() {
    let daemon = Daemon::start(&[]);
    let client = client(&daemon);
    let create = "CREATE TABLE frag (page INT, part TEXT, body TEXT, size INT, raw BLOB, PRIMARY KEY (page, part)) \
                  WITH (prefix = 'frag:', value = 'body', shared_memory = on)";
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
            "CREATE TABLE {table}t (key TEXT PRIMARY KEY, v TEXT) \
             WITH (prefix = '{prefix}', value = 'v', shared_memory = {})",
            if prefix == "a:" { "on" } else { "off" }
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

#[test]
fn readers_read_on_through_a_stop_and_a_death_and_a_cold_start() {
    let mut daemon = Daemon::start(&[]);
    let client = client(&daemon);
    let table = client.table("memcached").unwrap();
    let seen = || bytes(client.get_from(&table, b"k").unwrap());
    client.set_key(b"k", b"1", 0, 0).unwrap();
    daemon.kill();
    assert_eq!(seen().as_deref(), Some(&b"1"[..]));
    daemon.restart();
    assert_eq!(seen().as_deref(), Some(&b"1"[..]));
    client.set_key(b"k", b"2", 0, 0).unwrap();
    assert_eq!(seen().as_deref(), Some(&b"2"[..]));
    daemon.terminate();
    assert_eq!(seen().as_deref(), Some(&b"2"[..]));
    daemon.restart();
    client.delete_key(b"k").unwrap();
    assert_eq!(seen(), None);
    client.set_key(b"k", b"3", 0, 0).unwrap();
    daemon.terminate();
    // The shared file is another one from here on; the old one says so.
    daemon.restart_with(&["--cold"]);
    assert_eq!(seen(), None);
    client.set_key(b"k", b"4", 0, 0).unwrap();
    assert_eq!(seen().as_deref(), Some(&b"4"[..]));
}

#[test]
fn of_many_who_miss_one_makes_the_row_and_the_others_wait_without_a_request() {
    const CLIENTS: usize = 8;
    let daemon = Daemon::start(&[]);
    let first = client(&daemon);
    let won = first.get_or_claim(b"k", 60).unwrap();
    let Lookup::Due(place) = won else { panic!("its place is taken: {won:?}") };
    assert!(place.meta.is_yours());
    let clients: Vec<(Client, sqlcached_client::Table)> = (0..CLIENTS)
        .map(|_| Client::connect(&Options::new(daemon.socket())).unwrap())
        .map(|client| {
            let table = client.table("memcached").unwrap();
            (client, table)
        })
        .collect();
    let requests = || daemon.connect().stat("cmd_get") + daemon.connect().stat("cmd_set");
    let before = requests();
    std::thread::scope(|scope| {
        let wait = |(client, table): &(Client, sqlcached_client::Table)| {
            client.wait(table, b"k", std::time::Duration::from_mins(1)).unwrap()
        };
        let waiting: Vec<_> = clients.iter().map(|own| scope.spawn(move || wait(own))).collect();
        assert!(first.cas_key(b"k", b"made", 0, 0, place.meta.cas).unwrap());
        for waiting in waiting {
            assert_eq!(bytes(waiting.join().unwrap()).as_deref(), Some(&b"made"[..]));
        }
    });
    assert_eq!(requests() - before, 1, "the one write");
}

/// A user and a group that own nothing here.
const NOBODY: u32 = 65_534;

/// What a shell command does as a user and group of these numbers.
fn as_user(user: u32, group: u32, command: &str) -> bool {
    let status = Command::new("sh")
        .args(["-c", command])
        .uid(user)
        .gid(group)
        .stderr(std::process::Stdio::null())
        .status();
    status.unwrap().success()
}

#[test]
fn who_may_read_what_as_another_user() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skipped("only root can try what another user may do");
    }
    let daemon = Daemon::start(&[]);
    client(&daemon).set_key(b"k", b"v", 0, 0).unwrap();
    let (private, shared) = (daemon.folder.0.join("arena"), daemon.folder.0.join("arena.shared"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&private), mode(&shared)), (0o600, 0o640));
    let attempts = |path: &Path| {
        let path = path.display();
        [
            format!("head -c 8 {path} > /dev/null"),
            format!("printf x | dd of={path} conv=notrunc bs=1 status=none"),
            format!("printf x >> {path}"),
            format!(": > {path}"),
            format!("truncate -s 0 {path}"),
            format!("chmod 666 {path}"),
            format!("rm -f {path}"),
            format!("mv {path} {path}.away"),
            format!("ln {path} {path}.too"),
        ]
    };
    let tried = |user: u32, group: u32, path: &Path| -> Vec<String> {
        attempts(path).into_iter().filter(|command| as_user(user, group, command)).collect()
    };
    assert_eq!(tried(NOBODY, NOBODY, &private), Vec::<String>::new());
    assert_eq!(tried(NOBODY, NOBODY, &shared), Vec::<String>::new());
    // The file's group may read, and nothing else.
    chown(&shared, None, Some(NOBODY)).unwrap();
    let readable = tried(NOBODY, NOBODY, &shared);
    assert!(readable.len() == 1 && readable[0].starts_with("head"), "{readable:?}");
    // What a table that is shared already is told once more changes nothing.
    assert_eq!(bytes(client(&daemon).get_key(b"k").unwrap()).as_deref(), Some(&b"v"[..]));
}

#[test]
fn what_others_put_in_the_way_is_refused() {
    let folder = Folder::new();
    let place = folder.0.join("arena.shared");
    let other = folder.write("other", "somebody's");
    symlink(&other, &place).unwrap();
    let daemon = Daemon::start_in(folder, &[]);
    let alter = "ALTER TABLE memcached SET (shared_memory = on)";
    let refusal = || match daemon.connect().sql(alter) {
        crate::client::Reply::Error(_, message) => message,
        other => panic!("{other:?}"),
    };
    assert!(refusal().contains("cannot be used: it is a symbolic link"), "{}", refusal());
    let trusting = Options { arena: Some(place.clone()), ..Options::new(daemon.socket()) };
    assert!(Client::connect(&trusting).unwrap_err().to_string().contains("symbolic link"));
    fs::remove_file(&place).unwrap();
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        fs::write(&place, "a file of another user's").unwrap();
        chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
        assert!(refusal().contains("belongs to another user"), "{}", refusal());
        assert!(Client::connect(&trusting).unwrap_err().to_string().contains("belongs to user 65534"));
        fs::remove_file(&place).unwrap();
    } else {
        skipped("only root can make a file of another user's");
    }
    fs::create_dir(&place).unwrap();
    assert!(!refusal().is_empty());
    fs::remove_dir(&place).unwrap();
    // What an earlier version of ours may have left is replaced; a client says what is wrong with it.
    fs::write(&place, "of another layout").unwrap();
    assert!(Client::connect(&trusting).unwrap_err().to_string().contains("cannot be read: "));
    daemon.connect().change(alter);
    let client = Client::connect(&trusting).unwrap();
    assert!(client.table("memcached").unwrap().is_shared());
    // A file that others could have written is not believed.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o660)).unwrap();
    assert!(
        Client::connect(&trusting)
            .unwrap_err()
            .to_string()
            .contains("other users than its owner can write it")
    );
    assert_eq!(fs::read(&other).unwrap(), b"somebody's");
}

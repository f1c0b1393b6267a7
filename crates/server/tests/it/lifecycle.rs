//! Start, stop, panics, Unix sockets.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::testing::arm;
use server::{Config, Drained, Handover, Server, StartError};

use crate::harness::{Client, Daemon, config, daemon, daemon_with};
use crate::pg::{Pg, startup};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("sqlcached-test-{:016x}", fastrand::u64(..)));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn unix_config(folder: &Folder) -> Config {
    let mut config = config();
    config.listen_addresses.clear();
    config.unix_socket = Some(folder.0.join("socket"));
    config
}

#[test]
fn a_unix_socket() {
    let folder = Folder::new();
    let config = unix_config(&folder);
    let path = config.unix_socket.clone().unwrap();
    let daemon = daemon_with(&config);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let mut client = Client { stream: UnixStream::connect(&path).unwrap() };
    client.ask(b"set a 0 0 1\r\nx\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");

    let second = Server::start(&config, Arc::clone(&daemon.engine), Arc::default(), None);
    assert!(matches!(second, Err(StartError::Listen(server::ListenError::InUse(_)))), "{second:?}");
    client.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    drop(daemon);
    assert!(!path.exists());
}

/// What a client is answered that connects while no server is there.
#[test]
fn sockets_outlive_the_server_where_somebody_keeps_them() {
    let folder = Folder::new();
    let mut config = Config { unix_socket: unix_config(&folder).unix_socket, ..config() };
    config.sql_addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let path = config.unix_socket.clone().unwrap();
    let engine = daemon().engine;
    let started = |config: &Config, handover: &Handover| {
        Server::start(config, Arc::clone(&engine), Arc::default(), Some(handover)).unwrap()
    };
    let first = Handover::default();
    let server = started(&config, &first);
    config.listen_addresses = server.addresses().to_vec();
    let (address, sql) = (server.addresses()[0], server.sql_addresses()[0]);
    let kept = first.take_opened();
    assert_eq!((kept.len(), first.take_opened().len()), (3, 0));
    assert_eq!(server.drain(Duration::from_secs(5)), Drained::Whole);

    let mut waiting = Client::tcp(address);
    waiting.send(b"set a 0 0 1\r\nx\r\nget a\r\n");
    let mut local = Client { stream: UnixStream::connect(&path).unwrap() };
    local.send(b"version\r\n");
    // Another mode, and an address of before that is not asked for.
    (config.unix_socket_mode, config.sql_addresses) = (0o770, Vec::new());
    let second = Handover::new(kept);
    assert_eq!(second.close_others(&config.listen_addresses, &[&path]), 1);
    let server = started(&config, &second);
    waiting.expect(b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    local.until(b"\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o770);
    assert_eq!(second.take_opened().len(), 2);
    assert!(TcpStream::connect(sql).is_err(), "nobody listens there, so nobody waits there");
    drop(server);

    // A file that somebody has put in the place of ours leads elsewhere.
    let third = Handover::default();
    drop(started(&config, &third));
    std::fs::remove_file(&path).unwrap();
    let foreign = UnixListener::bind(&path).unwrap();
    let kept = Handover::new(third.take_opened());
    let refused = Server::start(&config, Arc::clone(&engine), Arc::default(), Some(&kept));
    assert!(matches!(refused, Err(StartError::Listen(server::ListenError::InUse(_)))), "{refused:?}");
    drop((foreign, kept));
    let _server = started(&config, &Handover::default());
    Client { stream: UnixStream::connect(&path).unwrap() }.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn stale_sockets_go_and_other_files_stay() {
    let folder = Folder::new();
    let config = unix_config(&folder);
    let path = config.unix_socket.clone().unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let Daemon { server, engine, .. } = daemon_with(&config);
    drop(server);
    std::fs::write(&path, "a file").unwrap();
    let refused = Server::start(&config, engine, Arc::default(), None);
    assert!(matches!(refused, Err(StartError::Listen(server::ListenError::NotASocket(_)))), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[test]
fn nothing_beyond_this_machine_without_a_proof() {
    let engine = daemon().engine;
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let mut config = config();
        config.listen_addresses = vec![address.parse().unwrap()];
        let refused =
            Server::start(&config, Arc::clone(&engine), Arc::default(), None).unwrap_err().to_string();
        assert!(refused.contains("no rule asks its clients for a proof"), "{refused}");
    }
}

#[test]
fn settings_that_make_no_sense() {
    let engine = daemon().engine;
    let mut nowhere = config();
    nowhere.listen_addresses.clear();
    let mut nobody = config();
    nobody.threads = 0;
    for config in [nowhere, nobody] {
        assert!(matches!(
            Server::start(&config, Arc::clone(&engine), Arc::default(), None),
            Err(StartError::Setting(_))
        ));
    }
}

#[test]
fn a_panic_costs_one_connection() {
    let daemon = daemon();
    let mut unlucky = daemon.connect();
    let mut other = daemon.connect();
    other.ask(b"set before 0 0 1\r\nx\r\n", b"STORED\r\n");
    for point in ["get", "set", "delete", "incr", "touch", "gat"] {
        arm(point, b"boom");
        unlucky.send(b"set a 0 0 1\r\nx\r\nget before\r\n");
        unlucky.send(match point {
            "get" => b"get before boom\r\n".as_slice(),
            "set" => b"set boom 0 0 1\r\nx\r\n",
            "delete" => b"delete boom\r\n",
            "gat" => b"gat 0 boom\r\n",
            "incr" => b"incr boom 1\r\n",
            _ => b"touch boom 0\r\n",
        });
        let reply = unlucky.rest();
        let expected = b"STORED\r\nVALUE before 0 1\r\nx\r\nEND\r\nSERVER_ERROR internal error\r\n";
        assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{point}");
        unlucky = daemon.connect();
        other.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    }
    assert_eq!(daemon.engine.totals().of(engine::Counter::Panics), 6);
}

#[test]
fn a_panic_costs_nobody_else_their_requests() {
    let mut config = config();
    config.threads = 1;
    let daemon = daemon_with(&config);
    for round in 0..50 {
        let mut clients: Vec<_> = (0..12).map(|_| daemon.connect()).collect();
        for client in &mut clients {
            client.ask(b"", b"");
        }
        let unlucky = round % clients.len();
        arm("get", b"panic");
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(if number == unlucky { b"get panic\r\n" } else { b"get a lucky one\r\n" });
        }
        for (number, client) in clients.iter_mut().enumerate() {
            if number == unlucky {
                assert_eq!(client.rest(), b"SERVER_ERROR internal error\r\n");
            } else {
                client.ask(b"", b"END\r\n");
            }
        }
    }
}

#[test]
fn a_drain_finishes_what_was_begun() {
    let daemon = daemon();
    let mut idle = daemon.connect();
    idle.ask(b"", b"");
    let mut busy = daemon.connect();
    let value = vec![b'v'; 1_000_000];
    busy.ask(&[b"set k 0 0 1000000\r\n", &value[..], b"\r\n"].concat(), b"STORED\r\n");
    busy.send(&b"get k\r\n".repeat(30));
    busy.expect(b"VALUE");
    let address = daemon.address();
    let drain = std::thread::spawn(move || daemon.server.drain(Duration::from_mins(1)));
    assert_eq!(idle.rest(), b"");
    let expected = 30 * (b"VALUE k 0 1000000\r\n".len() + 1_000_000 + b"\r\nEND\r\n".len()) - b"VALUE".len();
    assert_eq!(busy.rest().len(), expected);
    assert_eq!(drain.join().unwrap(), Drained::Whole);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_drain_does_not_wait_for_ever() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let value = vec![b'v'; 1_000_000];
    client.ask(&[b"set k 0 0 1000000\r\n", &value[..], b"\r\n"].concat(), b"STORED\r\n");
    client.send(&b"get k\r\n".repeat(30));
    client.expect(b"VALUE");
    assert_eq!(daemon.server.drain(Duration::from_millis(50)), Drained::Cut(1));
}

#[test]
fn limits_change_while_it_runs() {
    let daemon = daemon();
    let mut first = daemon.connect();
    first.ask(b"", b"");
    daemon.server.reload(&server::Reload {
        max_connections: 1,
        max_connections_per_address: 0,
        statement_timeout: None,
        native_execution: true,
        authentication_timeout: Duration::from_secs(10),
        idle_timeout: None,
    });
    assert_eq!(daemon.connect().rest(), b"ERROR Too many open connections\r\n");
    first.ask(b"", b"");
}

/// One client that leaks connections took all places.
#[test]
fn an_address_has_its_own_limit() {
    let folder = Folder::new();
    let socket = folder.0.join("socket");
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let limited = Config { max_connections_per_address: 2, sql_addresses: addresses, ..config() };
    let daemon = daemon_with(&Config { unix_socket: Some(socket.clone()), ..limited.clone() });
    let (mut first, mut pg) = (daemon.connect(), Pg::connect(&daemon));
    first.ask(b"", b"");
    let refused = b"ERROR Too many open connections from this address (max_connections_per_address)\r\n";
    assert_eq!(daemon.connect().rest(), refused);
    let mut third = Pg::plain(&daemon);
    third.send(&startup(0));
    let said = third.rest();
    assert!(
        said[0].starts_with("E FATAL 53300") && said[0].contains("max_connections_per_address"),
        "{said:?}"
    );
    // Who comes by the socket's file has no address, and others have theirs.
    let mut local = Client { stream: UnixStream::connect(&socket).unwrap() };
    local.ask(b"mn\r\n", b"MN\r\n");
    // A place that is given back, and a limit that is lifted.
    assert_eq!(pg.ask("SELECT 1").len(), 3);
    drop(pg);
    while daemon.engine.connections.load(Ordering::Relaxed) > 2 {
        std::thread::yield_now();
    }
    let mut second = daemon.connect();
    second.ask(b"", b"");
    assert_eq!(daemon.connect().rest(), refused);
    daemon.server.reload(&server::Reload::from(&Config { max_connections_per_address: 0, ..limited }));
    daemon.connect().ask(b"", b"");
}

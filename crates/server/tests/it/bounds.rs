//! Limits, slow and broken peers.

use std::io::Read;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::harness::{Daemon, config, daemon, daemon_with};
use crate::pg::{Pg, query};

fn fill(daemon: &Daemon, keys: usize, bytes: usize) {
    let mut client = daemon.connect();
    let value = vec![b'v'; bytes];
    for key in 0..keys {
        let set = [format!("set k{key} 0 0 {bytes}\r\n").as_bytes(), &value, b"\r\n"].concat();
        client.ask(&set, b"STORED\r\n");
    }
}

#[test]
fn one_connection_too_many() {
    let mut config = config();
    config.max_connections = 2;
    let daemon = daemon_with(&config);
    let mut first = daemon.connect();
    let mut second = daemon.connect();
    first.ask(b"", b"");
    second.ask(b"", b"");
    let mut third = daemon.connect();
    assert_eq!(third.rest(), b"ERROR Too many open connections\r\n");
    drop(first);
    // The server learns of the end by an event; until then the place is taken.
    let fourth = std::iter::repeat_with(|| {
        let mut client = daemon.connect();
        client.stream.set_nodelay(true).unwrap();
        let _closed = std::io::Write::write_all(&mut client.stream, b"mn\r\n");
        let mut reply = [0; 4];
        let read = std::io::Read::read(&mut client.stream, &mut reply);
        read.is_ok_and(|count| reply[..count] == *b"MN\r\n")
    });
    assert!(fourth.take(10_000).any(|served| served));
    second.ask(b"", b"");
}

#[test]
fn a_slow_reader_of_a_large_reply() {
    let daemon = daemon();
    fill(&daemon, 20, 1_000_000);
    let mut slow = daemon.connect();
    // 100 values of 1 MB, of which the server holds some megabytes.
    let keys: Vec<String> = (0..100).map(|key| format!("k{}", key % 20)).collect();
    let request = format!("get {}\r\nset done 0 0 1\r\nx\r\n", keys.join(" "));
    slow.send(request.as_bytes());
    let mut other = daemon.connect();
    other.ask(b"set mine 0 0 1\r\nx\r\n", b"STORED\r\n");
    other.ask(b"get done\r\n", b"END\r\n");
    let header = |key: usize| format!("VALUE k{key} 0 1000000\r\n");
    let value = [&vec![b'v'; 1_000_000][..], b"\r\n"].concat();
    for turn in 0..100 {
        slow.expect(header(turn % 20).as_bytes());
        slow.expect(&value);
    }
    slow.expect(b"END\r\nSTORED\r\n");
    other.ask(b"get done\r\n", b"VALUE done 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn a_reader_that_stops_is_cut() {
    let daemon = daemon();
    fill(&daemon, 1, 1_000_000);
    let mut slow = daemon.connect();
    slow.send(&b"get k0\r\n".repeat(50));
    slow.expect(b"VALUE");
    // Until the server has noticed that the socket is full, its clock does not run for this peer.
    daemon.connect().ask(b"get k1\r\n", b"END\r\n");
    while !slow_kicked(&daemon) {
        daemon.advance(Duration::from_secs(31));
        daemon.connect().ask(b"", b"");
    }
}

#[test]
fn a_sender_that_stops_is_cut() {
    let daemon = daemon();
    let mut slow = daemon.connect();
    slow.ask(b"get a\r\n", b"END\r\n");
    slow.send(b"set k 0 0 10\r\nab");
    let mut quiet = daemon.connect();
    quiet.ask(b"", b"");
    while !slow_kicked(&daemon) {
        daemon.advance(Duration::from_secs(31));
        quiet.ask(b"", b"");
    }
    assert_eq!(slow.rest(), b"");
    // A peer that is only quiet stays.
    quiet.ask(b"get a\r\n", b"END\r\n");
}

fn slow_kicked(daemon: &Daemon) -> bool {
    daemon.engine.totals().of(engine::Counter::SlowKicks) > 0
}

#[test]
fn an_idle_connection_is_closed_when_asked() {
    let mut config = config();
    config.idle_timeout = Some(Duration::from_mins(1));
    let daemon = daemon_with(&config);
    let mut idle = daemon.connect();
    idle.ask(b"", b"");
    daemon.advance(Duration::from_secs(59));
    idle.ask(b"", b"");
    daemon.advance(Duration::from_secs(62));
    assert_eq!(idle.rest(), b"");
}

#[test]
fn half_closed_peers_get_their_replies() {
    let daemon = daemon();
    fill(&daemon, 1, 1_000_000);
    let mut client = daemon.connect();
    client.send(&[&b"get k0\r\n".repeat(20)[..], b"get k"].concat());
    client.stream.shutdown(Shutdown::Write).unwrap();
    let reply = [b"VALUE k0 0 1000000\r\n", &vec![b'v'; 1_000_000][..], b"\r\nEND\r\n"].concat();
    for _ in 0..20 {
        client.expect(&reply);
    }
    assert_eq!(client.rest(), b"");
}

/// A watcher that had said its last word was closed, and heard nothing more: `nc` without `-q` or with `-N` does so at
/// the end of its input.
#[test]
fn a_half_closed_watcher_hears_of_events_until_it_is_gone() {
    let daemon = daemon();
    let (mut client, mut watcher) = (daemon.connect(), daemon.connect());
    watcher.send(b"watch mutations\r\n");
    assert_eq!(watcher.line(), "OK");
    watcher.stream.shutdown(Shutdown::Write).unwrap();
    for key in ["one", "two", "three"] {
        client.ask(format!("set {key} 0 0 1\r\n1\r\n").as_bytes(), b"STORED\r\n");
        let seen = watcher.until(b"\n");
        assert!(String::from_utf8_lossy(&seen).contains(&format!("key={key} ")), "{}", seen.escape_ascii());
    }
    // Its end is noticed by the next events, if not before, and gives its place back.
    drop(watcher);
    while daemon.engine.connections.load(std::sync::atomic::Ordering::Relaxed) > 1 {
        client.ask(b"set four 0 0 1\r\n1\r\n", b"STORED\r\n");
    }
}

/// Whatever else is long goes out whole to who has said its last word: lists of keys, results, a statement that waits.
#[test]
fn half_closed_peers_get_long_answers_whole() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let sets: Vec<String> = (0..20_000).map(|key| format!("set key{key} 0 0 1\r\n1\r\n")).collect();
    let keys = sets.concat();
    client.send(keys.as_bytes());
    client.expect(&b"STORED\r\n".repeat(20_000));
    let series =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n";
    for (request, lines, last) in [
        ("lru_crawler metadump all".to_owned(), 20_001, "END"),
        ("lru_crawler mgdump all".to_owned(), 20_001, "EN"),
        (format!("sql {}\r\n{series}", series.len()), 100_001, "END"),
    ] {
        let mut half = daemon.connect();
        half.send(format!("{request}\r\n").as_bytes());
        half.stream.shutdown(Shutdown::Write).unwrap();
        let text = String::from_utf8(half.rest()).unwrap();
        assert_eq!(text.lines().count(), lines, "{request}");
        assert_eq!(text.lines().last(), Some(last), "{request}");
    }
}

/// Redis's clients heard nothing, and a browser showed an empty page.
#[test]
fn who_speaks_another_protocol_hears_which_port_speaks_what() {
    let any = || vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&server::Config { sql_addresses: any(), http_addresses: any(), ..config() });
    let (memcached, server) = (daemon.address().port(), &daemon.server);
    let (sql, http) = (server.sql_addresses()[0].port(), server.http_addresses()[0].port());
    let ports = format!(
        "sqlcached speaks memcached's protocol on port {memcached}, PostgreSQL's protocol on port {sql}, HTTP on port {http}"
    );
    let said = |request: &[u8]| {
        let mut client = daemon.connect();
        client.send(request);
        String::from_utf8_lossy(&client.rest()).into_owned()
    };
    for redis in [&b"*1\r\n$4\r\nPING\r\n"[..], b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"] {
        assert_eq!(said(redis), format!("-ERR {ports}, and no Redis\r\n"));
    }
    for method in ["GET / HTTP/1.1", "POST /x HTTP/1.0"] {
        let page = said(format!("{method}\r\nHost: localhost:{memcached}\r\n\r\n").as_bytes());
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 400 ") && head.contains("\r\nX-Content-Type-Options: nosniff"),
            "{head}"
        );
        assert_eq!(body, format!("{ports}\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    }
    // A browser may send its request in pieces.
    let mut slow = daemon.connect();
    for byte in b"GET /a/long/path HTTP/1.1\r\n" {
        slow.send(&[*byte]);
    }
    assert!(String::from_utf8_lossy(&slow.rest()).ends_with(&format!("\r\n\r\n{ports}\r\n")));
    // In the middle of a conversation it is the rest of a value whose length was wrong.
    let mut client = daemon.connect();
    client.send(b"mn\r\nGET / HTTP/1.1\r\n");
    assert_eq!(client.rest(), b"MN\r\n");
}

#[test]
fn other_protocols_on_the_port() {
    let daemon = daemon();
    let table: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /x HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
        &[b'x'; 5_000],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        &[0; 3_000],
    ];
    for bytes in table {
        let mut client = daemon.connect();
        client.send(bytes);
        client.stream.shutdown(Shutdown::Write).unwrap();
        let reply = client.rest();
        assert!(reply.len() < 1_000, "{}", reply.escape_ascii());
    }
    daemon.connect().ask(b"get a\r\n", b"END\r\n");
}

#[test]
fn a_line_of_many_keys() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set last 0 0 1\r\nx\r\n", b"STORED\r\n");
    let missing: Vec<String> = (0..50_000).map(|key| format!("missing{key}")).collect();
    client.ask(format!("get {} last\r\n", missing.join(" ")).as_bytes(), b"VALUE last 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn many_requests_at_once() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let mut writer = client.stream.try_clone().unwrap();
    // More than the sockets hold in either direction: the server must stop reading, and nobody must get stuck.
    let sender = std::thread::spawn(move || {
        for _ in 0..200 {
            std::io::Write::write_all(&mut writer, &b"get nothing at all\r\n".repeat(5_000)).unwrap();
        }
    });
    let replies = b"END\r\n".repeat(5_000);
    for _ in 0..200 {
        client.expect(&replies);
    }
    sender.join().unwrap();
    client.ask(b"", b"");
}

#[test]
fn connections_come_and_go() {
    let daemon = daemon();
    let open_files = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = open_files();
    for round in 0..40 {
        let mut clients: Vec<_> = (0..50).map(|_| daemon.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            // Some say goodbye, some are in the middle of a request, some have not read their replies.
            match (number + round) % 4 {
                0 => client.send(b"quit\r\n"),
                1 => client.send(b"set k 0 0 100\r\nabc"),
                2 => client.send(&b"get k\r\n".repeat(100)),
                _ => client.ask(b"", b""),
            }
        }
    }
    // The last ends reach the server by events of their own.
    let gone = |daemon: &Daemon| daemon.engine.connections.load(std::sync::atomic::Ordering::Relaxed) <= 1;
    let mut client = daemon.connect();
    while !gone(&daemon) {
        client.ask(b"", b"");
    }
    // Each descriptor is closed with its connection. Other tests of this process have some open for a while.
    while open_files() > before + 500 {
        client.ask(b"", b"");
    }
}

#[test]
fn replies_of_all_connections_together_are_bounded() {
    let mut config = config();
    config.connection_memory_max = 4 << 20;
    let daemon = daemon_with(&config);
    fill(&daemon, 1, 1_000_000);
    let mut greedy: Vec<_> = (0..8).map(|_| daemon.connect()).collect();
    for client in &mut greedy {
        client.send(&b"get k0\r\n".repeat(20));
    }
    let mut other = daemon.connect();
    while daemon.engine.totals().of(engine::Counter::OutputKicks) == 0 {
        other.ask(b"get a\r\n", b"END\r\n");
    }
    drop(greedy);
    other.ask(b"get a\r\n", b"END\r\n");
}

#[test]
fn what_a_peer_promises_costs_nothing() {
    let daemon = daemon();
    let mut clients: Vec<_> = (0..200).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        client.send(b"set k 0 0 1048000\r\nx");
    }
    daemon.connect().ask(b"get k\r\n", b"END\r\n");
    for bytes in
        ["18446744073709551615", "9223372036854775808", "4294967296", "2147483648", "-1", "-2147483648"]
    {
        let mut client = daemon.connect();
        client.send(format!("set k 0 0 {bytes}\r\n").as_bytes());
        client.stream.shutdown(Shutdown::Write).unwrap();
        let reply = client.rest();
        assert!(reply.starts_with(b"CLIENT_ERROR ") || reply.starts_with(b"SERVER_ERROR "), "{bytes}");
    }
    daemon.connect().ask(b"get k\r\n", b"END\r\n");
}

/// A value of one letter that belongs to its version.
fn version(letter: u8) -> Vec<u8> {
    let mut set = b"set changing 0 0 100000\r\n".to_vec();
    set.extend(std::iter::repeat_n(letter, 100_000));
    set.extend_from_slice(b"\r\n");
    set
}

#[test]
fn a_large_value_is_whole_whoever_changes_it_while_it_is_sent() {
    let daemon = daemon();
    let mut writer = daemon.connect();
    writer.ask(&version(b'a'), b"STORED\r\n");
    let mut slow = daemon.connect();
    // More than the sockets between hold.
    slow.send(&b"get changing\r\n".repeat(200));
    let mut seen = Vec::new();
    for turn in 0..200_u8 {
        writer.ask(&version(b'a' + turn % 26), b"STORED\r\n");
        slow.expect(b"VALUE changing 0 100000\r\n");
        let mut value = vec![0; 100_000];
        std::io::Read::read_exact(&mut slow.stream, &mut value).unwrap();
        assert!(value.iter().all(|byte| *byte == value[0]), "two versions in one");
        seen.push(value[0]);
        slow.expect(b"\r\nEND\r\n");
    }
    seen.dedup();
    assert!(seen.len() > 1, "the value was changed while replies waited");
}

#[test]
fn a_sender_of_a_large_value_that_goes_away_leaves_nothing() {
    let daemon = daemon();
    let mut other = daemon.connect();
    other.ask(&version(b'a'), b"STORED\r\n");
    for sent in [30, 3_000, 70_000, 100_024] {
        let mut aborted = daemon.connect();
        aborted.send(&version(b'b')[..sent]);
        aborted.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(aborted.rest(), b"");
        let whole = [b"VALUE changing 0 100000\r\n", &version(b'a')[25..], b"END\r\n"].concat();
        other.ask(b"get changing\r\n", &whole);
    }
}

#[test]
fn large_values_in_pieces_of_any_size() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let mut letter = b'a';
    for piece in [1_000, 4_096, 65_536, 99_999, 262_144, 1_000_000] {
        letter += 1;
        let pipeline = [version(letter), b"get changing\r\n".to_vec()].concat().repeat(3);
        for part in pipeline.chunks(piece) {
            client.send(part);
        }
        let reply = [b"STORED\r\nVALUE changing 0 100000\r\n", &version(letter)[25..], b"END\r\n"].concat();
        client.expect(&reply.repeat(3));
    }
}

/// Clients that read the data of a `COPY` slowly keep no thread from others: two of them once held up all SQL for half
/// a minute. If there are more than threads to stand in, they get an error.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long a client of the real server waits")]
fn slow_readers_of_copy_hold_up_nobody() {
    let mut config = config();
    config.sql_addresses = vec!["127.0.0.1:0".parse().unwrap()];
    config.sql_threads = 2;
    let daemon = daemon_with(&config);
    let copy = "COPY (SELECT g, repeat('x', 1000) FROM generate_series(1, 100000000) g) TO STDOUT";
    let begun = |count: usize| -> Vec<Pg> {
        let mut readers: Vec<Pg> = (0..count).map(|_| Pg::connect(&daemon)).collect();
        for reader in &mut readers {
            reader.send(&query(copy));
            let mut first = [0; 64];
            reader.stream.read_exact(&mut first).unwrap();
        }
        readers
    };
    let answered = || {
        let began = Instant::now();
        let mut other = Pg::connect(&daemon);
        assert_eq!(other.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
        began.elapsed()
    };
    // A reader of nothing is given up after ten seconds: this is below that.
    let soon = Duration::from_secs(8);
    let few = begun(4);
    let took = answered();
    assert!(took < soon, "{took:?}");
    let many = begun(16);
    let took = answered();
    assert!(took < soon, "{took:?}");
    drop((few, many));
    let took = answered();
    assert!(took < soon, "{took:?}");
}

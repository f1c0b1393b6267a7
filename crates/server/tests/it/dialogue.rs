//! Each command, as bytes.

use std::io::ErrorKind;
use std::time::Duration;

use crate::harness::{UNIX_SECONDS, daemon, seed};

/// Requests and the replies they must get, in this order, on one connection of a fresh server.
const DIALOGUE: &[(&[u8], &[u8])] = &[
    (b"get a\r\n", b"END\r\n"),
    (b"set a 5 0 3\r\nabc\r\n", b"STORED\r\n"),
    (b"get a\r\n", b"VALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"get a b a\r\n", b"VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"add a 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"add b 4294967295 0 0\r\n\r\n", b"STORED\r\n"),
    (b"get b\r\n", b"VALUE b 4294967295 0\r\n\r\nEND\r\n"),
    (b"replace c 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"replace b 1 0 2\r\nhi\r\n", b"STORED\r\n"),
    (b"append a 9 9 2\r\nde\r\n", b"STORED\r\n"),
    (b"prepend a 9 9 1\r\n_\r\n", b"STORED\r\n"),
    (b"get a\r\n", b"VALUE a 5 6\r\n_abcde\r\nEND\r\n"),
    (b"append nothing 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"prepend nothing 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"cas nothing 0 0 1 1\r\nx\r\n", b"NOT_FOUND\r\n"),
    (b"cas a 0 0 1 1\r\nx\r\n", b"EXISTS\r\n"),
    (b"delete a\r\n", b"DELETED\r\n"),
    (b"delete a\r\n", b"NOT_FOUND\r\n"),
    (b"delete b 0\r\n", b"DELETED\r\n"),
    (b"get a b\r\n", b"END\r\n"),
    (b"incr n 1\r\n", b"NOT_FOUND\r\n"),
    (b"decr n 1\r\n", b"NOT_FOUND\r\n"),
    (b"set n 0 0 3\r\n100\r\n", b"STORED\r\n"),
    (b"decr n 1\r\n", b"99\r\n"),
    (b"get n\r\n", b"VALUE n 0 3\r\n99 \r\nEND\r\n"),
    (b"incr n 1\r\n", b"100\r\n"),
    (b"decr n 1000\r\n", b"0\r\n"),
    (b"incr n 18446744073709551615\r\n", b"18446744073709551615\r\n"),
    (b"incr n 2\r\n", b"1\r\n"),
    (b"incr n x\r\n", b"CLIENT_ERROR invalid numeric delta argument\r\n"),
    (b"set n 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"incr n 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    (b"touch n 0\r\n", b"TOUCHED\r\n"),
    (b"touch nothing 0\r\n", b"NOT_FOUND\r\n"),
    (b"touch n x\r\n", b"CLIENT_ERROR invalid exptime argument\r\n"),
    (b"gat 0 n nothing\r\n", b"VALUE n 0 1\r\nx\r\nEND\r\n"),
    (b"set n 0 0 1 noreply\r\ny\r\n", b""),
    (b"add n 0 0 1 noreply\r\nz\r\n", b""),
    (b"append n 0 0 1 noreply\r\nz\r\n", b""),
    (b"get n\r\n", b"VALUE n 0 2\r\nyz\r\nEND\r\n"),
    (b"delete n noreply\r\n", b""),
    (b"incr n 1 noreply\r\n", b""),
    (b"touch n 1 noreply\r\n", b""),
    (b"get n\r\n", b"END\r\n"),
    (b"set n 0 -1 1\r\nx\r\n", b"STORED\r\n"),
    (b"get n\r\n", b"END\r\n"),
    (b"set n 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"set n 0 -1 1\r\nx\r\n", b"STORED\r\n"),
    (b"get n\r\n", b"END\r\n"),
    (b"set n 0 0 1\r\nxy\r\n", b"CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n"),
    (b"bogus\r\n", b"ERROR\r\n"),
    (b"GET a\r\n", b"ERROR\r\n"),
    (b"verbosity 1\r\n", b"OK\r\n"),
    (b"set f 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"flush_all\r\n", b"OK\r\n"),
    (b"get f\r\n", b"END\r\n"),
    (b"set f 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"get f\r\n", b"VALUE f 0 1\r\nx\r\nEND\r\n"),
    (b"flush_all 0 noreply\r\n", b""),
    (b"get f\r\n", b"END\r\n"),
    (b"stats reset\r\n", b"RESET\r\n"),
    (b"stats sizes\r\n", b"STAT sizes_status disabled\r\nEND\r\n"),
];

#[test]
fn each_command() {
    let daemon = daemon();
    let mut client = daemon.connect();
    for (request, expected) in DIALOGUE {
        client.ask(request, expected);
    }
}

#[test]
fn the_same_pipelined() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let requests: Vec<u8> = DIALOGUE.iter().flat_map(|(request, _)| *request).copied().collect();
    let replies: Vec<u8> = DIALOGUE.iter().flat_map(|(_, reply)| *reply).copied().collect();
    client.ask(&requests, &replies);
}

#[test]
fn the_same_byte_by_byte() {
    let daemon = daemon();
    let mut client = daemon.connect();
    for (request, expected) in DIALOGUE {
        // The one request whose surplus byte is a command of its own depends on nothing but the bytes, too.
        for byte in *request {
            client.send(&[*byte]);
        }
        client.ask(b"", expected);
    }
}

#[test]
fn the_same_cut_anywhere() {
    let mut random = fastrand::Rng::with_seed(seed());
    let requests: Vec<u8> = DIALOGUE.iter().flat_map(|(request, _)| *request).copied().collect();
    let replies: Vec<u8> = DIALOGUE.iter().flat_map(|(_, reply)| *reply).copied().collect();
    for _ in 0..20 {
        let daemon = daemon();
        let mut client = daemon.connect();
        let mut rest = &requests[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(random.usize(1..=rest.len().min(40)));
            client.send(piece);
            rest = behind;
        }
        client.ask(b"", &replies);
    }
}

#[test]
fn cas_of_the_value_that_was_seen() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set k 0 0 1\r\na\r\n", b"STORED\r\n");
    client.send(b"gets k\r\n");
    let line = client.line();
    let cas: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    client.expect(b"a\r\nEND\r\n");
    let request = format!("cas k 0 0 1 {cas}\r\nb\r\n");
    client.ask(request.as_bytes(), b"STORED\r\n");
    client.ask(request.as_bytes(), b"EXISTS\r\n");
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nb\r\nEND\r\n");
}

#[test]
fn deadlines() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let absolute = UNIX_SECONDS + 65;
    client.ask(b"set short 0 10 1\r\na\r\n", b"STORED\r\n");
    client.ask(format!("set long 0 {absolute} 1\r\nb\r\n").as_bytes(), b"STORED\r\n");
    client.ask(b"set past 0 2592001 1\r\nc\r\n", b"STORED\r\n");
    client.ask(b"get short long past\r\n", b"VALUE short 0 1\r\na\r\nVALUE long 0 1\r\nb\r\nEND\r\n");
    daemon.advance(Duration::from_secs(9));
    client.ask(b"get short\r\n", b"VALUE short 0 1\r\na\r\nEND\r\n");
    daemon.advance(Duration::from_secs(2));
    client.ask(b"get short long\r\n", b"VALUE long 0 1\r\nb\r\nEND\r\n");
    client.ask(b"touch long 100\r\n", b"TOUCHED\r\n");
    daemon.advance(Duration::from_secs(90));
    client.ask(b"gat 100 long\r\n", b"VALUE long 0 1\r\nb\r\nEND\r\n");
    daemon.advance(Duration::from_secs(90));
    client.ask(b"get long\r\n", b"VALUE long 0 1\r\nb\r\nEND\r\n");
    daemon.advance(Duration::from_secs(11));
    client.ask(b"get long\r\n", b"END\r\n");
}

#[test]
fn a_flush_to_come() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set before 0 0 1\r\na\r\n", b"STORED\r\n");
    client.ask(b"flush_all 10\r\n", b"OK\r\n");
    daemon.advance(Duration::from_secs(5));
    client.ask(b"get before\r\n", b"VALUE before 0 1\r\na\r\nEND\r\n");
    daemon.advance(Duration::from_secs(6));
    client.ask(b"get before\r\n", b"END\r\n");
    client.ask(b"set after 0 0 1\r\nb\r\n", b"STORED\r\n");
    client.ask(b"get after\r\n", b"VALUE after 0 1\r\nb\r\nEND\r\n");
}

#[test]
fn a_value_too_large_takes_the_old_one_away() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set k 0 0 3\r\nold\r\n", b"STORED\r\n");
    let large = [b"set k 0 0 2000000\r\n", vec![b'x'; 2_000_000].as_slice(), b"\r\n"].concat();
    client.ask(&large, b"SERVER_ERROR object too large for cache\r\n");
    client.ask(b"get k\r\n", b"END\r\n");
    let half = [b"set k 0 0 600000\r\n", vec![b'x'; 600_000].as_slice(), b"\r\n"].concat();
    client.ask(&half, b"STORED\r\n");
    let more = [b"append k 0 0 600000\r\n", vec![b'x'; 600_000].as_slice(), b"\r\n"].concat();
    client.ask(&more, b"SERVER_ERROR object too large for cache\r\n");
    client.ask(b"touch k 0\r\n", b"TOUCHED\r\n");
}

#[test]
fn a_large_value_there_and_back() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let value: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let set = [b"set big 7 0 1000000\r\n", &value[..], b"\r\nget big\r\n"].concat();
    let reply = [b"STORED\r\nVALUE big 7 1000000\r\n", &value[..], b"\r\nEND\r\n"].concat();
    client.ask(&set, &reply);
    // In pieces of the sizes at which buffers change.
    for size in [1 << 10, 4 << 10, 64 << 10, (64 << 10) + 1] {
        for piece in set.chunks(size) {
            client.send(piece);
        }
        client.ask(b"", &reply);
    }
}

#[test]
fn statistics_count() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    client.ask(b"get a b c\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    client.ask(b"delete zz\r\n", b"NOT_FOUND\r\n");
    let mut found = std::collections::HashMap::new();
    client.send(b"stats\r\n");
    loop {
        let line = client.line();
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("STAT"), Some(name), Some(value)) => found.insert(name.to_owned(), value.to_owned()),
            _ => break,
        };
    }
    for (name, value) in [
        ("cmd_get", "3"),
        ("get_hits", "1"),
        ("get_misses", "2"),
        ("cmd_set", "1"),
        ("delete_misses", "1"),
        ("curr_items", "1"),
        ("curr_connections", "1"),
        ("threads", "2"),
        ("limit_maxbytes", "67108864"),
    ] {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    }
    // What client libraries read must be there, and numbers must be numbers.
    for name in [
        "pid",
        "uptime",
        "time",
        "pointer_size",
        "rusage_user",
        "rusage_system",
        "total_items",
        "bytes",
        "total_connections",
        "connection_structures",
        "cmd_flush",
        "evictions",
        "reclaimed",
        "bytes_read",
        "bytes_written",
        "incr_hits",
        "decr_hits",
        "delete_hits",
        "cas_hits",
        "auth_cmds",
        "listen_disabled_num",
        "hash_is_expanding",
        "slab_reassign_running",
        "expired_unfetched",
        "evicted_unfetched",
        "max_connections",
        "cmd_touch",
        "touch_hits",
        "cas_badval",
        "get_expired",
        "get_flushed",
        "store_too_large",
        "store_no_memory",
        "accepting_conns",
        "rejected_connections",
    ] {
        let value = found.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(value.parse::<f64>().is_ok(), "{name} {value}");
    }
    for subject in ["settings", "items", "slabs", "conns"] {
        client.send(format!("stats {subject}\r\n").as_bytes());
        let mut lines = 0;
        while client.line() != "END" {
            lines += 1;
        }
        assert!(lines > 0, "stats {subject}");
    }
}

#[test]
fn version_and_quit() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.send(b"version\r\n");
    assert!(client.line().starts_with("VERSION 1.6."));
    client.send(b"quit\r\n");
    assert_eq!(client.rest(), b"");
}

/// They were neither answered nor closed: their clients waited for their own timeouts. (Redis's clients get a line.)
#[test]
fn a_client_of_another_protocol_is_closed_with_its_first_bytes() {
    let daemon = daemon();
    let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03";
    for request in [&hello[..], &hello[..3], b"\0\0\0\x08\x04\xd2\x16\x2f"] {
        let mut client = daemon.connect();
        client.send(request);
        let mut answer = Vec::new();
        // A peer that is closed with bytes unread sees a reset.
        let end = std::io::Read::read_to_end(&mut client.stream, &mut answer).map_err(|error| error.kind());
        assert!(!matches!(end, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it is open still");
        assert_eq!(answer, b"", "{}", request[..2.min(request.len())].escape_ascii());
    }
    // In the middle of a conversation the same bytes may be the rest of a value whose length was wrong.
    daemon.connect().ask(b"get k\r\n\x80\x0b\r\nget k\r\n", b"END\r\nERROR\r\nEND\r\n");
}

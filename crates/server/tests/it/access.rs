//! Proofs of roles byte by byte: what is cut, repeated, out of order or too long costs its connection only.

use std::io::Write;
use std::time::Duration;

use engine::auth::{Access, Roles, Rules};
use server::Config;

use crate::harness::{Daemon, config, daemon_with, seed};
use crate::pg::{Pg, message, packet};

fn guarded() -> Daemon {
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
    let rules = "host all shown 127.0.0.1/32 password protocol=sql\nhost all all 127.0.0.1/32 scram-sha-256 protocol=sql\n\
                 host all all 127.0.0.1/32 password";
    let roles = "CREATE USER app PASSWORD 'x'; CREATE USER shown PASSWORD 'y' CONNECTION LIMIT 1;";
    let (rules, roles) = (Rules::parse(rules).unwrap(), Roles::parse(roles).unwrap());
    daemon.engine.access.set(Access { rules, roles: Some(roles), ..Access::default() });
    daemon
}

fn begun(daemon: &Daemon, role: &str) -> Pg {
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, format!("user\0{role}\0\0").as_bytes()));
    assert_eq!(pg.next().as_deref(), Some("R"));
    pg
}

/// Moves the clock until a refusal comes: each one waits longer than the one before. How often it was moved, by 0.1 s.
fn refusal(daemon: &Daemon, pg: &mut Pg) -> (String, usize) {
    pg.stream.set_read_timeout(Some(Duration::from_millis(40))).unwrap();
    let mut moved = 0;
    while pg.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_millis(100));
        moved += 1;
    }
    pg.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (pg.next().unwrap_or_default(), moved)
}

#[test]
fn a_wrong_password_is_answered_later_each_time() {
    let daemon = guarded();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let mut pg = begun(&daemon, "shown");
        pg.send(&message(b'p', b"wrong\0"));
        let (said, moved) = refusal(&daemon, &mut pg);
        assert!(said.starts_with("E FATAL 28P01"), "{said}");
        waits.push(moved);
        assert_eq!(pg.next(), None);
    }
    assert!(waits[0] >= 1 && waits[3] >= 8 && waits[7] >= 50, "{waits:?}");
    // A right one is answered at once, and forgets them.
    let mut pg = begun(&daemon, "shown");
    pg.send(&message(b'p', b"y\0"));
    assert!(pg.until_ready().contains(&"R".to_owned()));
    let mut second = begun(&daemon, "shown");
    second.send(&message(b'p', b"y\0"));
    assert!(second.next().unwrap().starts_with("E FATAL 53300"));
}

#[test]
fn proofs_that_are_none() {
    let daemon = guarded();
    let first = |mechanism: &[u8], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        message(b'p', &[mechanism, b"\0", &length, data].concat())
    };
    for (proof, state) in [
        (message(b'Q', b"SELECT 1\0"), "08P01"),
        (b"p\xff\xff\xff\xff".to_vec(), "08P01"),
        (b"p\0\0\x40\0".to_vec(), "08P01"),
        (message(b'p', b""), "08P01"),
        (message(b'p', b"SCRAM-SHA-256\0"), "08P01"),
        (first(b"SCRAM-SHA-256", b""), "08P01"),
        (first(b"SCRAM-SHA-256", b"n,,n=,r="), "08P01"),
        (first(b"SCRAM-SHA-256", b"p=tls-unique,,n=,r=abc"), "08P01"),
        (first(b"SCRAM-SHA-256", b"n,a=chief,n=,r=abc"), "08P01"),
        (first(b"SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc"), "08P01"),
        (first(b"MD5", b"x"), "08P01"),
    ] {
        let mut pg = begun(&daemon, "app");
        pg.send(&proof);
        let said = pg.next().unwrap();
        assert!(said.starts_with(&format!("E FATAL {state}")), "{proof:?}: {said}");
        assert_eq!(pg.next(), None);
    }
    for last in [&b"c=biws,r=abc,p=AAAA"[..], b"", b"c=biws,r=,p=", b"n,,n=,r=abc", b"\xff\xfe"] {
        let mut pg = begun(&daemon, "app");
        pg.send(&first(b"SCRAM-SHA-256", b"n,,n=,r=abc"));
        assert_eq!(pg.next().as_deref(), Some("R"));
        pg.send(&message(b'p', last));
        assert!(refusal(&daemon, &mut pg).0.starts_with("E FATAL 28P01"), "{last:?}");
    }
    // In pieces, and with a statement behind it that must not run.
    let mut pg = begun(&daemon, "shown");
    for byte in message(b'p', b"y\0") {
        pg.send(&[byte]);
    }
    assert!(pg.until_ready().contains(&"R".to_owned()));
    let mut pg = begun(&daemon, "app");
    pg.send(&[first(b"SCRAM-SHA-256", b"n,,n=,r=abc"), message(b'Q', b"SELECT 1\0")].concat());
    assert_eq!(pg.next().as_deref(), Some("R"));
    assert!(pg.next().unwrap().starts_with("E FATAL 08P01"));
}

#[test]
fn a_proof_that_does_not_come() {
    let daemon = guarded();
    let mut pg = begun(&daemon, "app");
    pg.send(b"p\0\0");
    pg.stream.set_nonblocking(true).unwrap();
    while pg.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
    pg.stream.set_nonblocking(false).unwrap();
    assert!(pg.next().unwrap().starts_with("E FATAL 08006"));
}

#[test]
fn a_password_that_does_not_come() {
    let daemon = guarded();
    let mut silent = daemon.connect();
    silent.stream.set_nonblocking(true).unwrap();
    while silent.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
    silent.stream.set_nonblocking(false).unwrap();
    assert_eq!(silent.rest(), b"");
}

/// Pieces of logins at either listener.
const PARTS: &[&[u8]] = &[
    b"set x 0 0 5\r\n",
    b"app x\r\n",
    b"\r\n",
    b"ms x 5\r\n",
    b"get abc\r\n",
    b"set x 0 0 99999\r\n",
    b"\x80\x21\0\x05\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0\0\0",
    b"PLAIN",
    b"\0app\0x",
    b"\x80\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x80\x01\0\x02\x08\0\0\0\0\x0f\xff\xff",
    b"quit\r\n",
    b"\xff",
    b"version\r\n",
    b"sql 8\r\nSELECT 1\r\n",
];

/// Bytes of any kind before a proof, at both listeners: the daemon goes on.
#[test]
fn any_bytes_before_a_proof() {
    let daemon = guarded();
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..300 {
        let bytes: Vec<u8> =
            (0..random.usize(1..12)).flat_map(|_| PARTS[random.usize(..PARTS.len())].to_vec()).collect();
        let mut client = daemon.connect();
        let _closed = client.stream.write_all(&bytes);
        let mut pg = Pg::plain(&daemon);
        pg.send(&packet(3 << 16, b"user\0app\0\0"));
        let _closed = pg.stream.write_all(&bytes);
    }
    let mut pg = begun(&daemon, "shown");
    pg.send(&message(b'p', b"y\0"));
    assert!(pg.until_ready().contains(&"R".to_owned()));
}

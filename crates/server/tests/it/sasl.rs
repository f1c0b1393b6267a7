//! SCRAM over memcached's binary protocol: what is right, out of order, repeated, cut or of somebody else.

use std::time::Duration;

use engine::auth::{Access, Roles, Rules, Users};

use crate::harness::{Client, Daemon, daemon, seed};
use crate::scram::Scram;

/// A frame of a request.
fn frame(opcode: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap(), 0, 0, 0, 0];
    bytes.extend(u32::try_from(key.len() + value.len()).unwrap().to_be_bytes());
    bytes.extend([7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    [&bytes, key, value].concat()
}

/// Status and value of the next answer.
fn heard<S: std::io::Read>(client: &mut Client<S>) -> (u16, Vec<u8>) {
    let mut header = [0; 24];
    client.stream.read_exact(&mut header).unwrap();
    let length = u32::from_be_bytes(header[8..12].try_into().unwrap());
    let mut value = vec![0; usize::try_from(length).unwrap()];
    client.stream.read_exact(&mut value).unwrap();
    (u16::from_be_bytes([header[6], header[7]]), value)
}

const SCRAM: &[u8] = b"SCRAM-SHA-256";
const LIST: u8 = 0x20;
const AUTH: u8 = 0x21;
const STEP: u8 = 0x22;
const GET: u8 = 0x00;

const REFUSED: (u16, &[u8]) = (0x20, b"Auth failure.");

fn ask<S: std::io::Read + std::io::Write>(
    client: &mut Client<S>,
    opcode: u8,
    key: &[u8],
    value: &[u8],
) -> (u16, Vec<u8>) {
    client.send(&frame(opcode, key, value));
    heard(client)
}

/// Answers to both of a client's messages, up to the server's proof.
fn exchange<S: std::io::Read + std::io::Write>(
    client: &mut Client<S>,
    name: &str,
    password: &str,
) -> (u16, Vec<u8>) {
    let mut scram = Scram::new(name, password, "n,,", b"");
    let (status, challenge) = ask(client, AUTH, SCRAM, scram.first().as_bytes());
    assert_eq!(status, 0x21);
    let last = scram.last(&String::from_utf8(challenge).unwrap());
    let answer = ask(client, STEP, SCRAM, last.as_bytes());
    if answer.0 == 0x21 {
        assert_eq!(answer.1, scram.server_proof().as_bytes());
    }
    answer
}

fn guarded(users: Option<&str>) -> Daemon {
    let daemon = daemon();
    let rules = "host all shown 127.0.0.1/32 password\nhost all all 127.0.0.1/32 scram-sha-256";
    let roles = "CREATE USER app PASSWORD 'x' IN ROLE pg_read_all_data; CREATE USER shown PASSWORD 'y'; CREATE ROLE team PASSWORD 'z';";
    let (rules, roles) = (Rules::parse(rules).unwrap(), Some(Roles::parse(roles).unwrap()));
    let users = users.map(|text| Users::parse(text).unwrap());
    daemon.engine.access.set(Access { rules, roles, users, ..Access::default() });
    daemon
}

/// Moves the clock until an answer comes.
fn patiently(daemon: &Daemon, request: &mut dyn FnMut(&mut Client<std::net::TcpStream>)) -> (u16, Vec<u8>) {
    let mut client = daemon.connect();
    request(&mut client);
    client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    while client.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_millis(200));
    }
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    heard(&mut client)
}

#[test]
fn an_exchange_proves_a_role() {
    for (users, name, password) in [(None, "app", "x"), (None, "shown", "y"), (Some("me:pw"), "me", "pw")] {
        let daemon = guarded(users);
        let mut client = daemon.connect();
        assert_eq!(ask(&mut client, LIST, b"", b""), (0, b"SCRAM-SHA-256 PLAIN".to_vec()));
        assert_eq!(exchange(&mut client, name, password).0, 0x21);
        // Not before the client has heard the server's proof.
        client.send(&[frame(STEP, SCRAM, b""), frame(GET, b"a", b"")].concat());
        assert_eq!(heard(&mut client), (0, b"Authenticated".to_vec()));
        let missing = if name == "shown" { 0x20 } else { 0x01 };
        assert_eq!(heard(&mut client).0, missing, "{name}");
    }
}

#[test]
fn who_is_refused() {
    let daemon = guarded(None);
    for (name, password) in [("app", "y"), ("nobody", "x"), ("team", "z"), ("team", "x")] {
        let (status, value) = patiently(&daemon, &mut |client| {
            let mut scram = Scram::new(name, password, "n,,", b"");
            let (_, challenge) = ask(client, AUTH, SCRAM, scram.first().as_bytes());
            let last = scram.last(&String::from_utf8(challenge).unwrap());
            client.send(&frame(STEP, SCRAM, last.as_bytes()));
        });
        assert_eq!((status, &value[..]), REFUSED, "{name}");
    }
    // A role that must not show its password cannot.
    let (status, _) = patiently(&daemon, &mut |client| client.send(&frame(AUTH, b"PLAIN", b"\0app\0x")));
    assert_eq!(status, 0x20);
}

#[test]
fn messages_out_of_order() {
    let daemon = guarded(None);
    let mut client = daemon.connect();
    let refused = |answer: (u16, Vec<u8>)| assert_eq!((answer.0, &answer.1[..]), REFUSED);
    refused(ask(&mut client, STEP, SCRAM, b""));
    refused(ask(&mut client, STEP, SCRAM, b"c=biws,r=x,p=x"));
    for first in [
        &b""[..],
        b"n",
        b"n,,n=,r=x",
        b"y,a=chief,n=app,r=x",
        b"p=tls-unique,,n=app,r=x",
        b"n,,n=app,r=",
        b"\xff",
    ] {
        refused(ask(&mut client, AUTH, SCRAM, first));
        refused(ask(&mut client, STEP, SCRAM, b""));
    }
    for mechanism in [&b"SCRAM-SHA-256-PLUS"[..], b"SCRAM-SHA-1", b"EXTERNAL", b"", b"plain"] {
        refused(ask(&mut client, AUTH, mechanism, b"n,,n=app,r=x"));
    }
    // An exchange that is begun again forgets the first one, and a proof counts once.
    assert_eq!(ask(&mut client, AUTH, SCRAM, b"n,,n=app,r=x").0, 0x21);
    assert_eq!(exchange(&mut client, "app", "x").0, 0x21);
    refused(ask(&mut client, STEP, SCRAM, b"more"));
    refused(ask(&mut client, STEP, SCRAM, b""));
    assert_eq!(exchange(&mut client, "app", "x").0, 0x21);
    refused(ask(&mut client, AUTH, SCRAM, b""));
    refused(ask(&mut client, STEP, SCRAM, b""));
    // A right proof is nothing before the client has heard the server's.
    assert_eq!(exchange(&mut client, "app", "x").0, 0x21);
    client.send(&frame(GET, b"a", b""));
    assert_eq!(heard(&mut client).0, 0x20);
    assert_eq!(client.rest(), b"");
    for (opcode, key, value) in [(AUTH, vec![b'x'; 33], vec![]), (STEP, b"x".to_vec(), vec![0; 16_385])] {
        let mut client = daemon.connect();
        assert_eq!(ask(&mut client, opcode, &key, &value).0, 0x04);
    }
}

/// Steps of any kind in any order: the daemon goes on, and nobody is let in.
#[test]
fn steps_of_any_kind() {
    let daemon = guarded(None);
    let mut random = fastrand::Rng::with_seed(seed());
    let values: [&[u8]; 8] =
        [b"", b"n,,n=app,r=x", b"y,,n=app,r=y", b"c=biws,r=x,p=AAAA", b"\0app\0x", b",", b"=", b"\xff"];
    for _ in 0..200 {
        let mut client = daemon.connect();
        let mut sent = Vec::new();
        for _ in 0..random.usize(1..8) {
            let key: &[u8] = [SCRAM, b"PLAIN", b"SCRAM-SHA-256-PLUS", b""][random.usize(..4)];
            let opcode = [LIST, AUTH, STEP, STEP, 0x0b][random.usize(..5)];
            sent.extend(frame(opcode, key, values[random.usize(..values.len())]));
        }
        sent.truncate(sent.len() - random.usize(..sent.len().min(5)));
        client.send(&sent);
    }
    let mut client = daemon.connect();
    assert_eq!(exchange(&mut client, "app", "x").0, 0x21);
}

/// Within TLS a proof is bound to the server's certificate, and nobody can take that offer away.
#[test]
fn proofs_bound_to_the_certificate() {
    let (daemon, end_point) = crate::tls::with_password("host all all 127.0.0.1/32 scram-sha-256");
    let connect = || crate::tls::client(&daemon);
    let mut client = connect();
    let offered = ask(&mut client, LIST, b"", b"");
    assert_eq!(offered, (0, b"SCRAM-SHA-256-PLUS SCRAM-SHA-256 PLAIN".to_vec()));
    let head = "p=tls-server-end-point,,";
    let attempt = |mechanism: &[u8], head: &'static str, binding: &[u8]| {
        let mut client = connect();
        let mut scram = Scram::new("app", "x", head, binding);
        let (status, challenge) = ask(&mut client, AUTH, mechanism, scram.first().as_bytes());
        if status != 0x21 {
            return status;
        }
        let last = scram.last(&String::from_utf8(challenge).unwrap());
        client.send(&frame(STEP, mechanism, last.as_bytes()));
        client.stream.sock.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while client.stream.sock.peek(&mut [0]).is_err() {
            daemon.advance(Duration::from_millis(200));
        }
        client.stream.sock.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        heard(&mut client).0
    };
    let plus = b"SCRAM-SHA-256-PLUS";
    assert_eq!(attempt(plus, head, &end_point), 0x21);
    assert_eq!(attempt(plus, head, &[0; 32]), 0x20, "another certificate");
    assert_eq!(attempt(plus, head, b""), 0x20, "none");
    assert_eq!(attempt(SCRAM, "n,,", b""), 0x21);
    assert_eq!(attempt(SCRAM, "y,,", b""), 0x20, "somebody took the offer away");
    assert_eq!(attempt(SCRAM, head, &end_point), 0x20);
    assert_eq!(attempt(plus, "n,,", b""), 0x20);
}

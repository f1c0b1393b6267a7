//! TLS at both listeners: what is agreed on and carried, and what is cut, plain, oversized, repeated or signed by
//! somebody else, which costs its connection only.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::auth::{Access, Roles, Rules};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use server::{ClientCertificates, Config, TlsMaterial, Transport};

use crate::harness::{Client, Daemon, config, daemon_with, seed};
use crate::pg::{Pg, packet, query, startup};

const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const GSS_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

/// Who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
struct Signed {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> Signed {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Signed { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }
}

/// Believes every server: what is tested is the server's half.
#[derive(Debug)]
struct Believer;

impl ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// How a client speaks.
#[derive(Default)]
struct Manner<'m> {
    shows: Option<&'m Signed>,
    alpn: Option<&'m [u8]>,
    only_1_2: bool,
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

impl Manner<'_> {
    fn session(&self) -> ClientConnection {
        let versions: &[_] = if self.only_1_2 { &[&rustls::version::TLS12] } else { rustls::ALL_VERSIONS };
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Believer));
        let mut config = match self.shows {
            None => builder.with_no_client_auth(),
            Some(Signed { certificate, key, .. }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(vec![certificate.clone()], key).unwrap()
            }
        };
        config.alpn_protocols = self.alpn.map(<[u8]>::to_vec).into_iter().collect();
        ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
    }

    fn over(&self, stream: TcpStream) -> Stream {
        StreamOwned::new(self.session(), stream)
    }

    fn memcached(&self, address: SocketAddr) -> Client<Stream> {
        Client { stream: self.over(Client::tcp(address).stream) }
    }

    /// A PostgreSQL client that asks whether it may encrypt.
    fn pg(&self, daemon: &Daemon) -> Pg<Stream> {
        let mut stream = Pg::plain(daemon).stream;
        stream.write_all(SSL_REQUEST).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"S");
        Pg::over(self.over(stream))
    }

    /// One that does not ask.
    fn pg_directly(&self, daemon: &Daemon) -> Pg<Stream> {
        Pg::over(self.over(Pg::plain(daemon).stream))
    }
}

struct Guarded {
    daemon: Daemon,
    authority: Authority,
}

fn material(own: &Signed, authority: Option<&Authority>) -> TlsMaterial {
    TlsMaterial {
        certificates: own.pem.clone().into_bytes(),
        key: own.key.serialize_pem().into_bytes(),
        authorities: authority.map(Authority::pem),
        revoked: None,
        only_1_3: false,
        clients: ClientCertificates::Asked,
    }
}

/// `more`: addresses for memcached besides the usual one.
fn guarded_with(rules: Option<&str>, more: &[Transport]) -> Guarded {
    let authority = Authority::new("ours");
    // The system takes any free port for each, but an address has to differ from the others.
    let any = |at: usize| format!("127.0.0.{}:0", at + 1).parse().unwrap();
    let daemon = daemon_with(&Config {
        listen_addresses: (0..=more.len()).map(any).collect(),
        transports: more.iter().enumerate().map(|(at, transport)| (any(at + 1), *transport)).collect(),
        sql_addresses: vec![any(0)],
        tls: Some(material(&authority.sign("here"), Some(&authority))),
        ..config()
    });
    if let Some(rules) = rules {
        let roles = "CREATE USER app PASSWORD 'x' IN ROLE pg_read_all_data, pg_write_all_data; CREATE USER other PASSWORD 'y';";
        let (rules, roles) = (Rules::parse(rules).unwrap(), Roles::parse(roles).unwrap());
        daemon.engine.access.set(Access { rules, roles: Some(roles), ..Access::default() });
    }
    Guarded { daemon, authority }
}

/// For other tests: a daemon with a role, and what proofs are bound to there.
pub(crate) fn with_password(rules: &str) -> (Daemon, Vec<u8>) {
    let Guarded { daemon, .. } = guarded_with(Some(rules), &[]);
    let mut client = client(&daemon);
    client.send(b"version\r\n");
    client.expect(b"CLIENT_ERROR unauthenticated\r\n");
    let shown = &client.stream.conn.peer_certificates().unwrap()[0];
    let end_point = ring::digest::digest(&ring::digest::SHA256, shown).as_ref().to_vec();
    (daemon, end_point)
}

/// For other tests: a key and its certificate.
pub(crate) fn any_material() -> TlsMaterial {
    material(&Authority::new("ours").sign("here"), None)
}

/// The beginning of a handshake.
pub(crate) fn half_a_hello() -> Vec<u8> {
    let mut hello = wire_of(&mut Manner::default().session());
    hello.truncate(hello.len() / 2);
    hello
}

/// A memcached client of it.
pub(crate) fn client(daemon: &Daemon) -> Client<Stream> {
    Manner::default().memcached(daemon.address())
}

fn guarded() -> Guarded {
    guarded_with(None, &[])
}

#[test]
fn memcached_within_tls() {
    let guarded = guarded();
    for only_1_2 in [false, true] {
        let mut client = Manner { only_1_2, ..Manner::default() }.memcached(guarded.daemon.address());
        client.ask(b"set a 0 0 5\r\nhello\r\n", b"STORED\r\n");
        client.ask(b"get a\r\n", b"VALUE a 0 5\r\nhello\r\nEND\r\n");
        // Values above a record, a socket's buffer and what is sent from where it lies.
        for bytes in [4_096, 16_384, 16_385, 70_000, 1_000_000] {
            let value: Vec<u8> = (b'a'..=b'w').cycle().take(bytes).collect();
            let set = [format!("set big 0 0 {bytes}\r\n").as_bytes(), &value, b"\r\n"].concat();
            client.ask(&set, b"STORED\r\n");
            let got = [format!("VALUE big 0 {bytes}\r\n").as_bytes(), &value, b"\r\nEND\r\n"].concat();
            client.ask(b"get big\r\n", &got);
            client.ask(
                b"get a big a\r\n",
                &[b"VALUE a 0 5\r\nhello\r\n", &got[..got.len() - 5], b"VALUE a 0 5\r\nhello\r\nEND\r\n"]
                    .concat(),
            );
        }
        // Many requests at once, in records as large as they may be.
        client.ask(&b"get a\r\n".repeat(20_000), &b"VALUE a 0 5\r\nhello\r\nEND\r\n".repeat(20_000));
        client.send(b"quit\r\n");
        assert_eq!(client.rest(), b"");
    }
    let mut binary = Manner::default().memcached(guarded.daemon.address());
    binary.send(b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    binary.expect(b"\x81\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

/// A client that sends on and reads nothing, and then reads all.
#[test]
fn answers_wait_for_a_slow_reader() {
    let guarded = guarded();
    let mut client = Manner::default().memcached(guarded.daemon.address());
    client.ask(&[&b"set a 0 0 100000\r\n"[..], &vec![b'x'; 100_000][..], b"\r\n"].concat(), b"STORED\r\n");
    client.send(&b"get a\r\n".repeat(500));
    let mut other = Manner::default().memcached(guarded.daemon.address());
    other.ask(b"set b 0 0 1\r\nb\r\n", b"STORED\r\n");
    let answer = [&b"VALUE a 0 100000\r\n"[..], &vec![b'x'; 100_000][..], b"\r\nEND\r\n"].concat();
    for _ in 0..500 {
        client.expect(&answer);
    }
    client.ask(b"get b\r\n", b"VALUE b 0 1\r\nb\r\nEND\r\n");
}

/// What a session of TLS would send, up to the moment when it waits for an answer.
fn wire_of(session: &mut ClientConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut wire).unwrap();
    }
    wire
}

/// Reads records until the session has what it waits for.
fn hear(session: &mut ClientConnection, stream: &mut TcpStream, done: impl Fn(&ClientConnection) -> bool) {
    while !done(session) {
        assert!(session.read_tls(stream).unwrap() > 0, "the server closed");
        session.process_new_packets().unwrap();
    }
}

#[test]
fn records_in_pieces() {
    let guarded = guarded();
    let mut random = fastrand::Rng::with_seed(seed());
    for round in 0..20 {
        let mut stream = guarded.daemon.connect().stream;
        let mut session = Manner { only_1_2: round % 2 == 1, ..Manner::default() }.session();
        let mut send = |stream: &mut TcpStream, wire: Vec<u8>| {
            let most = if round < 2 { 1 } else { random.usize(1..200) };
            for piece in wire.chunks(most) {
                stream.write_all(piece).unwrap();
            }
        };
        while session.is_handshaking() {
            send(&mut stream, wire_of(&mut session));
            let waits = session.is_handshaking();
            if waits {
                assert!(session.read_tls(&mut stream).unwrap() > 0);
                session.process_new_packets().unwrap();
            }
        }
        session.writer().write_all(b"set a 0 0 3\r\nabc\r\nget a\r\n").unwrap();
        send(&mut stream, wire_of(&mut session));
        let mut heard = Vec::new();
        while !heard.ends_with(b"END\r\n") {
            hear(&mut session, &mut stream, |session| !session.wants_write());
            assert!(session.read_tls(&mut stream).unwrap() > 0);
            session.process_new_packets().unwrap();
            let mut piece = [0; 100];
            while let Ok(count) = session.reader().read(&mut piece) {
                heard.extend_from_slice(&piece[..count]);
            }
        }
        assert_eq!(heard, b"STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n");
    }
}

/// The end of a connection whose peer sent this; an alert may come before it.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let _reset = stream.read_to_end(&mut rest);
    rest.is_empty() || rest[0] == 0x15
}

#[test]
fn bytes_that_are_no_tls() {
    let guarded = guarded();
    let hello = wire_of(&mut Manner::default().session());
    let mut random = fastrand::Rng::with_seed(seed());
    let mut changed = |at: usize| {
        let mut changed = hello.clone();
        changed[at] ^= random.u8(1..);
        changed
    };
    let mut attempts: Vec<Vec<u8>> = vec![
        b"get a\r\n".to_vec(),
        b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        b"\x16\x03\x01\xff\xff".to_vec(),
        [&b"\x16\x03\x01\x48\x01"[..], &vec![0; 20_000][..]].concat(),
        [&b"\x16\x03\x01\x40\x00\x01\xff\xff\xff"[..], &vec![0; 20_000][..]].concat(),
        b"\x17\x03\x03\0\x05hello".to_vec(),
        b"\x14\x03\x03\0\x01\x01".to_vec(),
        b"\x15\x03\x03\0\x02\x02\x28".to_vec(),
        [&hello[..], b"get a\r\n"].concat(),
        hello.repeat(2),
        b"\x16\x03\x01\0\0".repeat(100),
        vec![0; 70_000],
    ];
    attempts.extend((0..40).map(|at| changed(at % 11)));
    for attempt in &attempts {
        let mut stream = guarded.daemon.connect().stream;
        let _closed = stream.write_all(attempt);
        let _closed = stream.shutdown(std::net::Shutdown::Write);
        // Some changes make another hello, which is answered.
        let mut rest = Vec::new();
        let _reset = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() || [0x15, 0x16].contains(&rest[0]), "{rest:?}");
        let mut pg = Pg::plain(&guarded.daemon);
        let _closed = pg.stream.write_all(&[SSL_REQUEST, attempt].concat());
        let _closed = pg.stream.shutdown(std::net::Shutdown::Write);
        let _reset = pg.stream.read_to_end(&mut rest);
    }
    let mut client = Manner::default().memcached(guarded.daemon.address());
    client.ask(b"get a\r\n", b"END\r\n");
    assert_eq!(Manner::default().pg(&guarded.daemon).begun(), "Z I");
}

/// A hello that never ends keeps its connection no longer than a password that does not come.
#[test]
fn a_hello_that_does_not_end() {
    let guarded = guarded();
    let hello = wire_of(&mut Manner::default().session());
    let mut memcached = guarded.daemon.connect().stream;
    let mut sql = Pg::plain(&guarded.daemon).stream;
    sql.write_all(SSL_REQUEST).unwrap();
    sql.read_exact(&mut [0]).unwrap();
    for stream in [&mut memcached, &mut sql] {
        stream.write_all(&hello[..hello.len() / 2]).unwrap();
        stream.set_nonblocking(true).unwrap();
        while stream.peek(&mut [0]).is_err() {
            guarded.daemon.advance(Duration::from_secs(1));
            std::thread::yield_now();
        }
        stream.set_nonblocking(false).unwrap();
        assert!(is_closed(stream));
    }
}

impl Pg<Stream> {
    /// Begins a session; its last message.
    fn begun(&mut self) -> String {
        self.send(&startup(0));
        self.until_ready().pop().unwrap()
    }

    fn begun_as(&mut self, role: &str) -> Option<String> {
        self.send(&packet(3 << 16, format!("user\0{role}\0\0").as_bytes()));
        self.next()
    }
}

#[test]
fn postgresql_within_tls() {
    let guarded = guarded();
    let daemon = &guarded.daemon;
    for only_1_2 in [false, true] {
        for alpn in [None, Some(&b"postgresql"[..])] {
            let mut pg = Manner { alpn, only_1_2, ..Manner::default() }.pg(daemon);
            assert_eq!(pg.begun(), "Z I");
            let version = if only_1_2 { "TLSv1.2" } else { "TLSv1.3" };
            let said =
                pg.ask("SELECT ssl, version, bits, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
            assert!(said.contains(&format!("D t|{version}|256|NULL")), "{said:?}");
            // An answer of many records.
            let said = pg.ask("SELECT repeat('x', 1000000)");
            assert!(said[1].len() == 1_000_002, "{}", said[1].len());
            // Statements that come before they are asked for.
            pg.send(&query("SELECT 1").repeat(2_000));
            for _ in 0..2_000 {
                pg.until_ready();
            }
        }
    }
    // Both packets of a beginning, and a statement, in one record.
    let mut pg = Manner::default().pg(daemon);
    pg.send(&[startup(0), query("SELECT 1")].concat());
    pg.until_ready();
    assert!(pg.until_ready().contains(&"D 1".to_owned()));
}

#[test]
fn direct_tls_needs_its_protocol_named() {
    let guarded = guarded();
    let daemon = &guarded.daemon;
    let named = Manner { alpn: Some(b"postgresql"), ..Manner::default() };
    assert_eq!(named.pg_directly(daemon).begun(), "Z I");
    // Within it TLS is not offered again.
    let mut pg = named.pg_directly(daemon);
    pg.send(SSL_REQUEST);
    let mut answer = [0];
    pg.stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
    assert_eq!(pg.begun(), "Z I");
    for alpn in [None, Some(&b"http/1.1"[..])] {
        let mut pg = Manner { alpn, ..Manner::default() }.pg_directly(daemon);
        let _closed = pg.stream.write_all(&startup(0));
        let mut heard = Vec::new();
        let _alert = pg.stream.read_to_end(&mut heard);
        assert_eq!(heard, b"");
    }
}

#[test]
fn questions_for_encryption() {
    let guarded = guarded();
    // What comes behind the question before its answer was not encrypted, and is not taken for what was
    // (CVE-2021-23214).
    for behind in [&startup(0)[..], &query("SELECT 1"), b"\x16"] {
        let mut pg = Pg::plain(&guarded.daemon);
        pg.send(&[SSL_REQUEST, behind].concat());
        assert_eq!(pg.rest(), Vec::<String>::new());
    }
    // Once each.
    let mut pg = Pg::plain(&guarded.daemon);
    pg.send(GSS_REQUEST);
    let mut answer = [0];
    pg.stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
    pg.send(GSS_REQUEST);
    assert_eq!(
        pg.rest()[0],
        "E FATAL 0A000 unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2"
    );
    let mut pg = Manner::default().pg(&guarded.daemon);
    pg.send(SSL_REQUEST);
    assert!(pg.next().unwrap().starts_with("E FATAL 0A000"));
    // Plain ones are served where the rules let them.
    assert!(Pg::connect(&guarded.daemon).ask("SELECT 1").contains(&"D 1".to_owned()));
    // A client that begins with TLS at a server without it hears nothing.
    let plain = daemon_with(&Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..config() });
    let hello = wire_of(&mut Manner::default().session());
    let (mut sql, mut memcached) = (Pg::plain(&plain).stream, plain.connect().stream);
    for stream in [&mut sql, &mut memcached] {
        stream.write_all(&hello).unwrap();
        assert!(is_closed(stream));
    }
}

/// Rules for encrypted and other connections.
const RULES: &str = "hostssl all app 127.0.0.0/8 cert
hostssl all other 127.0.0.0/8 password clientcert=verify-ca
hostnossl all all 127.0.0.0/8 reject
";

#[test]
fn certificates_of_clients() {
    let guarded = guarded_with(Some(RULES), &[]);
    let (app, chief) = (guarded.authority.sign("app"), guarded.authority.sign("chief"));
    let foreign = Authority::new("ours").sign("app");
    let (daemon, manner) = (&guarded.daemon, |shows| Manner { shows, ..Manner::default() });
    let begun = |shows, role| manner(shows).pg(daemon).begun_as(role);
    assert_eq!(begun(Some(&app), "app").as_deref(), Some("R"));
    let refused = "E FATAL 28000";
    for (shows, role) in [(None, "app"), (Some(&chief), "app"), (None, "other"), (Some(&app), "nobody")] {
        let mut pg = manner(shows).pg(daemon);
        pg.send(&packet(3 << 16, format!("user\0{role}\0\0").as_bytes()));
        let said = refusal(daemon, &mut pg);
        assert!(said.starts_with(refused), "{role}: {said}");
    }
    // Any certificate of the authority's, and the password.
    let mut pg = manner(Some(&chief)).pg(daemon);
    assert_eq!(pg.begun_as("other").as_deref(), Some("R"));
    pg.send(b"p\0\0\0\x06y\0");
    assert!(pg.until_ready().contains(&"Z I".to_owned()));
    let said = pg.ask("SELECT client_dn, length(client_serial::text) > 5, issuer_dn FROM pg_stat_ssl");
    assert!(said.iter().any(|line| line.starts_with("D CN=chief") && line.contains("|t|")), "{said:?}");
    // Another authority's is an alert, and no role.
    let mut pg = manner(Some(&foreign)).pg(daemon);
    let _alert = pg.stream.write_all(&startup(0));
    let mut heard = Vec::new();
    assert!(pg.stream.read_to_end(&mut heard).is_err());
    assert_eq!(heard, b"");
    // Plain ones are refused.
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, b"user\0app\0\0"));
    let said = refusal_plain(daemon, &mut pg);
    assert!(said.starts_with("E FATAL 28000") && said.ends_with("no encryption"), "{said}");
}

/// Moves the clock until a refusal comes.
fn refusal(daemon: &Daemon, pg: &mut Pg<Stream>) -> String {
    pg.stream.sock.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut byte = [0; 5];
    while pg.stream.sock.peek(&mut byte).is_err() || byte[0] == 0 {
        daemon.advance(Duration::from_millis(200));
    }
    pg.stream.sock.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    pg.next().unwrap_or_default()
}

fn refusal_plain(daemon: &Daemon, pg: &mut Pg) -> String {
    pg.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    while pg.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_millis(200));
    }
    pg.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    pg.next().unwrap_or_default()
}

#[test]
fn memcached_clients_are_who_their_certificates_say() {
    let guarded = guarded_with(Some(RULES), &[]);
    let (app, chief) = (guarded.authority.sign("app"), guarded.authority.sign("chief"));
    let connect = |shows| Manner { shows, ..Manner::default() }.memcached(guarded.daemon.address());
    let mut client = connect(Some(&app));
    client.ask(b"set a 0 0 1\r\na\r\n", b"STORED\r\n");
    client.ask(b"flush_all\r\n", b"CLIENT_ERROR permission denied\r\n");
    for (shows, login, answer) in [
        (None, &b"get abc\r\n"[..], &b"CLIENT_ERROR unauthenticated\r\n"[..]),
        (Some(&chief), b"get abc\r\n", b"CLIENT_ERROR unauthenticated\r\n"),
        (Some(&chief), b"set x 0 0 7\r\nother y\r\n", b"STORED\r\n"),
    ] {
        let mut client = connect(shows);
        client.send(login);
        client.expect(answer);
    }
}

#[test]
fn each_address_has_its_own_manner() {
    let guarded = guarded_with(None, &[Transport::Plain, Transport::Basic, Transport::Mutual]);
    let addresses = guarded.daemon.server.addresses().to_vec();
    let own = guarded.authority.sign("app");
    Client::tcp(addresses[1]).ask(b"get a\r\n", b"END\r\n");
    let shows = Manner { shows: Some(&own), ..Manner::default() };
    for address in [addresses[0], addresses[2], addresses[3]] {
        shows.memcached(address).ask(b"get a\r\n", b"END\r\n");
    }
    Manner::default().memcached(addresses[2]).ask(b"get a\r\n", b"END\r\n");
    let mut client = Manner::default().memcached(addresses[3]);
    let _alert = client.stream.write_all(b"get a\r\n");
    assert!(client.stream.read_to_end(&mut Vec::new()).is_err());
}

#[test]
fn other_certificates_without_a_restart() {
    let guarded = guarded();
    let shown = || {
        let mut client = Manner::default().memcached(guarded.daemon.address());
        client.ask(b"get a\r\n", b"END\r\n");
        client.stream.conn.peer_certificates().unwrap()[0].clone()
    };
    let (first, mut old) = (shown(), Manner::default().memcached(guarded.daemon.address()));
    old.ask(b"get a\r\n", b"END\r\n");
    let next = guarded.authority.sign("there");
    let good = material(&next, Some(&guarded.authority));
    let wrong = TlsMaterial { key: b"none".to_vec(), ..good.clone() };
    assert!(guarded.daemon.server.reload_tls(&wrong).is_err());
    assert_eq!(shown(), first);
    guarded.daemon.server.reload_tls(&good).unwrap();
    assert_eq!(shown(), next.certificate);
    assert_eq!(Manner::default().pg(&guarded.daemon).begun(), "Z I");
    // Who was there goes on.
    old.ask(b"set a 0 0 1\r\na\r\n", b"STORED\r\n");
}

/// Peers that say nothing take a quarter of all places, and who waits for longest goes first.
#[test]
fn peers_who_prove_nothing_have_few_places() {
    let authority = Authority::new("ours");
    let address = vec!["127.0.0.1:0".parse().unwrap()];
    let tls = Some(material(&authority.sign("here"), None));
    let daemon = daemon_with(&Config { sql_addresses: address, tls, max_connections: 80, ..config() });
    let served = |daemon: &Daemon| Manner::default().pg(daemon).begun();
    let mut silent: Vec<_> = (0..20).map(|_| daemon.connect().stream).collect();
    // The twenty-first hears so at once, in whatever form.
    let mut refused = daemon.connect();
    assert_eq!(refused.rest(), b"ERROR Too many open connections\r\n");
    let mut pg = Pg::plain(&daemon);
    assert!(pg.next().unwrap().starts_with("E FATAL 53300"));
    // Those who have a session do not count.
    silent.truncate(10);
    let mut members = Vec::new();
    while members.len() < 15 {
        let mut client = Client { stream: Manner::default().over(daemon.connect().stream) };
        if client.stream.write_all(b"mn\r\n").and_then(|()| client.stream.flush()).is_ok() {
            let mut answer = [0; 4];
            if client.stream.read_exact(&mut answer).is_ok() {
                members.push(client);
            }
        }
    }
    drop(silent);
    while daemon.engine.connections.load(Ordering::Relaxed) > members.len() {
        std::thread::yield_now();
    }
    // At the other listener the oldest goes when it is too old to be honest. Who is refused came behind all the others.
    let mut silent: Vec<Pg> = Vec::new();
    let is_refused = |pg: &mut Pg| {
        pg.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let is_told = pg.stream.peek(&mut [0]).is_ok();
        pg.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        is_told
    };
    loop {
        let mut pg = Pg::plain(&daemon);
        if silent.len() >= 20 && is_refused(&mut pg) {
            break;
        }
        silent.push(pg);
    }
    daemon.advance(Duration::from_secs(3));
    assert_eq!(served(&daemon), "Z I");
    assert!(silent[0].next().unwrap().starts_with("E FATAL 08006"));
}

/// A worker gives few turns in a round to connections that agree on keys. More of them than that at once are all
/// served, and others beside them.
#[test]
fn more_handshakes_at_once_than_a_round_has() {
    const CLIENTS: usize = 100;
    let guarded = guarded_with(None, &[Transport::Plain]);
    let mut plain = Client::tcp(guarded.daemon.server.addresses()[1]);
    plain.ask(b"set a 0 0 5\r\nhello\r\n", b"STORED\r\n");
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| Manner::default().memcached(guarded.daemon.address())).collect();
    // All hellos are there before the first is answered in full.
    for client in &mut clients {
        let StreamOwned { conn, sock } = &mut client.stream;
        conn.write_tls(sock).unwrap();
    }
    for client in &mut clients {
        plain.ask(b"get a\r\n", b"VALUE a 0 5\r\nhello\r\nEND\r\n");
        client.ask(b"get a\r\n", b"VALUE a 0 5\r\nhello\r\nEND\r\n");
    }
}

/// A rule that is gone lets in nobody any more, whatever certificate a client shows. Sessions that are open stay.
#[test]
fn a_certificate_after_a_change_of_the_rules() {
    let guarded = guarded_with(Some(RULES), &[]);
    let app = guarded.authority.sign("app");
    let manner = || Manner { shows: Some(&app), ..Manner::default() };
    let mut open = manner().memcached(guarded.daemon.address());
    open.ask(b"set a 0 0 1\r\na\r\n", b"STORED\r\n");
    assert_eq!(manner().pg(&guarded.daemon).begun_as("app").as_deref(), Some("R"));
    let access = &guarded.daemon.engine.access;
    let rules =
        Rules::parse("hostssl all app 127.0.0.1/32 reject\nhostssl all all 127.0.0.1/32 cert").unwrap();
    access.set(Access { rules, ..Access::clone(&access.current()) });
    let mut pg = manner().pg(&guarded.daemon);
    pg.send(&packet(3 << 16, b"user\0app\0\0"));
    let said = refusal(&guarded.daemon, &mut pg);
    assert!(said.starts_with("E FATAL 28000"), "{said}");
    let mut client = manner().memcached(guarded.daemon.address());
    client.send(b"get abc\r\n");
    client.expect(b"CLIENT_ERROR unauthenticated\r\n");
    open.ask(b"get a\r\n", b"VALUE a 0 1\r\na\r\nEND\r\n");
}

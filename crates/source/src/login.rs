//! How a connection begins: TLS, who we are, and the proof of it.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use store::definition::{MappingDef, ServerDef};

use crate::error::Error;
use crate::limits::CONNECT_TIMEOUT;
use crate::socket::Stream;
use crate::time::now;
use crate::tls;
use crate::wire::Connection;

/// The code of a request to cancel.
const CANCEL_REQUEST: u32 = 80_877_102;

/// The name of a stream that commits wait for, unless the server's options say another one.
const STANDBY_NAME: &str = "sqlcached";

/// What connections of our own are set to: the texts of values, of which ours are made.
const OWN_PARAMETERS: &[(&str, &str)] = &[
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("TimeZone", "UTC"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
];

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Questions.
    Questions,
    /// The stream of changes.
    Changes,
}

/// How this process calls itself at a source: a name of its own, so that it knows its connections again.
pub(crate) fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("sqlcached {:08x}", fastrand::u32(..)))
}

/// How the stream of a server's changes is called there. Where commits wait for it, its name is in the source's
/// configuration.
pub(crate) fn stream_name(server: &ServerDef) -> &str {
    let awaited = (server.option("freshness") == Some("commit")).then_some(STANDBY_NAME);
    server.option("standby_name").or(awaited).unwrap_or_else(|| own_name())
}

/// Connects to a server as its user mapping says.
pub(crate) fn connect(server: &ServerDef, purpose: Purpose) -> Result<Connection, Error> {
    let until = now() + timeout_of(server);
    let mapping = server.mapping().ok_or_else(|| Error::no_mapping(&server.name))?;
    let mut connection = Connection::over(reach(server)?)?;
    let follows = purpose == Purpose::Changes;
    let name = if follows { stream_name(server) } else { own_name() };
    let own = OWN_PARAMETERS.iter().copied().chain([("application_name", name)]);
    let replicates = follows.then_some(("replication", "database"));
    log_in(&mut connection, (server, mapping), own.chain(replicates), until)?;
    Ok(connection)
}

/// Begins a session at a server for somebody else, as a mapping says and with these settings.
pub(crate) fn begin(
    server: &ServerDef,
    mapping: &MappingDef,
    parameters: &[(String, String)],
) -> Result<Connection, Error> {
    let until = now() + timeout_of(server);
    let mut connection = Connection::over(reach(server)?)?;
    connection.keep_aside();
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    log_in(&mut connection, (server, mapping), parameters, until)?;
    Ok(connection)
}

/// Has a server end the statement that runs on a connection. Nobody answers that.
pub(crate) fn cancel(server: &ServerDef, connection: &Connection) -> Result<(), Error> {
    connection.secret.as_ref().map_or(Ok(()), |secret| cancel_by(server, secret))
}

/// The same by what proves that somebody may.
pub(crate) fn cancel_by(server: &ServerDef, secret: &[u8]) -> Result<(), Error> {
    let mut bytes = BytesMut::new();
    bytes.put_u32(8 + u32::try_from(secret.len()).unwrap_or(0));
    bytes.put_u32(CANCEL_REQUEST);
    bytes.put_slice(secret);
    Ok(reach(server)?.write_all(&bytes)?)
}

fn timeout_of(server: &ServerDef) -> Duration {
    let said = server.option("connect_timeout").and_then(|seconds| seconds.parse().ok());
    said.map_or(CONNECT_TIMEOUT, Duration::from_secs)
}

fn reach(server: &ServerDef) -> Result<Stream, Error> {
    let timeout = timeout_of(server);
    let host = server.option("host").unwrap_or("localhost");
    let port = server.option("port").and_then(|port| port.parse().ok()).unwrap_or(5432);
    let mut stream = if host.starts_with('/') {
        Stream::connect_local(&Path::new(host).join(format!(".s.PGSQL.{port}")))?
    } else {
        Stream::connect(host, port, timeout)?
    };
    stream.wait_at_most(timeout)?;
    let mode = server.option("sslmode").unwrap_or("disable");
    if mode != "disable" {
        stream = encrypted(stream, server, host, mode)?;
    }
    Ok(stream)
}

fn log_in<'s>(
    connection: &mut Connection,
    (server, mapping): (&'s ServerDef, &'s MappingDef),
    settings: impl Iterator<Item = (&'s str, &'s str)>,
    until: Instant,
) -> Result<(), Error> {
    let user = mapping.user().unwrap_or("postgres");
    let place = [("user", user), ("database", server.option("dbname").unwrap_or(user))];
    let mut bytes = BytesMut::new();
    frontend::startup_message(place.into_iter().chain(settings), &mut bytes)?;
    connection.send(&bytes)?;
    loop {
        let frame = connection.answer(until).map_err(|error| explained(error, server))?;
        match frame.tag {
            b'R' => prove(connection, &frame.body, mapping.password(), until)
                .map_err(|error| explained(error, server))?,
            b'K' => connection.secret = Some(frame.body),
            b'Z' => return Ok(()),
            _ => {}
        }
    }
}

/// Says what to do where PostgreSQL does not.
fn explained(error: Error, server: &ServerDef) -> Error {
    let hint = match error.state.as_str() {
        "28P01" => format!("ALTER USER MAPPING FOR ... SERVER {} OPTIONS (SET password '...')", server.name),
        "28000" => {
            "the source's pg_hba.conf must let this user in, for the database and for what it may do".into()
        }
        "42501" => "give the user the right on the source: ALTER ROLE ... REPLICATION".into(),
        "53300" => "raise max_connections or max_wal_senders on the source".into(),
        _ => return error,
    };
    if error.hint.is_some() { error } else { error.with_hint(hint) }
}

/// Answers what `Authentication...` asks for.
fn prove(
    connection: &mut Connection,
    asked: &[u8],
    password: Option<&str>,
    until: Instant,
) -> Result<(), Error> {
    let (kind, data) =
        asked.split_first_chunk::<4>().ok_or_else(|| Error::connection("a question is cut"))?;
    let password = || {
        password.ok_or_else(|| {
            Error::new("28P01", "the source asks for a password, and the user mapping has none")
        })
    };
    match i32::from_be_bytes(*kind) {
        0 => Ok(()),
        10 => scram(connection, data, password()?, until),
        3 if connection.certificate().is_some() => {
            let mut bytes = BytesMut::new();
            frontend::password_message(password()?.as_bytes(), &mut bytes)?;
            connection.send(&bytes)
        }
        3 => Err(Error::new("0A000", "the source asks for the password in clear text, which is not sent without TLS")
            .with_hint("set sslmode to 'verify-full', or have the source use scram-sha-256")),
        5 => Err(Error::new("0A000", "the source asks for a password by MD5, which is not safe")
            .with_hint("set password_encryption to scram-sha-256 on the source, set the password again, and use scram-sha-256 in pg_hba.conf")),
        other => Err(Error::new("0A000", format!("the source asks for a proof of kind {other}"))
            .with_hint("scram-sha-256, trust, and password within TLS are known")),
    }
}

fn scram(
    connection: &mut Connection,
    mechanisms: &[u8],
    password: &str,
    until: Instant,
) -> Result<(), Error> {
    if !mechanisms.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
        return Err(Error::new("0A000", "the source does not offer SCRAM-SHA-256"));
    }
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let mut bytes = BytesMut::new();
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut bytes)?;
    connection.send(&bytes)?;
    let wrong = |error: std::io::Error| Error::new("28P01", format!("the source's proof is wrong: {error}"));
    scram.update(&sasl(connection, 11, until)?).map_err(wrong)?;
    bytes.clear();
    frontend::sasl_response(scram.message(), &mut bytes)?;
    connection.send(&bytes)?;
    // The source proves that it knows the password, too.
    scram.finish(&sasl(connection, 12, until)?).map_err(wrong)
}

/// The data of the next `AuthenticationSASL...` of this kind.
fn sasl(connection: &mut Connection, kind: i32, until: Instant) -> Result<bytes::Bytes, Error> {
    let frame = connection.answer(until)?;
    match frame.body.split_first_chunk::<4>() {
        Some((found, _)) if frame.tag == b'R' && i32::from_be_bytes(*found) == kind => {
            Ok(frame.body.slice(4..))
        }
        _ => Err(Error::connection("the exchange of proofs broke off")),
    }
}

/// Asks for TLS, and speaks it from then on.
fn encrypted(stream: Stream, server: &ServerDef, host: &str, mode: &str) -> Result<Stream, Error> {
    let Stream::Tcp(mut socket) = stream else { return Ok(stream) };
    let mut bytes = BytesMut::new();
    frontend::ssl_request(&mut bytes);
    std::io::Write::write_all(&mut socket, &bytes)?;
    let mut answer = [0];
    std::io::Read::read_exact(&mut socket, &mut answer)?;
    if answer != *b"S" {
        return Err(Error::new("08001", "the source does not support TLS")
            .with_hint("set ssl = on there, or sslmode to 'disable'"));
    }
    tls::wrapped(socket, server, host, mode)
}

//! How a connection to MariaDB begins: its greeting, TLS, who we are, and the proof of it.

use std::path::Path;
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use store::definition::ServerDef;

use super::cursor::Cursor;
use super::wire::{Connection, END, ERROR, OK, error_of};
use crate::error::Error;
use crate::limits::CONNECT_TIMEOUT;
use crate::socket::Stream;
use crate::time::now;

/// What this client can do, as bits of the protocol.
const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
/// Largest packet that we take, as the source is told.
const PACKET_BYTES: u32 = 1 << 30;
/// The number of `utf8mb4_general_ci`.
const UTF8: u8 = 45;
/// MariaDB's usual proof of a password.
const NATIVE: &[u8] = b"mysql_native_password";
/// The password itself, for plug-ins that compare it elsewhere.
const CLEAR: &[u8] = b"mysql_clear_password";
/// The number that proofs are made with has so many bytes.
const SALT_BYTES: usize = 20;

/// What the source says first.
struct Greeting {
    /// The number of the connection.
    number: u64,
    capabilities: u32,
    salt: Vec<u8>,
}

/// Connects to a server as its user mapping says.
pub(super) fn connect(server: &ServerDef) -> Result<Connection, Error> {
    let timeout = server.option("connect_timeout").and_then(|seconds| seconds.parse().ok());
    let timeout = timeout.map_or(CONNECT_TIMEOUT, Duration::from_secs);
    let until = now() + timeout;
    let host = server.option("host").unwrap_or("localhost");
    let port = server.option("port").and_then(|port| port.parse().ok()).unwrap_or(3306);
    let stream = if host.starts_with('/') {
        Stream::connect_local(Path::new(host))?
    } else {
        Stream::connect(host, port, timeout)?
    };
    stream.wait_at_most(timeout)?;
    let mut connection = Connection::over(stream)?;
    let greeting = Greeting::read(&connection.answer(until).map_err(|error| explained(error, server))?)?;
    let mode = server.option("sslmode").unwrap_or("disable");
    if mode != "disable" && !host.starts_with('/') {
        if greeting.capabilities & TLS == 0 {
            return Err(Error::new("08001", "the source does not support TLS")
                .with_hint("set ssl_cert and ssl_key there, or sslmode to 'disable'"));
        }
        connection.send(&opening(server, TLS))?;
        connection = connection.encrypted(server, host, mode)?;
        log_in(&mut connection, server, &greeting, TLS, until)?;
    } else {
        log_in(&mut connection, server, &greeting, 0, until)?;
    }
    connection.number = greeting.number;
    connection.query("SET NAMES utf8mb4")?;
    Ok(connection)
}

impl Greeting {
    fn read(packet: &[u8]) -> Result<Self, Error> {
        let mut rest = Cursor(packet);
        if rest.byte()? != 10 {
            return Err(Error::connection("the greeting is of another protocol: is this MariaDB?"));
        }
        let version = String::from_utf8_lossy(rest.until_zero()?).into_owned();
        if !version.contains("MariaDB") {
            return Err(Error::new("0A000", format!("the source is version {version}, which is no MariaDB"))
                .with_hint("FOREIGN DATA WRAPPER mariadb is for MariaDB 10.5 and later"));
        }
        let number = rest.number(4)?;
        let mut salt = rest.take(8)?.to_vec();
        rest.byte()?;
        let lower = rest.number(2)?;
        rest.take(3)?;
        let upper = rest.number(2)?;
        rest.take(11)?;
        // Always twelve bytes and a zero, where proofs by plug-ins are spoken.
        salt.extend_from_slice(rest.take(SALT_BYTES - salt.len())?);
        let capabilities = u32::try_from(upper << 16 | lower).unwrap_or(0);
        Ok(Self { number, capabilities, salt })
    }
}

/// The beginning of our answer, which asks for TLS if it is all.
fn opening(server: &ServerDef, tls: u32) -> Vec<u8> {
    let with_db = if server.option("dbname").is_some() { CONNECT_WITH_DB } else { 0 };
    let capabilities =
        LONG_PASSWORD | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH | with_db | tls;
    let mut body = Vec::new();
    body.extend_from_slice(&capabilities.to_le_bytes());
    body.extend_from_slice(&PACKET_BYTES.to_le_bytes());
    body.push(UTF8);
    body.extend_from_slice(&[0; 23]);
    body
}

fn log_in(
    connection: &mut Connection,
    server: &ServerDef,
    greeting: &Greeting,
    tls: u32,
    until: Instant,
) -> Result<(), Error> {
    let mapping = server.mapping().ok_or_else(|| Error::no_mapping(&server.name))?;
    let password = mapping.password().unwrap_or_default().as_bytes();
    let mut body = opening(server, tls);
    body.extend_from_slice(mapping.user().unwrap_or("root").as_bytes());
    body.push(0);
    let proof = native_proof(password, &greeting.salt);
    body.push(u8::try_from(proof.len()).unwrap_or(0));
    body.extend_from_slice(&proof);
    if let Some(database) = server.option("dbname") {
        body.extend_from_slice(database.as_bytes());
        body.push(0);
    }
    body.extend_from_slice(NATIVE);
    body.push(0);
    connection.send(&body)?;
    loop {
        let packet = connection.answer(until).map_err(|error| explained(error, server))?;
        match packet.first() {
            Some(&OK) => return Ok(()),
            Some(&END) => {
                let proof = other_proof(connection, &packet[1..], password)?;
                connection.send(&proof)?;
            }
            Some(&ERROR) => return Err(explained(error_of(&packet), server)),
            _ => return Err(Error::connection("the exchange of proofs broke off")),
        }
    }
}

/// The proof by the plug-in that the source asks for, which names it and gives another salt.
fn other_proof(connection: &Connection, asked: &[u8], password: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = Cursor(asked);
    let plugin = rest.until_zero()?;
    match plugin {
        NATIVE => Ok(native_proof(password, rest.take(SALT_BYTES)?)),
        CLEAR if connection.is_private() => Ok([password, b"\0"].concat()),
        _ => {
            let plugin = String::from_utf8_lossy(plugin);
            Err(Error::new("0A000", format!("the source asks for a proof by {plugin}")).with_hint(
                "on the source: ALTER USER ... IDENTIFIED VIA mysql_native_password USING PASSWORD('...')",
            ))
        }
    }
}

/// The password's first hash, hidden by one of the salt and the second: who listens learns neither.
fn native_proof(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |parts: &[&[u8]]| {
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        for part in parts {
            context.update(part);
        }
        context.finish()
    };
    let first = hash(&[password]);
    let hidden = hash(&[salt, hash(&[first.as_ref()]).as_ref()]);
    first.as_ref().iter().zip(hidden.as_ref()).map(|(one, other)| one ^ other).collect()
}

/// Says what to do where MariaDB does not.
fn explained(error: Error, server: &ServerDef) -> Error {
    let hint = match error.state.as_str() {
        "28P01" => format!("ALTER USER MAPPING FOR ... SERVER {} OPTIONS (SET password '...')", server.name),
        "28000" => "the user must be let in from this host: CREATE USER 'name'@'host' on the source".into(),
        "42501" => "give the user the database on the source: GRANT SELECT ON database.* TO ...".into(),
        "53300" => "raise max_connections on the source".into(),
        _ => return error,
    };
    error.with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_proved_as_mariadb_expects() {
        // SHA1(p) ^ SHA1(salt + SHA1(SHA1(p))), as another implementation of SHA-1 has it.
        let salt: Vec<u8> = (1..=20).collect();
        assert_eq!(native_proof(b"", &salt), [] as [u8; 0]);
        let proof = native_proof(b"hidden", &salt);
        assert_eq!(super::super::cursor::hex(&proof), "5674e7afe514c68a01bc3aaae91d3e3def889d74");
    }

    #[test]
    fn greetings_are_read_or_refused() {
        let mut greeting =
            b"\x0a5.5.5-10.11.19-MariaDB\0\x01\0\0\0abcdefgh\0\xfe\xf7\x08\x02\0\xff\x81\x15".to_vec();
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        let read = Greeting::read(&greeting).unwrap();
        assert_eq!(read.salt, b"abcdefghijklmnopqrst");
        for end in 0..greeting.len() - 35 {
            assert!(Greeting::read(&greeting[..end]).is_err(), "{end}");
        }
        let mysql = String::from_utf8_lossy(&greeting).replace("5.5.5-10.11.19-MariaDB", "8.0.36");
        assert!(Greeting::read(mysql.as_bytes()).is_err_and(|error| error.state == "0A000"));
    }
}

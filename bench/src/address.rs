//! Where a server listens, and a stream to it.

use std::fmt::{self, Display};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::failure::{Failure, Result};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Host and port.
    Tcp(SocketAddr),
    /// The same, with TLS.
    Tls(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// What clients trust; see [`trust`].
static TRUSTED: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// Trusts the server with this certificate, from now on.
pub(crate) fn trust(certificate: &Path) -> Result<()> {
    let fails = |error: &dyn Display| Failure::new(error.to_string());
    let found = CertificateDer::from_pem_file(certificate).map_err(|error| fails(&error))?;
    let mut roots = RootCertStore::empty();
    roots.add(found).map_err(|error| fails(&error))?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fails(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let _first = TRUSTED.set(Arc::new(config));
    Ok(())
}

/// Connects, and agrees on keys.
fn connect_by_tls(address: SocketAddr) -> io::Result<Stream> {
    let config = TRUSTED.get().ok_or_else(|| io::Error::other("no server is trusted"))?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let mut session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(session, stream))))
}

impl FromStr for Address {
    type Err = String;

    /// `127.0.0.1:11211`, or a path (anything that holds a slash) of a Unix socket.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text.contains('/') {
            return Ok(Self::Unix(PathBuf::from(text.strip_prefix("unix:").unwrap_or(text))));
        }
        match text.parse() {
            Ok(address) => Ok(Self::Tcp(address)),
            Err(_) => {
                Err(format!("{text}: write HOST:PORT with a numeric host, or the path of a Unix socket"))
            }
        }
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) | Self::Tls(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Address {
    /// A TCP address of this machine whose port nobody uses at the moment.
    pub(crate) fn free_port() -> io::Result<SocketAddr> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
    }

    /// Connects; requests are sent at once, not held back for more.
    pub(crate) fn connect(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Tls(address) => connect_by_tls(*address),
            Self::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// By TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Reads and writes return instead of waiting.
    pub(crate) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(on),
            Self::Tls(stream) => stream.sock.set_nonblocking(on),
            Self::Unix(stream) => stream.set_nonblocking(on),
        }
    }

    /// Bounds the wait for an answer.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Self::Tls(stream) => stream.sock.set_read_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn a_slash_means_a_unix_socket() {
        assert_eq!("/run/s".parse(), Ok(Address::Unix("/run/s".into())));
        assert_eq!("unix:/run/s".parse(), Ok(Address::Unix("/run/s".into())));
        assert!(matches!("127.0.0.1:11211".parse(), Ok(Address::Tcp(_))));
        assert!("localhost".parse::<Address>().is_err());
    }
}

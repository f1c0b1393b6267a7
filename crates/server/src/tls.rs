//! TLS: what the listeners need for it, and one half of it for one connection.
//!
//! The library works on bytes and never on sockets: what was received goes in, records to be sent come out.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use engine::EncryptionFacts;
use engine::auth::{Certificate, end_point};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

/// What TLS is made of: the contents of the files, and what is asked of clients.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsMaterial {
    /// The server's certificate and those between it and its authority, in PEM.
    pub certificates: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
    /// The authorities that may have signed clients' certificates, in PEM.
    pub authorities: Option<Vec<u8>>,
    /// Lists of certificates that these have withdrawn, in PEM: one of each authority.
    pub revoked: Option<Vec<u8>>,
    /// TLS 1.2 is refused.
    pub only_1_3: bool,
    /// Memcached's clients...
    pub clients: ClientCertificates,
}

/// Whether memcached's clients show certificates. PostgreSQL's are asked for one where there are authorities; the rules
/// say who must have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked.
    Ignored,
    /// They are asked where there are authorities, and may have none.
    #[default]
    Asked,
    /// They must have one.
    Demanded,
}

impl fmt::Debug for TlsMaterial {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsMaterial").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// How a listener for memcached speaks where there is TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// By TLS, and asks for certificates as [`TlsMaterial::clients`] says.
    #[default]
    Usual,
    /// Without TLS.
    Plain,
    /// By TLS, and asks for no certificates.
    Basic,
    /// By TLS, and demands certificates.
    Mutual,
}

/// Why a certificate, a key or an authority cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// Which of them; a setting's name.
    pub setting: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.message)
    }
}

impl std::error::Error for TlsError {}

/// The only protocol within TLS that PostgreSQL's clients ask for.
const ALPN: &[u8] = b"postgresql";

/// What is in force: replaced whole when the files change. Connections keep what they began with.
#[derive(Debug)]
pub(crate) struct Encryption {
    sql: Arc<ServerConfig>,
    ignoring: Arc<ServerConfig>,
    asking: Arc<ServerConfig>,
    /// None where there are no authorities.
    demanding: Option<Arc<ServerConfig>>,
    clients: ClientCertificates,
    /// What proofs of passwords are bound to.
    end_point: Option<Vec<u8>>,
}

impl Encryption {
    pub(crate) fn new(material: &TlsMaterial) -> Result<Self, TlsError> {
        let certificates = certificates(&material.certificates, "ssl_cert_file")?;
        let key = PrivateKeyDer::from_pem_slice(&material.key).map_err(|_| TlsError {
            setting: "ssl_key_file",
            message: "no private key in PEM without a passphrase".into(),
        })?;
        let authorities = material.authorities.as_deref().map(authorities).transpose()?;
        let revoked = material.revoked.as_deref().map(revoked).transpose()?.unwrap_or_default();
        if !revoked.is_empty() && authorities.is_none() {
            return Err(TlsError { setting: REVOKED, message: "it needs ssl_ca_file".into() });
        }
        let verifier = |roots, demands| verifier(roots, &revoked, demands);
        let made = |verifier, alpn| config(material, &certificates, &key, verifier, alpn);
        let asking = authorities.as_ref().map(|roots| verifier(roots, false)).transpose()?;
        let demanding = authorities.as_ref().map(|roots| verifier(roots, true)).transpose()?;
        if material.clients == ClientCertificates::Demanded && demanding.is_none() {
            let message = "2 and 3 need ssl_ca_file, the authorities of clients' certificates".into();
            return Err(TlsError { setting: "ssl_verify_mode", message });
        }
        let end_point = end_point(&certificates[0]);
        if end_point.is_none() {
            tracing::warn!(
                "ssl_cert_file: its signature allows no channel binding (SCRAM-SHA-256-PLUS is not offered)"
            );
        }
        Ok(Self {
            sql: made(asking.clone(), Some(ALPN))?,
            ignoring: made(None, None)?,
            asking: made(asking, None)?,
            demanding: demanding.map(|verifier| made(Some(verifier), None)).transpose()?,
            clients: material.clients,
            end_point,
        })
    }

    /// Whether a listener of this kind can serve.
    pub(crate) fn serves(&self, transport: Transport) -> bool {
        transport != Transport::Mutual || self.demanding.is_some()
    }

    /// Clients of HTTP show passwords, and are asked for no certificate: a browser would ask its user for one.
    pub(crate) fn for_http(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.ignoring)
    }

    fn for_memcached(&self, transport: Transport) -> &Arc<ServerConfig> {
        let clients = match transport {
            Transport::Mutual => ClientCertificates::Demanded,
            Transport::Basic => ClientCertificates::Ignored,
            Transport::Usual | Transport::Plain => self.clients,
        };
        match (clients, &self.demanding) {
            (ClientCertificates::Ignored, _) => &self.ignoring,
            (ClientCertificates::Demanded, Some(demanding)) => demanding,
            // Never without a certificate where one is demanded: a reload without authorities is refused.
            (ClientCertificates::Asked | ClientCertificates::Demanded, _) => &self.asking,
        }
    }
}

fn certificates(pem: &[u8], setting: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError { setting, message: "no certificate in PEM".into() }),
    }
}

fn authorities(pem: &[u8]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, AUTHORITIES)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError { setting: AUTHORITIES, message: error.to_string() })?;
    }
    Ok(Arc::new(roots))
}

const AUTHORITIES: &str = "ssl_ca_file";
const REVOKED: &str = "ssl_crl_file";

fn revoked(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError { setting: REVOKED, message: "no list of revoked certificates in PEM".into() }),
    }
}

/// As in PostgreSQL, where there are lists each certificate of a chain must be of an authority that has one, and a list
/// whose time is over says nothing.
fn verifier(
    roots: &Arc<RootCertStore>,
    revoked: &[CertificateRevocationListDer<'static>],
    demands: bool,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
    let builder = if demands { builder } else { builder.allow_unauthenticated() };
    let builder = builder.with_crls(revoked.to_vec()).enforce_revocation_expiration();
    builder.build().map_err(|error| match error {
        VerifierBuilderError::InvalidCrl(error) => {
            TlsError { setting: REVOKED, message: format!("{error:?}") }
        }
        error => TlsError { setting: AUTHORITIES, message: error.to_string() },
    })
}

fn config(
    material: &TlsMaterial,
    certificates: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    alpn: Option<&[u8]>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let fails = |error: rustls::Error| TlsError { setting: "ssl_key_file", message: error.to_string() };
    let versions: &[_] = if material.only_1_3 { &[&TLS13] } else { &[&TLS13, &TLS12] };
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(versions).map_err(fails)?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(certificates.to_vec(), key.clone_key()).map_err(fails)?;
    config.alpn_protocols = alpn.map(<[u8]>::to_vec).into_iter().collect();
    // No session is resumed: a certificate that was withdrawn would be believed until its ticket ends, clients of
    // databases and caches keep their connections, and few of them could.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// One half of TLS for one connection: the server's, or a client's with a source.
pub(crate) struct Tls {
    session: Connection,
    /// What the server shows; none for a client.
    encryption: Option<Arc<Encryption>>,
    /// Decrypted bytes that nobody has taken.
    waiting: usize,
    /// The client has said that nothing follows.
    closed: bool,
    /// Why it failed.
    pub(crate) failure: Option<rustls::Error>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Tls {
    pub(crate) fn for_memcached(encryption: &Arc<Encryption>, transport: Transport) -> Option<Self> {
        Self::new(encryption, encryption.for_memcached(transport))
    }

    pub(crate) fn for_sql(encryption: &Arc<Encryption>) -> Option<Self> {
        Self::new(encryption, &encryption.sql)
    }

    fn new(encryption: &Arc<Encryption>, config: &Arc<ServerConfig>) -> Option<Self> {
        let mut session = ServerConnection::new(Arc::clone(config)).ok()?;
        // What is encrypted is taken out at once, so the connection's own bounds hold.
        session.set_buffer_limit(None);
        let encryption = Some(Arc::clone(encryption));
        Some(Self { session: session.into(), encryption, waiting: 0, closed: false, failure: None })
    }

    /// The half of a client that has agreed on keys.
    pub(crate) fn of_client(mut session: ClientConnection) -> Self {
        session.set_buffer_limit(None);
        Self { session: session.into(), encryption: None, waiting: 0, closed: false, failure: None }
    }

    /// Whether the two have not agreed on keys yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Decrypted bytes that nobody has taken.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether the client has sent its last byte, and it was taken.
    pub(crate) fn is_over(&self) -> bool {
        self.closed && self.waiting == 0
    }

    /// Whether the client asked for PostgreSQL's protocol within TLS.
    pub(crate) fn speaks_postgresql(&self) -> bool {
        self.session.alpn_protocol() == Some(ALPN)
    }

    /// What the server's certificate adds to proofs of passwords.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.encryption.as_ref()?.end_point.as_deref()
    }

    /// The certificate that the client has shown, which was verified.
    pub(crate) fn certificate(&self) -> Option<Certificate> {
        Certificate::parse(self.session.peer_certificates()?.first()?)
    }

    /// What the connection is encrypted with.
    pub(crate) fn facts(&self) -> EncryptionFacts {
        let version = match self.session.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = self.session.negotiated_cipher_suite();
        let name = suite.map(|suite| format!("{:?}", suite.suite())).unwrap_or_default();
        let bits = if name.contains("256") { 256 } else { 128 };
        let client = self.certificate().map(|client| [client.subject, client.serial, client.issuer]);
        EncryptionFacts { version, cipher: name.replace("TLS13_", "TLS_"), bits, client }
    }

    /// Takes decrypted bytes out. Returns how many.
    pub(crate) fn take(&mut self, buffer: &mut [u8]) -> usize {
        let mut taken = 0;
        while self.waiting > 0 && taken < buffer.len() {
            match self.session.reader().read(&mut buffer[taken..]) {
                Ok(count) if count > 0 => {
                    taken += count;
                    self.waiting -= count.min(self.waiting);
                }
                _ => self.waiting = 0,
            }
        }
        taken
    }

    /// Decrypts the first `count` bytes of a buffer, into the same buffer: they take less room then. What does not fit,
    /// the rest of one record, waits. Returns how many decrypted bytes there are.
    pub(crate) fn open(&mut self, buffer: &mut [u8], count: usize) -> Result<usize, rustls::Error> {
        let (mut fed, mut filled) = (0, 0);
        while fed < count && !self.closed {
            let mut rest = &buffer[fed..count];
            match self.session.read_tls(&mut rest) {
                Ok(read) if read > 0 => fed += read,
                // Its buffers are full: the client sends what no client sends.
                _ => return Err(rustls::Error::General("too much at once".into())),
            }
            let state = self.session.process_new_packets()?;
            self.waiting = state.plaintext_bytes_to_read();
            self.closed = state.peer_has_closed();
            filled += self.take(&mut buffer[filled..fed]);
        }
        Ok(filled + self.take(&mut buffer[filled..]))
    }

    /// Encrypts these pieces, one behind the other.
    pub(crate) fn seal(&mut self, pieces: &[io::IoSlice<'_>]) {
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        // Without a limit it takes all of them.
        let taken = self.session.writer().write_vectored(pieces);
        debug_assert!(taken.is_ok_and(|taken| taken == all));
    }

    /// Says that nothing follows.
    pub(crate) fn say_goodbye(&mut self) {
        self.session.send_close_notify();
    }

    /// Whether records wait to be sent.
    pub(crate) fn has_records(&self) -> bool {
        self.session.wants_write()
    }

    /// Gives records to be sent to `wire`.
    pub(crate) fn write_records(&mut self, wire: &mut dyn Write) -> io::Result<usize> {
        self.session.write_tls(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_and_no_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let own = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let good = TlsMaterial {
            certificates: own.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            authorities: None,
            revoked: None,
            only_1_3: false,
            clients: ClientCertificates::Asked,
        };
        assert!(Encryption::new(&good).unwrap().end_point.is_some());
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem().into_bytes();
        for (setting, wrong) in [
            ("ssl_cert_file", TlsMaterial { certificates: b"nothing".to_vec(), ..good.clone() }),
            ("ssl_key_file", TlsMaterial { key: own.pem().into_bytes(), ..good.clone() }),
            ("ssl_key_file", TlsMaterial { key: other, ..good.clone() }),
            ("ssl_ca_file", TlsMaterial { authorities: Some(Vec::new()), ..good.clone() }),
            ("ssl_crl_file", TlsMaterial { revoked: Some(b"nothing".to_vec()), ..good.clone() }),
            ("ssl_verify_mode", TlsMaterial { clients: ClientCertificates::Demanded, ..good.clone() }),
        ] {
            assert_eq!(Encryption::new(&wrong).unwrap_err().setting, setting);
        }
        assert_eq!(format!("{good:?}"), "TlsMaterial { clients: Asked, .. }");
    }
}

//! TLS as a client, in libpq's modes.

use std::fs;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use store::definition::ServerDef;

use crate::error::Error;
use crate::socket::Stream;

/// Speaks TLS over a socket whose other side expects that now.
pub(crate) fn wrapped(
    mut socket: TcpStream,
    server: &ServerDef,
    host: &str,
    mode: &str,
) -> Result<Stream, Error> {
    let bad = |error: &dyn std::fmt::Display| Error::new("08001", format!("TLS with the source: {error}"));
    let name = ServerName::try_from(host.to_owned()).map_err(|error| bad(&error))?;
    let config = Arc::new(client_config(server, mode)?);
    let mut connection = ClientConnection::new(config, name).map_err(|error| bad(&error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| bad(&error))?;
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
}

fn client_config(server: &ServerDef, mode: &str) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let bad = |what: String| Error::new("08001", what);
    let roots = server.option("sslrootcert").map(authorities).transpose()?;
    let inner = match roots {
        Some(roots) => {
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(built.build().map_err(|error| bad(format!("sslrootcert: {error}")))?)
        }
        None if mode == "require" => None,
        None => {
            return Err(bad(format!("sslmode '{mode}' needs sslrootcert, the file of the authorities")));
        }
    };
    let verifier = Verifier { inner, any_name: mode != "verify-full", provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

fn authorities(path: &str) -> Result<RootCertStore, Error> {
    let bad = |error: &dyn std::fmt::Display| Error::new("08001", format!("sslrootcert {path}: {error}"));
    let pem = fs::read(path).map_err(|error| bad(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
    }
    if roots.is_empty() { Err(bad(&"no certificate in PEM")) } else { Ok(roots) }
}

/// libpq's modes: `require` takes any certificate where there are no authorities, `verify-ca` any name.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

//! What authentication asks of certificates: whose a client's is, and the mark of the server's own.

use ring::digest;
use x509_cert::der::Decode;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::name::Name;
use x509_cert::{Certificate as Parsed, ext::pkix::name::DirectoryString};

/// A client's certificate, which a trusted authority has signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The common name (CN) of its subject; none where it has several, or one that no role can have.
    pub common_name: Option<String>,
    /// The whole name of its subject (DN), in the form of RFC 4514.
    pub subject: String,
    /// That of its issuer.
    pub issuer: String,
    /// Its number, in decimal digits.
    pub serial: String,
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

impl Certificate {
    /// Reads one, in DER. `None`: it is not understood.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let parsed = Parsed::from_der(der).ok()?;
        let certificate = parsed.tbs_certificate();
        Some(Self {
            common_name: common_name(certificate.subject()),
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            serial: decimal(certificate.serial_number().as_bytes()),
        })
    }
}

/// A zero within a name would end it for some readers and not for others.
fn common_name(name: &Name) -> Option<String> {
    let mut names = name.iter().filter(|part| part.oid == COMMON_NAME);
    let (Some(only), None) = (names.next(), names.next()) else { return None };
    let text = DirectoryString::try_from(&only.value).ok()?.value().into_owned();
    Some(text).filter(|text| !text.is_empty() && !text.contains('\0'))
}

/// The digits of a number that is given as bytes, the highest first.
fn decimal(bytes: &[u8]) -> String {
    // The digits, the lowest first.
    let mut digits = vec![0_u32];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % 10;
            carry /= 10;
        }
        while carry > 0 {
            digits.push(carry % 10);
            carry /= 10;
        }
    }
    digits.iter().rev().filter_map(|digit| char::from_digit(*digit, 10)).collect()
}

/// Signatures whose hash is SHA-384 or SHA-512. With MD5 and SHA-1 RFC 5929 takes SHA-256, as with SHA-256 itself.
const SHA384: &[&str] = &["1.2.840.113549.1.1.12", "1.2.840.10045.4.3.3"];
const SHA512: &[&str] = &["1.2.840.113549.1.1.13", "1.2.840.10045.4.3.4"];
const SHA256: &[&str] = &[
    "1.2.840.113549.1.1.4",
    "1.2.840.113549.1.1.5",
    "1.2.840.113549.1.1.11",
    "1.2.840.10045.4.1",
    "1.2.840.10045.4.3.2",
];

/// The channel binding `tls-server-end-point` (RFC 5929) of a server's certificate, in DER: its hash, by the hash of
/// its signature. `None`: the signature has no such hash (Ed25519, RSA-PSS), and nothing can be bound to it.
pub fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    let parsed = Parsed::from_der(der).ok()?;
    let signature = parsed.signature_algorithm().oid.to_string();
    let is_one_of = |known: &[&str]| known.contains(&signature.as_str());
    let hash = match () {
        () if is_one_of(SHA256) => &digest::SHA256,
        () if is_one_of(SHA384) => &digest::SHA384,
        () if is_one_of(SHA512) => &digest::SHA512,
        () => return None,
    };
    Some(digest::digest(hash, der).as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SerialNumber};

    use super::*;

    fn made(names: &[(DnType, &str)], algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.serial_number = Some(SerialNumber::from_slice(&[1, 0, 0, 2]));
        let key = KeyPair::generate_for(algorithm).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn whose_it_is() {
        let names = [(DnType::OrganizationName, "Shop, Inc"), (DnType::CommonName, "app")];
        let certificate = Certificate::parse(&made(&names, &rcgen::PKCS_ECDSA_P256_SHA256)).unwrap();
        assert_eq!(certificate.common_name.as_deref(), Some("app"));
        assert_eq!(certificate.subject, "CN=app,O=Shop\\, Inc");
        assert_eq!(certificate.issuer, certificate.subject);
        assert_eq!(certificate.serial, "16777218");
        let zero = [(DnType::CommonName, "app\0.evil")];
        let zero = Certificate::parse(&made(&zero, &rcgen::PKCS_ECDSA_P256_SHA256)).unwrap();
        assert_eq!(zero.common_name, None);
        assert_eq!(Certificate::parse(b"no certificate"), None);
        assert_eq!(decimal(&[0xff; 16]), u128::MAX.to_string());
        assert_eq!(decimal(&[]), "0");
    }

    #[test]
    fn the_mark_of_a_server() {
        for (algorithm, bytes) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, Some(32)),
            (&rcgen::PKCS_ECDSA_P384_SHA384, Some(48)),
            (&rcgen::PKCS_ED25519, None),
        ] {
            let der = made(&[(DnType::CommonName, "here")], algorithm);
            assert_eq!(end_point(&der).map(|hash| hash.len()), bytes);
        }
        assert_eq!(end_point(b""), None);
    }

    /// Certificates come from anybody: whatever their bytes, nothing panics.
    #[test]
    fn certificates_of_any_bytes() {
        let good = made(&[(DnType::CommonName, "app")], &rcgen::PKCS_ECDSA_P256_SHA256);
        for cut in 0..good.len() {
            assert_eq!(Certificate::parse(&good[..cut]), None);
            let mut changed = good.clone();
            changed[cut] ^= 0x55;
            let _any = (Certificate::parse(&changed), end_point(&changed));
        }
    }
}

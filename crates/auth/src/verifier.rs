//! What is stored of a password: enough to check a proof of it, and too little to make one.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use crate::limits::{
    PASSWORD_BYTES_MAX, SALT_BYTES, SALT_BYTES_MAX, SCRAM_ITERATIONS, SCRAM_ITERATIONS_MAX,
    SCRAM_ROUNDS_PER_PIECE,
};
use crate::random;

/// A SHA-256 hash or a key of that size.
pub(crate) type Key = [u8; 32];

/// SCRAM-SHA-256's (RFC 5802, RFC 7677). It is written and read in PostgreSQL's form,
/// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`, so verifiers of a PostgreSQL work here.
///
/// ```
/// let verifier = auth::Verifier::derive("secret");
/// assert_eq!(auth::Verifier::parse(&verifier.to_string()), Some(verifier.clone()));
/// assert!(verifier.is_of("secret") && !verifier.is_of("Secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(crate) iterations: NonZeroU32,
    pub(crate) salt: Box<[u8]>,
    pub(crate) stored_key: Key,
    pub(crate) server_key: Key,
}

/// What such a text begins with.
const PREFIX: &str = "SCRAM-SHA-256$";

impl Verifier {
    /// That of a new password. Takes about a millisecond.
    pub fn derive(password: &str) -> Self {
        let iterations = NonZeroU32::new(SCRAM_ITERATIONS).unwrap_or(NonZeroU32::MIN);
        Self::with_salt(password, iterations, &random::<SALT_BYTES>())
    }

    fn with_salt(password: &str, iterations: NonZeroU32, salt: &[u8]) -> Self {
        let (stored_key, server_key) = keys(password, iterations, salt);
        Self { iterations, salt: salt.into(), stored_key, server_key }
    }

    /// Reads the stored form. `None`: it is none, so the text is a password.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let iterations =
            iterations.parse().ok().filter(|count: &NonZeroU32| count.get() <= SCRAM_ITERATIONS_MAX)?;
        let salt = BASE64.decode(salt).ok().filter(|salt| (1..=SALT_BYTES_MAX).contains(&salt.len()))?;
        let key = |text: &str| BASE64.decode(text).ok().and_then(|key| Key::try_from(key).ok());
        Some(Self { iterations, salt: salt.into(), stored_key: key(stored)?, server_key: key(server)? })
    }

    /// One for a role that does not exist, so that nobody learns which do: its salt is the same each time, and no
    /// password has these keys.
    pub fn mock(secret: &[u8], role: &str) -> Self {
        let salt = sign(secret, &[b"salt\0", role.as_bytes()]);
        let iterations = NonZeroU32::new(SCRAM_ITERATIONS).unwrap_or(NonZeroU32::MIN);
        let (stored_key, server_key) = (random(), random());
        Self { iterations, salt: salt[..SALT_BYTES].into(), stored_key, server_key }
    }

    /// Whether a password is the one. Derives its key, which takes about a millisecond.
    pub fn is_of(&self, password: &str) -> bool {
        password.len() <= PASSWORD_BYTES_MAX && {
            let (stored_key, _) = keys(password, self.iterations, &self.salt);
            self.is_stored_key(&stored_key)
        }
    }

    pub(crate) fn is_stored_key(&self, key: &Key) -> bool {
        bool::from(self.stored_key.ct_eq(key))
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iterations, salt, stored_key, server_key } = self;
        let [salt, stored, server] = [&salt[..], stored_key, server_key].map(|bytes| BASE64.encode(bytes));
        write!(f, "{PREFIX}{iterations}:{salt}${stored}:{server}")
    }
}

impl fmt::Debug for Verifier {
    /// Without the keys, which are as good as the password to who listens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

/// StoredKey and ServerKey of a password.
fn keys(password: &str, iterations: NonZeroU32, salt: &[u8]) -> (Key, Key) {
    // Where SASLprep fails the bytes are taken as they are, as PostgreSQL has it.
    let prepared = stringprep::saslprep(password);
    let password = prepared.as_deref().unwrap_or(password);
    let salted = salted(password, iterations, salt);
    (hash(&sign(&salted, &[b"Client Key"])), sign(&salted, &[b"Server Key"]))
}

/// PBKDF2 by HMAC-SHA-256. Rounds in pieces, with the processor offered to others in between: a thread that answers
/// clients waits for one piece and not for all, also where this thread could not get a lower priority.
fn salted(password: &str, iterations: NonZeroU32, salt: &[u8]) -> Key {
    let key = hmac::Key::new(hmac::HMAC_SHA256, password.as_bytes());
    let mut round = hmac::sign(&key, &[salt, &1_u32.to_be_bytes()].concat());
    let mut sum = Key::default();
    sum.copy_from_slice(round.as_ref());
    for number in 1..iterations.get() {
        if number % SCRAM_ROUNDS_PER_PIECE == 0 {
            std::thread::yield_now();
        }
        round = hmac::sign(&key, round.as_ref());
        sum.iter_mut().zip(round.as_ref()).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

pub(crate) fn hash(bytes: &[u8]) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    key
}

/// HMAC-SHA-256 over these parts, one behind the other.
pub(crate) fn sign(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut tag = Key::default();
    tag.copy_from_slice(context.sign().as_ref());
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7677() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", NonZeroU32::new(4_096).unwrap(), &salt);
        assert_eq!(
            verifier.to_string(),
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
             wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        );
    }

    #[test]
    fn pieces_make_the_whole() {
        use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive};
        for rounds in [1, 2, SCRAM_ROUNDS_PER_PIECE, SCRAM_ROUNDS_PER_PIECE * 3 + 1] {
            let rounds = NonZeroU32::new(rounds).unwrap();
            let mut whole = Key::default();
            derive(PBKDF2_HMAC_SHA256, rounds, b"salt", b"secret", &mut whole);
            assert_eq!(salted("secret", rounds, b"salt"), whole, "{rounds}");
        }
    }

    #[test]
    fn passwords_that_look_the_same_are_the_same() {
        // The Roman numeral nine is IX to SASLprep; a soft hyphen is nothing.
        let verifier = Verifier::derive("I\u{ad}X");
        assert!(verifier.is_of("\u{2168}") && verifier.is_of("IX") && !verifier.is_of("ix"));
        // A control character is forbidden there: the bytes as they are.
        assert!(Verifier::derive("a\u{1}b").is_of("a\u{1}b"));
    }

    #[test]
    fn what_is_no_verifier() {
        let good = Verifier::derive("x").to_string();
        for wrong in [
            "x".to_owned(),
            good.replacen("4096", "0", 1),
            good.replacen("4096", "1000001", 1),
            good.replacen("SHA-256$", "SHA-256", 1),
            good[..good.len() - 2].to_owned(),
            format!("{good}A"),
        ] {
            assert_eq!(Verifier::parse(&wrong), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", Verifier::derive("x")), "Verifier");
    }

    #[test]
    fn a_mock_is_steady_and_of_no_password() {
        let (one, two) = (Verifier::mock(b"s", "a"), Verifier::mock(b"s", "a"));
        assert_eq!(one.salt, two.salt);
        assert_ne!(one.salt, Verifier::mock(b"s", "b").salt);
        assert!(!one.is_of(""));
    }
}

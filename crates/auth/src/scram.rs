//! The server's half of SCRAM-SHA-256 (RFC 5802 and 7677), as PostgreSQL speaks it: the name in the messages says
//! nothing, for the client named its role before.
//!
//! Not a library's: those at hand compare proofs byte by byte, or leave out what refuses a downgrade.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::limits::{NONCE_BYTES, SCRAM_MESSAGE_BYTES_MAX};
use crate::random;
use crate::verifier::{Key, Verifier, hash, sign};

/// The mechanisms' names.
pub const SCRAM: &str = "SCRAM-SHA-256";
/// The same, bound to the connection's certificate.
pub const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Why an exchange fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramError {
    /// No mechanism of that name is offered on this connection.
    Mechanism,
    /// A message is not one of SCRAM's; what is wrong with it.
    Malformed(&'static str),
    /// The client could bind the exchange to the connection and believes that the server cannot: somebody between them
    /// took the offer away.
    Downgrade,
    /// The channel that it is bound to is another one.
    Binding,
    /// The proof is not of the role's password.
    Proof,
}

/// An exchange whose first message was answered.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// A role that does not exist never passes.
    passes: bool,
    /// What the channel's line must hold: the first message's head and the binding's data.
    channel: Vec<u8>,
    nonce: String,
    /// Both first messages.
    said: String,
}

impl Exchange {
    /// Reads the client's first message. Returns the server's answer to it. `passes` is false for a role that may not
    /// come in at all; nobody can tell before the end. `endpoint` is the certificate's hash on an encrypted connection.
    pub fn begin(
        mechanism: &str,
        message: &[u8],
        verifier: Verifier,
        passes: bool,
        endpoint: Option<&[u8]>,
    ) -> Result<(Self, String), ScramError> {
        let bound = match mechanism {
            SCRAM => false,
            SCRAM_PLUS if endpoint.is_some() => true,
            _ => return Err(ScramError::Mechanism),
        };
        let message = text_of(message)?;
        let (flag, rest) = message.split_once(',').ok_or(ScramError::Malformed("no channel binding flag"))?;
        let (authzid, bare) = rest.split_once(',').ok_or(ScramError::Malformed("no name"))?;
        // Cyrus SASL names the role to act by, too: the same one.
        let named = bare.split(',').next().and_then(|name| name.strip_prefix("n=")).unwrap_or_default();
        if !authzid.is_empty() && (named.is_empty() || authzid.strip_prefix("a=") != Some(named)) {
            return Err(ScramError::Malformed("another name to act by"));
        }
        let mut channel = format!("{flag},{authzid},").into_bytes();
        match (flag, bound) {
            ("y", false) if endpoint.is_some() => return Err(ScramError::Downgrade),
            ("n" | "y", false) => {}
            ("p=tls-server-end-point", true) => channel.extend_from_slice(endpoint.unwrap_or_default()),
            _ => return Err(ScramError::Malformed("a channel binding that is not offered")),
        }
        let client_nonce = nonce_of(bare)?;
        let nonce = format!("{client_nonce}{}", BASE64.encode(random::<NONCE_BYTES>()));
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        let said = format!("{bare},{answer}");
        Ok((Self { verifier, passes, channel, nonce, said }, answer))
    }

    /// Reads the client's proof. Returns the server's own proof, with which the exchange ends.
    pub fn finish(self, message: &[u8]) -> Result<String, ScramError> {
        let message = text_of(message)?;
        let (said, proof) = message.rsplit_once(",p=").ok_or(ScramError::Malformed("no proof"))?;
        let mut parts = said.split(',');
        let channel = parts.next().and_then(|part| part.strip_prefix("c="));
        let channel = channel.and_then(|channel| BASE64.decode(channel).ok());
        let channel = channel.ok_or(ScramError::Malformed("no channel"))?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        let nonce = nonce.ok_or(ScramError::Malformed("no nonce"))?;
        if nonce != self.nonce {
            return Err(ScramError::Malformed("another nonce"));
        }
        let proof = BASE64.decode(proof).ok().and_then(|proof| Key::try_from(proof).ok());
        let proof = proof.ok_or(ScramError::Malformed("a proof of another length"))?;
        if channel != self.channel {
            return Err(ScramError::Binding);
        }
        let parts = [self.said.as_bytes(), b",", said.as_bytes()];
        let signature = sign(&self.verifier.stored_key, &parts);
        let client_key: Key = std::array::from_fn(|at| proof[at] ^ signature[at]);
        let right = self.verifier.is_stored_key(&hash(&client_key));
        if right && self.passes {
            Ok(format!("v={}", BASE64.encode(sign(&self.verifier.server_key, &parts))))
        } else {
            Err(ScramError::Proof)
        }
    }
}

/// The name in a client's first message, for protocols that have it nowhere else.
pub(crate) fn name_of(message: &[u8]) -> Result<String, ScramError> {
    let name = text_of(message)?.split(',').nth(2).and_then(|part| part.strip_prefix("n="));
    let name = name.ok_or(ScramError::Malformed("no name"))?.replace("=2C", ",");
    // `=3D` comes last, or it would make another escape.
    let rest = name.replace("=3D", "");
    if name.is_empty() || rest.contains('=') {
        return Err(ScramError::Malformed("a name that is not escaped"));
    }
    let name = name.replace("=3D", "=");
    let prepared = stringprep::saslprep(&name).unwrap_or(Cow::Borrowed(&name));
    Ok(prepared.into_owned())
}

fn text_of(message: &[u8]) -> Result<&str, ScramError> {
    if message.len() > SCRAM_MESSAGE_BYTES_MAX || message.contains(&0) {
        return Err(ScramError::Malformed("too long, or a zero in it"));
    }
    std::str::from_utf8(message).map_err(|_| ScramError::Malformed("not UTF-8"))
}

/// The client's nonce, behind its name.
fn nonce_of(bare: &str) -> Result<&str, ScramError> {
    let mut parts = bare.split(',');
    // `m=` in its place would be an extension that must be understood.
    parts.next().filter(|name| name.starts_with("n=")).ok_or(ScramError::Malformed("no name"))?;
    let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
    let printable = |nonce: &&str| !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic());
    nonce.filter(printable).ok_or(ScramError::Malformed("no nonce"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's half: its last message, and the proof that it expects.
    fn client(keys: (&Key, &Key), first: &str, head: &[u8], answer: &str) -> (String, String) {
        let nonce = answer.split(',').next().unwrap();
        let said = format!("c={},{nonce}", BASE64.encode(head));
        let all = format!("{first},{answer},{said}");
        let signature = sign(&hash(keys.0), &[all.as_bytes()]);
        let proof: Key = std::array::from_fn(|at| keys.0[at] ^ signature[at]);
        let last = format!("{said},p={}", BASE64.encode(proof));
        (last, format!("v={}", BASE64.encode(sign(keys.1, &[all.as_bytes()]))))
    }

    /// A verifier whose client key is known.
    fn known() -> (Verifier, Key) {
        let client_key: Key = random();
        let verifier = Verifier { stored_key: hash(&client_key), ..Verifier::derive("x") };
        (verifier, client_key)
    }

    fn begin(flag: &str, mechanism: &str, endpoint: Option<&[u8]>) -> Result<String, ScramError> {
        let (verifier, _) = known();
        let first = format!("{flag},,n=,r=abc");
        Exchange::begin(mechanism, first.as_bytes(), verifier, true, endpoint).map(|(_, answer)| answer)
    }

    #[test]
    fn an_exchange() {
        for (mechanism, flag, data) in
            [(SCRAM, "n,,", &b""[..]), (SCRAM, "y,a=ignored,", b""), (SCRAM_PLUS, PLUS, b"hash")]
        {
            let (verifier, key) = known();
            let endpoint = (mechanism == SCRAM_PLUS).then_some(data);
            let first = format!("{flag}n=ignored,r=abc");
            let (exchange, answer) =
                Exchange::begin(mechanism, first.as_bytes(), verifier.clone(), true, endpoint).unwrap();
            assert!(answer.starts_with("r=abc") && answer.ends_with(",i=4096"), "{answer}");
            let head = [flag.as_bytes(), data].concat();
            let (last, expected) = client((&key, &verifier.server_key), "n=ignored,r=abc", &head, &answer);
            assert_eq!(exchange.finish(last.as_bytes()), Ok(expected));
        }
    }

    const PLUS: &str = "p=tls-server-end-point,,";

    #[test]
    fn names_of_roles() {
        for (message, name) in [
            (&b"n,,n=app,r=x"[..], Some("app")),
            (b"n,,n=a=2Cb=3D2Cc,r=x", Some("a,b=2Cc")),
            (b"n,,n=a=2cb,r=x", None),
            (b"n,,n=,r=x", None),
            (b"n,,m=x,n=a", None),
            (b"n", None),
            (b"n,,n=\xff", None),
        ] {
            assert_eq!(name_of(message).ok().as_deref(), name);
        }
    }

    #[test]
    fn a_downgrade_and_what_is_not_offered() {
        assert_eq!(begin("y", SCRAM, Some(b"hash")), Err(ScramError::Downgrade));
        assert_eq!(begin("n", SCRAM_PLUS, None), Err(ScramError::Mechanism));
        assert_eq!(begin("n", "PLAIN", None), Err(ScramError::Mechanism));
        for (flag, mechanism) in
            [("p=tls-server-end-point", SCRAM), ("p=tls-unique", SCRAM_PLUS), ("n", SCRAM_PLUS)]
        {
            assert!(matches!(begin(flag, mechanism, Some(b"hash")), Err(ScramError::Malformed(_))), "{flag}");
        }
    }

    #[test]
    fn wrong_proofs_nonces_and_bindings() {
        let attempt = |change: &dyn Fn(String) -> String, passes| {
            let (verifier, key) = known();
            let (exchange, answer) =
                Exchange::begin(SCRAM, b"n,,n=,r=abc", verifier.clone(), passes, None).unwrap();
            let (last, _) = client((&key, &verifier.server_key), "n=,r=abc", b"n,,", &answer);
            exchange.finish(change(last).as_bytes())
        };
        assert!(attempt(&|last| last, true).is_ok());
        // Who may not come in fails with the right proof, too.
        assert_eq!(attempt(&|last| last, false), Err(ScramError::Proof));
        let flipped = |last: String| {
            let (head, proof) = last.rsplit_once("p=").unwrap();
            let mut proof = BASE64.decode(proof).unwrap();
            proof[7] ^= 1;
            format!("{head}p={}", BASE64.encode(proof))
        };
        assert_eq!(attempt(&flipped, true), Err(ScramError::Proof));
        assert_eq!(attempt(&|last| last.replacen("biws", "eSws", 1), true), Err(ScramError::Binding));
        for change in ["r=abc=>r=abd", ",p==>,q=", "c=biws=>c=%%%", "c==>d="] {
            let (from, to) = change.split_once("=>").unwrap();
            let found = attempt(&|last| last.replacen(from, to, 1), true);
            assert!(matches!(found, Err(ScramError::Malformed(_))), "{change}: {found:?}");
        }
        let short = attempt(&|last| last[..last.len() - 8].to_owned(), true);
        assert!(matches!(short, Err(ScramError::Malformed(_))));
    }

    /// Pieces of messages.
    const PARTS: &[&str] =
        &["n", "y", "p=", ",", ",,", "n=", "r=", "m=", "a=b", "c=", "biws", "=", "\0", "\u{e9}"];

    #[test]
    #[allow(clippy::print_stdout, reason = "a failure shows what its test printed")]
    fn messages_of_any_bytes() {
        #[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
        let given = std::env::var("SEED");
        let seed = given.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("SEED is a number"));
        println!("SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut message =
            || -> String { (0..random.usize(..12)).map(|_| PARTS[random.usize(..PARTS.len())]).collect() };
        let (verifier, _) = known();
        for _ in 0..20_000 {
            let first = message();
            if let Ok((exchange, _)) = Exchange::begin(SCRAM, first.as_bytes(), verifier.clone(), true, None)
            {
                assert!(first.starts_with("n,,n=") || first.starts_with("y,,n="), "{first}");
                assert!(exchange.finish(message().as_bytes()).is_err());
            }
        }
    }
}

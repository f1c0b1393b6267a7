//! What must hold for every stream of bytes of a memcached client that has not proved its role: it means the same
//! however it is cut, and nobody is let in without the right proof.
//!
//! The functions here are run by libFuzzer through `fuzz_targets/login.rs`, and on the stable toolchain by the tests of
//! the `server` crate, which include this file.

use engine::auth::{Access, Proving, Roles, Rules};
use memcache::Then;
use memcache::login::{Login, frame, text};

/// The only role, and its password.
pub const NAME: &[u8] = b"app";
pub const PASSWORD: &[u8] = b"secret";

/// No line or frame before a proof is longer, so no connection holds more.
const INPUT_MAX: usize = 2_048 + 16_384 + 64;

/// Roles and rules of the target.
#[derive(Debug)]
pub struct Target(Access);

impl Target {
    pub fn new() -> Self {
        let rules = Rules::parse("host all all 127.0.0.1/32 password").expect("a rule");
        let verifier = engine::auth::Verifier::derive("secret");
        let roles = Roles::parse(&format!("CREATE ROLE app LOGIN PASSWORD '{verifier}'")).expect("a role");
        Self(Access { rules, roles: Some(roles), ..Access::default() })
    }

    /// Runs one input: the first byte chooses the protocol and the cuts, the rest is the stream.
    pub fn check(&self, data: &[u8]) {
        let Some((&choice, stream)) = data.split_first() else { return };
        let binary = choice & 1 == 1;
        let whole = self.transcript(binary, [stream]);
        assert_eq!(whole, self.transcript(binary, stream.chunks(1)), "byte by byte");
        let cut = 2 + usize::from(choice >> 1) % 40;
        assert_eq!(whole, self.transcript(binary, stream.chunks(cut)), "pieces of {cut}");
    }

    /// What a stream in these pieces says, up to its end or the first right password.
    pub fn transcript<'a>(&self, binary: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut connection = Connection { access: &self.0, binary, said: Vec::new(), proving: None };
        let mut input = Vec::new();
        for piece in pieces {
            input.extend_from_slice(piece);
            while let Some(consumed) = connection.step(&input) {
                assert!(0 < consumed && consumed <= input.len(), "progress within the input");
                input.drain(..consumed);
            }
            assert!(connection.is_over() || input.len() <= INPUT_MAX + piece.len(), "{} wait", input.len());
        }
        connection.said
    }
}

struct Connection<'t> {
    access: &'t Access,
    binary: bool,
    said: Vec<String>,
    proving: Option<Proving>,
}

impl Connection<'_> {
    fn is_over(&self) -> bool {
        self.said.last().is_some_and(|last| last == "closed" || last == "in")
    }

    /// Reads once; how many bytes that took, if it goes on.
    fn step(&mut self, input: &[u8]) -> Option<usize> {
        if self.is_over() || input.is_empty() {
            return None;
        }
        let login = if self.binary { frame(input) } else { text(input) };
        let (consumed, said, then) = match login {
            Login::Incomplete => return None,
            Login::Nothing => (0, String::new(), Then::Close),
            Login::Refused { consumed, answer, then } => {
                assert!(answer.starts_with("CLIENT_ERROR ") && answer.ends_with("\r\n"));
                (consumed, answer.to_owned(), then)
            }
            Login::RefusedFrame { consumed, status, then, .. } => (consumed, format!("{status:?}"), then),
            Login::Mechanisms { consumed, .. } => (consumed, "mechanisms".to_owned(), Then::Continue),
            Login::Version { consumed, .. } => (consumed, "version".to_owned(), Then::Continue),
            Login::Password { consumed, user, password, .. } => {
                let right = user == NAME && password == PASSWORD;
                let whole = input[..consumed].windows(PASSWORD.len()).any(|part| part == PASSWORD);
                assert!(!right || whole, "a password that was not sent");
                (consumed, if right { "in" } else { "wrong" }.to_owned(), Then::Continue)
            }
            Login::Begin { consumed, mechanism, message, .. } => {
                let mechanism = String::from_utf8_lossy(mechanism);
                let begun = self.access.begin_memcached_scram(&mechanism, message, None);
                self.proving = begun.ok().map(|(proving, answer)| {
                    assert!(answer.starts_with("r=") && mechanism == "SCRAM-SHA-256");
                    proving
                });
                (consumed, format!("begun {}", self.proving.is_some()), Then::Continue)
            }
            Login::Step { consumed, message, .. } => {
                let proving = self.proving.take();
                let who = proving.map(|proving| self.access.finish_scram(proving, message));
                // The nonce is the server's own, so no stream that was made before can be right.
                assert!(who.is_none_or(|who| who.is_err()), "let in without a proof");
                (consumed, "no proof".to_owned(), Then::Continue)
            }
        };
        self.said.push(said);
        if then == Then::Close {
            self.said.push("closed".to_owned());
            return None;
        }
        Some(consumed)
    }
}

//! Who may connect, and as whom: roles, the rules, and the proofs. No sockets and no files: bytes and texts come in,
//! decisions go out.
//!
//! | Module | Owns |
//! |---|---|
//! | `access` | rules and roles together: who comes in, as whom |
//! | [`roles`] | the roles and what each may do; statements make the next set of them |
//! | `file` | the text of the roles' file |
//! | [`rules`] | the lines of the rules' file, and which one decides |
//! | `certificate` | whose a client's certificate is, and the mark of the server's own |
//! | `users` | the users of memcached's own authentication |
//! | `verifier` | what is stored of a password |
//! | [`scram`] | the exchange that proves a password without showing it |
//! | `known`, `failures` | what makes a right password cheap, and wrong ones slow |
//!
//! ```
//! use auth::{Method, Origin, Peer, Protocol, Roles, Rules};
//! let rules = Rules::parse("host all all 10.0.0.0/8 scram-sha-256").unwrap();
//! let origin = Origin::Network("10.1.2.3".parse().unwrap(), false);
//! let peer = Peer { origin: &origin, protocol: Protocol::Sql, database: Some("app"), certificate: None };
//! assert_eq!(rules.method(peer, "app", &Roles::new()), Method::Scram);
//! ```

#![forbid(unsafe_code)]

mod access;
mod certificate;
mod failures;
mod file;
mod known;
pub mod limits;
mod maps;
pub mod roles;
pub mod rules;
pub mod scram;
mod standing;
mod users;
mod verifier;
mod words;

pub use access::{Access, Admission, Authenticated, Proving, Refusal};
pub use certificate::{Certificate, end_point};
pub use failures::Failures;
pub use file::FileError;
pub use known::KnownPasswords;
pub use maps::Maps;
pub use roles::{Giver, Rights, Role, Roles, refuse_drop};
pub use rules::{Method, Origin, Peer, Protocol, Rules};
pub use sqltext::role as statement;
pub use standing::{New, Standing};
pub use users::Users;
pub use verifier::Verifier;

use ring::rand::{SecureRandom, SystemRandom};

/// Bytes that nobody can guess.
///
/// # Panics
///
/// If the system has no random bytes. Nothing is safe then; the connection that asked is closed.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

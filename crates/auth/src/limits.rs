//! Every limit with its reason.

/// Roles. Each login looks one up; `pg_roles` shows them all.
pub const ROLES_MAX: usize = 1_000;

/// Default privileges and privileges of schemas together: each new table and each change of roles passes them.
pub const STANDING_MAX: usize = 1_000;

/// Lines of rules. Each connection passes them from the first.
pub const RULES_MAX: usize = 1_000;

/// Bytes of a file of roles or rules.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Rounds of PBKDF2 for a new password: PostgreSQL's default, about a millisecond.
pub const SCRAM_ITERATIONS: u32 = 4_096;

/// Rounds of deriving a key between two offers of the processor to others: some 50 microseconds, a few requests' time.
pub(crate) const SCRAM_ROUNDS_PER_PIECE: u32 = 256;

/// The most rounds that a stored password may ask for: about 0.2 s, once a login at most.
pub const SCRAM_ITERATIONS_MAX: u32 = 1_000_000;

/// Bytes of salt in a new verifier, PostgreSQL's.
pub const SALT_BYTES: usize = 16;

/// The longest salt that a stored verifier may have.
pub const SALT_BYTES_MAX: usize = 1_024;

/// Random bytes of a server's nonce, PostgreSQL's.
pub const NONCE_BYTES: usize = 18;

/// The longest message of a SCRAM exchange. Names and nonces of real clients take a tenth of it.
pub const SCRAM_MESSAGE_BYTES_MAX: usize = 2_048;

/// The longest password; PostgreSQL's own clients send no longer one.
pub const PASSWORD_BYTES_MAX: usize = 1_024;

/// Passwords that were right once and are known again without deriving their key: 160 bytes each.
pub const KNOWN_PASSWORDS_MAX: usize = 4_096;

/// Settings that a role's sessions begin with: PostgreSQL's tools set some ten.
pub const ROLE_SETTINGS_MAX: usize = 64;

/// Addresses whose failures are counted. A full table forgets the oldest.
pub const ADDRESSES_MAX: usize = 4_096;

/// How long the answer to a first failure waits, in milliseconds. Each further one of the address doubles it.
pub const FAILURE_DELAY_MS: u64 = 100;

/// The longest such wait, in milliseconds.
pub const FAILURE_DELAY_MAX_MS: u64 = 5_000;

/// After so long without a failure an address is as good as new, in milliseconds.
pub const FAILURES_FORGOTTEN_MS: u64 = 60_000;

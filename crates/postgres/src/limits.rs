//! Every bound of the protocol, with its reason.

/// Bytes of the opening packet; PostgreSQL's own limit, and `pgwire`'s.
pub const OPENING_BYTES_MAX: usize = 10_000;

/// Bytes of one message: the largest value (128 MiB) written as hexadecimal text, and a statement around it.
/// PostgreSQL allows 1 GiB, which nothing here could store.
pub const MESSAGE_BYTES_MAX: usize = (256 << 20) + (2 << 20);

/// Bytes of a message that carries no value: names, and nothing else that grows. PostgreSQL's limit.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 30_000;

/// Dimensions of an array that is a parameter; lists of values have one.
pub(crate) const ARRAY_DIMENSIONS_MAX: i32 = 1;

/// Bytes of one row of `COPY`: as the longest message.
pub(crate) const COPY_ROW_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Groups that one number may have: far more digits than a 64-bit number or a double holds.
pub(crate) const NUMERIC_GROUPS_MAX: usize = 256;

/// The most digits of a 64-bit number, with its sign.
pub(crate) const DIGITS_MAX: usize = 20;

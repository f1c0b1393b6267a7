//! Every limit of the client, with its reason.

use std::time::Duration;

/// Bytes of requests on the way before their replies are read. They fit into a socket's buffer, so that sending never
/// waits for a server that itself waits to send.
pub(crate) const WINDOW_BYTES: usize = 64 << 10;
/// Connections kept for the next request; a thread that finds none opens one.
pub(crate) const IDLE_CONNECTIONS_MAX: usize = 16;
/// Longest memcached key.
pub(crate) const KEY_BYTES_MAX: usize = 250;
/// Longest line of a reply, as long as a value without a line end may be in a row of SQL.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 20;
/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// How long the daemon may take for a reply where the caller does not say: longer than its own `statement_timeout`.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_mins(1);
/// After an arena could not be opened, or a table was not in it, it is looked for again at this distance.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// A waiting client looks again so often: a lease lapses by itself, and a daemon that was killed wakes nobody.
pub(crate) const LEASE_LOOK: Duration = Duration::from_secs(1);
/// A table that is not in shared memory wakes nobody: the daemon is asked so often.
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(50);
/// Keys whose buckets and rows are asked for together by `multi_get`: memory answers so many requests at once.
pub(crate) const AHEAD: usize = 8;

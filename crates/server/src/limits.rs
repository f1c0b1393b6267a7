//! The server's limits, each with its reason.

use std::time::Duration;

/// Bytes that a worker reads at once. All connections of a worker share one such buffer, so an idle connection needs
/// none; 64 KiB is more than what a socket usually holds between two turns, and stays in the second-level cache.
pub const READ_BUFFER_BYTES: usize = 64 << 10;

/// Bytes that are read at once of a connection that sends large values: those that have arrived whole are executed from
/// where they were read to.
pub(crate) const BULK_READ_BYTES: usize = 256 << 10;

/// Bytes of input buffers that a worker keeps for the next large values that come in pieces: making and unmapping one
/// for each costs more than receiving it.
pub(crate) const SPARE_BUFFERS_BYTES: usize = 8 << 20;

/// A peer that has not taken so many bytes of its replies is given no more until it has: what the socket does not take
/// is copied, and large values should be sent from where they lie.
pub(crate) const REPLIES_WAITING_MAX: usize = 512 << 10;

/// Values of so many bytes and more that have not come whole are received where they are going to lie; of a shorter one
/// another system call costs more than the copy.
pub(crate) const IN_PLACE_FROM_BYTES: usize = 16 << 10;

/// Reads of large values in one turn, so that their answers go out together: a mebibyte at most, some hundred
/// microseconds.
pub(crate) const IN_PLACE_READS_PER_TURN: usize = 4;

/// Connections that are read one after the other before the first of them is served, so that memory brings what their
/// requests look up side by side; see `ahead`.
pub(crate) const GROUP: usize = 16;

/// Bytes that are read of each at first. Most turns are one request of a few kilobytes at most; more than this is read
/// on in the shared buffer.
pub(crate) const FIRST_READ_BYTES: usize = 8 << 10;

/// Bytes that are read at once where the line of a large value is expected, and behind the end of one: the value itself
/// is received where it is going to lie, and what has come with the line is copied there.
pub(crate) const LINE_READ_BYTES: usize = 4 << 10;

/// Keys of one request that are fetched of a source together. It asks for the rest when these have arrived.
pub(crate) const FETCH_KEYS_MAX: usize = 100;

/// How often a request asks a source: a row that a change took away again before it was answered is asked for once
/// more, and one that goes again and again is a miss.
pub(crate) const FETCHES_MAX: u8 = 4;

/// A request whose beginning is longer than this waits in memory of its own; below, what has come of it is copied to
/// the front of the shared buffer with each read, which costs less than a second buffer.
pub(crate) const CARRY_BYTES_MAX: usize = 4 << 10;

/// Capacity of the input buffer that a connection keeps while it waits: with the structures around it an idle
/// connection stays below 8 KiB.
pub(crate) const IDLE_BUFFER_BYTES: usize = 2 << 10;

/// Replies of one turn are sent when they reach this size, so that a turn's replies stay in the processor's cache.
pub(crate) const SEND_AT_BYTES: usize = 256 << 10;

/// Values of so many bytes and more are sent from where they lie in the store; shorter ones are copied behind the other
/// replies of the turn, which costs less than a further piece for the kernel to look at.
pub(crate) const PINNED_FROM_BYTES: usize = 4 << 10;

/// Values that one call sends from where they lie: at the least length they are as many bytes as are sent at once.
pub(crate) const PINNED_VALUES_MAX: usize = SEND_AT_BYTES / PINNED_FROM_BYTES;

/// Capacity of the shared reply buffer that a worker keeps from turn to turn; one large value more is given back.
pub(crate) const REPLY_BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Bytes of a statement's reply that wait for one peer to read them. Beyond, nothing more is made for it, and its
/// requests are not even read; one row may exceed it, for it is written whole.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Bytes of requests and replies that wait on all connections together. A peer that makes it overflow is closed: a
/// thousand slow readers with a large result each would otherwise take all memory of the machine.
pub const CONNECTION_MEMORY_MAX: usize = 512 << 20;

/// Threads that connect to the sources of forwarded sessions: each waits for one at a time.
pub(crate) const FORWARD_OPENERS: usize = 4;

/// Sessions that wait for an opener: a source that answers in a millisecond has these within a second.
pub(crate) const FORWARD_OPENINGS_WAITING: usize = 4_096;

/// Reads of one side of a forwarded session in one turn: a mebibyte, so that others of the worker wait for a fraction
/// of a millisecond.
pub(crate) const FORWARD_READS_PER_TURN: usize = 16;

/// Requests of one connection in one turn. Other connections of the worker wait for so long at most: about a
/// millisecond.
pub(crate) const COMMANDS_PER_TURN: usize = 1_024;

/// Readiness events taken from the kernel at once: with 64 connections ready the call costs little each, and the
/// replies of the first do not wait for the last.
pub(crate) const EVENTS_PER_POLL: usize = 256;

/// Events that a SQL thread takes from the kernel at once: a quarter of the calls when many clients are served, and few
/// connections to be handed on when a statement is long.
pub(crate) const EVENTS_PER_SQL_WAIT: usize = 4;

/// How often a worker looks for connections that are too slow or idle for too long. Deadlines are in seconds.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

/// A peer that has begun a request, or has replies to read, has so long for free...
pub const SLOW_GRACE: Duration = Duration::from_secs(30);

/// ...and beyond it must move at least so many bytes a second. A mobile client does ten times that; somebody who
/// sends a byte every ten seconds to hold a connection does not.
pub const SLOW_BYTES_PER_SECOND: u64 = 8 << 10;

/// Connections at once, by default; memcached's `-c`.
pub const CONNECTIONS_MAX: usize = 1_024;

/// Passwords that wait to be checked: a quarter of a second's work. Who finds no room is refused: a memcached client as
/// somebody with a wrong one.
pub(crate) const PROOF_QUEUE: usize = 256;

/// Before a password is checked that no idle processor was found for: a check takes a millisecond, and a client waits
/// for seconds.
pub(crate) const PROOF_REST: Duration = Duration::from_millis(100);

/// So many times as long as a check took is the rest before the next: a flood takes a tenth of one processor from
/// others.
pub(crate) const PROOF_REST_SHARE: u32 = 9;

/// Where a role asks for so many rounds that a check takes a second, the next client must not wait for ten.
pub(crate) const PROOF_REST_MAX: Duration = Duration::from_secs(1);

/// Connections that the kernel holds for the acceptor, by default; memcached's `-b`.
pub const BACKLOG: i32 = 1_024;

/// Connections taken in one turn of the acceptor, so that it also hears a call to stop during a storm.
pub(crate) const ACCEPTS_PER_TURN: usize = 256;

/// How long the acceptor rests when the kernel gives it no descriptor: connections end in the meantime, and trying
/// again at once would only burn the processor.
pub(crate) const ACCEPT_REST: Duration = Duration::from_millis(50);

/// SQL threads, by default: one may be busy with a long statement, another goes on.
pub const SQL_THREADS: usize = 2;

/// SQL threads that take the places of those that wait for a client which reads the data of a `COPY` slowly: each is a
/// stack and, once it has worked, a connection of SQLite's. Who makes more wait is not a reader but a nuisance.
pub(crate) const SQL_STAND_INS: usize = 16;

/// Statements that wait for a SQL thread. A short statement takes some 10 microseconds, so a full queue is some
/// milliseconds of work; waiting longer helps nobody.
pub const SQL_QUEUE: usize = 1_024;

/// A statement that runs longer is stopped, by default.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server that ends waits for statements that were cancelled: a thousand times what one takes to hear of it,
/// and little beside the patience of a service manager.
pub(crate) const STATEMENTS_END: Duration = Duration::from_secs(2);

/// How often the cleaner lets the store work: the resolution of every deadline.
pub(crate) const CLEAN_INTERVAL: Duration = Duration::from_nanos(engine::TICK_NS);

/// How often a thread without any work looks whether there is some: what is defined first waits so long.
pub(crate) const IDLE_INTERVAL: Duration = Duration::from_millis(250);

/// How long the cleaner works at once where there is much to do, before it lets others in: some ten requests' time, and
/// to the end of a piece of the store's work, the first of which is one segment.
pub(crate) const CLEANER_WORK_NS: u64 = 100_000;

/// The time for which others kept the cleaner's processor, divided by this, is how long it works next: what
/// [`CLEANER_NICENESS`] leaves it of a busy one.
pub(crate) const CLEANER_SHARE: u64 = 3;

/// How often memory that statements have freed is given back to the system at most: the allocator looks through all
/// that it has, some milliseconds, in which a thread that allocates may wait.
pub(crate) const GIVE_BACK_INTERVAL_NS: u64 = 1_000_000_000;

/// How far the cleaner gives way to threads that serve: it gets about a quarter of a processor that it shares with
/// one busy worker, and a worker that wakes up seldom waits for it.
pub(crate) const CLEANER_NICENESS: i32 = 5;

/// The slab class under which every item is reported; memcached's tools ask for one.
pub(crate) const SLAB_CLASS: u32 = 1;

/// Steps of a list of all keys in one turn, each through a few buckets of the index: some hundred microseconds.
pub(crate) const DUMP_STEPS_PER_TURN: usize = 1_024;

/// Bytes of an answer to `stats cachedump`; memcached's limit.
pub(crate) const CACHE_DUMP_BYTES_MAX: usize = 2 << 20;

/// Connections that a worker reports at once for `stats conns`: two system calls each, some hundred microseconds.
pub(crate) const CONNS_PER_MESSAGE: usize = 256;

/// Bytes of an answer to `stats conns`: some fifty thousand connections; beyond, it is cut.
pub(crate) const CONNS_BYTES_MAX: usize = 8 << 20;

/// Bytes read and thrown away before a connection is closed, so that the kernel does not cut off our last words
/// because of unread input.
pub(crate) const LINGER_BYTES_MAX: usize = 256 << 10;

/// How long `COPY TO STDOUT` waits at once for its client to read, before it looks whether it was cancelled...
pub(crate) const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// ...and how often in a row it finds that nothing was read, before it gives the client up: it keeps a SQL thread.
pub(crate) const ROOM_LOOKS: u32 = 100;

/// How often in a row it finds that no thread is left to stand in for it, before the copy ends: a second.
pub(crate) const SHORT_LOOKS: u32 = 10;

/// Bytes that are read of a connection whose session has not begun: the longest opening packet, and a little.
pub(crate) const OPENING_BUFFER_BYTES: usize = 10_240;

/// How long a connection may take to begin its session, where nothing else is said.
pub const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections whose peers have proved nothing may take one place in so many, at both listeners together: three of four
/// places stay for those who may come in...
pub(crate) const UNPROVED_SHARE: usize = 4;

/// ...and so many where there are few places: a pool that starts opens some connections at once.
pub(crate) const UNPROVED_MIN: usize = 16;

/// How long such a connection keeps its place against newer ones, where all are taken: an honest client needs some
/// round trips.
pub(crate) const UNPROVED_SAFE: Duration = Duration::from_secs(1);

/// Bytes of a file with certificates: a few hundred authorities.
pub const TLS_FILE_BYTES_MAX: u64 = 1 << 20;

/// Turns of connections that agree on keys, in one round of a thread: at most so many signatures of the server's, 20 us
/// each by ECDSA and 0.6 ms by RSA, before those who work have their turns again.
pub(crate) const HANDSHAKE_TURNS: usize = 8;

/// Bytes of the secret that a cancel request must name, from protocol 3.2 on; PostgreSQL's length.
pub(crate) const SECRET_BYTES: usize = 32;

/// Room that the key and the row's header take of the largest value: memcached counts the item's header in `-I`.
pub(crate) const ITEM_HEADER_BYTES: usize = 64;

/// Bytes of a value of `COPY` that its error shows: PostgreSQL's.
pub(crate) const CONTEXT_BYTES_MAX: usize = 100;
const _: () = assert!(CARRY_BYTES_MAX <= READ_BUFFER_BYTES / 2);
const _: () = assert!(READ_BUFFER_BYTES <= BULK_READ_BYTES);
const _: () = assert!(FIRST_READ_BYTES <= READ_BUFFER_BYTES / 2);
const _: () = assert!(LINE_READ_BYTES <= FIRST_READ_BYTES);
const _: () = assert!(GROUP <= crate::ahead::WINDOW);
const _: () = assert!(IDLE_BUFFER_BYTES + 1024 < 8 << 10);

/// HTTP connections at once, beside those of `max_connections`: who asks what is wrong with a server that has no place
/// left must find one. A scraper keeps one open, a page six.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 64;

/// How long an HTTP connection that does nothing keeps its place where all are taken: a client that has just come, or
/// has just got an answer, may be about to ask.
pub(crate) const HTTP_IDLE_SAFE: Duration = Duration::from_secs(1);

/// Bytes of the head of an HTTP request; browsers send one or two KiB.
pub(crate) const HTTP_HEAD_BYTES_MAX: usize = 8 << 10;

/// Headers of an HTTP request; browsers send twenty.
pub(crate) const HTTP_HEADERS_MAX: usize = 64;

/// How long an HTTP peer may take for its head, between two requests, and to take what was sent.
pub(crate) const HTTP_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the body of an HTTP request: a long statement and its values.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 1 << 20;

/// Bytes of the result of a statement by HTTP: more rows than a person reads. Each connection may hold one.
pub(crate) const HTTP_RESULT_BYTES_MAX: usize = 8 << 20;

/// Statements of HTTP clients that run or wait at once: a page has three, and other clients need the SQL threads.
pub(crate) const HTTP_STATEMENTS_MAX: usize = 8;

/// The first number of a session by HTTP, above those of PostgreSQL's clients.
pub(crate) const HTTP_PROCESSES: i32 = 1 << 30;

/// Peers that speak another protocol are mentioned in the log so often at most, each kind by itself: a pool of clients
/// that was set up wrongly comes again and again.
pub(crate) const STRANGER_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// With so many bytes it is certain which protocol a connection begins with.
pub(crate) const STRANGER_BYTES: usize = 8;

/// After so long without a byte the kernel asks whether a peer that only listens is still there: a minute after its end
/// nobody answers for it any more.
pub(crate) const LISTENER_ASKED_AFTER: Duration = Duration::from_mins(1);

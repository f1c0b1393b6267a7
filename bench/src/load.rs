//! The load program: one thread, one epoll, requests built from arithmetic and answers counted in bytes.
//!
//! Each connection sends a batch of `depth` requests, waits for the whole answer, and sends the next. What it
//! costs itself is measured and reported: where it costs more than the server, the server waits for it and
//! the throughput is the load program's. Where waits are measured, requests come at a rate of their own instead
//! ([`Load::run_at`]): a server that stops makes all wait that come meanwhile, and not only those under way.

use std::io::{ErrorKind, Read, Write};

use rustix::event::{PollFd, PollFlags, Timespec, epoll};

use crate::address::{Address, Stream};
use crate::clock;
use crate::failure::{Failure, Result};
use crate::histogram::Histogram;
use crate::protocol::{Operation, Protocol};

/// Keys have this length where nothing else is said.
pub(crate) const KEY_BYTES: usize = 16;
/// Values of a geometric distribution end at so many times the mean; one in nine million would be longer.
const LONGEST_BY_MEAN: usize = 16;
/// Below this bit of a key's number stands its index, above it the space.
const SPACE_SHIFT: u32 = 40;
/// A server that is silent for so long has answered with fewer bytes than a hit has.
const SILENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// One read takes what a socket buffer holds.
const READ_BYTES: usize = 256 * 1024;

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// Get or set.
    pub(crate) operation: Operation,
    /// Bytes of a value.
    pub(crate) sizes: Sizes,
    /// Bytes of a key.
    pub(crate) key_bytes: usize,
    /// How many keys there are.
    pub(crate) keys: u64,
    /// Keeps the keys of different workloads apart on one server.
    pub(crate) space: u64,
    /// Whether a request is one operation on one key.
    pub(crate) blend: Blend,
}

/// What a request is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blend {
    /// The workload's operation on one key.
    Alike,
    /// A set in so many requests, by chance; the others are gets.
    SetIn(u64),
    /// A get of so many keys. Each counts as an operation.
    Together(u64),
}

/// How long values are. The same key has always the same length, so that a reader knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sizes {
    /// All alike.
    Fixed(usize),
    /// Geometrically distributed around this mean: many short ones, few long ones.
    Geometric(usize),
}

impl Workload {
    /// Values of one length under keys of [`KEY_BYTES`].
    pub(crate) fn fixed(operation: Operation, value_bytes: usize, keys: u64, space: u64) -> Self {
        let sizes = Sizes::Fixed(value_bytes);
        Self { operation, sizes, key_bytes: KEY_BYTES, keys, space, blend: Blend::Alike }
    }

    /// Bytes of the value under a key.
    fn value_bytes(&self, index: u64) -> usize {
        match self.sizes {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Geometric(mean) => geometric(mean, mixed(self.space, index)).min(self.sizes.longest()),
        }
    }
}

impl Sizes {
    /// No value is longer.
    fn longest(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Geometric(mean) => mean * LONGEST_BY_MEAN,
        }
    }
}

/// A number of at least one, geometrically distributed around a mean above one, out of evenly distributed bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 37 times the mean")]
fn geometric(mean: usize, bits: u64) -> usize {
    let even = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    let fails = (-even).ln_1p() / (-1.0 / mean as f64).ln_1p();
    1 + fails as usize
}

/// How it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Open connections.
    pub(crate) connections: usize,
    /// Requests in one batch.
    pub(crate) depth: u64,
}

/// When it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// After so many nanoseconds, with random keys.
    Elapsed(u64),
    /// When every key was used once, in order.
    EveryKeyOnce,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Requests answered.
    pub(crate) operations: u64,
    /// From the first request to the last answer.
    pub(crate) wall_ns: u64,
    /// Processor time of the load program.
    pub(crate) load_cpu_ns: u64,
    /// From a batch's first byte out, or from when it was due, to its last byte in.
    pub(crate) latency: Histogram,
}

/// The number of a key, mixed so that neighbours differ everywhere. The mix can be undone, so two keys never share a
/// number.
fn mixed(space: u64, index: u64) -> u64 {
    let mut mixed = (space << SPACE_SHIFT) ^ index;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The 16 characters of a key: its number in hexadecimal.
pub(crate) fn key(space: u64, index: u64) -> [u8; KEY_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; KEY_BYTES];
    for (place, byte) in text.chunks_exact_mut(2).zip(mixed(space, index).to_be_bytes()) {
        place.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    text
}

/// A key of any length: the end of [`key`], and before it, as in most applications, what all keys begin with.
fn write_key(space: u64, index: u64, bytes: usize, out: &mut Vec<u8>) {
    let key = key(space, index);
    out.clear();
    out.resize(bytes.saturating_sub(KEY_BYTES), b'k');
    out.extend_from_slice(&key[KEY_BYTES.saturating_sub(bytes)..]);
}

/// The text whose beginning is the value of every key.
pub(crate) fn value(bytes: usize) -> Vec<u8> {
    b"The quick brown fox jumps over the lazy dog. ".iter().copied().cycle().take(bytes).collect()
}

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct Load {
    protocol: Protocol,
    poll: rustix::fd::OwnedFd,
    peers: Vec<Peer>,
    buffer: Vec<u8>,
    random: fastrand::Rng,
}

/// One connection and its batch under way.
#[derive(Debug)]
struct Peer {
    stream: Stream,
    /// The batch, and how much of it the kernel has taken.
    batch: Vec<u8>,
    sent: usize,
    /// Bytes of the answer still to come; 0 between batches.
    missing: usize,
    began: u64,
    /// The poll also waits for room to write.
    waits_for_room: bool,
}

/// One run: what to send and how far it is.
struct Run<'a> {
    workload: &'a Workload,
    depth: u64,
    until: Until,
    began: u64,
    /// The longest value; the others are its beginnings.
    value: Vec<u8>,
    key: Vec<u8>,
    /// Lengths of the answers to a get and a set of a value of no bytes.
    empty_reply: [usize; 2],
    /// How every answer ends.
    tail: Vec<u8>,
    next_key: u64,
    seen: Seen,
}

impl Load {
    /// Opens the connections.
    pub(crate) fn connect(address: &Address, protocol: Protocol, connections: usize) -> Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut peers = Vec::with_capacity(connections);
        for index in 0..connections {
            let stream = protocol.open(address.connect()?)?;
            stream.set_nonblocking(true)?;
            epoll::add(&poll, &stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
            peers.push(Peer {
                stream,
                batch: Vec::new(),
                sent: 0,
                missing: 0,
                began: 0,
                waits_for_room: false,
            });
        }
        let random = fastrand::Rng::with_seed(0x5eed);
        Ok(Self { protocol, poll, peers, buffer: vec![0; READ_BYTES], random })
    }

    /// Stores every key of a workload once.
    pub(crate) fn fill(&mut self, workload: &Workload) -> Result<Seen> {
        let fill = Workload { operation: Operation::Set, blend: Blend::Alike, ..workload.clone() };
        self.run(&fill, 32, Until::EveryKeyOnce)
    }

    /// Sends requests until the end and waits for the last answer.
    pub(crate) fn run(&mut self, workload: &Workload, depth: u64, until: Until) -> Result<Seen> {
        let cpu = clock::thread_cpu_ns();
        let mut run = self.begin(workload, depth, until);
        let mut busy = 0;
        for index in 0..self.peers.len() {
            busy += usize::from(self.send_batch(index, clock::now_ns(), &mut run)?);
        }
        let mut events = Vec::with_capacity(self.peers.len());
        while busy > 0 {
            self.wait(&mut events, &SILENCE)?;
            if events.is_empty() {
                return Err(silent());
            }
            for index in events.iter().map(place_of) {
                let ends = self.is_answered(index, &mut run)?
                    && !self.send_batch(index, clock::now_ns(), &mut run)?;
                busy -= usize::from(ends);
            }
        }
        Ok(run.end(cpu))
    }

    /// Sends every key once, one request at a time on each connection and so many a second over all. The latency of a
    /// request counts from when it was due, also if no connection was free then.
    pub(crate) fn run_at(&mut self, workload: &Workload, per_second: u64) -> Result<Seen> {
        let cpu = clock::thread_cpu_ns();
        // A sleep ends when it is due, not up to 50 us later.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        let mut run = self.begin(workload, 1, Until::EveryKeyOnce);
        let mut idle: Vec<usize> = (0..self.peers.len()).collect();
        let mut events = Vec::with_capacity(self.peers.len());
        loop {
            let now = clock::now_ns();
            while run.next_due(per_second).is_some_and(|due| due <= now)
                && let Some(index) = idle.pop()
            {
                let due = run.next_due(per_second).unwrap_or(now);
                self.send_batch(index, due, &mut run)?;
            }
            let due = run.next_due(per_second);
            if due.is_none() && idle.len() == self.peers.len() {
                return Ok(run.end(cpu));
            }
            let sleeps = due.filter(|_| !idle.is_empty());
            if let Some(due) = sleeps {
                self.sleep(due.saturating_sub(clock::now_ns()))?;
            }
            let most = if sleeps.is_some() { short(0) } else { SILENCE };
            self.wait(&mut events, &most)?;
            if events.is_empty() && sleeps.is_none() {
                return Err(silent());
            }
            for index in events.iter().map(place_of) {
                if self.is_answered(index, &mut run)? {
                    idle.push(index);
                }
            }
        }
    }

    fn begin<'w>(&self, workload: &'w Workload, depth: u64, until: Until) -> Run<'w> {
        let value = value(workload.sizes.longest());
        let mut key = Vec::new();
        write_key(workload.space, 0, workload.key_bytes, &mut key);
        let reply = |operation, value: &[u8]| self.protocol.reply(operation, &key, value);
        let empty_reply = [Operation::Get, Operation::Set].map(|operation| reply(operation, b"").len());
        let tail = tail(self.protocol, &reply(workload.operation, &value), workload);
        let seen = Seen { operations: 0, wall_ns: 0, load_cpu_ns: 0, latency: Histogram::default() };
        let began = clock::now_ns();
        Run { workload, depth, until, began, value, key, empty_reply, tail, next_key: 0, seen }
    }

    /// Which connections have something to do, once one has or the time has passed.
    fn wait(&self, events: &mut Vec<epoll::Event>, most: &Timespec) -> Result<()> {
        events.clear();
        epoll::wait(&self.poll, rustix::buffer::spare_capacity(events), Some(most))?;
        Ok(())
    }

    /// Sleeps until a connection has something to do or the time has passed, to the nanosecond: epoll itself takes
    /// milliseconds.
    fn sleep(&self, ns: u64) -> Result<()> {
        let mut polls = [PollFd::new(&self.poll, PollFlags::IN)];
        rustix::event::poll(&mut polls, Some(&short(ns)))?;
        Ok(())
    }

    /// Builds and sends a connection's next batch, which counts from `now`; false when the run is over.
    fn send_batch(&mut self, index: usize, now: u64, run: &mut Run<'_>) -> Result<bool> {
        let count = run.batch_size(now);
        let Some(peer) = self.peers.get_mut(index) else { return Ok(false) };
        if count == 0 {
            return Ok(false);
        }
        peer.batch.clear();
        peer.missing = 0;
        for _ in 0..count {
            peer.put(self.protocol, run, &mut self.random)?;
        }
        run.seen.operations += count * run.keys_each();
        peer.sent = 0;
        peer.began = now;
        peer.write(&self.poll, index)?;
        Ok(true)
    }

    /// Reads what came and sends what there was no room for; true when the batch is answered.
    fn is_answered(&mut self, index: usize, run: &mut Run<'_>) -> Result<bool> {
        let Some(peer) = self.peers.get_mut(index) else { return Ok(false) };
        if peer.waits_for_room {
            peer.write(&self.poll, index)?;
        }
        let whole = match peer.stream.read(&mut self.buffer) {
            Ok(0) => return Err(Failure::new("the server closed a connection")),
            Ok(count) => {
                peer.took(self.buffer.get(..count).unwrap_or_default(), run)?;
                peer.missing == 0
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error.into()),
        };
        if whole {
            run.seen.latency.record(clock::now_ns() - peer.began);
        }
        Ok(whole)
    }
}

impl Peer {
    /// Adds one request to the batch, and its answer to what is to come.
    fn put(&mut self, protocol: Protocol, run: &mut Run<'_>, random: &mut fastrand::Rng) -> Result<()> {
        let operation = match run.workload.blend {
            Blend::Alike => run.workload.operation,
            Blend::SetIn(share) if random.u64(..share) == 0 => Operation::Set,
            Blend::SetIn(_) => Operation::Get,
            Blend::Together(keys) => {
                protocol.begin_many(keys, &mut self.batch)?;
                for _ in 0..keys {
                    let bytes = run.draw(random);
                    protocol.one_of_many(&run.key, &mut self.batch);
                    self.missing += protocol.many_reply_bytes(run.empty_reply[0], bytes);
                }
                self.missing += protocol.end_many(keys, &mut self.batch);
                return Ok(());
            }
        };
        let bytes = run.draw(random);
        let value = run.value.get(..bytes).unwrap_or_default();
        protocol.request(operation, &run.key, value, &mut self.batch);
        let empty = run.empty_reply[usize::from(operation == Operation::Set)];
        self.missing += protocol.reply_bytes(operation, empty, bytes);
        Ok(())
    }

    /// Hands the batch to the kernel, as far as it takes it.
    fn write(&mut self, poll: &rustix::fd::OwnedFd, index: usize) -> Result<()> {
        while let Some(rest) = self.batch.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let waits = self.sent < self.batch.len();
        if waits != self.waits_for_room {
            self.waits_for_room = waits;
            let room = if waits { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
            let data = epoll::EventData::new_u64(index as u64);
            epoll::modify(poll, &self.stream, data, epoll::EventFlags::IN | room)?;
        }
        Ok(())
    }

    /// Counts bytes of the answer, and looks at its last ones.
    fn took(&mut self, bytes: &[u8], run: &Run<'_>) -> Result<()> {
        let Some(missing) = self.missing.checked_sub(bytes.len()) else {
            return Err(unexpected(bytes));
        };
        self.missing = missing;
        // The end may have come in two pieces.
        let tail = &run.tail[run.tail.len().saturating_sub(bytes.len())..];
        if missing == 0 && !bytes.ends_with(tail) {
            return Err(unexpected(bytes));
        }
        Ok(())
    }
}

impl Run<'_> {
    /// How many requests the next batch holds.
    fn batch_size(&self, now: u64) -> u64 {
        match self.until {
            Until::Elapsed(duration) if now - self.began >= duration => 0,
            Until::Elapsed(_) => self.depth,
            Until::EveryKeyOnce => self.depth.min(self.workload.keys - self.next_key),
        }
    }

    /// When the next key is to be sent at so many a second; none when all were.
    fn next_due(&self, per_second: u64) -> Option<u64> {
        let since = u128::from(self.next_key) * 1_000_000_000 / u128::from(per_second.max(1));
        let due = self.began + u64::try_from(since).unwrap_or(u64::MAX);
        (self.next_key < self.workload.keys).then_some(due)
    }

    /// What was seen by now, with the processor time since then.
    fn end(mut self, cpu: u64) -> Seen {
        self.seen.wall_ns = clock::now_ns() - self.began;
        self.seen.load_cpu_ns = clock::thread_cpu_ns() - cpu;
        self.seen
    }

    /// How many operations a request counts as.
    fn keys_each(&self) -> u64 {
        match self.workload.blend {
            Blend::Together(keys) => keys,
            Blend::Alike | Blend::SetIn(_) => 1,
        }
    }

    /// Writes the next key; bytes of its value.
    fn draw(&mut self, random: &mut fastrand::Rng) -> usize {
        let number = self.next_key(random);
        write_key(self.workload.space, number, self.workload.key_bytes, &mut self.key);
        self.workload.value_bytes(number)
    }

    fn next_key(&mut self, random: &mut fastrand::Rng) -> u64 {
        match self.until {
            Until::Elapsed(_) => random.u64(..self.workload.keys),
            Until::EveryKeyOnce => {
                self.next_key += 1;
                self.next_key - 1
            }
        }
    }
}

/// How every answer ends: five bytes where all values and requests are alike, otherwise the two behind a value. A frame
/// ends with a value or with a CAS, which nobody knows.
fn tail(protocol: Protocol, reply: &[u8], workload: &Workload) -> Vec<u8> {
    let mixed = matches!(workload.blend, Blend::SetIn(_));
    let alike = matches!(workload.sizes, Sizes::Fixed(_)) && !mixed;
    let sets = mixed || workload.operation == Operation::Set;
    let bytes = match protocol {
        Protocol::Binary if sets || !alike => 0,
        _ if alike => 5,
        _ => 2,
    };
    reply[reply.len().saturating_sub(bytes)..].to_vec()
}

/// The connection that an event is of.
fn place_of(event: &epoll::Event) -> usize {
    usize::try_from(event.data.u64()).unwrap_or(usize::MAX)
}

/// Less than a second.
fn short(ns: u64) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: i64::try_from(ns.min(999_999_999)).unwrap_or(0) }
}

fn silent() -> Failure {
    Failure::new("no answer for 5 s: a reply was shorter than a hit or a stored value has")
}

fn unexpected(bytes: &[u8]) -> Failure {
    let start = bytes.get(..bytes.len().min(60)).unwrap_or_default();
    Failure::new(format!("unexpected answer: {}", start.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{KEY_BYTES, Sizes, Workload, geometric, key, write_key};
    use crate::protocol::Operation;

    #[test]
    fn keys_of_all_lengths_end_alike() {
        for bytes in [10, KEY_BYTES, 17, 250, 1_000] {
            let mut text = Vec::new();
            write_key(3, 5, bytes, &mut text);
            assert_eq!(text.len(), bytes);
            assert!(text.ends_with(&key(3, 5)[6..]));
        }
    }

    #[test]
    fn geometric_sizes_have_their_mean_and_stay_with_their_key() {
        let base = Workload::fixed(Operation::Get, 0, 1, 2);
        let workload = Workload { sizes: Sizes::Geometric(1_000), ..base };
        let sizes: Vec<usize> = (0..20_000).map(|index| workload.value_bytes(index)).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        assert!((970.0..1_030.0).contains(&mean), "mean {mean}");
        // A geometric distribution's median is 0.69 of its mean.
        let short = sizes.iter().filter(|&&size| size <= 693).count();
        assert!((9_700..10_300).contains(&short), "{short} below the median");
        assert_eq!(workload.value_bytes(17), workload.value_bytes(17));
        assert_eq!((geometric(1_000, 0), workload.sizes.longest()), (1, 16_000));
    }

    #[test]
    fn keys_do_not_collide() {
        let keys: HashSet<_> = (0..4).flat_map(|space| (0..5_000).map(move |i| key(space, i))).collect();
        assert_eq!(keys.len(), 20_000);
    }
}

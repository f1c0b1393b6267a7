//! Other clients: a steady trickle of reads and writes whose waits tell who is held up.

use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::address::Address;
use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::histogram::Histogram;
use crate::load::value;

/// A request is due so often: two thousand a second, so that a window of a second has its hundredth.
const PACE_NS: u64 = 500_000;
/// Keys that they use.
const KEYS: u64 = 1_000;
/// Bytes of their values.
const VALUE_BYTES: usize = 100;

/// A client in a thread of its own that reads and writes in turn.
///
/// A request that could not be sent when it was due, because the one before had no answer yet, has waited since it was
/// due: so a server that stands still for a moment is seen by all who would have come meanwhile.
#[derive(Debug)]
pub(super) struct Others {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Wait>>>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
struct Wait {
    due_ns: u64,
    ns: u64,
}

/// All requests of a run.
#[derive(Clone, Debug)]
pub(super) struct Waits(Vec<Wait>);

impl Others {
    /// Connects and begins.
    pub(super) fn begin(address: &Address) -> Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let mut client = Client::connect(address)?;
        for number in 0..KEYS {
            store(&mut client, number)?;
        }
        let seen = Arc::clone(&done);
        let thread = thread::spawn(move || trickle(&mut client, &seen));
        Ok(Self { done, thread })
    }

    /// Ends; how long each request waited.
    pub(super) fn end(self) -> Result<Waits> {
        // Relaxed: the thread ends a request later.
        self.done.store(true, Ordering::Relaxed);
        let waits = self.thread.join().map_err(|_| Failure::new("the other clients' thread panicked"))?;
        waits.map(Waits)
    }
}

impl Waits {
    /// What all but one in a hundred waited at most, in microseconds, of those that were due in this window.
    pub(super) fn p99_us(&self, window: &Range<u64>) -> f64 {
        let mut histogram = Histogram::default();
        for wait in &self.0 {
            if window.contains(&wait.due_ns) {
                histogram.record(wait.ns);
            }
        }
        histogram.percentile(0.99) as f64 / 1e3
    }
}

fn trickle(client: &mut Client, done: &AtomicBool) -> Result<Vec<Wait>> {
    let mut waits = Vec::new();
    let mut due = clock::now_ns();
    for number in 0_u64.. {
        let now = clock::now_ns();
        if now < due {
            thread::sleep(Duration::from_nanos(due - now));
            // The time that the thread itself took to wake up is nobody's wait.
            due = clock::now_ns();
        }
        if done.load(Ordering::Relaxed) {
            break;
        }
        if number.is_multiple_of(2) {
            fetch(client, number % KEYS)?;
        } else {
            store(client, number % KEYS)?;
        }
        waits.push(Wait { due_ns: due, ns: clock::now_ns() - due });
        due += PACE_NS;
    }
    Ok(waits)
}

fn fetch(client: &mut Client, number: u64) -> Result<()> {
    // A write to a vector cannot fail.
    let _ = write!(client.out, "get other:{number}\r\n");
    client.send()?;
    let mut found = false;
    client.read_values(|_, _| found = true)?;
    if found { Ok(()) } else { Err(Failure::new("another client's row is gone")) }
}

fn store(client: &mut Client, number: u64) -> Result<()> {
    let _ = write!(client.out, "set other:{number} 0 0 {VALUE_BYTES}\r\n");
    client.out.extend_from_slice(&value(VALUE_BYTES));
    client.out.extend_from_slice(b"\r\n");
    client.send()?;
    client.expect(b"STORED")
}

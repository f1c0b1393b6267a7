//! Runs a target over generated inputs: what libFuzzer does with more cunning, on the stable toolchain.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a run of a test lasts at most, unless `FUZZ_SECONDS` says otherwise: continuous integration has many.
const RUN_TIME: Duration = Duration::from_secs(4);

/// An input that takes longer never ends. Slow machines are slow, but not that slow.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A small generator of random numbers (xorshift): tests need no more, and its seed is all there is to replay.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    /// So many random bytes; `most` at most.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.byte()).collect()
    }
}

#[allow(clippy::disallowed_methods, reason = "the settings of random tests")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// `FUZZ_SECONDS` of the environment, such as 0.2, or what is usual.
#[allow(clippy::disallowed_methods, reason = "the settings of random tests")]
fn run_time() -> Duration {
    let asked = std::env::var("FUZZ_SECONDS").ok();
    asked.map_or(RUN_TIME, |text| Duration::from_secs_f64(text.parse().expect("a number of seconds")))
}

/// `SEED` of the environment, or a fresh one. It is printed, and a failing test shows it.
pub fn seed() -> u64 {
    let seed = setting("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed}");
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// One run: how many inputs, and how long one of them may take.
///
/// `FUZZ_INPUTS` asks for another number of inputs. With it, or with `SEED`, the run ends with its inputs and not
/// after some seconds, so that the same seed does the same.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub inputs: u64,
    pub patience: Duration,
}

/// What the watcher and the thread that runs the target both know: the current input, and since when.
type Current = Arc<Mutex<(Vec<u8>, Instant)>>;

impl Run {
    pub fn new(inputs: u64) -> Self {
        Self { inputs, patience: PATIENCE }
    }

    /// Makes the target on a thread of its own and feeds it. Panics if the target does, or if an input does not end;
    /// either way the input is printed, for it is the evidence, and the seed only the way back to it.
    pub fn of<T: FnMut(&[u8])>(
        self,
        make: impl FnOnce() -> T + Send + 'static,
        generate: impl FnMut(&mut Random) -> Vec<u8> + Send + 'static,
    ) {
        self.within(run_time(), make, generate);
    }

    fn within<T: FnMut(&[u8])>(
        self,
        run_time: Duration,
        make: impl FnOnce() -> T + Send + 'static,
        mut generate: impl FnMut(&mut Random) -> Vec<u8> + Send + 'static,
    ) {
        let mut random = Random(seed());
        let inputs = setting("FUZZ_INPUTS").unwrap_or(self.inputs);
        let timed = setting("FUZZ_INPUTS").is_none() && setting("SEED").is_none();
        let current: Current = Arc::new(Mutex::new((Vec::new(), now())));
        let (ended, end) = sync_channel(1);
        let shown = Arc::clone(&current);
        let body = move || {
            let _ended = Ended(ended);
            let mut target = make();
            let start = now();
            let mut done = 0;
            while done < inputs && !(timed && start.elapsed() > run_time) {
                let input = generate(&mut random);
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = (input.clone(), now());
                target(&input);
                done += 1;
            }
            println!("{done} inputs in {:?}", start.elapsed());
        };
        let worker = std::thread::Builder::new().name("fuzz".into()).spawn(body).expect("a thread");
        let input = || current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        while end.recv_timeout(self.patience / 10) == Err(RecvTimeoutError::Timeout) {
            let (input, since) = input();
            assert!(since.elapsed() < self.patience, "no end of this input: {}", input.escape_ascii());
        }
        if let Err(cause) = worker.join() {
            println!("input: {}", input().0.escape_ascii());
            std::panic::resume_unwind(cause);
        }
    }
}

/// Tells the watcher when the thread ends, however it ends.
struct Ended(SyncSender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _watched = self.0.try_send(());
    }
}

/// Whether a run of this target over these inputs fails, as a planted mistake must make it. It has the usual time: a
/// short run would not find the mistake.
pub fn fails<T: FnMut(&[u8])>(
    run: Run,
    make: impl FnOnce() -> T + Send + 'static,
    generate: impl FnMut(&mut Random) -> Vec<u8> + Send + 'static,
) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.within(RUN_TIME, make, generate))).is_err()
}

#[allow(clippy::disallowed_methods, reason = "how long a target takes is no time of the store's")]
pub fn now() -> Instant {
    Instant::now()
}

/// The words of a dictionary in libFuzzer's format.
pub fn words(dictionary: &str) -> Vec<Vec<u8>> {
    let quoted = dictionary.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, taken) = match after.as_bytes()[0] {
            b'r' => (b'\r', 1),
            b'n' => (b'\n', 1),
            b'x' => (u8::from_str_radix(&after[1..3], 16).expect("two hexadecimal digits"), 3),
            other => (other, 1),
        };
        bytes.push(byte);
        rest = &after[taken..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

//! The threads of a connection: one says, one hears, and one has the database forget what is old. Each ends when nobody
//! waits for it any more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use source::messages::{Caller, Heard, Listener, Messages, Said, Speaker};
use tokio::sync::{mpsc, oneshot};

use crate::carrier::Failure;
use crate::limits::{KEEP_STEP, KEEP_STEPS, KEPT_LOG_BYTES, LOOK_INTERVAL};

/// A message that is to be said, and who waits for that.
pub(super) struct Wish {
    pub(super) content: Arc<[u8]>,
    pub(super) answer: oneshot::Sender<Result<Said, source::Error>>,
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = thread::Builder::new().name(name.into()).spawn(work);
    spawned.map(drop).map_err(|error| Failure::of("a bus has no thread", &error))
}

/// Says what is wished, until nobody wishes anything or it fails.
pub(super) fn speak(mut speaker: Speaker) -> Result<mpsc::Sender<Wish>, Failure> {
    // One is under way at a time.
    let (sender, mut wishes) = mpsc::channel::<Wish>(1);
    spawn("bus-says", move || {
        while let Some(Wish { content, answer }) = wishes.blocking_recv() {
            let said = speaker.say(&content);
            let fails = said.is_err();
            // Who does not wait any more sends it once more.
            let _gone = answer.send(said);
            if fails {
                return;
            }
        }
        speaker.end();
    })?;
    Ok(sender)
}

/// Hears, until nobody wants to know it or it fails.
pub(super) fn listen(
    mut listener: Box<Listener>,
    messages: Messages,
    heard: mpsc::Sender<Result<Heard, source::Error>>,
) -> Result<(), Failure> {
    spawn("bus-hears", move || {
        while !heard.is_closed() {
            match listener.next_within(LOOK_INTERVAL) {
                Ok(None) => {}
                Ok(Some(some)) => {
                    if heard.blocking_send(Ok(some)).is_err() {
                        break;
                    }
                }
                Err(error) => {
                    messages.give_up(&error);
                    let _gone = heard.blocking_send(Err(error));
                    break;
                }
            }
        }
        listener.end();
    })
}

/// Has the database forget what is old, until this is dropped.
pub(super) struct Keeping {
    _until: SyncSender<()>,
}

impl Keeping {
    pub(super) fn start(messages: Messages, passed: &Arc<AtomicU64>) -> Result<Self, Failure> {
        // Nothing is ever sent.
        let (until, is_over) = sync_channel::<()>(0);
        let passed = Arc::clone(passed);
        spawn("bus-keeps", move || {
            let mut old = VecDeque::new();
            while is_over.recv_timeout(KEEP_STEP) == Err(RecvTimeoutError::Timeout) {
                old.push_back(passed.load(Ordering::Relaxed));
                let place = place_to_keep(&mut old);
                let caller = Caller { say: &|said| tracing::info!("{said}"), is_gone: &|| false };
                if let Err(error) = messages.keep_from(place, &caller) {
                    tracing::debug!("the log of a bus is not shortened: {error}");
                }
            }
        })?;
        Ok(Self { _until: until })
    }
}

/// The place before which the log is too old or too long, by the places that were reached at each step.
fn place_to_keep(reached: &mut VecDeque<u64>) -> u64 {
    while reached.len() > KEEP_STEPS {
        reached.pop_front();
    }
    let oldest = reached.front().copied().filter(|_| reached.len() == KEEP_STEPS).unwrap_or(0);
    let newest = reached.back().copied().unwrap_or(0);
    oldest.max(newest.saturating_sub(KEPT_LOG_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_or_long_goes() {
        let mut reached = VecDeque::new();
        for step in 1..KEEP_STEPS as u64 {
            reached.push_back(step);
            assert_eq!(place_to_keep(&mut reached), 0, "it is not known what is old");
        }
        for step in KEEP_STEPS as u64..100 {
            reached.push_back(step);
            assert_eq!(place_to_keep(&mut reached), step + 1 - KEEP_STEPS as u64);
            assert_eq!(reached.len(), KEEP_STEPS);
        }
        reached.push_back(10 * KEPT_LOG_BYTES);
        assert_eq!(place_to_keep(&mut reached), 9 * KEPT_LOG_BYTES);
    }
}

//! `LISTEN` and `NOTIFY`: who wants to hear of what.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sql::{Allowance, Held, SqlError};

use crate::limits::{INBOX_BYTES_MAX, LISTENED_BYTES, NOTIFICATION_BYTES};

/// Something that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the session that announced it.
    pub process: i32,
    /// Where.
    pub channel: Arc<str>,
    /// What.
    pub payload: Arc<str>,
}

/// What waits for one listening session.
pub(crate) struct Inbox {
    /// Held for a push or a swap; no other lock is taken meanwhile.
    waiting: Mutex<Waiting>,
    /// What the channels take on which it listens. Taken within the lock of all listeners.
    listened: Mutex<Held>,
    /// More came than may wait.
    overflown: AtomicBool,
    /// Called after something came in, from any thread.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug)]
struct Waiting {
    notifications: VecDeque<Notification>,
    bytes: usize,
    /// What they take of the session's allowance.
    held: Held,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Inbox {
    pub(crate) fn new(allowance: &Arc<Allowance>, wake: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        let waiting = Waiting { notifications: VecDeque::new(), bytes: 0, held: allowance.account() };
        Arc::new(Self {
            waiting: Mutex::new(waiting),
            listened: Mutex::new(allowance.account()),
            overflown: AtomicBool::new(false),
            wake,
        })
    }

    /// Whether its session may listen on one more channel.
    pub(crate) fn check_listen(&self, channel: &str) -> Result<(), SqlError> {
        self.listened.lock().check_room(channel.len() + LISTENED_BYTES)
    }

    /// Whether something waits, or was lost.
    #[inline]
    pub(crate) fn take(&self) -> Result<VecDeque<Notification>, Overflown> {
        // Relaxed: the lock orders it.
        if self.overflown.load(Ordering::Relaxed) {
            return Err(Overflown);
        }
        let mut waiting = self.waiting.lock();
        waiting.bytes = 0;
        waiting.held.set(0);
        Ok(std::mem::take(&mut waiting.notifications))
    }

    /// `listeners` is how many share the payload.
    fn put(&self, notification: &Notification, listeners: usize) {
        {
            let mut waiting = self.waiting.lock();
            let payload = notification.payload.len();
            waiting.bytes += payload + NOTIFICATION_BYTES;
            let held = waiting.held.try_add(payload / listeners + NOTIFICATION_BYTES);
            if waiting.bytes > INBOX_BYTES_MAX || held.is_err() {
                // What is lost here would leave a stale copy there: the session ends, and its client starts again.
                self.overflown.store(true, Ordering::Relaxed);
                waiting.notifications = VecDeque::new();
                waiting.held.set(0);
            } else {
                waiting.notifications.push_back(notification.clone());
            }
        }
        (self.wake)();
    }
}

/// A session did not read what it wanted to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflown;

/// The listeners of each channel.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Held while listeners are looked up, never while they are woken.
    listeners: Mutex<HashMap<Arc<str>, Vec<Arc<Inbox>>>>,
}

impl Channels {
    pub(crate) fn listen(&self, channel: &str, inbox: &Arc<Inbox>) {
        let mut listeners = self.listeners.lock();
        let listening = listeners.entry(channel.into()).or_default();
        if !listening.iter().any(|known| Arc::ptr_eq(known, inbox)) {
            listening.push(Arc::clone(inbox));
            let mut listened = inbox.listened.lock();
            let more = listened.bytes() + channel.len() + LISTENED_BYTES;
            listened.set(more);
        }
    }

    /// Ends listening on a channel, or on all.
    pub(crate) fn unlisten(&self, channel: Option<&str>, inbox: &Arc<Inbox>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|name, listening| {
            if channel.is_none_or(|channel| channel == &**name) {
                let before = listening.len();
                listening.retain(|known| !Arc::ptr_eq(known, inbox));
                if listening.len() < before {
                    let mut listened = inbox.listened.lock();
                    let less = listened.bytes().saturating_sub(name.len() + LISTENED_BYTES);
                    listened.set(less);
                }
            }
            !listening.is_empty()
        });
    }

    /// Tells everybody who listens.
    pub(crate) fn notify(&self, process: i32, channel: &str, payload: &str) {
        let listening = {
            let listeners = self.listeners.lock();
            let Some((channel, listening)) = listeners.get_key_value(channel) else { return };
            (Arc::clone(channel), listening.clone())
        };
        let (channel, listening) = listening;
        let notification = Notification { process, channel, payload: payload.into() };
        for inbox in &listening {
            inbox.put(&notification, listening.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox() -> Arc<Inbox> {
        let account = sql::Account::new(64 << 20);
        Inbox::new(&Allowance::new(&account, 64 << 20), Box::new(|| {}))
    }

    #[test]
    fn who_listens_hears() {
        let channels = Channels::default();
        let (one, two) = (inbox(), inbox());
        channels.listen("a", &one);
        channels.listen("a", &one);
        channels.listen("a", &two);
        channels.listen("b", &two);
        channels.notify(7, "a", "x");
        channels.notify(7, "b", "y");
        channels.notify(7, "c", "z");
        let heard = |inbox: &Inbox| -> Vec<String> {
            inbox.take().unwrap().iter().map(|heard| format!("{}:{}", heard.channel, heard.payload)).collect()
        };
        assert_eq!(
            (heard(&one), heard(&two)),
            (vec!["a:x".to_owned()], vec!["a:x".to_owned(), "b:y".to_owned()])
        );
        channels.unlisten(None, &one);
        channels.unlisten(Some("b"), &two);
        channels.notify(7, "a", "x");
        channels.notify(7, "b", "y");
        assert_eq!((heard(&one), heard(&two)), (vec![], vec!["a:x".to_owned()]));
        assert_eq!(channels.listeners.lock().len(), 1);
    }

    #[test]
    fn who_does_not_read_is_told_so() {
        let channels = Channels::default();
        let inbox = inbox();
        channels.listen("a", &inbox);
        let payload = "x".repeat(1 << 20);
        for _ in 0..=INBOX_BYTES_MAX >> 20 {
            channels.notify(1, "a", &payload);
        }
        assert_eq!(inbox.take(), Err(Overflown));
    }
}

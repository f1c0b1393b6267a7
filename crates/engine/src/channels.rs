//! `LISTEN` and `NOTIFY`: who wants to hear of what.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sql::{Allowance, Held, SqlError};

use crate::limits::{INBOX_BYTES_MAX, LISTENED_BYTES, NOTIFICATION_BYTES, NOTIFICATIONS_SENT_BYTES};

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
    /// Each with what it takes of the session's allowance.
    notifications: VecDeque<(Notification, usize)>,
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

    /// Whether some were lost.
    pub(crate) fn is_overflown(&self) -> bool {
        // Relaxed: the lock orders it.
        self.overflown.load(Ordering::Relaxed)
    }

    /// What waits, the oldest first: about so much as is sent at once. The rest is counted here until its session can
    /// send it, for here is the limit.
    #[inline]
    pub(crate) fn take(&self) -> Result<Vec<Notification>, Overflown> {
        if self.is_overflown() {
            return Err(Overflown);
        }
        let mut waiting = self.waiting.lock();
        let (mut taken, mut bytes, mut shares) = (Vec::new(), 0, 0);
        while bytes < NOTIFICATIONS_SENT_BYTES
            && let Some((notification, share)) = waiting.notifications.pop_front()
        {
            bytes += notification.payload.len() + NOTIFICATION_BYTES;
            shares += share;
            taken.push(notification);
        }
        waiting.bytes -= bytes;
        let held = waiting.held.bytes() - shares;
        waiting.held.set(held);
        Ok(taken)
    }

    /// `listeners` is how many share the payload.
    fn put(&self, notification: &Notification, listeners: usize) {
        {
            let mut waiting = self.waiting.lock();
            let payload = notification.payload.len();
            waiting.bytes += payload + NOTIFICATION_BYTES;
            let share = payload / listeners + NOTIFICATION_BYTES;
            let held = waiting.held.try_add(share);
            if self.is_overflown() || waiting.bytes > INBOX_BYTES_MAX || held.is_err() {
                // What is lost here would leave a stale copy there: the session ends, and its client starts again.
                self.overflown.store(true, Ordering::Relaxed);
                waiting.notifications = VecDeque::new();
                waiting.bytes = 0;
                waiting.held.set(0);
            } else {
                waiting.notifications.push_back((notification.clone(), share));
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

    /// What waits is taken in pieces, in order; the rest still counts.
    #[test]
    fn much_that_waits_is_taken_in_pieces() {
        let channels = Channels::default();
        let inbox = inbox();
        channels.listen("a", &inbox);
        (0..1_000).for_each(|n| channels.notify(1, "a", &format!("{n:01000}")));
        let mut heard: Vec<String> = Vec::new();
        let first = inbox.take().unwrap();
        assert!(first.len() < 100 && inbox.waiting.lock().held.bytes() > 800_000);
        heard.extend(first.iter().map(|heard| heard.payload.to_string()));
        loop {
            let more = inbox.take().unwrap();
            if more.is_empty() {
                break;
            }
            heard.extend(more.iter().map(|heard| heard.payload.to_string()));
        }
        assert_eq!(heard, (0..1_000).map(|n| format!("{n:01000}")).collect::<Vec<_>>());
        let waiting = inbox.waiting.lock();
        assert_eq!((waiting.bytes, waiting.held.bytes()), (0, 0));
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

//! A cache on a bus, without the bus: what it sends next, what it makes of an acknowledgement, where it goes on after a
//! start and after a break.

use std::sync::Arc;

use engine::{Operation, Outbox};

use crate::broken::{Break, Origin};
use crate::chain::Noted;
use crate::follow::{Follower, Heard, Numbered};
use crate::limits::{HEARTBEAT_NODES, HEARTBEAT_NS, MESSAGE_BYTES};
use crate::wire::{Body, Heartbeat, Message};

/// A message that the bus has not acknowledged. It is sent again as it is, until it has.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The bus takes two of one name for one.
    pub(crate) name: String,
    pub(crate) bytes: Arc<[u8]>,
    /// It is only to be stored behind this message.
    pub(crate) behind: Option<u64>,
    message: Message,
}

impl Flight {
    fn of(message: Message) -> Self {
        let name = format!("{:016x}-{}", message.node, message.counter);
        Self { name, bytes: message.encode().into(), behind: None, message }
    }

    /// It comes too late to give others the rows in it, so it takes them back. It keeps its name: if the bus had it in
    /// time, it still has that.
    fn withdraw_rows(&mut self) {
        let Body::Operations(operations) = &mut self.message.body else { return };
        if operations.iter().any(|operation| matches!(operation, Operation::Row { .. })) {
            *operations = std::mem::take(operations).into_iter().map(Operation::withdrawn).collect();
            self.bytes = self.message.encode().into();
        }
    }
}

/// Where a message is stored: behind the one number, and no later than at the other. Nothing else is said of it where
/// numbers are places in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) behind: u64,
    pub(crate) by: u64,
}

impl Stored {
    /// As exactly this number, of those that count.
    pub(crate) fn at(sequence: u64) -> Self {
        Self { behind: sequence.saturating_sub(1), by: sequence }
    }
}

/// Where to go on when the bus is there, or there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Behind what was heard.
    GoesOn,
    /// At another place, and what was in between is not known.
    Anew(Option<Break>),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Member {
    node: u64,
    name: String,
    numbered: Numbered,
    /// Which log it has heard.
    origin: Option<Origin>,
    /// Messages sent so far.
    counter: u64,
    flight: Option<Flight>,
    follower: Follower,
    /// It knows a place where to go on.
    has_place: bool,
    /// The stream has lost something: everybody is to hear of that.
    announces: bool,
    beaten_ns: Option<u64>,
}

impl Member {
    /// A cache that has heard so far in a process before, and of which log; none: nothing of it is known.
    pub(crate) fn new(
        node: u64,
        name: &str,
        numbered: Numbered,
        (heard, origin): (Option<Noted>, Option<Origin>),
    ) -> Self {
        let sequence = heard.map_or(0, |heard| heard.seen.sequence);
        Self {
            node,
            name: name.to_owned(),
            numbered,
            origin,
            counter: 0,
            flight: None,
            follower: Follower::at(node, numbered, sequence, heard),
            has_place: heard.is_some(),
            announces: false,
            beaten_ns: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn omit(&mut self, checks: u8) {
        self.follower.omit(checks);
    }

    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    pub(crate) fn follower(&self) -> &Follower {
        &self.follower
    }

    /// Whether it knows where to go on.
    pub(crate) fn has_place(&self) -> bool {
        self.has_place
    }

    /// The message that is to be acknowledged.
    pub(crate) fn flight(&self) -> Option<&Flight> {
        self.flight.as_ref()
    }

    /// When the next heartbeat is due.
    pub(crate) fn heartbeat_due_ns(&self, now_ns: u64) -> u64 {
        let nodes = self.follower.nodes().alive(now_ns).count() as u64;
        let pause = HEARTBEAT_NS.max(HEARTBEAT_NS.saturating_mul(nodes) / HEARTBEAT_NODES);
        self.beaten_ns.map_or(now_ns, |beaten| beaten.saturating_add(pause))
    }

    /// Takes the next message out, if none is under way: what the outbox has, or a heartbeat when that is due.
    pub(crate) fn prepare(&mut self, outbox: &Outbox, now_ns: u64) -> Option<&Flight> {
        if self.flight.is_some() {
            return None;
        }
        if now_ns >= self.heartbeat_due_ns(now_ns) {
            return Some(self.heartbeat(outbox, self.may_begin(), now_ns));
        }
        let operations = outbox.take(MESSAGE_BYTES, now_ns)?;
        Some(self.send(Body::Operations(operations), now_ns))
    }

    /// The message that is under way is about to be sent, maybe once more.
    pub(crate) fn look_at_flight(&mut self, outbox: &Outbox, now_ns: u64) {
        if let Some(flight) = self.flight.as_mut().filter(|_| outbox.withdraws(now_ns)) {
            flight.withdraw_rows();
        }
    }

    /// A heartbeat, whether it is due or not: when it is acknowledged, the stream is known to go on. Only where nothing
    /// is under way.
    pub(crate) fn beat(&mut self, outbox: &Outbox, now_ns: u64) -> &Flight {
        self.heartbeat(outbox, false, now_ns)
    }

    /// Whether it may give the stream a history: everybody who knows one has said so by now.
    fn may_begin(&self) -> bool {
        self.follower.epoch().is_none() && self.has_place && self.follower.is_settled()
    }

    fn heartbeat(&mut self, outbox: &Outbox, begins: bool, now_ns: u64) -> &Flight {
        self.beaten_ns = Some(now_ns);
        let follower = &self.follower;
        let lag = follower.fresh_ns().map_or(0, |fresh| now_ns.saturating_sub(fresh));
        let announces = std::mem::take(&mut self.announces);
        // Of several who begin one, one does: the bus looks for that, or who hears it.
        let behind = (begins && !announces).then(|| follower.last());
        let heartbeat = Heartbeat {
            name: self.name.clone(),
            lag_ms: lag / 1_000_000,
            outbox: outbox.len() as u64,
            epoch: (begins || announces).then(|| fastrand::u64(1..)),
            behind: behind.filter(|_| self.numbered == Numbered::ByPlaces),
        };
        let behind = behind.filter(|_| self.numbered == Numbered::OneByOne);
        let flight = self.send(Body::Heartbeat(heartbeat), now_ns);
        flight.behind = behind;
        flight
    }

    fn send(&mut self, body: Body, now_ns: u64) -> &mut Flight {
        self.counter += 1;
        let counter = self.counter;
        self.follower.note_sent(counter, now_ns);
        let message = Message { node: self.node, counter, seen: self.follower.seen(), body };
        self.flight.insert(Flight::of(message))
    }

    /// The bus has stored the message that was under way; none: it had it before, and it is not known where.
    pub(crate) fn acknowledged(&mut self, outbox: &Outbox, stored: Option<Stored>) -> Result<(), Break> {
        let Some(Flight { message, .. }) = self.flight.take() else { return Ok(()) };
        if matches!(message.body, Body::Operations(_)) {
            outbox.note_delivered();
        }
        match stored {
            Some(stored) if self.has_place => self.follower.check_stored(stored.by, message.counter),
            _ => Ok(()),
        }
    }

    /// Which log has the messages from now on. Where it is another one, what was heard is no place in it.
    pub(crate) fn meet(&mut self, origin: Origin) -> Result<(), Break> {
        let before = self.origin.replace(origin.clone());
        match before {
            Some(from) if from != origin && self.has_place => {
                self.follower.found(Break::Moved { from, to: origin })
            }
            _ => Ok(()),
        }
    }

    /// Which log has the messages.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The bus refuses to store it where it was to be stored, and will never have it: another takes its number.
    pub(crate) fn refused(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.counter = flight.message.counter - 1;
        }
    }

    /// The history is broken: what is sent from now on does not speak of it.
    pub(crate) fn lose_history(&mut self, broken: &Break) {
        self.follower.go_on_at(self.follower.last());
        self.has_place = false;
        self.announces |= broken.is_everybodys();
        if let Some(flight) = self.flight.take() {
            self.flight = Some(Flight::of(Message { seen: None, ..flight.message }));
        }
    }

    /// Where to go on, after a message of ours was stored just now.
    pub(crate) fn join(&mut self, stored: Stored) -> Joined {
        let (applied, end) = (self.follower.last(), stored.by);
        if self.has_place && end > applied {
            self.follower.look_back();
            return Joined::GoesOn;
        }
        let broken = self.has_place.then_some(Break::Ended { applied, end });
        if let Some(broken) = &broken
            && self.follower.found(broken.clone()).is_ok()
        {
            return Joined::GoesOn;
        }
        if let Some(broken) = &broken {
            self.lose_history(broken);
        }
        self.follower.go_on_at(stored.behind);
        self.has_place = true;
        Joined::Anew(broken)
    }

    /// Whether all that it sent has come back. Of keys that it wrote, none is under way then but those in the outbox.
    pub(crate) fn is_all_back(&self) -> bool {
        self.flight.is_none() && self.follower.own_back() == Some(self.counter)
    }

    /// Hears a message of the stream.
    pub(crate) fn hear(&mut self, sequence: u64, bytes: &[u8], now_ns: u64) -> Result<Heard, Break> {
        self.follower.hear(sequence, bytes, now_ns)
    }
}

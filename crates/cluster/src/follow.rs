//! What is believed of a stream: each message is checked before it is applied. What fails a check is a break: something
//! may be missing, and nobody can say what.

use std::collections::VecDeque;

use engine::Operation;

use crate::broken::Break;
use crate::chain::{Chain, Compared, Noted, Seen};
use crate::limits::{SENT_KEPT, SETTLED_AFTER};
use crate::nodes::{Follows, Nodes};
use crate::wire::{Body, Heartbeat, Message, Unreadable};

/// What the numbers of messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbered {
    /// Each is one more than the last. So a missing message is noticed by the next one.
    #[default]
    OneByOne,
    /// Each is greater than the last, as a place in a log is. Whether one is missing between two of them the numbers do
    /// not say: the counters of the senders and the chain do. A repeat is another message.
    ByPlaces,
}

/// What a message is to the cache that hears it.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// One of our own came back, and what it says; whether it had come back before.
    Own { operations: Vec<Operation>, again: bool },
    /// Nothing is to be done.
    Nothing,
    /// This is to be applied.
    Apply(Vec<Operation>),
    /// Some before it did not come. The stream may have them, so it is asked once more.
    Missed,
    /// It says nothing that can be understood, so any row may be meant.
    Unreadable(Unreadable),
}

/// Follows a stream.
#[derive(Debug)]
pub(crate) struct Follower {
    /// Checks that are left out, to see that a test notices it.
    #[cfg(test)]
    omits: u8,
    own: u64,
    numbered: Numbered,
    chain: Chain,
    nodes: Nodes,
    /// The last of our own that came back; none: since the history was taken up here.
    own_back: Option<u64>,
    /// How many of our own heartbeats came back since then.
    returned: u64,
    /// Where that was.
    since: u64,
    /// The last message that was heard is to come once more, to see that it is still the same.
    looks_back: bool,
    /// Behind this message some did not come, and the stream was asked once more.
    missed_behind: Option<u64>,
    /// Our own that are under way, each with when it was sent first.
    sent: VecDeque<(u64, u64)>,
    /// When the newest of our own that came back was sent.
    fresh_ns: Option<u64>,
}

impl Follower {
    /// From this place on, by a history that is known there or not.
    pub(crate) fn at(own: u64, numbered: Numbered, sequence: u64, known: Option<Noted>) -> Self {
        Self {
            #[cfg(test)]
            omits: 0,
            own,
            numbered,
            chain: Chain::at(sequence, known),
            nodes: Nodes::default(),
            own_back: None,
            returned: 0,
            since: sequence,
            looks_back: false,
            missed_behind: None,
            sent: VecDeque::new(),
            fresh_ns: None,
        }
    }

    /// Takes the history up at another place: what lies between is not known.
    pub(crate) fn go_on_at(&mut self, sequence: u64) {
        self.chain = Chain::at(sequence, None);
        self.nodes.forget_all();
        self.since = sequence;
        self.looks_back = false;
        (self.own_back, self.returned, self.fresh_ns) = (None, 0, None);
    }

    /// Goes on behind the last message that was heard. The stream may have lost that and others, and may have given
    /// their numbers to messages that were not heard here. So it is to come once more, if it would be known again.
    pub(crate) fn look_back(&mut self) {
        self.looks_back = self.chain.knows_last();
    }

    /// The message that is to come first.
    pub(crate) fn from(&self) -> u64 {
        self.chain.last() + u64::from(!self.looks_back)
    }

    /// The last message that was heard.
    pub(crate) fn last(&self) -> u64 {
        self.chain.last()
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.chain.seen()
    }

    pub(crate) fn noted(&self) -> Option<Noted> {
        self.chain.noted()
    }

    /// What another cache's history has in common with this one's.
    pub(crate) fn compare(&self, seen: Seen) -> Compared {
        self.chain.compare(seen)
    }

    pub(crate) fn epoch(&self) -> Option<u64> {
        self.chain.epoch()
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// When the newest of our own messages that came back was sent: all that was in the stream then is applied.
    pub(crate) fn fresh_ns(&self) -> Option<u64> {
        self.fresh_ns
    }

    /// The last of our own that came back.
    pub(crate) fn own_back(&self) -> Option<u64> {
        self.own_back
    }

    /// Whether everybody who is there has been heard since the history was taken up here.
    pub(crate) fn is_settled(&self) -> bool {
        self.returned >= SETTLED_AFTER
    }

    #[cfg(test)]
    pub(crate) fn omit(&mut self, checks: u8) {
        self.omits = checks;
    }

    /// Something is wrong with the history.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "a test leaves checks out"))]
    pub(crate) fn found(&self, broken: Break) -> Result<(), Break> {
        #[cfg(test)]
        if self.omits & broken.check() > 0 {
            return Ok(());
        }
        Err(broken)
    }

    /// One of our own is sent.
    pub(crate) fn note_sent(&mut self, counter: u64, now_ns: u64) {
        self.sent.push_back((counter, now_ns));
        if self.sent.len() > SENT_KEPT {
            self.sent.pop_front();
        }
    }

    /// Hears a message of the stream. After a break nothing of it counts: see [`Self::go_on_at`].
    pub(crate) fn hear(&mut self, sequence: u64, bytes: &[u8], now_ns: u64) -> Result<Heard, Break> {
        if sequence <= self.chain.last() {
            return self.hear_again(sequence, bytes);
        }
        if self.skips(sequence) {
            if self.may_ask_again() {
                return Ok(Heard::Missed);
            }
            self.found(self.gap(sequence))?;
        }
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(why) => {
                self.chain.push(sequence, bytes);
                return Ok(Heard::Unreadable(why));
            }
        };
        let again = self.check_counter(&message)?;
        self.check_seen(sequence, &message)?;
        let begins = self.begins(&message);
        if let Some(epoch) = begins
            && self.chain.epoch().is_some_and(|own| own != epoch)
        {
            self.found(Break::Begun { node: message.node, sequence })?;
        }
        self.chain.push(sequence, bytes);
        let Message { node, counter, seen, body } = message;
        if let Some(epoch) = begins {
            self.chain.begin(epoch);
        }
        if let Some(seen) = seen {
            self.chain.learn(seen);
        }
        let known = self.nodes.note(sequence, (node, counter, seen), now_ns);
        let (operations, beats) = match body {
            Body::Heartbeat(said) => {
                known.said = said;
                (Vec::new(), true)
            }
            Body::Operations(operations) => (operations, false),
        };
        if node == self.own {
            self.returned += u64::from(beats && !again);
            self.note_back(counter);
            return Ok(Heard::Own { operations, again });
        }
        Ok(if operations.is_empty() { Heard::Nothing } else { Heard::Apply(operations) })
    }

    /// Whether a message that comes is not the one that was to come.
    fn skips(&self, sequence: u64) -> bool {
        // By places only that is known which was heard before, and is to come once more.
        sequence != self.from() && (self.numbered == Numbered::OneByOne || self.looks_back)
    }

    /// What it is that another message came than the next. A log that is still there has no place of its own left out,
    /// so it is another one.
    fn gap(&self, came: u64) -> Break {
        match self.numbered {
            Numbered::OneByOne => Break::Gap { expected: self.from(), came },
            Numbered::ByPlaces => Break::Replaced { sequence: self.last() },
        }
    }

    /// The history that a message begins. Of several who would begin one at once, the first does.
    fn begins(&self, message: &Message) -> Option<u64> {
        let Body::Heartbeat(Heartbeat { epoch: Some(epoch), behind, .. }) = message.body else { return None };
        behind.is_none_or(|behind| behind == self.chain.last()).then_some(epoch)
    }

    /// Whether what is missing may be lost on the way only: the delivery began with what was heard last, and the stream
    /// was not asked once more yet.
    fn may_ask_again(&mut self) -> bool {
        let last = self.chain.last();
        if self.looks_back || !self.chain.knows_last() || self.missed_behind == Some(last) {
            return false;
        }
        self.missed_behind = Some(last);
        true
    }

    /// What delivers the stream may begin again where it began, as when its server was killed. What was heard is not
    /// done once more, but it has to be the same.
    fn hear_again(&mut self, sequence: u64, bytes: &[u8]) -> Result<Heard, Break> {
        if self.chain.recall(sequence, bytes) == Compared::Other {
            self.found(Break::Replaced { sequence })?;
        }
        self.looks_back &= sequence < self.chain.last();
        Ok(Heard::Nothing)
    }

    /// Whether the sender's messages follow one another. Says whether this one came before.
    fn check_counter(&self, message: &Message) -> Result<bool, Break> {
        let Message { node, counter: came, .. } = *message;
        if node == self.own {
            return match self.own_back {
                Some(back) if came == back => Ok(true),
                Some(back) if came != back + 1 => {
                    self.found(Break::OwnLost { expected: back + 1, came }).map(|()| false)
                }
                _ => Ok(false),
            };
        }
        match self.nodes.follows(node, came) {
            Follows::Again => Ok(true),
            Follows::Not { expected } => self.found(Break::Counter { node, expected, came }).map(|()| false),
            Follows::New if came > 1 && self.is_settled() && self.began_since(message) => {
                self.found(Break::Counter { node, expected: 1, came }).map(|()| false)
            }
            Follows::Next | Follows::New => Ok(false),
        }
    }

    /// Whether a sender that was not met before began while this one listened, so that its first message was to be
    /// heard here. One that was there before, and was cut off since, has heard no more than there was then.
    fn began_since(&self, message: &Message) -> bool {
        message.seen.is_some_and(|seen| seen.sequence > self.since)
    }

    /// Whether the sender has heard what was heard here.
    fn check_seen(&self, sequence: u64, message: &Message) -> Result<(), Break> {
        let Some(seen) = message.seen else { return Ok(()) };
        if seen.sequence >= sequence || self.chain.compare(seen) == Compared::Other {
            return self.found(Break::History { node: message.node, sequence: seen.sequence });
        }
        Ok(())
    }

    /// Whether a message of ours that is stored just now, by this number at the latest, is where it must be: behind all
    /// that was heard.
    pub(crate) fn check_stored(&self, by: u64, counter: u64) -> Result<(), Break> {
        let (applied, is_back) = (self.last(), self.own_back.is_some_and(|back| back >= counter));
        if by > applied || is_back { Ok(()) } else { self.found(Break::Ended { applied, end: by }) }
    }

    fn note_back(&mut self, counter: u64) {
        self.own_back = Some(counter);
        while let Some(&(sent, at_ns)) = self.sent.front() {
            if sent > counter {
                break;
            }
            if sent == counter {
                self.fresh_ns = Some(at_ns);
            }
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u64 = 1;

    /// What another cache says as its first messages.
    fn said(counter: u64) -> Vec<u8> {
        let body = Body::Operations(Vec::new());
        Message { node: 2, counter, seen: None, body }.encode()
    }

    fn heard(messages: u64) -> Follower {
        let mut follower = Follower::at(OWN, Numbered::OneByOne, 0, None);
        for number in 1..=messages {
            assert_eq!(follower.hear(number, &said(number), 0), Ok(Heard::Nothing));
        }
        follower
    }

    #[test]
    fn what_is_delivered_again_is_no_break() {
        let mut follower = heard(3);
        for number in 1..=3 {
            assert_eq!(follower.hear(number, &said(number), 0), Ok(Heard::Nothing));
        }
        assert_eq!(follower.last(), 3);
        assert_eq!(follower.hear(2, &said(9), 0), Err(Break::Replaced { sequence: 2 }));
        assert_eq!(follower.hear(4, &said(4), 0), Ok(Heard::Nothing));
    }

    #[test]
    fn what_did_not_come_is_asked_for_once() {
        let mut follower = heard(3);
        assert_eq!(follower.hear(5, &said(5), 0), Ok(Heard::Missed));
        follower.look_back();
        for number in 3..=5 {
            assert_eq!(follower.hear(number, &said(number), 0), Ok(Heard::Nothing));
        }
        // Somebody has removed the sixth.
        assert_eq!(follower.hear(7, &said(7), 0), Ok(Heard::Missed));
        follower.look_back();
        assert_eq!(follower.hear(5, &said(5), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(7, &said(7), 0), Err(Break::Gap { expected: 6, came: 7 }));
        // Of one that has heard nothing yet the stream cannot be asked.
        let mut new = Follower::at(OWN, Numbered::OneByOne, 7, None);
        assert_eq!(new.hear(9, &said(9), 0), Err(Break::Gap { expected: 8, came: 9 }));
    }

    #[test]
    fn who_goes_on_hears_the_last_message_once_more() {
        let mut follower = heard(3);
        assert_eq!(follower.from(), 4);
        follower.look_back();
        assert_eq!(follower.from(), 3);
        assert_eq!(follower.hear(4, &said(4), 0), Err(Break::Gap { expected: 3, came: 4 }), "it expired");
        assert_eq!(follower.hear(3, &said(7), 0), Err(Break::Replaced { sequence: 3 }));
        assert_eq!(follower.hear(2, &said(2), 0), Ok(Heard::Nothing));
        assert_eq!(follower.from(), 3, "an older one says nothing of it");
        assert_eq!(follower.hear(3, &said(3), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(4, &said(4), 0), Ok(Heard::Nothing));
        // Where nothing was heard, nothing can be compared.
        let mut new = Follower::at(OWN, Numbered::OneByOne, 7, None);
        new.look_back();
        assert_eq!(new.from(), 8);
    }

    /// By places the numbers do not say whether one is missing between them. What was heard last says it, and the
    /// senders' counters do.
    #[test]
    fn places_may_lie_apart() {
        let mut follower = Follower::at(OWN, Numbered::ByPlaces, 90, None);
        assert_eq!(follower.hear(100, &said(1), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(250, &said(2), 0), Ok(Heard::Nothing));
        let missing = Break::Counter { node: 2, expected: 3, came: 4 };
        assert_eq!(follower.hear(300, &said(4), 0), Err(missing));
        // One that was sent once more, because its answer did not come, is another message.
        assert_eq!(follower.hear(310, &said(2), 0), Ok(Heard::Nothing));
        follower.look_back();
        assert_eq!(follower.from(), 310);
        assert_eq!(follower.hear(400, &said(3), 0), Err(Break::Replaced { sequence: 310 }));
        assert_eq!(
            follower.hear(200, &said(3), 0),
            Err(Break::Replaced { sequence: 200 }),
            "nothing was there"
        );
        assert_eq!(follower.hear(310, &said(2), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(400, &said(3), 0), Ok(Heard::Nothing));
    }

    /// Where the bus itself stores a message whatever came before, the caches look whether it begins the history.
    #[test]
    fn of_two_who_begin_a_history_the_first_does() {
        let begin = |node, epoch, behind| {
            let said = Heartbeat { epoch: Some(epoch), behind: Some(behind), ..Heartbeat::default() };
            Message { node, counter: 1, seen: None, body: Body::Heartbeat(said) }.encode()
        };
        let mut follower = Follower::at(OWN, Numbered::ByPlaces, 90, None);
        assert_eq!(follower.hear(100, &said(1), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(110, &begin(3, 7, 100), 0), Ok(Heard::Nothing));
        assert_eq!(follower.hear(120, &begin(4, 8, 100), 0), Ok(Heard::Nothing));
        assert_eq!(follower.epoch(), Some(7));
        // One that does not know what was before waits until somebody says so.
        let mut late = Follower::at(OWN, Numbered::ByPlaces, 105, None);
        assert_eq!(late.hear(110, &begin(3, 7, 100), 0), Ok(Heard::Nothing));
        assert_eq!(late.epoch(), None);
    }
}

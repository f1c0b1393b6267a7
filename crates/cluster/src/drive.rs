//! A cache's life on a bus, whatever carries it: it joins, hears, sends, and joins again after whatever went wrong.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use engine::{Bus, Engine, NodeFacts};
use store::definition::ServerDef;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::apply::Applier;
use crate::broken::{Break, Origin};
use crate::carrier::{Answer, Answering, Begun, Carrier, Delivered, Delivery, Failure, Link, Words};
use crate::chain::Noted;
use crate::follow::{Heard, Numbered};
use crate::guard::max_lag;
use crate::limits::{FAREWELL, LOOK_INTERVAL, NOTE_NS, OWES_AFTER_NS, RETRY_PAUSE, SAY_WAIT};
use crate::member::{Joined, Member, Stored};
use crate::rejoin::{At, Out, Rejoin, Word};
use crate::settled::{self, Settled};
use crate::wire::Unreadable;
use crate::{noted, shown};

/// What ended the following of a stream without an error.
enum Ended {
    Stopped,
    /// The history is broken, or nothing comes any more.
    JoinAgain,
}

/// What a bus's thread works with.
pub(crate) struct Driver {
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    stop: Arc<AtomicBool>,
    /// Set when rows may be served, because they are fresh.
    ready: Arc<AtomicBool>,
    /// Called when the outbox has something.
    notify: Arc<Notify>,
    member: Member,
    applier: Applier,
    settled: Settled,
    rejoin: Rejoin,
    /// Words of another version of this program have come.
    met_others: bool,
    max_lag_ns: u64,
    stopping: Option<Instant>,
    /// When something came of the stream.
    heard_ns: u64,
    noted_ns: u64,
    /// How often rows had gone when that was written down last.
    noted_losses: u64,
    connected: bool,
}

impl Driver {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        server: &ServerDef,
        bus: &Arc<Bus>,
        (stop, ready): (&Arc<AtomicBool>, &Arc<AtomicBool>),
        numbered: Numbered,
    ) -> Self {
        let node = fastrand::u64(1..);
        let believed = noted::read(engine, bus.name());
        let known = (believed.heard, believed.origin);
        let member = Member::new(node, &shown::own_name(), numbered, known);
        bus.update(|facts| facts.node = node);
        // Where nothing is known, nothing is believed.
        if believed.heard.is_some() {
            settled::forget_untold(engine, bus, believed.told_stamp);
            believed.wants.iter().for_each(|table| bus.want(table));
        }
        if believed.owes {
            noted::tell_all_rows(engine, bus);
        }
        let notify = Arc::new(Notify::new());
        let called = Arc::clone(&notify);
        bus.outbox.on_push(move || called.notify_one());
        let max_lag_ns = u64::try_from(max_lag(server).as_nanos()).unwrap_or(u64::MAX);
        Self {
            engine: Arc::clone(engine),
            bus: Arc::clone(bus),
            stop: Arc::clone(stop),
            ready: Arc::clone(ready),
            notify,
            member,
            applier: Applier::new(engine, bus),
            settled: Settled::default(),
            rejoin: Rejoin::new(node),
            met_others: false,
            max_lag_ns,
            stopping: None,
            heard_ns: bus.now_ns(),
            noted_ns: 0,
            noted_losses: 0,
            connected: false,
        }
    }

    /// Until it is to stop.
    pub(crate) async fn run(mut self, mut carrier: impl Carrier) {
        while !self.must_stop() {
            let ended = self.session(&mut carrier).await;
            self.connected = false;
            let Err(failure) = ended else { break };
            self.bus.update(|facts| facts.last_error = Some(failure.to_string()));
            self.bus.set_fresh(None);
            if self.bus.enter("lost") {
                tracing::warn!(bus = %self.bus.name(), "bus is lost: {failure}");
                self.bus.update(|facts| facts.reconnects += 1);
            }
            if self.patiently(sleep(RETRY_PAUSE)).await.is_none() {
                break;
            }
        }
        let last = self.place();
        self.settled.end(&self.engine, &self.bus, last);
    }

    /// It is to stop, and has said what it had to say, or cannot.
    fn must_stop(&mut self) -> bool {
        // Relaxed: the flag carries no data.
        if !self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let since = *self.stopping.get_or_insert_with(now);
        !self.connected || self.bus.outbox.is_empty() || since.elapsed() >= FAREWELL
    }

    /// Waits for something, and looks at the time meanwhile. None: it is to stop.
    async fn patiently<T>(&mut self, awaited: impl Future<Output = T>) -> Option<T> {
        let mut awaited = pin!(awaited);
        loop {
            if let Ok(done) = timeout(LOOK_INTERVAL, awaited.as_mut()).await {
                return Some(done);
            }
            self.look();
            if self.must_stop() {
                return None;
            }
        }
    }

    async fn session<C: Carrier>(&mut self, carrier: &mut C) -> Result<(), Failure> {
        let Some(link) = self.patiently(carrier.connect()).await else { return Ok(()) };
        let mut link = link?;
        let node = self.member.node();
        let Some(words) = self.patiently(link.listen(node)).await else { return Ok(()) };
        let mut words = words?;
        self.connected = true;
        if let Err(broken) = self.member.meet(link.origin()) {
            self.break_off(&broken);
        }
        loop {
            if !self.join(&link).await? {
                return Ok(());
            }
            if let Ended::Stopped = self.follow(&mut link, &mut words, C::SILENCE_NS).await? {
                return Ok(());
            }
        }
    }

    /// Has a heartbeat stored, which proves that the stream is there, and finds out where to go on. False: it is to
    /// stop.
    async fn join(&mut self, link: &impl Link) -> Result<bool, Failure> {
        self.bus.enter("joining");
        let stored = loop {
            let beats = self.member.flight().is_none();
            if beats {
                self.member.beat(&self.bus.outbox, self.bus.now_ns());
            }
            self.member.look_at_flight(&self.bus.outbox, self.bus.now_ns());
            let Some(answer) = self.patiently(self.publish(link)).await else { return Ok(false) };
            let stored = self.take_answer(answer?);
            if let Some(stored) = stored.filter(|_| beats) {
                break stored;
            }
        };
        if let Joined::Anew(broken) = self.member.join(stored) {
            if let Some(broken) = broken {
                self.note_break(&broken);
            }
            noted::forget(&self.engine, self.bus.name());
            self.settled = Settled::default();
            // What was stored before this place does not come back.
            self.bus.outbox.forget_sent();
            self.applier.distrust_all(true);
        }
        self.heard_ns = self.bus.now_ns();
        Ok(true)
    }

    /// Hears and sends.
    async fn follow<L: Link>(
        &mut self,
        link: &mut L,
        words: &mut L::Words,
        silence_ns: u64,
    ) -> Result<Ended, Failure> {
        let from = self.member.follower().from();
        let Some(begun) = self.patiently(link.deliver(from)).await else { return Ok(Ended::Stopped) };
        let mut messages = match begun? {
            Begun::Delivers(messages) => messages,
            Begun::Gone(came) => {
                self.break_off(&Break::Gap { expected: from, came });
                return Ok(Ended::JoinAgain);
            }
        };
        let mut under_way: Option<Answering> = None;
        let mut looked = now();
        loop {
            if under_way.is_none() {
                self.member.prepare(&self.bus.outbox, self.bus.now_ns());
                self.member.look_at_flight(&self.bus.outbox, self.bus.now_ns());
                under_way = self.member.flight().is_some().then(|| self.publish(link));
            }
            let idle = under_way.is_none();
            let gives_more = self.get_rows(link).await;
            tokio::select! {
                answer = or_never(&mut under_way) => {
                    under_way = None;
                    self.take_answer(answer?);
                    if !self.member.has_place() {
                        return Ok(Ended::JoinAgain);
                    }
                }
                delivered = messages.next() => {
                    if !self.take_delivered(&delivered?) {
                        return Ok(Ended::JoinAgain);
                    }
                }
                word = words.next() => self.hear_word(link, word?.as_ref()).await,
                () = self.notify.notified(), if idle => {}
                () = yield_now(), if gives_more => {}
                () = sleep(LOOK_INTERVAL) => {}
            }
            if looked.elapsed() >= LOOK_INTERVAL {
                looked = now();
                self.look();
                if self.must_stop() {
                    return Ok(Ended::Stopped);
                }
                if self.bus.now_ns().saturating_sub(self.heard_ns) > silence_ns {
                    return Ok(Ended::JoinAgain);
                }
            }
        }
    }

    /// Does one step to get rows that are lacking here, or to give others what they lack. Says whether there is more to
    /// do at once.
    async fn get_rows(&mut self, link: &impl Link) -> bool {
        if let Some(tables) = self.applier.newly_wanted() {
            self.rejoin.want(tables);
        }
        if self.rejoin.is_idle() {
            return false;
        }
        let now_ns = self.bus.now_ns();
        let at = At { follower: self.member.follower(), now_ns, fresh: self.is_fresh(now_ns) };
        let (outs, more) = self.rejoin.turn(at, &mut self.applier);
        for out in outs {
            self.carry_out(link, out).await;
        }
        more
    }

    /// Hears what another cache says beside the stream.
    async fn hear_word(&mut self, link: &impl Link, bytes: &[u8]) {
        let word = match Word::decode(bytes) {
            Ok(word) if word.node == self.member.node() => return,
            Ok(word) => word,
            Err(why) => return self.refuse_word(why),
        };
        let now_ns = self.bus.now_ns();
        let at = At { follower: self.member.follower(), now_ns, fresh: self.is_fresh(now_ns) };
        if let Some(out) = self.rejoin.hear(word, at, &self.applier) {
            self.carry_out(link, out).await;
        }
    }

    /// A word that cannot be read does no harm: rows stay where they are.
    fn refuse_word(&mut self, why: Unreadable) {
        if !std::mem::replace(&mut self.met_others, true) {
            tracing::warn!(bus = %self.bus.name(), "a word about rows is not understood, nor are others like it: {why}");
        }
    }

    async fn carry_out(&mut self, link: &impl Link, out: Out) {
        match out {
            Out::Say(to, what) => {
                let word = Word { node: self.member.node(), what };
                let _lost = timeout(SAY_WAIT, link.say(to, word.encode())).await;
            }
            Out::Settled(table, how) => {
                self.applier.settle_wanted(&table);
                tracing::info!(bus = %self.bus.name(), table = %table, "{how}");
            }
            Out::Differs(table, node) => {
                let why = format!(
                    "table \"{table}\": node {node:016x} gives no rows: it has other columns, another key, another type \
                     or another option replicated there"
                );
                tracing::warn!(bus = %self.bus.name(), "{why}");
                self.bus.update(|facts| facts.last_unapplied = Some(why));
            }
        }
    }

    /// Sends the message that is under way.
    fn publish(&self, link: &impl Link) -> Answering {
        self.member.flight().map_or_else(|| Box::pin(pending()) as Answering, |flight| link.publish(flight))
    }

    /// Where the message that was under way is stored now; none: it was there before, or another takes its place.
    fn take_answer(&mut self, answer: Answer) -> Option<Stored> {
        let (stored, by) = match answer {
            Answer::Stored(stored) => (Some(stored), stored.by),
            Answer::Known(by) => (None, by),
            Answer::Refused => {
                self.member.refused();
                return None;
            }
        };
        self.bus.update(|facts| {
            facts.published += 1;
            facts.sent = by;
        });
        if let Err(broken) = self.member.acknowledged(&self.bus.outbox, stored) {
            self.break_off(&broken);
        }
        stored
    }

    /// Hears what has come. False: the history is broken, or has to be asked for once more.
    fn take_delivered(&mut self, delivered: &Delivered<impl AsRef<[u8]>>) -> bool {
        if let Some((sequence, bytes)) = &delivered.message
            && !self.hear(*sequence, bytes.as_ref())
        {
            return false;
        }
        // Who waits for it learns that it is applied.
        let applied = self.member.follower().last().max(delivered.passed);
        self.bus.update(|facts| facts.applied = applied);
        true
    }

    /// Checks a message and does what it says. False: the history is broken, or has to be asked for once more.
    fn hear(&mut self, sequence: u64, bytes: &[u8]) -> bool {
        let (now_ns, before) = (self.bus.now_ns(), self.member.follower().last());
        match self.member.hear(sequence, bytes, now_ns) {
            Ok(Heard::Nothing) => {}
            Ok(Heard::Own { operations, again }) => {
                self.applier.apply_own(&operations, again);
                self.rejoin.note(sequence, &operations);
                if operations.is_empty() && self.member.is_all_back() {
                    self.bus.outbox.forget_sent();
                }
            }
            Ok(Heard::Missed) => return false,
            Ok(Heard::Apply(operations)) => {
                self.applier.apply(&operations);
                self.rejoin.note(sequence, &operations);
            }
            Ok(Heard::Unreadable(why)) => {
                tracing::warn!(bus = %self.bus.name(), "all tables of the bus are distrusted: {why}");
                self.bus.update(|facts| {
                    facts.unapplied += 1;
                    facts.last_unapplied = Some(why.to_string());
                });
                self.applier.distrust_all(true);
            }
            Err(broken) => {
                self.break_off(&broken);
                return false;
            }
        }
        let applied = self.member.follower().last();
        // What comes once more is no sign that the stream goes on.
        if applied > before {
            self.heard_ns = now_ns;
        }
        if self.bus.fresh_ns().is_none() {
            self.show_freshness();
        }
        true
    }

    /// The history is broken.
    fn break_off(&mut self, broken: &Break) {
        self.note_break(broken);
        self.member.lose_history(broken);
    }

    fn note_break(&self, broken: &Break) {
        tracing::warn!(bus = %self.bus.name(), "all tables of the bus are distrusted: {broken}");
        self.bus.update(|facts| {
            facts.breaks += 1;
            facts.last_break = Some(broken.to_string());
        });
    }

    /// Looks whether it is fresh, and at what is to be done from time to time.
    fn look(&mut self) {
        self.applier.adopt_tables();
        self.show_freshness();
        let now_ns = self.bus.now_ns();
        let owes =
            self.bus.outbox.oldest_ns().is_some_and(|oldest| now_ns.saturating_sub(oldest) > OWES_AFTER_NS);
        if now_ns.saturating_sub(self.noted_ns) >= NOTE_NS
            || self.noted_losses != self.bus.losses()
            || owes && !noted::owes(&self.engine, self.bus.name())
        {
            self.note();
            let nodes = shown::nodes(&self.bus, &self.member, now_ns);
            self.warn_of_namesakes(&nodes);
            self.bus.set_nodes(nodes);
        }
    }

    /// Warns when others with the name of this cache come.
    fn warn_of_namesakes(&self, nodes: &[NodeFacts]) {
        let namesakes = nodes.iter().filter(|node| node.namesake).count() as u64;
        let before = self.bus.facts().namesakes;
        if namesakes > before
            && let Some(own) = nodes.iter().find(|node| node.own)
        {
            tracing::warn!(
                bus = %self.bus.name(), name = %own.name,
                "another cache on the bus has the name of this one, so nobody can tell them apart: give its machine or \
                 container a host name of its own, and start it again"
            );
        }
        if namesakes != before {
            self.bus.update(|facts| facts.namesakes = namesakes);
        }
    }

    /// Says since when it is fresh.
    fn show_freshness(&mut self) {
        let (now_ns, follower) = (self.bus.now_ns(), self.member.follower());
        let fresh_ns = follower.fresh_ns().filter(|_| self.connected);
        let is_fresh = self.is_fresh(now_ns);
        if is_fresh && self.bus.enter("streaming") {
            tracing::info!(bus = %self.bus.name(), "bus is streaming");
        } else if !is_fresh && fresh_ns.is_some() {
            self.bus.enter("lagging");
        }
        self.bus.set_fresh(fresh_ns);
        self.bus.update(|facts| facts.epoch = follower.epoch());
        if is_fresh {
            // Release: pairs with the Acquire of who waits for it to serve.
            self.ready.store(true, Ordering::Release);
        }
    }

    fn is_fresh(&self, now_ns: u64) -> bool {
        let fresh_ns = self.member.follower().fresh_ns().filter(|_| self.connected);
        fresh_ns.is_some_and(|fresh| now_ns.saturating_sub(fresh) <= self.max_lag_ns)
    }

    /// Writes down how far it has heard.
    fn note(&mut self) {
        self.noted_losses = self.bus.losses();
        self.noted_ns = self.bus.now_ns();
        let place = self.place();
        self.settled.note(&self.engine, &self.bus, place);
    }

    /// How far it has heard now, and which log.
    fn place(&self) -> Option<(Noted, Origin)> {
        let origin = self.member.origin().cloned().unwrap_or_default();
        self.member.follower().noted().map(|heard| (heard, origin))
    }
}

/// What an acknowledgement comes to; never, if none is awaited.
async fn or_never(under_way: &mut Option<Answering>) -> Result<Answer, Failure> {
    match under_way {
        Some(answering) => answering.await,
        None => pending().await,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what waits for others waits in real time, whatever clock the rows have"
)]
fn now() -> Instant {
    Instant::now()
}

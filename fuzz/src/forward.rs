//! What must hold for every stream of bytes of both sides of a forwarded session: the client's and the source's.

use std::sync::Arc;
use std::time::Duration;

use engine::testing::{Clock, Store, StoreOptions};
use engine::{Engine, EngineOptions};
use forward::{Answers, Forwards, Hands, Hub, Out, Session, definition_of};
use inspect::{Dependences, Verdict};

/// Which server the source is.
pub const IDENTITY: u64 = 7;

/// Bytes that a session may hold of messages that have not come whole: a group, and a message of the source.
const HELD_MAX: usize = 1 << 20;

/// Kinds of messages of a client, and of a source.
const OF_CLIENT: &[u8] = b"QPBDECSHXdcfFp";
const OF_SOURCE: &[u8] = b"ZDTCE123tnISNAGHWKR";

/// Texts and names, of which bodies are made.
const WORDS: &[&[u8]] = &[
    b"\0",
    b"s\0",
    b"S",
    b"P",
    b"SELECT 1 AS a\0",
    b"SELECT 2 AS b\0",
    b"BEGIN\0",
    b"COMMIT\0",
    b"DISCARD ALL\0",
    b"I",
    b"T",
    b"\0\0",
    b"\0\0\0\0",
    b"\0\x01",
];

/// Where answers are kept.
#[derive(Debug)]
pub struct World {
    pub answers: Answers,
    pub hub: Arc<Hub>,
}

impl World {
    pub fn new() -> Self {
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::System,
            row_bytes_max: 1 << 20,
        };
        let store = Store::open(&options).expect("a world").store;
        let engine = Engine::new(store, EngineOptions::default());
        let mut answers = Answers::new(&engine);
        let server =
            "CREATE SERVER shop FOREIGN DATA WRAPPER postgres OPTIONS (publication 'cache', cache 'auto')";
        answers.define(&[server.to_owned()]).expect("a world");
        answers.define(&definition_of("shop")).expect("a world");
        let hub = Forwards::default().hub("shop");
        hub.set_identity(IDENTITY);
        hub.define(1);
        hub.follow(Vec::new());
        hub.show(|_| true);
        hub.set_live(true);
        Self { answers, hub }
    }

    /// What other threads do meanwhile: statements are inspected, places are passed.
    pub fn tend(&self, passes: bool) {
        while let Some(statement) = self.hub.next_inspection(Duration::ZERO) {
            let dependences = Dependences { parameter_types: vec![25; 4], ..Dependences::default() };
            self.hub
                .conclude::<()>(&statement, Verdict::Kept(dependences), || Ok(Vec::new()))
                .expect("a world");
        }
        self.hub.show(|_| true);
        if passes && let Some(place) = self.hub.next_place(Duration::ZERO) {
            self.hub.pass(place);
        }
    }
}

/// Runs one input: whatever both sides send, nothing panics, what is held is bounded, and a session that keeps nothing
/// changes no byte.
pub fn fuzz_forward(world: &mut World, data: &[u8]) {
    check(world, data, |_| ());
}

/// The same, where something happens to what a session forwards.
pub fn check(world: &mut World, data: &[u8], mistake: impl Fn(&mut Vec<u8>)) {
    let mut plain = Talk::new(Session::new(None, 0));
    let mut kept = Talk::new(Session::new(Some(Arc::clone(&world.hub)), IDENTITY));
    let mut rest = data;
    while let Some((&choice, behind)) = rest.split_first() {
        let (bytes, behind) = message(choice, behind);
        rest = behind;
        for talk in [&mut plain, &mut kept] {
            talk.say(choice & 1 == 0, &bytes, &mut world.answers);
        }
        if choice & 2 != 0 {
            world.tend(choice & 4 != 0);
        }
        mistake(&mut plain.to_source);
        assert!(plain.sent.starts_with(&plain.to_source), "the source gets what the client sent");
        assert!(plain.said.starts_with(&plain.to_client), "the client gets what the source said");
    }
}

/// What one choice makes of the input, and what is left of that.
fn message(choice: u8, data: &[u8]) -> (Vec<u8>, &[u8]) {
    let kinds = if choice & 1 == 0 { OF_CLIENT } else { OF_SOURCE };
    let (take, rest) = data.split_at(usize::from(choice >> 4).min(data.len()));
    if choice & 8 != 0 {
        return (take.to_vec(), rest);
    }
    let Some((&kind, words)) = take.split_first() else { return (Vec::new(), rest) };
    let body: Vec<u8> =
        words.iter().flat_map(|word| WORDS[usize::from(*word) % WORDS.len()]).copied().collect();
    let mut bytes = vec![kinds[usize::from(kind) % kinds.len()]];
    bytes.extend_from_slice(&u32::try_from(body.len() + 4).expect("a short body").to_be_bytes());
    bytes.extend(body);
    (bytes, rest)
}

/// A session, and what passed through it.
struct Talk {
    session: Session,
    sent: Vec<u8>,
    said: Vec<u8>,
    to_source: Vec<u8>,
    to_client: Vec<u8>,
}

impl Talk {
    fn new(session: Session) -> Self {
        let [sent, said, to_source, to_client] = [(); 4].map(|()| Vec::new());
        Self { session, sent, said, to_source, to_client }
    }

    fn say(&mut self, by_client: bool, bytes: &[u8], answers: &mut Answers) {
        let mut out = Out { client: &mut self.to_client, source: &mut self.to_source };
        let mut hands = Hands { answers, now_us: 0, waker: std::task::Waker::noop() };
        if by_client {
            self.sent.extend_from_slice(bytes);
            self.session.client_sent(bytes, &mut hands, &mut out);
        } else {
            self.said.extend_from_slice(bytes);
            self.session.source_sent(bytes, &mut hands, &mut out);
        }
        assert!(self.session.held() < HELD_MAX, "what is held is bounded");
    }
}

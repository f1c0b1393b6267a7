//! The commands of operators: statistics, lists of keys, limits, the end.
//!
//! A list of all keys is as long as the store is large. It goes out in slices, one a turn, and only while its reader
//! keeps up, so it holds up no other connection and takes no memory; the request stands at the front of the
//! connection's input until the last slice.

use std::sync::Arc;

use engine::{KeyDump, ListedKey, Subject};
use memcache::compose::stat;
use memcache::event::{DumpItem, cachedump, metadump, mgdump};
use memcache::{Classes, Dump, Reply, Request, Stats, compose};

use crate::connection::Connection;
use crate::conns::Gathering;
use crate::dialogue::{Desk, Executed};
use crate::limits::{CACHE_DUMP_BYTES_MAX, DUMP_STEPS_PER_TURN, SEND_AT_BYTES, SLAB_CLASS};
use crate::reply::{prefix_line, write_answer};

/// What `stats cachedump` answers where lists of keys are switched off; memcached's words.
const CACHE_DUMP_REFUSED: &str = "stats cachedump not allowed";

/// A list of keys that is being sent.
#[derive(Debug)]
pub(crate) struct Dumping {
    walk: KeyDump,
    form: Form,
    /// Keys that may still be listed.
    keys_left: u64,
    /// Bytes that may still be sent.
    bytes_left: usize,
}

/// How a list of keys is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Metadump,
    Mgdump,
    CacheDump,
}

/// A list of keys that is asked for.
struct Wanted {
    form: Form,
    /// Whether the slab class under which everything is reported is asked for.
    ours: bool,
    keys: u64,
    bytes: usize,
}

impl Dumping {
    /// The next slice. False: it was the last.
    fn slice(&mut self, desk: &mut Desk) -> bool {
        let Self { walk, form, keys_left, bytes_left } = self;
        let out = &mut desk.out;
        for _ in 0..DUMP_STEPS_PER_TURN {
            let more = walk.step(&desk.lane, &mut |key| {
                let before = out.len();
                if *keys_left > 0 && write_key(*form, key, out) {
                    let written = out.len() - before;
                    if written > *bytes_left {
                        out.truncate(before);
                        *keys_left = 0;
                    } else {
                        *bytes_left -= written;
                        *keys_left -= 1;
                    }
                }
            });
            if !more || *keys_left == 0 {
                return false;
            }
            if out.len() >= SEND_AT_BYTES {
                break;
            }
        }
        true
    }
}

/// Appends a key to a list; false if the list has no way to write it.
fn write_key(form: Form, key: &ListedKey<'_>, out: &mut Vec<u8>) -> bool {
    let ListedKey { key, expires_at, used_at, cas, fetched, size, value_bytes } = *key;
    let item = DumpItem { key, expires_at, used_at, cas, fetched, class: SLAB_CLASS, size, value_bytes };
    match form {
        Form::Metadump => metadump(&item, out),
        Form::Mgdump => mgdump(&item, out),
        Form::CacheDump if key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) => return false,
        Form::CacheDump => cachedump(&item, out),
    }
    true
}

impl Desk {
    pub(crate) fn stats(&mut self, connection: &mut Connection, subject: Stats) -> Executed {
        let subject = match subject {
            Stats::General => Subject::General,
            Stats::Settings => Subject::Settings,
            Stats::Items => Subject::Items,
            Stats::Slabs => Subject::Slabs,
            Stats::Sizes => Subject::Sizes,
            Stats::Connections => return self.list_connections(connection),
            Stats::Reset => {
                let answer = connection.session.reset_stats(&mut self.lane);
                write_answer(&answer, &mut self.out);
                return Executed::Whole;
            }
            Stats::Detail { on } => {
                let done = connection.session.count_prefixes(&self.lane, on);
                return self.settle(done.map(|()| Reply::Ok));
            }
            Stats::DetailDump => return self.dump_prefixes(connection),
            Stats::CacheDump { class, limit } => {
                let keys = if limit == 0 { u64::MAX } else { u64::from(limit) };
                let ours = class == SLAB_CLASS;
                let wanted = Wanted { form: Form::CacheDump, ours, keys, bytes: CACHE_DUMP_BYTES_MAX };
                return self.list_keys(connection, &wanted);
            }
            _ => {
                compose(&Reply::Error, &mut self.out);
                return Executed::Whole;
            }
        };
        let out = &mut self.out;
        let given =
            connection.session.stats(&mut self.lane, subject, &mut |name, value| stat(name, value, out));
        self.settle(given.map(|()| Reply::End))
    }

    /// The commands that stand in no other place.
    pub(crate) fn operate(&mut self, connection: &mut Connection, request: &Request<'_>) -> Executed {
        let session = &connection.session;
        match *request {
            Request::Verbosity { level, noreply } => {
                let done = session.set_verbosity(&self.lane, level);
                if noreply { Executed::Whole } else { self.settle(done.map(|()| Reply::Ok)) }
            }
            Request::Operator { .. } => self.settle(Ok(Reply::Ok)),
            Request::Crawl => {
                let done = session.crawl(&self.lane);
                self.settle(done.map(|()| Reply::Ok))
            }
            #[cfg(debug_assertions)]
            Request::DebugTime(change) => {
                let (runs, seconds) = match change {
                    memcache::DebugTime::Pause => (Some(false), 0),
                    memcache::DebugTime::Resume => (Some(true), 0),
                    memcache::DebugTime::Add(seconds) => (None, seconds),
                };
                let done = session.move_clock(&self.lane, runs, seconds);
                self.settle(done.map(|()| Reply::Ok))
            }
            Request::CacheMemlimit { mebibytes, noreply } => {
                let done = session.set_memory_limit(&self.lane, mebibytes);
                let reply = |fits| if fits { Reply::Ok } else { Reply::MemlimitAdjustFailed };
                if noreply { Executed::Whole } else { self.settle(done.map(reply)) }
            }
            Request::Shutdown { .. } => match session.may_shut_down(&self.lane) {
                Ok(true) => {
                    crate::shared::ask_to_stop();
                    Executed::Last
                }
                refused => self.settle(refused.map(|_| Reply::ShutdownNotEnabled)),
            },
            Request::Dump { dump, classes } => self.dump(connection, dump, classes),
            Request::Watch(watch) => self.watch(connection, watch),
            _ => self.settle(Ok(Reply::Error)),
        }
    }

    fn settle(&mut self, outcome: Result<Reply<'_>, engine::Answer>) -> Executed {
        match outcome {
            Ok(reply) => compose(&reply, &mut self.out),
            Err(refusal) => write_answer(&refusal, &mut self.out),
        }
        Executed::Whole
    }

    fn dump(&mut self, connection: &mut Connection, dump: Dump, classes: Classes) -> Executed {
        let form = if dump == Dump::Mgdump { Form::Mgdump } else { Form::Metadump };
        let ours = classes.contains(SLAB_CLASS);
        self.list_keys(connection, &Wanted { form, ours, keys: u64::MAX, bytes: usize::MAX })
    }

    /// The next slice of a list of keys; the first begins it.
    fn list_keys(&mut self, connection: &mut Connection, wanted: &Wanted) -> Executed {
        let mut dumping = match connection.dumping.take() {
            Some(dumping) => dumping,
            None => match connection.session.dump_keys(&self.lane) {
                Err(refusal) => return self.settle(Err(refusal)),
                Ok(None) => return self.settle(Ok(refusal_of(wanted.form))),
                Ok(Some(walk)) => Box::new(Dumping {
                    walk,
                    form: wanted.form,
                    keys_left: wanted.keys,
                    bytes_left: wanted.bytes,
                }),
            },
        };
        if wanted.ours && dumping.slice(self) {
            connection.dumping = Some(dumping);
            return Executed::InPart;
        }
        self.out.extend_from_slice(if wanted.form == Form::Mgdump { b"EN\r\n" } else { b"END\r\n" });
        Executed::Whole
    }

    fn dump_prefixes(&mut self, connection: &Connection) -> Executed {
        let out = &mut self.out;
        let given = connection
            .session
            .dump_prefixes(&self.lane, &mut |prefix, counts| prefix_line(prefix, counts, out));
        self.settle(given.map(|()| Reply::End))
    }

    /// `stats conns`: every worker reports its own, and the last of them answers.
    fn list_connections(&mut self, connection: &mut Connection) -> Executed {
        let mut none = |_: &str, _: &str| {};
        if let Err(refusal) = connection.session.stats(&mut self.lane, Subject::Connections, &mut none) {
            return self.settle(Err(refusal));
        }
        // Workers that have ended tell nothing.
        if self.shared.is_draining() {
            return self.settle(Ok(Reply::End));
        }
        connection.statement = Some(engine::Cancel::new());
        Gathering::begin(connection.address, &self.mailbox, &self.colleagues);
        Executed::HandedOver
    }

    fn watch(&mut self, connection: &mut Connection, watch: memcache::Watch) -> Executed {
        let memcache::Watch { fetchers, mutations, evictions, connevents, deletions } = watch;
        let wish = engine::Watch { fetchers, mutations, evictions, connections: connevents, deletions };
        let end = crate::watch::end(connection.address, Arc::clone(&self.mailbox));
        match connection.session.watch(&self.lane, wish, end) {
            Ok(Some(watching)) => {
                connection.watching = Some(watching);
                self.settle(Ok(Reply::Ok))
            }
            Ok(None) => self.settle(Ok(Reply::NotAllowed(Dump::Watch))),
            Err(refusal) => self.settle(Err(refusal)),
        }
    }
}

fn refusal_of(form: Form) -> Reply<'static> {
    match form {
        Form::Metadump => Reply::NotAllowed(Dump::Metadump),
        Form::Mgdump => Reply::NotAllowed(Dump::Mgdump),
        Form::CacheDump => Reply::ClientError(CACHE_DUMP_REFUSED),
    }
}

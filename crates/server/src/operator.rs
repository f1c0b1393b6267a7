//! The commands of operators: statistics, lists of keys, limits, the end.

use std::sync::Arc;

use engine::Subject;
use memcache::compose::stat;
use memcache::{Classes, Dump, Reply, Request, Stats, compose};

use crate::connection::Connection;
use crate::dialogue::{Executed, RequestLoop};
use crate::limits::{CACHE_DUMP_BYTES_MAX, SLAB_CLASS};
use crate::listing::{Dumping, Form, Wanted, refusal_of};
use crate::mailbox::Gathering;
use crate::reply::{prefix_line, write_answer};

impl RequestLoop {
    pub(crate) fn stats(&mut self, connection: &mut Connection, subject: Stats) -> Executed {
        let subject = match subject {
            Stats::General => Subject::General,
            Stats::Settings => Subject::Settings,
            Stats::Items => Subject::Items,
            Stats::Slabs => Subject::Slabs,
            Stats::Sizes => Subject::Sizes,
            Stats::Connections => return self.list_connections(connection),
            Stats::Reset => {
                let answer = connection.session.reset_stats(&mut self.context);
                write_answer(&answer, &mut self.out);
                return Executed::Whole;
            }
            Stats::Detail { on } => {
                let done = connection.session.count_prefixes(&self.context, on);
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
            connection.session.stats(&mut self.context, subject, &mut |name, value| stat(name, value, out));
        self.settle(given.map(|()| Reply::End))
    }

    /// The commands that stand in no other place.
    pub(crate) fn operate(&mut self, connection: &mut Connection, request: &Request<'_>) -> Executed {
        let session = &connection.session;
        match *request {
            Request::Verbosity { level, noreply } => {
                let done = session.set_verbosity(&self.context, level);
                if noreply { Executed::Whole } else { self.settle(done.map(|()| Reply::Ok)) }
            }
            Request::Operator { command: memcache::Operator::RefreshCerts } => {
                let done = session.refresh_certificates(&self.context);
                self.settle(done.map(|()| Reply::Ok))
            }
            Request::Operator { .. } => self.settle(Ok(Reply::Ok)),
            Request::Crawl => {
                let done = session.crawl(&self.context);
                self.settle(done.map(|()| Reply::Ok))
            }
            #[cfg(debug_assertions)]
            Request::DebugTime(change) => {
                let (runs, seconds) = match change {
                    memcache::DebugTime::Pause => (Some(false), 0),
                    memcache::DebugTime::Resume => (Some(true), 0),
                    memcache::DebugTime::Add(seconds) => (None, seconds),
                };
                let done = session.move_clock(&self.context, runs, seconds);
                self.settle(done.map(|()| Reply::Ok))
            }
            Request::CacheMemlimit { mebibytes, noreply } => {
                let done = session.set_memory_limit(&self.context, mebibytes);
                let reply = |fits| if fits { Reply::Ok } else { Reply::MemlimitAdjustFailed };
                if noreply { Executed::Whole } else { self.settle(done.map(reply)) }
            }
            Request::Shutdown { .. } => match session.may_shut_down(&self.context) {
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
            None => match connection.session.dump_keys(&self.context) {
                Err(refusal) => return self.settle(Err(refusal)),
                Ok(None) => return self.settle(Ok(refusal_of(wanted.form))),
                Ok(Some(walk)) => Box::new(Dumping::new(walk, wanted)),
            },
        };
        if wanted.ours && dumping.slice(&self.context, &mut self.out) {
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
            .dump_prefixes(&self.context, &mut |prefix, counts| prefix_line(prefix, counts, out));
        self.settle(given.map(|()| Reply::End))
    }

    /// `stats conns`: every worker reports its own, and the last of them answers.
    fn list_connections(&mut self, connection: &mut Connection) -> Executed {
        let mut none = |_: &str, _: &str| {};
        if let Err(refusal) = connection.session.stats(&mut self.context, Subject::Connections, &mut none) {
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
        match connection.session.watch(&self.context, wish, end) {
            Ok(Some(watching)) => {
                connection.watching = Some(watching);
                connection.socket.notice_silent_end();
                self.settle(Ok(Reply::Ok))
            }
            Ok(None) => self.settle(Ok(Reply::NotAllowed(Dump::Watch))),
            Err(refusal) => self.settle(Err(refusal)),
        }
    }
}

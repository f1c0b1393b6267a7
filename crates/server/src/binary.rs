//! The binary protocol: executes its frames.

use std::ops::ControlFlow;

use engine::{Answer, Counter, MetaArithmetic, MetaDone, Subject};
use memcache::Then;
use memcache::binary::{self, Command, Id, Parsed, Request, Status, parse};

use crate::ahead::Window;
use crate::connection::Connection;
use crate::dialogue::{RequestLoop, Run, next_request};
use crate::frame::{asked_to_put, refuse, version, write_done, write_put, write_undone};
use crate::limits::{COMMANDS_PER_TURN, IN_PLACE_FROM_BYTES};
use crate::reply::{BinaryValue, ValueSink, prefix_line};

impl RequestLoop {
    /// Executes what is whole in `input`.
    #[inline]
    pub(crate) fn run_binary(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        let mut run = Run { end: input.len(), ..Run::default() };
        let mut budget = COMMANDS_PER_TURN;
        let mut window = Window::new();
        connection.stalled = false;
        connection.needed = 0;
        while let Some(rest) = next_request(connection, &input[run.consumed..], &mut run) {
            if budget == 0 || !connection.socket.keeps_up() {
                self.context.count(Counter::ConnYields, 1);
                connection.stalled = true;
                break;
            }
            budget -= 1;
            let limits = self.parser.limits();
            let Some(parsed) = window.next(&self.context, rest, |input| parse(limits, input)) else { break };
            if self.is_frame_behind_held(&parsed) {
                connection.stalled = true;
                break;
            }
            let goes_on = match parsed {
                Parsed::Complete { request, consumed } => {
                    run.progress = true;
                    let goes_on = self.execute_binary(connection, &request);
                    if connection.statement.is_some() {
                        // One that awaits a row is executed again when that has come; another is executed.
                        run.consumed += if connection.awaits_rows { 0 } else { consumed };
                        connection.stalled = run.consumed < input.len();
                        break;
                    }
                    run.consumed += consumed;
                    goes_on
                }
                Parsed::Incomplete { needed } => {
                    self.await_frame(connection, rest, needed, &mut run);
                    break;
                }
                refused => self.refuse_frame(connection, &refused, &mut run),
            };
            if goes_on.is_break() {
                connection.closing = true;
                break;
            }
            self.note_whole(connection);
        }
        self.await_bus(connection);
        self.whole = self.out.len();
        run
    }

    /// The beginning of a frame: the rest is waited for, or received where it is going to lie.
    #[cold]
    fn await_frame(&mut self, connection: &mut Connection, rest: &[u8], needed: usize, run: &mut Run) {
        connection.needed = needed;
        run.waits_for_peer = true;
        if needed >= IN_PLACE_FROM_BYTES
            && let Some(head) = self.begin_receiving(connection, rest)
        {
            run.end = run.consumed + head;
        }
    }

    /// A frame that is not executed; the last one where the stream cannot be trusted behind it.
    #[cold]
    fn refuse_frame(
        &mut self,
        connection: &mut Connection,
        refused: &Parsed<'_>,
        run: &mut Run,
    ) -> ControlFlow<()> {
        let Parsed::Refused { id, status, consumed, swallow, then, invalidate } = *refused else {
            return ControlFlow::Break(());
        };
        run.consumed += consumed;
        run.progress = true;
        connection.swallow = swallow;
        if let Some(key) = invalidate {
            connection.session.invalidate(&mut self.context, key);
        }
        id.refuse(status, &mut self.out);
        if then == Then::Close { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    #[inline]
    fn execute_binary(&mut self, connection: &mut Connection, request: &Request<'_>) -> ControlFlow<()> {
        match request.command {
            Command::Get { with_key } => self.fetch(connection, request, with_key, None),
            Command::Store { .. } | Command::Join { .. } => {
                let start = self.out.len();
                if let Some(asked) = asked_to_put(request) {
                    let session = &connection.session;
                    let done = session.put(&mut self.context, request.key, &asked, request.value);
                    write_put(done, request, &mut self.out);
                }
                self.after_telling(start, Some(request.id));
            }
            Command::GetAndTouch { with_key, exptime } => {
                self.fetch(connection, request, with_key, Some(exptime));
            }
            Command::Quit => {
                if !request.quiet {
                    request.id.answer(&binary::Answer::default(), &mut self.out);
                }
                return ControlFlow::Break(());
            }
            Command::Delete | Command::Flush { .. } | Command::Arithmetic { .. } | Command::Touch { .. } => {
                let start = self.out.len();
                self.execute_rare_binary(connection, request);
                self.after_telling(start, Some(request.id));
            }
            _ => self.execute_rare_binary(connection, request),
        }
        ControlFlow::Continue(())
    }

    fn execute_rare_binary(&mut self, connection: &Connection, request: &Request<'_>) {
        let Request { id, quiet, cas, key, .. } = *request;
        let (session, context, out) = (&connection.session, &mut self.context, &mut self.out);
        match request.command {
            Command::Touch { exptime } => match session.touch_version(context, key, exptime.into()) {
                Ok(Some(touched)) => id.found(b"", touched.client_flags, 0, touched.cas, out),
                Ok(None) => id.refuse(Status::NotFound, out),
                Err(refusal) => refuse(id, &refusal, out),
            },
            Command::Delete => match session.remove(context, key, version(cas)) {
                Ok(MetaDone::Done(_)) => write_done(id, quiet, out),
                outcome => write_undone(outcome, id, Status::NotFound, out),
            },
            Command::Arithmetic { decrement, delta, initial, exptime } => {
                let (compare, vivify) = (version(cas), exptime.map(i64::from));
                let asked = MetaArithmetic {
                    decrement,
                    delta,
                    compare,
                    vivify,
                    initial,
                    ..MetaArithmetic::default()
                };
                match session.calculate(context, key, &asked) {
                    Ok(MetaDone::Done(_)) if quiet => {}
                    Ok(MetaDone::Done(made)) => id.number(made.number, made.cas, out),
                    outcome => write_undone(outcome, id, Status::NotFound, out),
                }
            }
            Command::Flush { exptime } => match session.flush_all(context, exptime.map(i64::from)) {
                Answer::Ok => write_done(id, quiet, out),
                refusal => refuse(id, &refusal, out),
            },
            Command::Stat => self.stat(connection, id, key),
            Command::Version => {
                id.answer(
                    &binary::Answer { value: session.version().as_bytes(), ..binary::Answer::default() },
                    out,
                );
            }
            // The others were executed before.
            _ => write_done(id, quiet, out),
        }
    }

    /// Get, GetK, GAT and GATK.
    #[inline]
    fn fetch(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        with_key: bool,
        exptime: Option<u32>,
    ) {
        let Request { id, quiet, key, .. } = *request;
        let repeated = if with_key { key } else { b"" };
        let around = BinaryValue { id, key: repeated };
        let mut found = match connection.fetching {
            None => self.look_up_binary(connection, key, exptime, around),
            Some(_) => self.look_up_arrived(connection, key, exptime, around),
        };
        if matches!(found, Ok(false)) && self.context.take_missed() {
            if self.await_rows(connection, [key]) {
                return;
            }
            found = self.give_arrived(connection, key, exptime.map(i64::from), around).unwrap_or(Ok(false));
        }
        if connection.fetching.is_some() {
            (connection.fetching, connection.fetches) = (None, 0);
        }
        match found {
            Ok(true) => {}
            Ok(false) if quiet => {}
            Ok(false) if with_key => {
                let miss = binary::Answer { status: Status::NotFound, key, ..binary::Answer::default() };
                id.answer(&miss, &mut self.out);
            }
            Ok(false) => id.refuse(Status::NotFound, &mut self.out),
            Err(refusal) => refuse(id, &refusal, &mut self.out),
        }
    }

    /// What came of a source, or else what is there.
    #[cold]
    fn look_up_arrived(
        &mut self,
        connection: &Connection,
        key: &[u8],
        exptime: Option<u32>,
        around: BinaryValue<'_>,
    ) -> Result<bool, Answer> {
        let arrived = self.give_arrived(connection, key, exptime.map(i64::from), around);
        arrived.unwrap_or_else(|| self.look_up_binary(connection, key, exptime, around))
    }

    #[inline]
    fn look_up_binary(
        &mut self,
        connection: &Connection,
        key: &[u8],
        exptime: Option<u32>,
        around: BinaryValue<'_>,
    ) -> Result<bool, Answer> {
        let mut sink = ValueSink::new(&mut self.out, &mut self.pinned, around);
        match exptime {
            None => connection.session.get(&mut self.context, key, &mut sink),
            Some(exptime) => {
                connection.session.get_and_touch(&mut self.context, exptime.into(), key, &mut sink)
            }
        }
    }

    /// Stat: a frame for each statistic, and one without a name behind the last.
    fn stat(&mut self, connection: &Connection, id: Id, subject: &[u8]) {
        let (session, context, out) = (&connection.session, &mut self.context, &mut self.out);
        let subject = match subject {
            b"" => Subject::General,
            b"settings" => Subject::Settings,
            b"items" => Subject::Items,
            b"slabs" => Subject::Slabs,
            b"sizes" => Subject::Sizes,
            subject => return self.stat_rare(connection, id, subject),
        };
        let mut give = |name: &str, value: &str| id.stat(name, value.as_bytes(), out);
        match session.stats(context, subject, &mut give) {
            Ok(()) => id.stat("", b"", out),
            Err(refusal) => refuse(id, &refusal, out),
        }
    }

    fn stat_rare(&mut self, connection: &Connection, id: Id, subject: &[u8]) {
        let (session, context, out) = (&connection.session, &mut self.context, &mut self.out);
        let outcome = match subject {
            b"reset" => match session.reset_stats(context) {
                Answer::Reset => Ok(()),
                refusal => Err(refusal),
            },
            b"detail on" => session.count_prefixes(context, true),
            b"detail off" => session.count_prefixes(context, false),
            b"detail dump" => {
                let mut lines = Vec::new();
                let given = session.dump_prefixes(context, &mut |prefix, counts| {
                    prefix_line(prefix, counts, &mut lines);
                });
                lines.extend_from_slice(b"END\r\n");
                given.map(|()| id.stat("detailed", &lines, out))
            }
            _ => return id.refuse(Status::NotFound, out),
        };
        match outcome {
            Ok(()) => id.stat("", b"", out),
            Err(refusal) => refuse(id, &refusal, out),
        }
    }
}

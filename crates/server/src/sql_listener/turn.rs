//! A connection's turn on a SQL thread: read, execute all that has arrived, write once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Counter, SqlThreadContext};
use postgres::frontend::{Broken, Parsed, parse};

use super::SqlListener;
use super::connection::Connection;
use super::dialogue::{self, Parked};
use crate::fatal::fatal;
use crate::limits::{COMMANDS_PER_TURN, READ_BUFFER_BYTES, REPLY_BUFFER_KEPT_BYTES, SEND_AT_BYTES};

/// What a SQL thread serves connections with.
#[derive(Debug)]
pub(crate) struct RequestLoop {
    pub(crate) context: SqlThreadContext,
    /// Where requests are read to, and executed from.
    buffer: Box<[u8]>,
    /// Replies of the turn.
    pub(crate) out: Vec<u8>,
}

/// What a connection wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// An event.
    Wait,
    /// Another turn.
    Again,
    /// Its end.
    Close,
}

/// How the execution of a turn's input ended.
#[derive(Clone, Copy, Debug, Default)]
struct Executed {
    /// Bytes of whole requests.
    consumed: usize,
    /// Whole requests are left: the turn is over, or the peer must read first.
    stopped: bool,
}

/// Gives a connection its turn, unless another thread does it already: that one is told to look again.
pub(crate) fn serve(listener: &SqlListener, requests: &mut RequestLoop, place: usize, hung_up: bool) {
    let Some(found) = listener.places.get(place) else { return };
    found.mark();
    while found.is_marked() {
        let Some(mut guard) = found.take() else {
            if hung_up {
                // Nobody is left to read what the statement will answer.
                found.cancel();
            }
            return;
        };
        let Some(connection) = guard.as_mut() else { return };
        if hung_up && connection.parked.is_some() {
            // Nobody is left to hear that the lock is there.
            return listener.places.close(place, guard);
        }
        connection.socket.half_closed = found.is_half_closed();
        match requests.guarded_turn(connection) {
            Next::Close => return listener.places.close(place, guard),
            Next::Again => {
                drop(guard);
                return listener.turn_again(place);
            }
            Next::Wait => {}
        }
        let awaits_room = connection.socket.output_waiting() > 0;
        if awaits_room != connection.awaits_room {
            connection.awaits_room = awaits_room;
            if listener.watch(place, connection, awaits_room).is_err() {
                return listener.places.close(place, guard);
            }
        }
    }
}

impl RequestLoop {
    pub(crate) fn new(context: SqlThreadContext) -> Self {
        Self { context, buffer: vec![0; READ_BUFFER_BYTES].into(), out: Vec::new() }
    }

    fn guarded_turn(&mut self, connection: &mut Connection) -> Next {
        // What the turn leaves behind is looked at by `apologise` only, which knows what to trust, and the connection
        // is closed.
        catch_unwind(AssertUnwindSafe(|| self.turn(connection))).unwrap_or_else(|_| {
            self.apologise(connection);
            Next::Close
        })
    }

    fn turn(&mut self, connection: &mut Connection) -> Next {
        self.context.context_mut().begin_batch();
        let now = self.context.context().now();
        let mut written = connection.socket.flush();
        let (mut read, mut stopped, mut progress) = (0, false, false);
        if connection.parked.is_some() {
            progress = dialogue::resume(&mut self.context, connection, &mut self.out);
            written += connection.socket.deliver(&mut self.out, now);
        }
        while connection.is_ready() && !stopped {
            let (count, more, executed) = self.round(connection);
            read += count;
            progress |= executed.consumed > 0;
            stopped = executed.stopped;
            written += connection.socket.deliver(&mut self.out, now);
            if !more {
                break;
            }
        }
        if connection.copy.is_none() && connection.parked.is_none() && !connection.closing {
            while dialogue::send_notifications(connection, &mut self.out) {
                written += connection.socket.deliver(&mut self.out, now);
            }
            written += connection.socket.deliver(&mut self.out, now);
        }
        if self.out.capacity() > REPLY_BUFFER_KEPT_BYTES {
            engine::note_freed(self.out.capacity());
            self.out = Vec::new();
        }
        self.context.context().count(Counter::BytesRead, read as u64);
        self.context.context().count(Counter::BytesWritten, written as u64);
        let within_memory = connection.note_turn(now, progress);
        self.next(connection, stopped, within_memory)
    }

    fn next(&mut self, connection: &mut Connection, stopped: bool, within_memory: bool) -> Next {
        if connection.socket.broken
            || connection.socket.ended && connection.socket.output_waiting() == 0 && !stopped
        {
            return Next::Close;
        }
        if !within_memory {
            self.context.context().count(Counter::OutputKicks, 1);
            return Next::Close;
        }
        if connection.closing {
            return if connection.socket.output_waiting() == 0 { Next::Close } else { Next::Wait };
        }
        if stopped && connection.socket.has_room() {
            self.context.context().count(Counter::ConnYields, 1);
            return Next::Again;
        }
        Next::Wait
    }

    /// Reads once and executes. Returns how many bytes came, and whether there may be more.
    fn round(&mut self, connection: &mut Connection) -> (usize, bool, Executed) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let (count, more) = connection.socket.receive(&mut buffer);
        let executed = if connection.has_input() {
            let mut input = connection.take_input();
            input.extend_from_slice(&buffer[..count]);
            let executed = self.execute(connection, &input);
            connection.keep_own(input, executed.consumed);
            executed
        } else {
            let executed = self.execute(connection, &buffer[..count]);
            connection.keep(&buffer[executed.consumed..count]);
            executed
        };
        self.buffer = buffer;
        (count, more, executed)
    }

    /// Executes the whole requests in `input`.
    fn execute(&mut self, connection: &mut Connection, input: &[u8]) -> Executed {
        let mut executed = Executed::default();
        for _ in 0..COMMANDS_PER_TURN {
            if connection.closing || connection.socket.broken {
                return executed;
            }
            match parse(&input[executed.consumed..]) {
                Parsed::Incomplete { .. } => return executed,
                Parsed::Complete { request, consumed } => {
                    let rest = &input[executed.consumed + consumed..];
                    dialogue::handle(&mut self.context, connection, &request, rest, &mut self.out);
                    match connection.parked.as_deref() {
                        // It is handled again when what it waits for is there.
                        Some(Parked::Request) => return executed,
                        Some(Parked::Query { .. } | Parked::Told { .. }) => {
                            executed.consumed += consumed;
                            return executed;
                        }
                        None => executed.consumed += consumed,
                    }
                }
                Parsed::Broken(broken) => {
                    refuse(connection, broken, &mut self.out);
                    executed.consumed = input.len();
                    return executed;
                }
            }
            if self.out.len() >= SEND_AT_BYTES {
                let now = self.context.context().now();
                connection.socket.deliver(&mut self.out, now);
                if !connection.socket.has_room() {
                    break;
                }
            }
        }
        executed.stopped = true;
        executed
    }

    #[cold]
    fn apologise(&mut self, connection: &mut Connection) {
        self.context.context().count(Counter::Panics, 1);
        self.context.distrust();
        if self.buffer.is_empty() {
            self.buffer = vec![0; READ_BUFFER_BYTES].into();
        }
        self.out.clear();
        fatal("XX000", "internal error", &mut self.out);
        let now = self.context.context().now();
        connection.socket.deliver(&mut self.out, now);
    }
}

/// Says why a connection cannot go on.
#[cold]
fn refuse(connection: &mut Connection, broken: Broken, out: &mut Vec<u8>) {
    connection.closing = true;
    match broken {
        Broken::Type(kind) => fatal("08P01", &format!("invalid frontend message type {kind}"), out),
        Broken::Length { kind, length } => {
            let kind = char::from(kind).escape_default();
            fatal("08P01", &format!("invalid length {length} of a message of type '{kind}'"), out);
        }
    }
}

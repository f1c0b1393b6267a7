//! Large values that are received where they are going to lie.
//!
//! When the line of a storage command is there and its value is long and has not come, the session reserves its row,
//! what has come is put there, and the rest is read from the socket straight into it. The command is executed when the
//! line end behind the value has come, as if all of it had been waiting in a buffer until then. In the binary protocol
//! the line is header, extras and key, and there is no line end.

use engine::{Counter, InPlace};
use memcache::{KEY_MAX, Malformed, Request, binary};

use crate::connection::{Connection, Protocol};
use crate::dialogue::{RequestLoop, Run, verb_of};
use crate::frame::{asked_to_put, write_put};
use crate::limits::{BULK_READ_BYTES, IN_PLACE_FROM_BYTES, LINE_READ_BYTES};
use crate::meta;
use crate::receiving::Receiving;

/// Bytes of the line end behind a value.
const LINE_END: usize = 2;

impl Connection {
    /// Reads once into the row, and behind the value into `spill`; how many bytes came there.
    fn receive_value(&mut self, in_place: &mut InPlace, spill: &mut [u8]) -> (usize, usize) {
        let room = in_place.missing().min(BULK_READ_BYTES);
        let space = if room < in_place.missing() { room } else { room + spill.len() };
        let mut spilled = 0;
        let (count, more) = self.socket.receive_by(space, |socket| {
            let received = in_place.receive(socket, BULK_READ_BYTES, spill)?;
            spilled = received.spilled;
            Ok(received.received + received.spilled)
        });
        self.readable = more;
        (count, spilled)
    }
}

impl RequestLoop {
    /// Begins to receive the value of the command that `rest` is the beginning of where it is going to lie; how long
    /// the command's line is, which is all that is to be kept of `rest`. `None`: it is received in a buffer.
    #[cold]
    pub(crate) fn begin_receiving(&mut self, connection: &mut Connection, rest: &[u8]) -> Option<usize> {
        if connection.socket.tls().is_some() {
            // Decrypted bytes are copied in any case.
            return None;
        }
        let receiving = match connection.protocol(rest) {
            Protocol::Text => self.begin_text(connection, rest)?,
            Protocol::Binary => self.begin_binary(connection, rest)?,
        };
        let line = receiving.line;
        connection.needed = 0;
        connection.receiving = Some(receiving);
        Some(line)
    }

    fn begin_binary(&mut self, connection: &Connection, rest: &[u8]) -> Option<Receiving> {
        let begun = binary::receiving(self.parser.limits(), rest)?;
        let asked = asked_to_put(&begun.request)?;
        let in_place =
            connection.session.put_reserve(&mut self.context, begun.request.key, &asked, begun.bytes)?;
        Some(Receiving::new(in_place, begun.request.value, begun.head, 0))
    }

    fn begin_text(&mut self, connection: &Connection, rest: &[u8]) -> Option<Receiving> {
        let receiving =
            self.parser.receiving(rest).filter(|receiving| receiving.bytes >= IN_PLACE_FROM_BYTES)?;
        let (session, context) = (&connection.session, &mut self.context);
        let (in_place, value) = match receiving.request {
            Request::Store { verb, key, flags, exptime, value, .. } => {
                (session.reserve(context, verb_of(verb), key, flags, exptime, receiving.bytes), value)
            }
            Request::MetaSet { meta, value } => {
                let mut buffer = [0; KEY_MAX];
                let key = meta.key.bytes(&mut buffer);
                (
                    session.put_reserve(
                        context,
                        key,
                        &meta::asked_to_set(&meta, &meta.options()),
                        receiving.bytes,
                    ),
                    value,
                )
            }
            _ => return None,
        };
        Some(Receiving::new(in_place?, value, receiving.line, LINE_END))
    }

    /// Reads on into the row, and executes the command and what follows it when the value is whole.
    pub(crate) fn continue_receiving(&mut self, connection: &mut Connection, receiving: Receiving) -> Run {
        // Taken out for the turn, because requests borrow from it while they are executed.
        let mut read = std::mem::take(&mut self.read);
        let run = self.receive_value(connection, receiving, &mut read);
        self.read = read;
        run
    }

    fn receive_value(
        &mut self,
        connection: &mut Connection,
        mut receiving: Receiving,
        read: &mut [u8],
    ) -> Run {
        let mut line = std::mem::take(&mut connection.input);
        let begun = line.len() - receiving.line;
        read[..begun].copy_from_slice(&line[receiving.line..]);
        let spill = &mut read[begun..LINE_READ_BYTES];
        let (count, spilled) = connection.receive_value(&mut receiving.in_place, spill);
        self.context.count(Counter::BytesRead, count as u64);
        let behind = &read[..begun + spilled];
        line.truncate(receiving.line);
        if receiving.in_place.missing() > 0 || behind.len() < receiving.end {
            line.extend_from_slice(behind);
            connection.input = line;
            connection.receiving = Some(receiving);
            return Run { waits_for_peer: true, ..Run::default() };
        }
        let (line_end, behind) = behind.split_at(receiving.end);
        if receiving.end == 0 {
            self.finish_binary(connection, &line, receiving.in_place);
        } else {
            self.finish_text(connection, &line, receiving.in_place, line_end == b"\r\n");
        }
        // What is held back is not whole.
        if self.held.is_empty() {
            self.whole = self.out.len();
        }
        line.clear();
        connection.input = line;
        let run = self.run(connection, behind);
        connection.keep(&behind[run.consumed..run.end], &mut self.spare);
        Run { progress: true, ..run }
    }

    /// Executes a request whose value has come.
    fn finish_binary(&mut self, connection: &Connection, head: &[u8], in_place: InPlace) {
        // The head was parsed before, so there is a request.
        let Some(begun) = binary::receiving(self.parser.limits(), head) else { return };
        let Some(asked) = asked_to_put(&begun.request) else { return };
        let done = connection.session.put_in_place(&mut self.context, begun.request.key, &asked, in_place);
        let start = self.out.len();
        write_put(done, &begun.request, &mut self.out);
        self.after_telling(start, Some(begun.request.id));
    }

    /// Executes a command whose value has come.
    fn finish_text(&mut self, connection: &Connection, line: &[u8], in_place: InPlace, ends_well: bool) {
        // The line was parsed before, so there is one.
        let request = self.parser.receiving(line).map(|receiving| receiving.request);
        let (session, context, out) = (&connection.session, &mut self.context, &mut self.out);
        let start = out.len();
        match request {
            Some(Request::Store { verb, key, exptime, noreply, .. }) => {
                if ends_well {
                    let answer = session.store_in_place(context, verb_of(verb), key, exptime, in_place);
                    let _executed = self.answer_telling(&answer, noreply);
                } else if !noreply {
                    Malformed::DataChunk.compose(out);
                }
            }
            Some(Request::MetaSet { meta, .. }) if ends_well => {
                meta::set_in_place(session, context, &meta, in_place, out);
                self.after_telling(start, None);
            }
            _ => Malformed::DataChunk.compose(out),
        }
    }
}

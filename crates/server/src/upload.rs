//! Large values that are received where they are going to lie.
//!
//! When the line of a storage command is there and its value is long and has not come, the session reserves its row,
//! what has come is put there, and the rest is read from the socket straight into it. The command is executed when the
//! line end behind the value has come, as if all of it had been waiting in a buffer until then. In the binary protocol
//! the line is header, extras and key, and there is no line end.

use engine::{Counter, Landing};
use memcache::{KEY_MAX, Malformed, Request, binary};

use crate::connection::{Connection, Protocol};
use crate::dialogue::{Desk, Run, verb_of};
use crate::frame::{asked_to_put, write_put};
use crate::in_place::InPlace;
use crate::limits::{BULK_READ_BYTES, LINE_READ_BYTES, UPLOAD_FROM_BYTES};
use crate::meta;
use crate::reply::write_answer;

/// Bytes of the line end behind a value.
const LINE_END: usize = 2;

impl Connection {
    /// Reads once into the row, and behind the value into `spill`; how many bytes came there.
    fn receive_upload(&mut self, landing: &mut Landing, spill: &mut [u8]) -> (usize, usize) {
        let room = landing.missing().min(BULK_READ_BYTES);
        let space = if room < landing.missing() { room } else { room + spill.len() };
        let mut spilled = 0;
        let (count, more) = self.socket.receive_by(space, |socket| {
            let received = landing.receive(socket, BULK_READ_BYTES, spill)?;
            spilled = received.spilled;
            Ok(received.landed + received.spilled)
        });
        self.readable = more;
        (count, spilled)
    }
}

impl Desk {
    /// Begins to receive the value of the command that `rest` is the beginning of where it is going to lie; how long
    /// the command's line is, which is all that is to be kept of `rest`. `None`: it is received in a buffer.
    #[cold]
    pub(crate) fn begin_upload(&mut self, connection: &mut Connection, rest: &[u8]) -> Option<usize> {
        let upload = match connection.protocol(rest) {
            Protocol::Text => self.begin_text(connection, rest)?,
            Protocol::Binary => self.begin_binary(connection, rest)?,
        };
        let line = upload.line;
        connection.needed = 0;
        connection.upload = Some(upload);
        Some(line)
    }

    fn begin_binary(&mut self, connection: &Connection, rest: &[u8]) -> Option<InPlace> {
        let begun = binary::upload(self.parser.limits(), rest)?;
        let asked = asked_to_put(&begun.request)?;
        let landing =
            connection.session.put_reserve(&mut self.lane, begun.request.key, &asked, begun.bytes)?;
        Some(InPlace::new(landing, begun.request.value, begun.head, 0))
    }

    fn begin_text(&mut self, connection: &Connection, rest: &[u8]) -> Option<InPlace> {
        let upload = self.parser.upload(rest).filter(|upload| upload.bytes >= UPLOAD_FROM_BYTES)?;
        let (session, lane) = (&connection.session, &mut self.lane);
        let (landing, value) = match upload.request {
            Request::Store { verb, key, flags, exptime, value, .. } => {
                (session.reserve(lane, verb_of(verb), key, flags, exptime, upload.bytes), value)
            }
            Request::MetaSet { meta, value } => {
                let mut buffer = [0; KEY_MAX];
                let key = meta.key.bytes(&mut buffer);
                (session.put_reserve(lane, key, &meta::asked_to_set(&meta.options()), upload.bytes), value)
            }
            _ => return None,
        };
        Some(InPlace::new(landing?, value, upload.line, LINE_END))
    }

    /// Reads on into the row, and executes the command and what follows it when the value is whole.
    pub(crate) fn work_upload(&mut self, connection: &mut Connection, upload: InPlace) -> Run {
        // Taken out for the turn, because requests borrow from it while they are executed.
        let mut read = std::mem::take(&mut self.read);
        let run = self.receive_upload(connection, upload, &mut read);
        self.read = read;
        run
    }

    fn receive_upload(&mut self, connection: &mut Connection, mut upload: InPlace, read: &mut [u8]) -> Run {
        let mut line = std::mem::take(&mut connection.input);
        let begun = line.len() - upload.line;
        read[..begun].copy_from_slice(&line[upload.line..]);
        let spill = &mut read[begun..LINE_READ_BYTES];
        let (count, spilled) = connection.receive_upload(&mut upload.landing, spill);
        self.lane.count(Counter::BytesRead, count as u64);
        let behind = &read[..begun + spilled];
        line.truncate(upload.line);
        if upload.landing.missing() > 0 || behind.len() < upload.end {
            line.extend_from_slice(behind);
            connection.input = line;
            connection.upload = Some(upload);
            return Run { waits_for_peer: true, ..Run::default() };
        }
        let (line_end, behind) = behind.split_at(upload.end);
        if upload.end == 0 {
            self.finish_binary(connection, &line, upload.landing);
        } else {
            self.finish_text(connection, &line, upload.landing, line_end == b"\r\n");
        }
        self.whole = self.out.len();
        line.clear();
        connection.input = line;
        let run = self.run(connection, behind);
        connection.keep(&behind[run.consumed..run.end], &mut self.spare);
        Run { progress: true, ..run }
    }

    /// Executes a request whose value has come.
    fn finish_binary(&mut self, connection: &Connection, head: &[u8], landing: Landing) {
        // The head was parsed before, so there is a request.
        let Some(begun) = binary::upload(self.parser.limits(), head) else { return };
        let Some(asked) = asked_to_put(&begun.request) else { return };
        let done = connection.session.put_landed(&mut self.lane, begun.request.key, &asked, landing);
        write_put(done, &begun.request, &mut self.out);
    }

    /// Executes a command whose value has come.
    fn finish_text(&mut self, connection: &Connection, line: &[u8], landing: Landing, ends_well: bool) {
        // The line was parsed before, so there is one.
        let request = self.parser.upload(line).map(|upload| upload.request);
        let (session, lane, out) = (&connection.session, &mut self.lane, &mut self.out);
        match request {
            Some(Request::Store { verb, key, exptime, noreply, .. }) => {
                if ends_well {
                    let answer = session.store_landed(lane, verb_of(verb), key, exptime, landing);
                    if !noreply {
                        write_answer(&answer, out);
                    }
                } else if !noreply {
                    Malformed::DataChunk.compose(out);
                }
            }
            Some(Request::MetaSet { meta, .. }) if ends_well => {
                meta::set_landed(session, lane, &meta, landing, out);
            }
            _ => Malformed::DataChunk.compose(out),
        }
    }
}

//! A connection's socket, whatever is spoken over it, and the replies that it has not taken.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engine::Tick;
use engine::auth::{Certificate, Origin};
use rustix::buffer::{Buffer, spare_capacity};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};

use crate::limits::{
    LINGER_BYTES_MAX, LISTENER_ASKED_AFTER, OUTPUT_BYTES_MAX, READ_BUFFER_BYTES, REPLIES_WAITING_MAX,
};
use crate::origin::origin_of;
use crate::pace::Pace;
use crate::tls::Tls;

/// A socket and what waits for it.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    /// What encrypts, if something does.
    tls: Option<Box<Tls>>,
    /// Replies that it did not take, encrypted if they go out so; those before `sent` it did.
    output: Vec<u8>,
    sent: usize,
    /// The peer has sent its last byte, which may not have been read yet.
    pub(crate) half_closed: bool,
    /// The peer has said its last word, and it was read.
    pub(crate) ended: bool,
    /// It failed.
    pub(crate) broken: bool,
    /// The peer is to hear nothing more: it learns so as soon as it has taken what waits.
    pub(crate) finished: bool,
    /// How fast the peer sends the message that it has begun.
    pub(crate) receiving: Pace,
    /// How fast the peer reads the replies that wait.
    pub(crate) sending: Pace,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            tls: None,
            output: Vec::new(),
            sent: 0,
            half_closed: false,
            ended: false,
            broken: false,
            finished: false,
            receiving: Pace::default(),
            sending: Pace::default(),
        }
    }

    /// Has the kernel ask from time to time whether the peer is still there. One that only listens may be gone without
    /// a word, and where nothing happens nothing is sent that would find out.
    pub(crate) fn notice_silent_end(&self) {
        // A Unix socket has no such thing, and its peer's end is always heard of. Without it the next event finds out.
        let _later = sockopt::set_tcp_keepidle(&self.fd, LISTENER_ASKED_AFTER)
            .and_then(|()| sockopt::set_socket_keepalive(&self.fd, true));
    }

    /// Speaks TLS from now on. `first`: what the peer has sent of it already; it becomes what that says.
    pub(crate) fn begin_tls(&mut self, tls: Tls, first: &mut Vec<u8>) {
        self.tls = Some(Box::new(tls));
        if !first.is_empty() {
            let count = first.len();
            let (len, _) = self.decrypt(first, count);
            first.truncate(len);
        }
    }

    /// Speaks TLS as a client that has agreed on keys already.
    pub(crate) fn speak_tls(&mut self, session: rustls::ClientConnection) {
        self.tls = Some(Box::new(Tls::of_client(session)));
    }

    /// What encrypts it.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_deref()
    }

    /// The certificate that its peer has shown.
    pub(crate) fn certificate(&self) -> Option<Certificate> {
        self.tls()?.certificate()
    }

    /// Where its peer comes from.
    pub(crate) fn origin(&self) -> Origin {
        origin_of(&self.fd, self.tls.is_some())
    }

    /// Whether it waits for the two sides to agree on keys.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Bytes that have come and were decrypted, and that no event announces.
    pub(crate) fn has_decrypted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.waiting() > 0)
    }

    /// Reads once into `buffer`, which is not empty. Returns how many bytes came, and whether there may be more.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        if self.tls.is_some() {
            return self.receive_encrypted(buffer);
        }
        self.receive_plain(buffer)
    }

    #[inline]
    fn receive_plain(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        let space = buffer.len();
        self.received(space, |fd| receive_once(fd, &mut *buffer))
    }

    /// As [`Socket::receive`], behind what `buffer` holds, in the room that it has.
    pub(crate) fn receive_behind(&mut self, buffer: &mut Vec<u8>) -> (usize, bool) {
        if self.tls.is_some() {
            let len = buffer.len();
            buffer.resize(buffer.capacity(), 0);
            let (count, more) = self.receive_encrypted(&mut buffer[len..]);
            buffer.truncate(len + count);
            return (count, more);
        }
        let space = buffer.capacity() - buffer.len();
        self.received(space, |fd| receive_once(fd, spare_capacity(buffer)))
    }

    /// As [`Socket::receive`]. Fewer bytes come out than in, so they are decrypted where they were read to.
    #[cold]
    fn receive_encrypted(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        if let Some(tls) = &mut self.tls
            && tls.waiting() > 0
        {
            let count = tls.take(buffer);
            self.ended |= tls.is_over();
            return (count, true);
        }
        let (count, more) = self.receive_plain(buffer);
        if count == 0 {
            return (0, more);
        }
        let (count, decrypted) = self.decrypt(buffer, count);
        (count, (more || decrypted) && !self.broken)
    }

    /// Decrypts what was read, and sends what TLS itself has to say. Returns how many bytes came out, and whether more
    /// of them wait.
    fn decrypt(&mut self, buffer: &mut [u8], count: usize) -> (usize, bool) {
        let Some(tls) = &mut self.tls else { return (0, false) };
        let opened = tls.open(buffer, count);
        self.ended |= tls.is_over();
        let waits = tls.waiting() > 0;
        if tls.has_records() {
            self.send_records();
        }
        match opened {
            Ok(len) => (len, waits),
            Err(failure) => {
                // The peer hears what was wrong, and nothing else is said.
                self.linger();
                self.broken = true;
                if let Some(tls) = &mut self.tls {
                    tls.failure = Some(failure);
                }
                (0, false)
            }
        }
    }

    /// Sends records, and keeps what the socket does not take. Returns how many bytes it took.
    fn send_records(&mut self) -> usize {
        let Some(mut tls) = self.tls.take() else { return 0 };
        let mut sent = self.flush();
        while tls.has_records() && self.output_waiting() == 0 && !self.broken {
            match tls.write_records(&mut Wire(self)) {
                Ok(count) if count > 0 => sent += count,
                _ => break,
            }
        }
        while tls.has_records() && tls.write_records(&mut self.output).is_ok() {}
        self.tls = Some(tls);
        sent
    }

    /// Encrypts and sends. Returns how many bytes the socket took.
    #[cold]
    fn deliver_encrypted(&mut self, slices: &[IoSlice<'_>], now: Tick) -> usize {
        let waited = self.output_waiting() > 0;
        if self.broken {
            return 0;
        }
        if let Some(tls) = &mut self.tls {
            tls.seal(slices);
        }
        let sent = self.send_records();
        if !waited && self.output_waiting() > 0 {
            self.sending = Pace { since: now, bytes: 0 };
        }
        sent
    }

    /// As [`Socket::receive`], by a call of the caller's own, which has so much space.
    pub(crate) fn receive_by(
        &mut self,
        space: usize,
        mut receive: impl FnMut(BorrowedFd<'_>) -> std::io::Result<usize>,
    ) -> (usize, bool) {
        self.received(space, |fd| {
            receive(fd.as_fd()).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })
    }

    #[inline]
    fn received(
        &mut self,
        space: usize,
        mut receive: impl FnMut(&OwnedFd) -> rustix::io::Result<usize>,
    ) -> (usize, bool) {
        loop {
            match receive(&self.fd) {
                Ok(0) => {
                    self.ended = true;
                    return (0, false);
                }
                Ok(count) => {
                    self.receiving.bytes += count as u64;
                    // Fewer bytes than asked for: the socket is empty, and what comes next is announced again. The end
                    // of the stream is no byte, and was announced already if it came together with the last ones.
                    return (count, count == space || self.half_closed);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return (0, false),
                Err(_) => {
                    self.broken = true;
                    return (0, false);
                }
            }
        }
    }

    /// Bytes that it has not taken.
    #[inline]
    pub(crate) fn output_waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Memory that they take.
    #[inline]
    pub(crate) fn output_memory(&self) -> usize {
        self.output.capacity()
    }

    /// Whether more replies may be made.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.output_waiting() < OUTPUT_BYTES_MAX
    }

    /// Whether the peer reads the replies that it is sent, so that more may be made.
    #[inline]
    pub(crate) fn keeps_up(&self) -> bool {
        self.output_waiting() < REPLIES_WAITING_MAX
    }

    /// Sends `out`, and keeps what the socket does not take; `out` is empty afterwards. Returns how many bytes the
    /// socket took.
    #[inline]
    pub(crate) fn deliver(&mut self, out: &mut Vec<u8>, now: Tick) -> usize {
        if self.tls.is_some() {
            let sent =
                if out.is_empty() { self.flush() } else { self.deliver_encrypted(&[IoSlice::new(out)], now) };
            out.clear();
            return sent;
        }
        if self.output_waiting() > 0 {
            self.output.extend_from_slice(out);
            out.clear();
            return self.flush();
        }
        if out.is_empty() || self.broken {
            out.clear();
            return 0;
        }
        let sent = self.send(out);
        if sent == out.len() || self.broken {
            out.clear();
        } else {
            self.hold(out, sent, now);
        }
        sent
    }

    /// Sends these pieces one after the other, and copies what the socket does not take. Returns how many bytes it
    /// took.
    pub(crate) fn deliver_slices(&mut self, slices: &[IoSlice<'_>], now: Tick) -> usize {
        if self.tls.is_some() {
            return self.deliver_encrypted(slices, now);
        }
        if self.broken {
            return 0;
        }
        if self.output_waiting() > 0 {
            for slice in slices {
                self.output.extend_from_slice(slice);
            }
            return self.flush();
        }
        let sent = self.send_slices(slices);
        if self.broken {
            return sent;
        }
        let mut taken = sent;
        for slice in slices {
            let passed = taken.min(slice.len());
            taken -= passed;
            self.output.extend_from_slice(&slice[passed..]);
        }
        if !self.output.is_empty() {
            self.sending = Pace { since: now, bytes: 0 };
        }
        sent
    }

    /// As [`Socket::send`], of several pieces.
    fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> usize {
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&self.fd, slices, &mut nothing, SendFlags::NOSIGNAL) {
                Ok(sent) => return sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return 0,
                Err(_) => {
                    self.broken = true;
                    return 0;
                }
            }
        }
    }

    /// Tells the peer that nothing more comes, behind what waits. It may still be read from.
    pub(crate) fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye();
            self.send_records();
        }
        self.finished = true;
        self.shut_if_finished();
    }

    fn shut_if_finished(&self) {
        if self.finished && self.output_waiting() == 0 {
            let _gone = rustix::net::shutdown(&self.fd, Shutdown::Write);
        }
    }

    #[cold]
    fn hold(&mut self, out: &mut Vec<u8>, sent: usize, now: Tick) {
        self.sending = Pace { since: now, bytes: 0 };
        // Large replies change hands, small ones are copied so that the thread keeps its buffer.
        if out.len() - sent >= READ_BUFFER_BYTES {
            self.output = std::mem::take(out);
            self.sent = sent;
        } else {
            self.output.clear();
            self.output.extend_from_slice(&out[sent..]);
            self.sent = 0;
            out.clear();
        }
    }

    /// Sends what waits. Returns how many bytes the socket took.
    #[inline]
    pub(crate) fn flush(&mut self) -> usize {
        if self.output_waiting() == 0 {
            return 0;
        }
        let output = std::mem::take(&mut self.output);
        let sent = self.send(&output[self.sent..]);
        self.output = output;
        self.sent += sent;
        self.sending.bytes += sent as u64;
        if self.broken || self.sent == self.output.len() {
            self.output = Vec::new();
            self.sent = 0;
            self.sending = Pace::default();
            self.shut_if_finished();
        } else if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        sent
    }

    /// One `send`, begun again only when a signal came between.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> usize {
        loop {
            match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => return sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return 0,
                Err(_) => {
                    self.broken = true;
                    return 0;
                }
            }
        }
    }
}

/// A socket as the library of TLS writes to it.
struct Wire<'s>(&'s mut Socket);

impl io::Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.send(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [only] => Ok(self.0.send(only)),
            several => Ok(self.0.send_slices(several)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.broken {
            return;
        }
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye();
            self.send_records();
        }
        if !self.ended {
            self.linger();
        }
    }
}

impl Socket {
    /// Ends the connection so that the peer can read our last words: unread input would make the kernel throw them
    /// away.
    fn linger(&self) {
        let _gone = rustix::net::shutdown(&self.fd, Shutdown::Write);
        let mut thrown_away = [0; 4096];
        let mut total = 0;
        while total < LINGER_BYTES_MAX {
            match rustix::net::recv(&self.fd, &mut thrown_away, RecvFlags::empty()) {
                Ok((count, _)) if count > 0 => total += count,
                _ => break,
            }
        }
    }
}

#[inline]
fn receive_once(fd: &OwnedFd, buffer: impl Buffer<u8>) -> rustix::io::Result<usize> {
    rustix::net::recv(fd, buffer, RecvFlags::empty()).map(|(_, count)| count)
}

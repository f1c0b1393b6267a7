//! A connection's socket, whatever is spoken over it, and the replies that it has not taken.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engine::Tick;
use rustix::buffer::{Buffer, spare_capacity};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

use crate::limits::{LINGER_BYTES_MAX, OUTPUT_BYTES_MAX, READ_BUFFER_BYTES, REPLIES_WAITING_MAX};
use crate::pace::Pace;

/// A socket and what waits for it.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    /// Replies that it did not take; those before `sent` it did.
    output: Vec<u8>,
    sent: usize,
    /// The peer has sent its last byte, which may not have been read yet.
    pub(crate) half_closed: bool,
    /// The peer has said its last word, and it was read.
    pub(crate) ended: bool,
    /// It failed.
    pub(crate) broken: bool,
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
            output: Vec::new(),
            sent: 0,
            half_closed: false,
            ended: false,
            broken: false,
            receiving: Pace::default(),
            sending: Pace::default(),
        }
    }

    /// Reads once into `buffer`, which is not empty. Returns how many bytes came, and whether there may be more.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        let space = buffer.len();
        self.received(space, |fd| receive_once(fd, &mut *buffer))
    }

    /// As [`Socket::receive`], behind what `buffer` holds, in the room that it has.
    pub(crate) fn receive_behind(&mut self, buffer: &mut Vec<u8>) -> (usize, bool) {
        let space = buffer.capacity() - buffer.len();
        self.received(space, |fd| receive_once(fd, spare_capacity(buffer)))
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

impl Drop for Socket {
    /// Ends the connection so that the peer can read our last words: unread input would make the kernel throw them
    /// away.
    fn drop(&mut self) {
        if self.broken || self.ended {
            return;
        }
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

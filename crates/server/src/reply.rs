//! From the engine's answers to memcached's bytes.

use engine::{Answer, Finished, ItemMeta, ItemSink, PinnedRow};
use memcache::compose::{sql_error, value_end, value_header};
use memcache::{Reply, binary, compose};

use crate::limits::PINNED_FROM_BYTES;
use crate::pinned::Pinned;

/// Appends an answer.
pub(crate) fn write_answer(answer: &Answer, out: &mut Vec<u8>) {
    let reply = match answer {
        Answer::Stored => Reply::Stored,
        Answer::NotStored => Reply::NotStored,
        Answer::Exists => Reply::Exists,
        Answer::NotFound => Reply::NotFound,
        Answer::Deleted => Reply::Deleted,
        Answer::Touched => Reply::Touched,
        Answer::Ok => Reply::Ok,
        Answer::Reset => Reply::Reset,
        Answer::Number(number) => Reply::Number(*number),
        Answer::NotANumber => Reply::NonNumeric,
        Answer::TooLarge => Reply::TooLarge,
        Answer::OutOfMemory => Reply::OutOfMemory,
        Answer::NotAllowed(message) => Reply::ClientError(message),
        Answer::ClientError(message) => Reply::ClientError(message),
        Answer::ServerError(message) => Reply::ServerError(message),
    };
    compose(&reply, out);
}

/// Appends the line that ends a statement's reply; its rows are there already.
pub(crate) fn write_finished(finished: &Finished, out: &mut Vec<u8>) {
    match finished {
        Finished::Rows => compose(&Reply::End, out),
        Finished::Changed(rows) => compose(&Reply::Changed(*rows), out),
        Finished::Failed(error) => match &error.hint {
            Some(hint) => sql_error(error.state, &format!("{} ({hint})", error.message), out),
            None => sql_error(error.state, &error.message, out),
        },
    }
}

/// What stands around a value.
pub(crate) trait Around {
    /// Writes what precedes it.
    fn open(&self, meta: &ItemMeta, out: &mut Vec<u8>);
    /// Writes what follows it.
    fn close(&self, out: &mut Vec<u8>);
}

/// A value of `get`.
pub(crate) struct TextValue<'k> {
    pub(crate) key: &'k [u8],
    /// With its CAS.
    pub(crate) cas: bool,
}

impl Around for TextValue<'_> {
    #[inline]
    fn open(&self, meta: &ItemMeta, out: &mut Vec<u8>) {
        value_header(self.key, meta.client_flags, meta.len, self.cas.then_some(meta.cas), out);
    }

    #[inline]
    fn close(&self, out: &mut Vec<u8>) {
        value_end(out);
    }
}

/// A value of the binary protocol.
#[derive(Clone, Copy)]
pub(crate) struct BinaryValue<'k> {
    pub(crate) id: binary::Id,
    /// The key that is repeated, or nothing.
    pub(crate) key: &'k [u8],
}

impl Around for BinaryValue<'_> {
    #[inline]
    fn open(&self, meta: &ItemMeta, out: &mut Vec<u8>) {
        self.id.found(self.key, meta.client_flags, meta.len, meta.cas, out);
    }

    #[inline]
    fn close(&self, _out: &mut Vec<u8>) {}
}

/// Writes values straight from the store into the replies of a turn.
pub(crate) struct ValueSink<'o, A> {
    out: &'o mut Vec<u8>,
    pinned: &'o mut Pinned,
    around: A,
    /// Where the reply begins.
    begin: usize,
}

impl<'o, A> ValueSink<'o, A> {
    #[inline]
    pub(crate) fn new(out: &'o mut Vec<u8>, pinned: &'o mut Pinned, around: A) -> Self {
        let begin = out.len();
        Self { out, pinned, around, begin }
    }
}

impl<A: Around> ItemSink for ValueSink<'_, A> {
    #[inline]
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.around.open(meta, self.out);
        self.out
    }

    #[inline]
    fn close(&mut self) {
        self.around.close(self.out);
    }

    fn discard(&mut self) {
        self.out.truncate(self.begin);
    }

    #[inline]
    fn pins_from(&self) -> usize {
        PINNED_FROM_BYTES
    }

    #[inline]
    fn pin(&mut self, row: PinnedRow) -> Result<(), PinnedRow> {
        if !self.pinned.has_room() {
            return Err(row);
        }
        self.pinned.push(self.out.len(), row);
        Ok(())
    }
}

/// Appends a line of the counts by prefix.
pub(crate) fn prefix_line(prefix: &[u8], [gets, hits, sets, deletes]: [u64; 4], out: &mut Vec<u8>) {
    out.extend_from_slice(b"PREFIX ");
    out.extend_from_slice(prefix);
    out.extend_from_slice(format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n").as_bytes());
}

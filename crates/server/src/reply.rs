//! From the engine's answers to memcached's bytes.

use engine::{Answer, Finished, HeldRow, ItemMeta, ItemSink};
use memcache::compose::{sql_error, value_end, value_header};
use memcache::{Reply, compose};

use crate::held::Held;
use crate::limits::HELD_FROM_BYTES;

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

/// Writes values straight from the store into the replies of a turn.
pub(crate) struct ValueSink<'o> {
    out: &'o mut Vec<u8>,
    held: &'o mut Held,
    key: &'o [u8],
    cas: bool,
    /// Where the reply begins.
    begin: usize,
}

impl<'o> ValueSink<'o> {
    #[inline]
    pub(crate) fn new(out: &'o mut Vec<u8>, held: &'o mut Held, key: &'o [u8], cas: bool) -> Self {
        let begin = out.len();
        Self { out, held, key, cas, begin }
    }
}

impl ItemSink for ValueSink<'_> {
    #[inline]
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        let cas = self.cas.then_some(meta.cas);
        value_header(self.key, meta.client_flags, meta.len, cas, self.out);
        self.out
    }

    #[inline]
    fn close(&mut self) {
        value_end(self.out);
    }

    fn discard(&mut self) {
        self.out.truncate(self.begin);
    }

    #[inline]
    fn holds_from(&self) -> usize {
        HELD_FROM_BYTES
    }

    #[inline]
    fn hold(&mut self, row: HeldRow) -> Result<(), HeldRow> {
        if !self.held.has_room() {
            return Err(row);
        }
        self.held.push(self.out.len(), row);
        Ok(())
    }
}

//! Connections whose command made rows invalid of which other caches hear: they are answered when the bus has it. Such
//! a connection waits as for a statement, and the reply comes as a statement's does.

use std::borrow::Cow;
use std::sync::Arc;

use engine::{Answer, Cancel};
use memcache::binary::Id;

use crate::connection::Connection;
use crate::dialogue::{Executed, RequestLoop};
use crate::frame::refuse;
use crate::mailbox::{Message, SqlReply};
use crate::reply::write_answer;

impl RequestLoop {
    /// Holds the reply back that begins at this place of the turn's, if the command before told other caches something.
    #[inline]
    pub(crate) fn after_telling(&mut self, connection: &mut Connection, start: usize) -> Executed {
        if self.hold_reply(connection, start, |out| write_answer(&UNHEARD, out)) {
            Executed::HandedOver
        } else {
            Executed::Whole
        }
    }

    /// The same of a frame.
    #[inline]
    pub(crate) fn after_telling_in_frames(&mut self, connection: &mut Connection, start: usize, id: Id) {
        self.hold_reply(connection, start, move |out| refuse(id, &UNHEARD, out));
    }

    /// A command whose client wants no answer waits for nothing.
    #[inline]
    pub(crate) fn do_not_wait(&mut self) {
        let _receipt = self.context.take_receipt();
    }

    #[inline]
    fn hold_reply(
        &mut self,
        connection: &mut Connection,
        start: usize,
        unheard: impl FnOnce(&mut Vec<u8>) + Send + 'static,
    ) -> bool {
        let Some(receipt) = self.context.take_receipt() else { return false };
        let reply = self.out.split_off(start);
        connection.statement = Some(Cancel::new());
        let (address, mailbox) = (connection.address, Arc::clone(&self.mailbox));
        receipt.when_over(move |heard| {
            let mut bytes = reply;
            if heard.is_err() {
                bytes.clear();
                unheard(&mut bytes);
            }
            mailbox.send(Message::Reply(SqlReply { address, bytes, panicked: false, verdict: None }));
        });
        true
    }
}

/// What a client hears whose command took effect here, and of which the bus has not heard.
const UNHEARD: Answer = Answer::ServerError(Cow::Borrowed(
    "the bus has not acknowledged it; it took effect here, and the other caches hear of it later",
));

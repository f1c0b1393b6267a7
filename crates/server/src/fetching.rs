//! Connections whose rows are on their way from a source. Such a connection waits as for a statement: its request stays
//! in its input, and is executed again when the rows have arrived.

use std::sync::Arc;

use engine::{Arrival, Cancel, MetaGot};
use memcache::{KEY_MAX, Meta};

use crate::connection::Connection;
use crate::dialogue::{Executed, RequestLoop};
use crate::limits::{FETCH_KEYS_MAX, FETCHES_MAX};
use crate::mailbox::Message;
use crate::meta;
use crate::reply::{Around, ValueSink};

impl RequestLoop {
    /// Asks for rows that are missing. True: the connection waits for them; otherwise it is known what became of them.
    #[cold]
    pub(crate) fn await_rows<'k>(
        &mut self,
        connection: &mut Connection,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> bool {
        let (address, mailbox) = (connection.address, Arc::clone(&self.mailbox));
        let wake = Arc::new(move || mailbox.send(Message::Arrived(address)));
        let keys = keys.into_iter().take(FETCH_KEYS_MAX);
        connection.fetching = connection.session.fetch(&mut self.context, keys, wake);
        let waits = connection.fetching.as_ref().is_some_and(|waiter| !waiter.is_over());
        if waits {
            connection.fetches += 1;
            connection.awaits_rows = true;
            connection.statement = Some(Cancel::new());
        }
        waits
    }

    /// Answers a key that was asked for; none: it was not, or its row came and went, and is asked for again.
    #[cold]
    pub(crate) fn give_arrived(
        &mut self,
        connection: &Connection,
        key: &[u8],
        exptime: Option<i64>,
        around: impl Around,
    ) -> Option<Result<bool, engine::Answer>> {
        let waiter = connection.fetching.as_deref()?;
        let arrival = connection.session.arrival(&mut self.context, key, waiter)?;
        let mut sink = ValueSink::new(&mut self.out, &mut self.pinned, around);
        let found = match (exptime, &arrival) {
            (Some(exptime), Arrival::Look | Arrival::Failed) => {
                connection.session.get_and_touch(&mut self.context, exptime, key, &mut sink)
            }
            _ => connection.session.get_arrived(&mut self.context, key, &arrival, &mut sink),
        };
        self.context.take_missed();
        let went = found == Ok(false) && matches!(arrival, Arrival::Look);
        if went && connection.fetches < FETCHES_MAX { None } else { Some(found) }
    }

    /// `mg`.
    #[inline]
    pub(crate) fn meta_get(&mut self, connection: &mut Connection, request: &Meta<'_>) -> Executed {
        if connection.fetching.is_none()
            && meta::get(&connection.session, &mut self.context, request, false, &mut self.out)
                != Some(MetaGot::Fetch)
        {
            return Executed::Whole;
        }
        self.meta_get_fetched(connection, request)
    }

    #[cold]
    fn meta_get_fetched(&mut self, connection: &mut Connection, request: &Meta<'_>) -> Executed {
        let mut buffer = [0; KEY_MAX];
        let key = request.key.bytes(&mut buffer);
        if connection.fetching.is_none() && self.await_rows(connection, [key]) {
            return Executed::InPart;
        }
        let waiter = connection.fetching.take();
        let arrival = waiter.and_then(|waiter| connection.session.arrival(&mut self.context, key, &waiter));
        match arrival {
            Some(Arrival::Value(row)) if row.value.is_some() => {
                meta::give(row.value.as_deref().unwrap_or_default(), request, &mut self.out);
            }
            Some(Arrival::Look) if connection.fetches < FETCHES_MAX => {
                let (session, context) = (&connection.session, &mut self.context);
                if meta::get(session, context, request, false, &mut self.out) == Some(MetaGot::Fetch) {
                    // It came and went.
                    return self.meta_get_fetched(connection, request);
                }
            }
            _ => {
                meta::get(&connection.session, &mut self.context, request, true, &mut self.out);
            }
        }
        connection.fetches = 0;
        Executed::Whole
    }
}

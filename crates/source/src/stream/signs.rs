//! Signs of life, both ways: what the source is told, what it sends back, and the state that follows from it.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend::CopyData;

use super::Streaming;
use crate::error::Error;
use crate::pgoutput::literal;
use crate::slot::lsn_of;
use crate::source::Source;

/// The prefix of our signs of life in the stream.
pub(super) const SIGN: &str = "sqlcached";
/// Seconds from 1970 to PostgreSQL's year 2000.
const EPOCH_SECONDS: u64 = 946_684_800;

/// What tells the source how far it was read, and what it may forget.
pub(crate) fn report_of(applied: u64, confirmed: u64) -> Result<BytesMut, Error> {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = since_1970.saturating_sub(Duration::from_secs(EPOCH_SECONDS)).as_micros();
    let mut body = BytesMut::with_capacity(34);
    body.put_u8(b'r');
    for place in [applied, confirmed, confirmed] {
        body.put_u64(place);
    }
    body.put_u64(u64::try_from(now).unwrap_or(u64::MAX));
    body.put_u8(0);
    let mut bytes = BytesMut::new();
    CopyData::new(body.freeze())?.write(&mut bytes);
    Ok(bytes)
}

impl Streaming<'_> {
    /// A sign of ours came back.
    pub(super) fn hear(&mut self, content: &[u8]) {
        let own = std::str::from_utf8(content).ok().and_then(|text| text.split_once(' '));
        let Some((nonce, nanos)) = own else { return };
        if nonce != self.nonce {
            return;
        }
        if let Ok(nanos) = nanos.parse() {
            self.heard = self.heard.max(self.began + Duration::from_nanos(nanos));
            let (heard, lag) = (self.heard, self.heard.elapsed());
            self.follow.source.state.update(|facts| {
                facts.heard = Some(heard);
                facts.lag_ms = Some(lag.as_secs_f64() * 1_000.0);
            });
        }
    }

    pub(super) fn enter_state(&self) {
        let late = self.heard.elapsed() > Source::max_lag(&self.follow.source.server);
        let behind = late || self.behind.is_some();
        let copying = self.mirrors.is_behind();
        if let Some(hub) = &self.follow.source.hub {
            hub.set_live(!late && !behind);
        }
        self.follow.source.enter(if copying {
            "copying"
        } else if behind {
            "lagging"
        } else {
            "streaming"
        });
    }

    /// Tells the source how far it was read, and what it may forget.
    pub(super) fn report(&mut self) -> Result<(), Error> {
        self.note_followed()?;
        // What a waiting commit was told stands.
        let confirmed = self.confirmed.max(self.awaited_to);
        self.changes.send(&report_of(self.follow.applied, confirmed)?)?;
        self.follow.source.state.advance(self.follow.received, self.follow.applied);
        Ok(())
    }

    /// Has the source write a sign into its log, which comes back with the stream.
    pub(super) fn send_sign(&mut self) -> Result<(), Error> {
        if !self.signs {
            return Ok(());
        }
        let sign = format!("{} {}", self.nonce, self.began.elapsed().as_nanos());
        let sent = self.beside.query(&format!(
            "SELECT pg_logical_emit_message(false, {}, {})",
            literal(SIGN),
            literal(&sign)
        ));
        match sent {
            Ok(rows) => {
                let end = rows.first().and_then(|row| lsn_of(row.first()?.as_deref()?));
                self.follow
                    .source
                    .state
                    .update(|facts| facts.source_lsn = facts.source_lsn.max(end.unwrap_or(0)));
                Ok(())
            }
            // Where nothing may be written, the source's own signs have to do.
            Err(error) if ["25006", "55000", "42501", "0A000"].contains(&error.state.as_str()) => {
                self.signs = false;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

//! Up to where a process that is killed leaves rows that its next one may believe, where rows travel.
//!
//! A row that was written here and that the bus does not have yet is known to nobody else, and its client has no
//! answer. The next process removes it: the others may have another row under its key. So with each place in the stream
//! that is written down goes a stamp: that place is written down when the bus has all that was written up to it.
//! What was written later is removed by the next process, and what the stream has of it comes once more.

use std::sync::Arc;

use engine::{Bus, Engine, Receipt};
use store::{Writer, write_as};

use crate::broken::Origin;
use crate::chain::Noted;
use crate::noted::{self, Place};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The place that is written down next, when the bus has what was written before it.
    coming: Option<(Place, Arc<Receipt>)>,
    /// The one that was written down last.
    last: Option<Place>,
}

impl Settled {
    /// Writes down how far the stream was heard, as far as that can be believed.
    pub(crate) fn note(&mut self, engine: &Engine, bus: &Arc<Bus>, now: Option<(Noted, Origin)>) {
        if noted::replicated(engine, bus.name()).is_empty() {
            let place =
                now.map(|(heard, origin)| Place { heard, origin, stamp: u64::MAX, wants: Vec::new() });
            return noted::write(engine, bus, place);
        }
        let known = self.coming.take_if(|(_, receipt)| receipt.is_over());
        let known = known.filter(|(_, receipt)| receipt.result().is_ok()).map(|(place, _)| place);
        self.last = known.or_else(|| self.last.take());
        noted::write(engine, bus, self.last.clone());
        if self.coming.is_none()
            && let Some(place) = place_of(engine, bus, now)
        {
            self.coming = Some((place, bus.outbox.when_delivered(bus.now_ns())));
        }
    }

    /// The same at an orderly end. Where the bus has everything, all is believed.
    pub(crate) fn end(&mut self, engine: &Engine, bus: &Arc<Bus>, now: Option<(Noted, Origin)>) {
        if bus.outbox.is_empty() {
            noted::write(engine, bus, place_of(engine, bus, now));
        } else {
            self.note(engine, bus, now);
        }
    }
}

fn place_of(engine: &Engine, bus: &Bus, now: Option<(Noted, Origin)>) -> Option<Place> {
    let (heard, origin) = now?;
    // First: what is not wanted any more was put in before the stamp.
    let (wants, _) = bus.wanted();
    Some(Place { heard, origin, stamp: engine.store().settled_stamp()?, wants })
}

/// Removes rows of a process before that the bus may not have.
pub(crate) fn forget_untold(engine: &Engine, bus: &Bus, told_stamp: u64) {
    let _local = write_as(Writer::Local);
    for table in noted::replicated(engine, bus.name()) {
        match engine.store().remove_newer(&table, told_stamp) {
            Ok(0) => {}
            Ok(rows) => tracing::info!(
                bus = %bus.name(), table = %table.name(), rows,
                "rows that the bus may not have are removed; those that it has come again"
            ),
            Err(error) => {
                tracing::warn!(bus = %bus.name(), table = %table.name(), ?error, "the table is emptied: its rows cannot be read");
                engine.store().flush(&table);
            }
        }
    }
}

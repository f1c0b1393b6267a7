//! Statements that made rows invalid of which other caches hear: their clients are answered when the bus has it. The
//! statement took effect before, and is not run again.

use std::sync::Arc;

use sql::SqlError;

use super::SqlSession;
use crate::buses::{Receipt, take_receipt, when_all_are_over};

impl SqlSession {
    /// Tells other caches what took effect.
    #[inline]
    pub(super) fn tell_others(&mut self) {
        let (told, written) = (self.sql.take_told(), take_receipt());
        if told.is_empty() && written.is_none() {
            return;
        }
        let zone = (self.look.zone, self.settings.get("TimeZone"));
        let receipt = self.engine.tell(told, zone);
        // Who is this program itself waits for nobody.
        if self.wake.is_some() || self.by_http {
            self.receipts.extend(receipt.into_iter().chain(written));
        }
    }

    /// Whether the buses have what the last statement told. None: they are waited for, and the session is woken.
    #[inline]
    pub fn heard(&mut self) -> Option<Result<(), SqlError>> {
        if self.receipts.is_empty() { Some(Ok(())) } else { self.heard_by_all() }
    }

    #[cold]
    fn heard_by_all(&mut self) -> Option<Result<(), SqlError>> {
        if self.awaits_bus() {
            for receipt in self.receipts.iter().filter(|receipt| !receipt.is_over()) {
                let wake = self.wake.clone();
                receipt.when_over(move |_| {
                    if let Some(wake) = wake {
                        wake();
                    }
                });
            }
            return None;
        }
        Some(self.receipts.drain(..).try_for_each(|receipt| receipt.result()))
    }

    pub(super) fn awaits_bus(&self) -> bool {
        self.receipts.iter().any(|receipt: &Arc<Receipt>| !receipt.is_over())
    }

    /// Calls back when the buses have what its statements told, for a session that is at its end.
    pub fn when_heard(self, then: impl FnOnce(Result<(), SqlError>) + Send + 'static) {
        let mut own = self;
        let receipts = std::mem::take(&mut own.receipts);
        // Who gets the answer finds no session of it.
        drop(own);
        when_all_are_over(receipts, Ok(()), then);
    }
}

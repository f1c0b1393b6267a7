//! `get` where a table makes rows anew: `refresh_before`, `stale_for` and `lease`, for clients that know nothing of them.

use store::Freshness;

use crate::lane::Route;
use crate::limits::CONTENDED_ROUNDS;

impl Route<'_> {
    /// Whether a plain `get` is told that a row is missing although it is there: it is due or stale, nobody makes it
    /// anew, and now this client does. The others get what there is.
    #[cold]
    pub(crate) fn answers_missing(&self, key: &[u8]) -> bool {
        let store = &self.engine.store;
        for _ in 0..CONTENDED_ROUNDS {
            let Some((meta, _)) = store.look(self.table, key, self.now, false) else { return false };
            if meta.is_leased(self.now) || store.freshness(self.table, &meta, self.now) == Freshness::Fresh {
                return false;
            }
            let until = store.lease_end(self.table, self.now);
            if store.take_lease(self.table, key, &meta, until, self.now) {
                return true;
            }
        }
        false
    }
}

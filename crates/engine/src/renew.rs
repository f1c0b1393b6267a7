//! `get` where a table refreshes rows: `refresh_before`, `stale_for` and `lease`, for clients that know nothing of
//! them. And where nobody reads while the source is not followed (`on_lag = 'fail'`).

use store::Freshness;

use crate::limits::CONTENDED_ROUNDS;
use crate::thread_context::Route;

impl Route<'_> {
    /// Whether a plain `get` gets a miss although the row exists: the row is due or stale, no client refreshes it, and
    /// now this client does. The other clients get the row. While nobody may read the table, all get a miss.
    #[cold]
    pub(crate) fn answers_missing(&self, key: &[u8]) -> bool {
        if self.table.fails() {
            return true;
        }
        if !self.table.renews() {
            return false;
        }
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

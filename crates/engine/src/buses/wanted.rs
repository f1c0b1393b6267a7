//! Tables whose rows travel and of which this cache lacks rows that others have: it is new, or it did not believe its
//! own any more.

use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    tables: Vec<Arc<str>>,
    /// How often rows of some table went. Who puts in rows that were given looks whether they went meanwhile.
    losses: u64,
    /// Rows up to this stamp may be stale because they are not believed.
    stale_to: u64,
}

impl Wanted {
    pub(super) fn want(&mut self, table: &str) {
        self.losses += 1;
        if !self.has(table) {
            self.tables.push(table.into());
        }
    }

    pub(super) fn note_stale(&mut self, stamp: u64) {
        self.stale_to = self.stale_to.max(stamp);
    }

    pub(super) fn stale_to(&self) -> u64 {
        self.stale_to
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.tables.iter().any(|own| **own == *table)
    }

    /// No more of a table is wanted, if no row went since there were so many losses.
    pub(super) fn settle(&mut self, table: &str, losses: u64) {
        if self.losses == losses {
            self.tables.retain(|own| **own != *table);
        }
    }

    /// Those that are left, and how often rows went.
    pub(super) fn all(&self) -> (Vec<Arc<str>>, u64) {
        (self.tables.clone(), self.losses)
    }

    pub(super) fn len(&self) -> usize {
        self.tables.len()
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_meanwhile_is_wanted_again() {
        let mut wanted = Wanted::default();
        wanted.want("a");
        wanted.want("b");
        wanted.want("a");
        let (tables, losses) = wanted.all();
        assert_eq!((tables.len(), losses), (2, 3));
        wanted.settle("b", losses);
        assert!(wanted.has("a") && !wanted.has("b"));
        wanted.want("a");
        wanted.settle("a", losses);
        assert!(wanted.has("a"), "its rows went since");
        wanted.settle("a", wanted.losses());
        assert_eq!(wanted.len(), 0);
    }
}

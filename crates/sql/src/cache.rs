//! Compiled statements by their text.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::limits::CACHED_STATEMENT_BYTES_MAX;
use crate::prepared::Prepared;

/// Keeps the statements used last. Cleared when a definition changes, for plans know their tables.
#[derive(Debug)]
pub(crate) struct Cache {
    plans: HashMap<Box<str>, Kept, BuildHasherDefault<rapidhash::fast::RapidHasher<'static>>>,
    capacity: usize,
    /// Counts uses, so that each has a number.
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    plan: Prepared,
    used: u64,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { plans: HashMap::default(), capacity, clock: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether it keeps statements at all.
    pub(crate) fn keeps_any(&self) -> bool {
        self.capacity > 0
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.plans.len() > capacity {
            self.drop_oldest();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.plans.clear();
    }

    pub(crate) fn get(&mut self, sql: &str) -> Option<&mut Prepared> {
        if sql.len() > CACHED_STATEMENT_BYTES_MAX {
            return None;
        }
        let kept = self.plans.get_mut(sql)?;
        self.clock += 1;
        kept.used = self.clock;
        Some(&mut kept.plan)
    }

    pub(crate) fn put(&mut self, sql: &str, plan: Prepared) {
        if self.capacity == 0 || sql.len() > CACHED_STATEMENT_BYTES_MAX {
            return;
        }
        while self.plans.len() >= self.capacity {
            self.drop_oldest();
        }
        self.clock += 1;
        self.plans.insert(sql.into(), Kept { plan, used: self.clock });
    }

    /// A walk over the whole cache, which compiling the statement that needs the place outweighs.
    fn drop_oldest(&mut self) {
        let oldest = self.plans.iter().min_by_key(|(_, kept)| kept.used).map(|(sql, _)| sql.clone());
        if let Some(sql) = oldest {
            self.plans.remove(&sql);
        }
    }
}

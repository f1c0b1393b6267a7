//! What the cache should hold: which keys were filled and not expired since, and which version each object
//! has. Every value served is compared with it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};

use crate::trace::Object;

/// The lengths of values lie between this and twice as much.
const BODY_BYTES: u64 = 120;

/// The application's own knowledge.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Keys that were filled and not expired since. Keys of one object, and of one type, lie side by side.
    live: BTreeSet<u64>,
    /// Keys asked for before.
    seen: HashSet<u64>,
    /// How often each object (its key without the index) was changed; absent is 0.
    objects: HashMap<u64, u32>,
    /// How often each type was changed; absent is 0.
    types: HashMap<u64, u32>,
}

/// Bits of a key that name the part within an object.
const INDEX_BITS: u32 = 9;
/// Bits of a key that name the object and its part within a type.
const TYPE_BITS: u32 = 27;

/// Why a key missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It was never asked for.
    First,
    /// It was expired by SQL.
    Expired,
    /// It was filled, and nobody expired it: the cache evicted it.
    Evicted,
}

impl Model {
    /// The value that belongs under a key now: its name, its versions, and filler.
    pub(crate) fn body(&self, key: u64, body: &mut String) {
        let Object { kind, id, index } = Object::from(key);
        let type_version = self.types.get(&(key >> TYPE_BITS)).copied().unwrap_or(0);
        let version = self.objects.get(&(key >> INDEX_BITS)).copied().unwrap_or(0);
        body.clear();
        // A write to a string cannot fail.
        let _ = write!(body, "{kind}:{id}:{index} version {type_version}.{version} ");
        let length = usize::try_from(BODY_BYTES + key.wrapping_mul(0x9e37_79b9) % BODY_BYTES).unwrap_or(0);
        body.extend(std::iter::repeat_n('.', length.saturating_sub(body.len())));
    }

    /// A key missed, and is filled now.
    pub(crate) fn fill(&mut self, key: u64) -> Miss {
        let first = self.seen.insert(key);
        let absent = self.live.insert(key);
        match (first, absent) {
            (true, _) => Miss::First,
            (false, true) => Miss::Expired,
            (false, false) => Miss::Evicted,
        }
    }

    /// The object of a key changes; how many of its parts were live.
    pub(crate) fn expire_object(&mut self, key: u64) -> u64 {
        *self.objects.entry(key >> INDEX_BITS).or_default() += 1;
        self.remove(key, INDEX_BITS)
    }

    /// The type of a key changes; how many of its keys were live.
    pub(crate) fn expire_type(&mut self, key: u64) -> u64 {
        *self.types.entry(key >> TYPE_BITS).or_default() += 1;
        self.remove(key, TYPE_BITS)
    }

    /// Removes all keys that differ from `key` in the lower bits only.
    fn remove(&mut self, key: u64, bits: u32) -> u64 {
        let first = key >> bits << bits;
        let mut above = self.live.split_off(&first);
        let mut rest = above.split_off(&(first + (1 << bits)));
        self.live.append(&mut rest);
        above.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Miss, Model};

    #[test]
    fn an_expired_object_gets_another_body() {
        let key = 3 << 27 | 7 << 9 | 1;
        let mut model = Model::default();
        let (mut before, mut after) = (String::new(), String::new());
        assert_eq!(model.fill(key), Miss::First);
        assert_eq!(model.fill(key + 1), Miss::First);
        assert_eq!(model.fill(key), Miss::Evicted);
        model.body(key, &mut before);
        assert_eq!(model.expire_object(key), 2);
        model.body(key, &mut after);
        assert!(before.starts_with("3:7:1 ") && before != after);
        assert_eq!(model.fill(key), Miss::Expired);
        assert_eq!(model.expire_type(key), 1);
        assert_eq!(model.expire_type(key), 0);
    }
}

//! Several keys of a table at once: memory is asked for the rows of some of them together.

use store::Found;

use crate::error::Error;
use crate::limits::AHEAD;
use crate::table::{Table, state_of};
use crate::{Client, Lookup, Meta, Value};

impl Client {
    /// Several values of a table, in the order of the keys: their rows are asked of memory together.
    pub fn multi_get(&self, table: &str, keys: &[&[u8]]) -> Result<Vec<Lookup>, Error> {
        let mut found = Vec::with_capacity(keys.len());
        self.multi_get_with(&Table::new(table), keys, &mut |lookup, bytes| {
            found.push(lookup.map(|meta| Value { bytes: bytes.to_vec(), meta }));
        })?;
        Ok(found)
    }

    /// As [`Client::multi_get`]; hands each value to `take`, in the order of the keys, and allocates nothing for those
    /// in shared memory but one buffer.
    pub fn multi_get_with(
        &self,
        table: &Table,
        keys: &[&[u8]],
        take: &mut dyn FnMut(Lookup<Meta>, &[u8]),
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for keys in keys.chunks(AHEAD) {
            if !self.take_together(table, keys, &mut bytes, take)? {
                for key in keys {
                    bytes.clear();
                    take(self.get_into(table, key, &mut bytes)?, &bytes);
                }
            }
        }
        Ok(())
    }

    /// Reads some keys together and hands them to `take`; false: they are to be read one by one. All are copied before
    /// the first is handed over, so that they are of the moment at which the read begins however long `take` takes.
    fn take_together(
        &self,
        table: &Table,
        keys: &[&[u8]],
        bytes: &mut Vec<u8>,
        take: &mut dyn FnMut(Lookup<Meta>, &[u8]),
    ) -> Result<bool, Error> {
        let mut found = [(Found::Unanswered, 0); AHEAD];
        bytes.clear();
        {
            let known = table.shared.load();
            let Some((shared, now)) = known.as_ref().and_then(|shared| Some((shared, shared.moment()?)))
            else {
                return Ok(false);
            };
            if !shared.values(keys, now, bytes, &mut found) {
                return Ok(false);
            }
        }
        let mut begin = 0;
        for (key, (found, end)) in keys.iter().zip(&found) {
            match found {
                Found::Hit(seen) => take(state_of(seen), &bytes[begin..*end]),
                Found::Miss => take(Lookup::Miss, &[]),
                Found::Unanswered => {
                    let mut asked = Vec::new();
                    take(self.value_by_socket(table, key, &mut asked)?, &asked);
                }
            }
            begin = *end;
        }
        Ok(true)
    }
}

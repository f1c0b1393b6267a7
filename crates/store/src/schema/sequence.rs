//! Which number of a sequence comes next.
//!
//! No number is given out twice, not after a crash either, unless the sequence begins again: a range of numbers is
//! written into the definitions before the first of it is given out, and the next process goes on behind it.

use crate::definition::Place;
use crate::error::WriteError;
use crate::schema::Schema;
use crate::table::sequence::{Now, Sequence};

/// Numbers reserved at a time, as of identity columns.
const NUMBERS_AHEAD: i64 = 1_024;

impl Schema {
    /// The next number of a sequence.
    pub fn next_value(&self, sequence: &Sequence) -> Result<i64, WriteError> {
        if let Some(next) = sequence.next_reserved() {
            return Ok(next);
        }
        let _one = self.definitions.lock();
        // Another may have reserved meanwhile.
        if let Some(next) = sequence.next_reserved() {
            return Ok(next);
        }
        let def = sequence.def();
        let mut now = sequence.state.now.lock();
        let next = def.next(now.place).ok_or_else(|| WriteError::SequenceEnded {
            name: def.own_name().to_owned(),
            rises: def.increment > 0,
            limit: if def.increment > 0 { def.max } else { def.min },
        })?;
        let left = def.steps_behind(next, NUMBERS_AHEAD);
        let before = std::mem::replace(
            &mut *sequence.state.written.lock(),
            Place { last: next + left * def.increment, called: true },
        );
        if self.save(&self.catalog()).is_err() {
            *sequence.state.written.lock() = before;
            return Err(WriteError::Full);
        }
        *now = Now { place: Place { last: next, called: true }, left };
        Ok(next)
    }

    /// Has a sequence go on from another place.
    pub fn set_value(&self, sequence: &Sequence, place: Place) -> Result<(), WriteError> {
        let _one = self.definitions.lock();
        let mut now = sequence.state.now.lock();
        let before = std::mem::replace(&mut *sequence.state.written.lock(), place);
        if self.save(&self.catalog()).is_err() {
            *sequence.state.written.lock() = before;
            return Err(WriteError::Full);
        }
        *now = Now { place, left: 0 };
        Ok(())
    }
}

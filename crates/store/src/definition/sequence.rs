//! A sequence: numbers that are given out one after the other.

use serde::{Deserialize, Serialize};

use super::namespace::check_qualified;
use super::{Access, DefinitionError};

/// A sequence, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceDef {
    /// Tells it from every other one.
    pub id: u16,
    /// Its name, unique among all tables, views and sequences.
    pub name: String,
    /// Its schema; none is `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Bits of its type: 16, 32 or 64.
    pub bits: u8,
    /// The first number.
    pub start: i64,
    /// From one number to the next.
    pub increment: i64,
    /// The least number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
    /// How many numbers a session of PostgreSQL's takes at once; here it says nothing.
    pub cache: i64,
    /// It begins again at its end.
    pub cycle: bool,
    /// The table, by its number, and the column with which it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u16, String)>,
    /// Who owns it, and what was granted of it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// Where it stands: no number behind this place was given out.
    pub place: Place,
}

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// A number.
    pub last: i64,
    /// It was given out. Otherwise it comes next.
    pub called: bool,
}

impl SequenceDef {
    /// The next number; `None`: there is none.
    pub fn next(&self, place: Place) -> Option<i64> {
        if !place.called {
            return Some(place.last);
        }
        let next = place.last.checked_add(self.increment);
        let within = next.filter(|next| (self.min..=self.max).contains(next));
        within.or_else(|| self.cycle.then_some(if self.increment > 0 { self.min } else { self.max }))
    }

    /// How many numbers follow this one before the sequence ends or begins again, at most so many.
    pub(crate) fn steps_behind(&self, number: i64, most: i64) -> i64 {
        let end = if self.increment > 0 { self.max } else { self.min };
        let steps = (i128::from(end) - i128::from(number)) / i128::from(self.increment);
        i64::try_from(steps.clamp(0, i128::from(most))).unwrap_or(0)
    }

    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        super::own_name(self.namespace.as_deref(), &self.name)
    }

    /// Whether it is a sequence that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_qualified("sequence", self.namespace.as_deref(), &self.name)?;
        let Self { start, increment, min, max, cache, .. } = *self;
        let (least, greatest) = self.bounds();
        let bad = |message: String| Err(DefinitionError::invalid(message));
        if increment == 0 {
            return bad("INCREMENT must not be zero".to_owned());
        }
        if max > greatest || max < least {
            return bad(format!(
                "MAXVALUE ({max}) is out of range for sequence data type {}",
                self.type_name()
            ));
        }
        if min > greatest || min < least {
            return bad(format!(
                "MINVALUE ({min}) is out of range for sequence data type {}",
                self.type_name()
            ));
        }
        if min >= max {
            return bad(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
        }
        if start < min {
            return bad(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
        }
        if start > max {
            return bad(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
        }
        if self.place.last < min {
            return bad(format!("RESTART value ({}) cannot be less than MINVALUE ({min})", self.place.last));
        }
        if self.place.last > max {
            return bad(format!(
                "RESTART value ({}) cannot be greater than MAXVALUE ({max})",
                self.place.last
            ));
        }
        if cache < 1 {
            return bad(format!("CACHE ({cache}) must be greater than zero"));
        }
        Ok(())
    }

    /// What its type can hold.
    pub fn bounds(&self) -> (i64, i64) {
        match self.bits {
            16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &'static str {
        match self.bits {
            16 => "smallint",
            32 => "integer",
            _ => "bigint",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64, min: i64, max: i64, cycle: bool) -> SequenceDef {
        let start = if increment > 0 { min } else { max };
        let place = Place { last: start, called: false };
        SequenceDef {
            id: 1,
            name: "s".into(),
            namespace: None,
            bits: 64,
            start,
            increment,
            min,
            max,
            cache: 1,
            cycle,
            owner: None,
            access: Access::default(),
            place,
        }
    }

    #[test]
    fn numbers_follow_one_another() {
        for (own, expected) in [
            (sequence(1, 1, 3, false), vec![Some(1), Some(2), Some(3), None]),
            (sequence(2, 1, 4, true), vec![Some(1), Some(3), Some(1), Some(3)]),
            (sequence(-2, -3, -1, false), vec![Some(-1), Some(-3), None]),
            (sequence(i64::MAX, 1, i64::MAX, false), vec![Some(1), None]),
            (
                sequence(5, i64::MAX - 6, i64::MAX, true),
                vec![Some(i64::MAX - 6), Some(i64::MAX - 1), Some(i64::MAX - 6)],
            ),
        ] {
            let mut place = own.place;
            for next in expected {
                let found = own.next(place);
                assert_eq!(found, next, "{own:?}");
                place = Place { last: found.unwrap_or(place.last), called: true };
            }
        }
        let own = sequence(3, 1, 10, true);
        assert_eq!([1, 4, 8, 10].map(|number| own.steps_behind(number, 2)), [2, 2, 0, 0]);
        assert_eq!(sequence(-1, i64::MIN, i64::MAX, false).steps_behind(i64::MAX, 1_000), 1_000);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let good = sequence(1, 1, 10, false);
        assert_eq!(good.validate(), Ok(()));
        for bad in [
            SequenceDef { increment: 0, ..good.clone() },
            SequenceDef { min: 11, ..good.clone() },
            SequenceDef { start: 11, ..good.clone() },
            SequenceDef { start: 0, ..good.clone() },
            SequenceDef { cache: 0, ..good.clone() },
            SequenceDef { bits: 16, max: 1 << 20, ..good.clone() },
            SequenceDef { bits: 32, min: i64::MIN, ..good.clone() },
            SequenceDef { place: Place { last: 11, called: true }, ..good.clone() },
            SequenceDef { place: Place { last: 0, called: true }, ..good.clone() },
        ] {
            assert_eq!(bad.validate().map_err(|error| error.sqlstate), Err("22023"), "{bad:?}");
        }
    }
}

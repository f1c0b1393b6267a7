//! The tags of an answer.

use std::collections::BTreeSet;

use crate::canonical::{Bound, Written, written, written_elements};
use crate::verdict::{Dependences, Guard, Operand, Refusal};
use crate::words::clock_word;

/// More tags of one answer cost more than the table's one saves.
pub const TAGS_MAX: usize = 100;

/// Types of which no text is read as a date or a time: bool, bytea, "char", name, integers, text, oid, json, floats,
/// char(n), varchar, numeric, uuid, jsonb, and arrays of some. Such a parameter may contain the word `now`: a cast
/// from text to a date or a time is refused.
const TIMELESS: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 700, 701, 1042, 1043, 1700, 2950, 3802, 1000, 1005, 1007, 1009,
    1015, 1016, 1231, 2951,
];

impl Dependences {
    /// The tags of the answer with these parameters. `OID` is dropped by any change of the table.
    /// `OID.column=value` is
    /// dropped by a change of which the old or the new row has this value, written as the stream tells it. `OID.*`,
    /// which stands beside them, is dropped by a change that cannot be told by its columns, as TRUNCATE.
    ///
    /// It is an error if a parameter of a date or a time says `now`, `today`, `tomorrow` or `yesterday`.
    pub fn tags(&self, parameters: &[Bound<'_>]) -> Result<Vec<String>, Refusal> {
        self.tell_no_time(parameters)?;
        let tables = self.relations.iter().map(|relation| relation.oid).collect::<BTreeSet<_>>();
        let mut all: Vec<(u32, BTreeSet<String>)> =
            tables.into_iter().map(|oid| (oid, self.tags_of(oid, parameters))).collect();
        while all.iter().map(|(_, tags)| tags.len()).sum::<usize>() > TAGS_MAX {
            match all.iter_mut().max_by_key(|(_, tags)| tags.len()) {
                Some((oid, tags)) if tags.len() > 1 => *tags = whole(*oid),
                _ => break,
            }
        }
        Ok(all.into_iter().flat_map(|(_, tags)| tags).collect())
    }

    fn tell_no_time(&self, parameters: &[Bound<'_>]) -> Result<(), Refusal> {
        for (at, parameter) in parameters.iter().enumerate() {
            let (Bound::Text(bytes) | Bound::Binary(bytes)) = parameter else { continue };
            let timeless = self.parameter_types.get(at).is_some_and(|ty| TIMELESS.contains(ty));
            if !timeless && let Some(word) = clock_word(bytes) {
                return Err(Refusal::new(format!("parameter ${} says '{word}', which means a time", at + 1))
                    .with_cure("send the time itself"));
            }
        }
        Ok(())
    }

    /// The tags of one table.
    fn tags_of(&self, oid: u32, parameters: &[Bound<'_>]) -> BTreeSet<String> {
        let mut tags = BTreeSet::from([format!("{oid}.*")]);
        for occurrence in self.occurrences.iter().filter(|occurrence| occurrence.relation == oid) {
            let values = occurrence.guard.as_ref().and_then(|guard| self.values(guard, parameters));
            let (Some(guard), Some(values)) = (&occurrence.guard, values) else { return whole(oid) };
            tags.extend(values.iter().map(|value| format!("{oid}.{}={value}", guard.column)));
        }
        tags
    }

    /// The values of a guard's column that count; `None`: they are not known.
    fn values(&self, guard: &Guard, parameters: &[Bound<'_>]) -> Option<BTreeSet<String>> {
        let mut values = BTreeSet::new();
        for operand in &guard.values {
            let found = match operand {
                Operand::Literal(value) => vec![Written::Value(value.clone())],
                Operand::Parameter(at) => {
                    let kind = guard.kind.of_value(*self.parameter_types.get(*at)?);
                    vec![written(kind, *parameters.get(*at)?, self.is_utf8)]
                }
                Operand::Elements(at) => written_elements(guard.kind, *parameters.get(*at)?, self.is_utf8)?,
            };
            for value in found {
                match value {
                    Written::Null => {}
                    Written::Value(value) => drop(values.insert(value)),
                    Written::Unknown => return None,
                }
            }
        }
        Some(values)
    }
}

fn whole(oid: u32) -> BTreeSet<String> {
    BTreeSet::from([oid.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{GuardKind, Occurrence, Relation};

    fn relation(oid: u32) -> Relation {
        Relation { oid, name: format!("t{oid}"), leaves: vec![oid] }
    }

    fn guarded(relation: u32, values: Vec<Operand>) -> Occurrence {
        let guard = Guard { column: "id".to_owned(), kind: GuardKind::Integer, values };
        Occurrence { relation, guard: Some(guard), note: None }
    }

    fn dependences(occurrences: Vec<Occurrence>) -> Dependences {
        let relations = vec![relation(1), relation(2)];
        Dependences {
            parameter_types: vec![23, 1082],
            relations,
            occurrences,
            is_utf8: true,
            ..Dependences::default()
        }
    }

    #[test]
    fn a_guard_has_the_tags_of_its_values() {
        let literal = Operand::Literal("7".to_owned());
        let found = dependences(vec![
            guarded(1, vec![Operand::Parameter(0), literal]),
            Occurrence { relation: 2, guard: None, note: None },
        ]);
        let tags = |bound| found.tags(&[bound, Bound::Null]).unwrap();
        assert_eq!(tags(Bound::Text(b"05")), ["1.*", "1.id=5", "1.id=7", "2"]);
        assert_eq!(tags(Bound::Null), ["1.*", "1.id=7", "2"]);
        assert_eq!(tags(Bound::Text(b"0x5")), ["1", "2"]);
        assert_eq!(found.tags(&[]).unwrap(), ["1", "2"]);
    }

    #[test]
    fn too_many_tags_become_the_tables_one() {
        let many = (0..99).map(|value| Operand::Literal(value.to_string())).collect();
        let found = dependences(vec![guarded(1, many), guarded(2, vec![Operand::Literal("1".to_owned())])]);
        assert_eq!(found.tags(&[Bound::Null, Bound::Null]).unwrap(), ["1", "2.*", "2.id=1"]);
    }

    #[test]
    fn a_date_that_says_now_is_refused() {
        let found = dependences(Vec::new());
        let said = found.tags(&[Bound::Null, Bound::Text(b" Today ")]).unwrap_err();
        assert_eq!(said.reason, "parameter $2 says 'today', which means a time");
        assert!(found.tags(&[Bound::Text(b"now"), Bound::Null]).is_ok());
    }
}

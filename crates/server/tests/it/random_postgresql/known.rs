//! What is known to differ from PostgreSQL. The list may only shrink: what is cured must be taken out of it.

use super::Answer;

/// Something that differs.
pub(super) struct Known {
    pub(super) what: &'static str,
    /// A statement that shows it.
    pub(super) shown_by: &'static str,
    pub(super) reason: &'static str,
    /// Whether an answer of PostgreSQL's and one of ours differ by it.
    is_it: fn(&Answer, &Answer) -> bool,
}

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "integers of 32 bits that overflow within an expression",
        shown_by: "SELECT 2147483647 + 1 > 0",
        reason: "an INT holds 64 bits, as SQLite's do; a result that is sent as one of 32 is refused",
        is_it: |theirs, ours| failed(theirs, &["22003"]) && !matches!(ours, Answer::Failed(_)),
    },
    Known {
        what: "the digits of a float",
        shown_by: "SELECT 1e20::float8 * 97",
        reason: "of two texts for one float PostgreSQL writes the longer if the shorter is half-way to the next float; both read back as the same",
        is_it: |theirs, ours| match (theirs, ours) {
            (Answer::Rows(their_types, theirs), Answer::Rows(our_types, ours)) => {
                their_types == our_types
                    && theirs.len() == ours.len()
                    && theirs
                        .iter()
                        .flatten()
                        .zip(ours.iter().flatten())
                        .all(|(a, b)| same_number(a.as_deref(), b.as_deref()))
            }
            _ => false,
        },
    },
    Known {
        what: "an error in what no row needs",
        shown_by: "SELECT 1 WHERE ('x' || '')::int = ANY (ARRAY[]::int[])",
        reason: "PostgreSQL computes what is constant before it looks for rows, SQLite when a row asks for it, and each in its own order",
        is_it: |theirs, ours| {
            let computed = ["22P02", "22012", "22003", "2201F"];
            (failed(theirs, &computed)
                && !matches!(ours, Answer::Failed(state) if !computed.contains(&state.as_str())))
                || (failed(ours, &computed) && !matches!(theirs, Answer::Failed(_)))
        },
    },
];

/// Whether two values are the same, or two texts of the same float.
fn same_number(one: Option<&str>, other: Option<&str>) -> bool {
    let number = |value: Option<&str>| value.and_then(|text| text.parse::<f64>().ok());
    one == other || (number(one).is_some() && number(one) == number(other) && is_long(one))
}

/// Whether a number has an exponent: texts such as `1.0` and `1` are not meant.
fn is_long(value: Option<&str>) -> bool {
    value.is_some_and(|text| text.contains('e'))
}

fn failed(answer: &Answer, states: &[&str]) -> bool {
    matches!(answer, Answer::Failed(state) if states.contains(&state.as_str()))
}

/// Whether two answers differ only by what the list has.
pub(super) fn is_known(theirs: &Answer, ours: &Answer) -> bool {
    KNOWN.iter().any(|known| (known.is_it)(theirs, ours))
}

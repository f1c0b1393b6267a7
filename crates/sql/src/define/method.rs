//! The method of an index, `CREATE INDEX ... USING method`: every index here is an ordered one.

use sqltext::definition::Name;

use super::Told;
use super::words::Words;
use crate::error::{SqlError, state};

/// Methods of which an ordered index serves all that they serve.
const SERVED: &[&str] = &["btree", "hash"];
/// Other methods of PostgreSQL's: an ordered index takes their place, and serves comparisons of whole values alone.
const OTHER: &[&str] = &["gin", "gist", "spgist", "brin"];

/// What the user is told of the index.
const HINT: &str = "operators such as @> read every row: EXPLAIN shows it. Keep what is searched for in a table of its own, \
                    one row for each element, with an index";

/// What is said of a method in whose place an ordered index is made; an error for one that PostgreSQL has not.
pub(super) fn note(words: &Words<'_>, method: Option<&Name>) -> Result<Option<Told>, SqlError> {
    let Some(method) = method else { return Ok(None) };
    let name = method.text.to_ascii_lowercase();
    if SERVED.contains(&name.as_str()) {
        return Ok(None);
    }
    if OTHER.contains(&name.as_str()) {
        let message = format!("there are no {name} indexes; this is an ordered index of the whole value");
        return Ok(Some(Told::note(message, HINT)));
    }
    let error = SqlError::new(state::UNKNOWN_OBJECT, format!("access method \"{name}\" does not exist"));
    Err(words.at(error, method.place))
}

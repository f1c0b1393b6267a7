//! The method of an index, `CREATE INDEX ... USING method`: an index is an ordered one, or with `gin` one over the
//! elements of an array or of JSON.

use sqltext::definition::Name;
use store::definition::{ColumnDef, SqlType, TableDef};

use super::Note;
use super::index::Form;
use super::words::Words;
use crate::error::{SqlError, state};

/// Methods of which an ordered index serves all that they serve.
const SERVED: &[&str] = &["btree", "hash"];
/// Other methods of PostgreSQL's: an ordered index takes their place, and serves comparisons of whole values alone.
const OTHER: &[&str] = &["gin", "gist", "spgist", "brin"];

/// The method of an index over elements.
const ELEMENTS: &str = "gin";

/// The hint for an index that is none over elements.
const HINT: &str = "operators such as @> read every row: EXPLAIN shows it. An index USING gin serves one column, or \
                    expression, of type JSONB, TEXT[] or of whole numbers in an array";

/// Makes an index one over the elements of its only column, where its method asks for that and the column is JSON or an
/// array whose elements differ where their bytes do.
pub(super) fn of_elements(method: Option<&Name>, def: &TableDef, form: &mut Form) -> bool {
    if !method.is_some_and(|method| method.text.eq_ignore_ascii_case(ELEMENTS)) {
        return false;
    }
    let [column] = form.index.columns[..] else { return false };
    let declared = def.columns.get(column).or_else(|| form.hidden.get(column - def.columns.len()));
    let ty = declared.map(ColumnDef::sql_type);
    let elements = ty.filter(|ty| ty.is_array()).map(SqlType::scalar);
    let serves = ty == Some(SqlType::Jsonb)
        || matches!(
            elements,
            Some(SqlType::Text | SqlType::Varchar | SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
        );
    if serves {
        form.index.columns.clear();
        form.index.descending.clear();
        form.index.collations.clear();
        form.index.elements = Some(column);
    }
    serves
}

/// What is said of a method in whose place an ordered index is made; an error for one that PostgreSQL has not.
pub(super) fn note(words: &Words<'_>, method: Option<&Name>) -> Result<Option<Note>, SqlError> {
    let Some(method) = method else { return Ok(None) };
    let name = method.text.to_ascii_lowercase();
    if SERVED.contains(&name.as_str()) {
        return Ok(None);
    }
    if OTHER.contains(&name.as_str()) {
        let message = format!("this is no {name} index, but an ordered one of the whole value");
        return Ok(Some(Note::hinted(message, HINT)));
    }
    let error = SqlError::new(state::UNKNOWN_OBJECT, format!("access method \"{name}\" does not exist"));
    Err(words.at(error, method.place))
}

//! Storage parameters of PostgreSQL's: how its files are filled and swept, which says nothing here.

use sqltext::definition::Setting;

use super::Note;
use crate::error::{SqlError, state};

/// Those whose names do not begin with `autovacuum_` or `toast.`.
const PARAMETERS: &[&str] = &[
    "fillfactor",
    "log_autovacuum_min_duration",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
];

/// Those of indexes, by the method that has them.
const OF_INDEXES: &[(&str, &[&str])] = &[
    ("btree", &["fillfactor", "deduplicate_items"]),
    ("hash", &["fillfactor"]),
    ("gist", &["fillfactor", "buffering"]),
    ("spgist", &["fillfactor"]),
    ("gin", &["fastupdate", "gin_pending_list_limit"]),
    ("brin", &["pages_per_range", "autosummarize"]),
];

fn is_storage_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("autovacuum_") || name.starts_with("toast.") || PARAMETERS.contains(&name.as_str())
}

/// The settings that mean something here, and a notice about each of the others.
pub(super) fn without_storage(settings: &[Setting]) -> (Vec<Setting>, Vec<Note>) {
    let (storage, own): (Vec<Setting>, Vec<Setting>) =
        settings.iter().cloned().partition(|(name, _)| is_storage_parameter(name));
    (own, storage.iter().map(|(name, _)| note(name)).collect())
}

/// A notice about each setting of an index that is made by a method of PostgreSQL's.
pub(super) fn notes_of_index(settings: &[Setting], method: &str) -> Result<Vec<Note>, SqlError> {
    let is_method = |known: &&(&str, &[&str])| known.0.eq_ignore_ascii_case(method);
    let known = OF_INDEXES.iter().find(is_method).map_or(&[][..], |(_, names)| names);
    let noted = |(name, _): &Setting| {
        if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(note(name));
        }
        let message = format!("unrecognized parameter \"{}\"", name.to_ascii_lowercase());
        Err(SqlError::new(state::BAD_PARAMETER, message))
    };
    settings.iter().map(noted).collect()
}

fn note(name: &str) -> Note {
    Note::plain(format!("storage parameter \"{name}\" says nothing here, where rows are in memory"))
}

//! Storage parameters of PostgreSQL's: how its files are filled and swept, which says nothing here.

use sqltext::definition::Setting;

use super::Note;

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

fn is_storage_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("autovacuum_") || name.starts_with("toast.") || PARAMETERS.contains(&name.as_str())
}

/// The settings that mean something here, and a notice about each of the others.
pub(super) fn without_storage(settings: &[Setting]) -> (Vec<Setting>, Vec<Note>) {
    let (storage, own): (Vec<Setting>, Vec<Setting>) =
        settings.iter().cloned().partition(|(name, _)| is_storage_parameter(name));
    let note = |(name, _): &Setting| {
        Note::plain(format!("storage parameter \"{name}\" says nothing here, where rows are in memory"))
    };
    (own, storage.iter().map(note).collect())
}

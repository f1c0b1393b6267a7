//! A materialized view: a table whose rows are those of a query.

use serde::{Deserialize, Serialize};

use super::{DefinitionError, TableDef, TableOptions};

/// What makes a table a materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializedDef {
    /// Its query, in SQLite's words.
    pub sql: String,
    /// The same as its maker wrote it, with the schemas that its names had then.
    pub written: String,
    /// The names that were given to its columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// It was filled; until then nobody may read it.
    #[serde(default)]
    pub populated: bool,
}

/// Options by which rows go that the query still has, or by which others write them.
const NOT_OF_VIEWS: &[&str] = &[
    "ttl",
    "refresh_before",
    "stale_for",
    "lease",
    "max_rows",
    "max_ops",
    "min_memory",
    "weight",
    "tags",
    "flush",
    "source",
    "depends",
    "on_change",
    "on_lag",
];

/// Options that say when a view is refreshed.
const OF_VIEWS: &[&str] = &["refresh", "refresh_on", "refresh_timeout"];

impl MaterializedDef {
    /// Its query as clients are shown it, with the end of a statement behind it.
    pub fn shown(&self) -> String {
        let query = &self.written;
        if self.columns.is_empty() {
            return format!("{query};");
        }
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> = self.columns.iter().map(quoted).collect();
        format!("SELECT * FROM ({query}) AS named({});", columns.join(", "))
    }
}

impl TableDef {
    /// Whether it is a view that is refreshed when the table of this name changes.
    pub fn is_refreshed_on(&self, name: &str) -> bool {
        self.materialized.is_some() && self.options.refresh_tables().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether the options are such as a table, or a materialized view, may have.
    pub(super) fn validate_refresh(&self) -> Result<(), DefinitionError> {
        let set = self.options.list(&self.columns);
        let among = |names: &[&str]| set.iter().map(|(name, _)| *name).find(|name| names.contains(name));
        let name = &self.name;
        if self.materialized.is_none() {
            return match among(OF_VIEWS) {
                Some(option) => Err(DefinitionError::invalid(format!(
                    "{option} is an option of materialized views, and \"{name}\" is a table"
                ))),
                None => Ok(()),
            };
        }
        match among(NOT_OF_VIEWS) {
            Some(option) => Err(DefinitionError::invalid(format!(
                "{option} is no option of a materialized view: the rows of \"{name}\" are those of its query"
            ))),
            None => Ok(()),
        }
    }
}

impl TableOptions {
    /// The tables whose changes have a view refreshed.
    pub fn refresh_tables(&self) -> impl Iterator<Item = &str> {
        let names = self.refresh_on.as_deref().unwrap_or_default().split(',');
        names.map(str::trim).filter(|name| !name.is_empty())
    }
}

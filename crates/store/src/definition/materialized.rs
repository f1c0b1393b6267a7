//! A materialized view: a table whose rows are those of a query.

use serde::{Deserialize, Serialize};

use super::{DefinitionError, Dependence, Mode, TableDef, TableOptions};

/// What makes a table a materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializedDef {
    /// Its query, in SQLite's words; empty: its source runs the query.
    pub sql: String,
    /// The same as its maker wrote it, with the schemas that its names had then.
    pub written: String,
    /// The names that were given to its columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// It was filled; until then nobody may read it.
    #[serde(default)]
    pub populated: bool,
    /// The columns that its source's query gave when the view was made, and the numbers of their types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub described: Vec<(String, u32)>,
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
    "depends",
    "mode",
    "query",
    "miss_ttl",
    "fetch_timeout",
    "on_change",
    "on_lag",
    "bus",
    "replicated",
    "acknowledge",
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
    /// Whether it is a view that is refreshed when the table of this name here changes.
    pub fn is_refreshed_on(&self, name: &str) -> bool {
        self.is_view_of_ours() && self.options.refresh_tables().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether it is a materialized view over tables here.
    pub fn is_view_of_ours(&self) -> bool {
        self.materialized.is_some() && self.options.source.is_none()
    }

    /// The server that runs the query of this view; none: it is a table, or a view over tables here.
    pub fn source_of_view(&self) -> Option<&str> {
        self.options.source.as_deref().filter(|_| self.materialized.is_some())
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
                None => self.validate_source(),
            };
        }
        self.validate_refresh_on()?;
        match among(NOT_OF_VIEWS) {
            Some(option) => Err(DefinitionError::invalid(format!(
                "{option} is no option of a materialized view: the rows of \"{name}\" are those of its query"
            ))),
            None => Ok(()),
        }
    }
}

impl TableDef {
    fn validate_source(&self) -> Result<(), DefinitionError> {
        // What answers of forwarded statements depend on, each says for itself.
        let by_tags = self.options.mode == Mode::Answers;
        if by_tags || self.options.source.is_some() == self.options.depends.is_some() {
            return Ok(());
        }
        Err(DefinitionError::invalid(
            "source and depends go together: a server, and which tables there rows depend on",
        ))
    }

    /// Tables of a source are named as `depends` names them, without columns: any change of one counts.
    fn validate_refresh_on(&self) -> Result<(), DefinitionError> {
        let Some(text) = self.options.refresh_on.as_deref().filter(|_| self.source_of_view().is_some())
        else {
            return Ok(());
        };
        let wrong = |why: String| DefinitionError::invalid(format!("refresh_on: {why}"));
        let tables = Dependence::read_all(text).map_err(wrong)?;
        match tables.iter().find(|on| !on.columns.is_empty()) {
            None => Ok(()),
            Some(on) => Err(wrong(format!("any change of {on} counts, so leave its columns out"))),
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

//! A view: a query with a name.

use serde::{Deserialize, Serialize};

use super::Access;

/// A column of a view, as it was when the view was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub ty: u32,
    /// The type as a table's column of it is declared; empty where it is computed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub declared: String,
}

/// A view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDef {
    /// Tells it from every other view, also from one of its name before it.
    pub id: u32,
    /// Its name, unique among tables and views.
    pub name: String,
    /// Its schema; none is `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What its columns are called, where that was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Its query, as SQL.
    pub sql: String,
    /// The same as its maker wrote it, with the schemas that its names had then; empty: as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub written: String,
    /// The columns of its query; empty where they were not written down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<ViewColumn>,
    /// What `COMMENT ON` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Who owns it, with whose rights it reads, and what was granted of it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
}

impl ViewDef {
    /// Its query as clients are shown it: with the names of its columns, and with the end of a statement behind it.
    pub fn shown(&self) -> String {
        let query = if self.written.is_empty() { &self.sql } else { &self.written };
        if self.columns.is_empty() {
            return format!("{query};");
        }
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> = self.columns.iter().map(quoted).collect();
        format!("SELECT * FROM ({query}) AS named({});", columns.join(", "))
    }

    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        super::own_name(self.namespace.as_deref(), &self.name)
    }
}

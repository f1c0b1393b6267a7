//! A view: a query with a name.

use serde::{Deserialize, Serialize};

use super::Access;

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
    /// What `COMMENT ON` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Who owns it, with whose rights it reads, and what was granted of it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
}

impl ViewDef {
    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        super::own_name(self.namespace.as_deref(), &self.name)
    }
}

//! A foreign key: kept for clients that ask, and enforced by nobody. Rows of a cache expire and are evicted.

use serde::{Deserialize, Serialize};

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its name, unique among the constraints of its table.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The table that it refers to.
    pub table: String,
    /// The columns there; empty: the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// `ON DELETE`, in capitals; empty: nothing was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub on_delete: String,
    /// `ON UPDATE`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub on_update: String,
}

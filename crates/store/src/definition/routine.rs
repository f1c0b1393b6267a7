//! A function or procedure: statements with a name.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::namespace::check_qualified;
use super::{DefinitionError, ViewColumn};

/// What a call must give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutineParameter {
    /// Its name; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its type, as it was written.
    pub declared: String,
    /// The OID of that.
    pub ty: u32,
    /// The expression of its value where a call gives none, as SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutineStatement {
    /// Its text, in which parameters have numbers.
    pub sql: String,
    /// The greatest of these numbers.
    pub parameters: usize,
}

/// What a function answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returns {
    /// Its type, as it was written: `void`, `SETOF int`, `TABLE(a int)`.
    pub declared: String,
    /// The OID of that.
    pub ty: u32,
    /// It may be several rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set: bool,
    /// Its columns; none: it answers with nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ViewColumn>,
}

/// A function or procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutineDef {
    /// Tells it from every other one of now.
    pub id: u16,
    /// Its name, unique among functions and procedures.
    pub name: String,
    /// Its schema; none is `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// In their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<RoutineParameter>,
    /// What it returns, if it is a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Returns>,
    /// It is not run where a parameter is NULL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// What it does.
    pub body: Vec<RoutineStatement>,
    /// The body as its maker wrote it.
    pub written: String,
    /// It was a text, not statements.
    pub text: bool,
    /// Tables and views that stay as long as it does, for its body was no text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Who owns it, and who may call it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
}

impl RoutineDef {
    /// Whether it is one that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_qualified(self.word(), self.namespace.as_deref(), &self.name)
    }

    /// What errors call it.
    pub fn word(&self) -> &'static str {
        if self.returns.is_some() { "function" } else { "procedure" }
    }

    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        super::own_name(self.namespace.as_deref(), &self.name)
    }
}

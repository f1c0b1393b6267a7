//! A function or procedure: statements with a name.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::namespace::check_qualified;
use super::{DefinitionError, ViewColumn};

/// Which way the value of a parameter goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterMode {
    /// A call gives it.
    #[default]
    In,
    /// A call answers with it.
    Out,
    /// Both.
    InOut,
}

impl ParameterMode {
    /// Whether a call gives it.
    pub fn is_given(self) -> bool {
        self != Self::Out
    }

    /// Whether a call answers with it.
    pub fn is_answered(self) -> bool {
        self != Self::In
    }

    /// As SQL spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::In => "IN",
            Self::Out => "OUT",
            Self::InOut => "INOUT",
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_in(&self) -> bool {
        *self == Self::In
    }
}

/// What a call gives or answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutineParameter {
    /// Its name; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which way its value goes.
    #[serde(default, skip_serializing_if = "ParameterMode::is_in")]
    pub mode: ParameterMode,
    /// Its type, as it was written.
    pub declared: String,
    /// The OID of that.
    pub ty: u32,
    /// The expression of its value where a call gives none, as SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl RoutineParameter {
    /// The column of a result that it is, the one at this place.
    pub fn column(&self, at: usize) -> ViewColumn {
        let name = if self.name.is_empty() { format!("column{}", at + 1) } else { self.name.clone() };
        ViewColumn { name, ty: self.ty, declared: self.declared.clone() }
    }
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

impl Returns {
    /// Whether it was written `TABLE (...)`.
    pub fn is_table(&self) -> bool {
        self.declared.starts_with("TABLE(")
    }
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
    /// It runs with the rights of its owner, not with its caller's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub definer: bool,
    /// The schemas in which its body looks for names; `None`: those of its caller, and `public` alone where it runs
    /// with the rights of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
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

    /// What a call gives, in the order in which the body numbers it.
    pub fn inputs(&self) -> impl Iterator<Item = &RoutineParameter> + Clone {
        self.parameters.iter().filter(|own| own.mode.is_given())
    }

    /// What a call answers with beside a function's result.
    pub fn outputs(&self) -> impl Iterator<Item = &RoutineParameter> + Clone {
        self.parameters.iter().filter(|own| own.mode.is_answered())
    }

    /// The columns of what it answers with; a procedure's are its outputs.
    pub fn columns(&self) -> Vec<ViewColumn> {
        match &self.returns {
            Some(returns) => returns.columns.clone(),
            None => self.outputs().enumerate().map(|(at, own)| own.column(at)).collect(),
        }
    }

    /// Whether its body runs as its caller would run it.
    pub fn is_of_caller(&self) -> bool {
        !self.definer && self.path.is_none()
    }

    /// Whether its result is made of parameters.
    pub fn has_outputs(&self) -> bool {
        self.outputs().next().is_some()
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

//! The options of a table of which the caches of several machines hear.

use serde::{Deserialize, Serialize};

use super::{DefinitionError, TableDef, TableOptions};

/// What caches tell each other of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replicated {
    /// Which rows are not valid any more.
    Invalidate,
    /// The rows, too.
    Rows,
}

impl Replicated {
    const ALL: [Self; 2] = [Self::Invalidate, Self::Rows];

    /// As the option says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Invalidate => "invalidate",
            Self::Rows => "rows",
        }
    }
}

/// Who must have heard of an invalidation before its client is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acknowledge {
    /// The bus: every cache that believes its rows has applied it or will before it believes them again.
    #[default]
    Bus,
    /// This cache alone. The others hear of it soon.
    Local,
}

impl Acknowledge {
    /// Whether it is what a table has that does not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) fn is_bus(&self) -> bool {
        *self == Self::Bus
    }
}

impl TableOptions {
    /// A table may follow a source or hear other caches. Both would each say whether its rows are to be believed.
    pub(super) fn validate_bus(&self) -> Result<(), DefinitionError> {
        if self.bus.is_none() && (self.replicated.is_some() || self.acknowledge != Acknowledge::Bus) {
            return Err(DefinitionError::invalid(
                "replicated and acknowledge need bus: which server carries it",
            ));
        }
        if self.bus.is_some() && self.replicated.is_none() {
            return Err(DefinitionError::invalid(
                "bus needs replicated = 'invalidate', or 'rows' where the caches have the same rows",
            ));
        }
        if self.replicated == Some(Replicated::Rows) && self.acknowledge == Acknowledge::Local {
            return Err(DefinitionError::invalid(
                "replicated = 'rows' needs acknowledge = 'bus': a row that the bus does not have yet has no place in \
                 the order of all caches",
            ));
        }
        if self.bus.is_some() && self.source.is_some() {
            return Err(DefinitionError::invalid(
                "a table has a source or a bus: each cache that follows the source hears its changes by itself",
            ));
        }
        Ok(())
    }
}

impl TableDef {
    /// Whether other caches have its rows, too.
    pub fn replicates_rows(&self) -> bool {
        self.options.replicated == Some(Replicated::Rows)
    }

    /// Rows that travel are known everywhere by their key, and by nothing else.
    pub(super) fn validate_replicated(&self) -> Result<(), DefinitionError> {
        if !self.replicates_rows() {
            return Ok(());
        }
        if self.has_row_id() {
            return Err(DefinitionError::invalid(
                "replicated = 'rows' needs a PRIMARY KEY: the caches know a row by it",
            ));
        }
        let refused = if self.identity().is_some() {
            "an identity column: each cache counts for itself, so two rows would have one number; use a uuid"
        } else if self.indexes.iter().any(|index| index.unique) {
            "a unique index: two caches may each take one value for another key; make it the PRIMARY KEY"
        } else {
            return Ok(());
        };
        Err(DefinitionError::new("0A000", format!("replicated = 'rows' cannot have {refused}")))
    }
}

pub(super) fn parse_replicated(text: &str) -> Result<Replicated, String> {
    let known = Replicated::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(text));
    known.ok_or_else(|| "write invalidate or rows".into())
}

pub(super) fn parse_acknowledge(text: &str) -> Result<Acknowledge, String> {
    match text.to_ascii_lowercase().as_str() {
        "bus" => Ok(Acknowledge::Bus),
        "local" => Ok(Acknowledge::Local),
        _ => Err("write bus or local".into()),
    }
}

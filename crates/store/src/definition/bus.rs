//! The options of a table of which the caches of several machines hear.

use serde::{Deserialize, Serialize};

use super::{DefinitionError, TableOptions};

/// What caches tell each other of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replicated {
    /// Which rows are not valid any more.
    Invalidate,
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
            return Err(DefinitionError::invalid("bus needs replicated = 'invalidate'"));
        }
        if self.bus.is_some() && self.source.is_some() {
            return Err(DefinitionError::invalid(
                "a table has a source or a bus: each cache that follows the source hears its changes by itself",
            ));
        }
        Ok(())
    }
}

pub(super) fn parse_replicated(text: &str) -> Result<Replicated, String> {
    let known = text.eq_ignore_ascii_case("invalidate");
    if known { Ok(Replicated::Invalidate) } else { Err("write invalidate".into()) }
}

pub(super) fn parse_acknowledge(text: &str) -> Result<Acknowledge, String> {
    match text.to_ascii_lowercase().as_str() {
        "bus" => Ok(Acknowledge::Bus),
        "local" => Ok(Acknowledge::Local),
        _ => Err("write bus or local".into()),
    }
}

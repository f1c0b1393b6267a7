//! An expiry rule: a condition by which rows of a table expire.

use serde::{Deserialize, Serialize};

/// An expiry rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiryRule {
    /// Its name, unique among all rules.
    pub name: String,
    /// Rows for which it is true expire, as SQL over the table's columns.
    pub condition: String,
    /// How long after one run the next one begins.
    pub every_ms: u64,
}

//! `ANALYZE`, `REINDEX` and `VACUUM`: accepted, and nothing is left to do. The planner asks the tables themselves how
//! many rows they have, an index is kept with each write, and memory comes back while the server runs.

use sqltext::definition::Upkeep;
use store::definition::Collation;

use crate::core::Core;
use crate::error::SqlError;

/// Checks what is named, so that a mistake does not pass in silence.
pub(super) fn run(core: &Core, upkeep: &Upkeep) -> Result<&'static str, SqlError> {
    for name in upkeep.names.iter().map(|name| name.text.as_str()) {
        let known = core.catalog.table(name).is_some()
            || core.catalog.index_owner(name).is_some()
            || Collation::of_name(name).is_some()
            || name.eq_ignore_ascii_case("main");
        if !known {
            return Err(SqlError::unknown_table(name));
        }
    }
    Ok(upkeep.tag)
}

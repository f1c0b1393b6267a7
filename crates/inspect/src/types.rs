//! Which types write their values in one way, how those of enums are called, and which collations know one way to be
//! equal.

use std::collections::{BTreeMap, BTreeSet};

use crate::trees::{oids, unreadable};
use crate::uses::Uses;
use crate::verdict::{Catalogue, Refusal, Stop};

/// What is known of the types and collations that trees use.
#[derive(Debug, Default)]
pub(crate) struct Types {
    pub(crate) enums: BTreeSet<u32>,
    /// The labels of enums, by the OID of each.
    pub(crate) labels: BTreeMap<u32, String>,
    /// Collations by which texts of different bytes may be equal.
    pub(crate) loose_collations: BTreeSet<u32>,
}

/// Reads what is known of them. Types that show names of the catalogue are refused, those of a full text search's
/// configuration apart; so are types whose functions to write or read depend on more than the value, those of
/// PostgreSQL apart, which depend on settings. Arrays, domains, ranges and the columns of rows count with them.
pub(crate) fn load(source: &mut dyn Catalogue, uses: &Uses) -> Result<Types, Stop> {
    let mut types = Types::default();
    let rows = source.query(&asked(uses))?;
    for row in &rows {
        let [
            Some(oid),
            Some(name),
            Some(kind),
            Some(is_builtin),
            Some(is_immutable),
            Some(shows),
            Some(is_read),
        ] = row.as_slice()
        else {
            return Err(unreadable().into());
        };
        if shows == "t" {
            return Err(Refusal::new(format!("a value of type {name} shows a name of the catalogue"))
                .with_cure("cast the value to oid")
                .into());
        }
        if kind == "b" && is_builtin != "t" && is_immutable != "t" {
            return Err(Refusal::new(format!(
                "type {name} writes its values by a function that is not IMMUTABLE"
            ))
            .into());
        }
        let oid: u32 = oid.parse().map_err(|_| unreadable())?;
        let has_parts = !matches!(kind.as_str(), "b" | "e") || name.ends_with("[]");
        if is_read == "t" && has_parts {
            return Err(Refusal::new(format!(
                "it casts text to {name}, and its parts may be times that say 'now'"
            ))
            .with_cure("send a parameter of that type")
            .into());
        }
        if kind == "e" {
            types.enums.insert(oid);
        }
    }
    for row in source.query(&format!(
        "SELECT oid, enumlabel FROM pg_enum WHERE enumtypid = ANY ({})",
        oids(&types.enums)
    ))? {
        let [Some(oid), Some(label)] = row.as_slice() else { return Err(unreadable().into()) };
        types.labels.insert(oid.parse().map_err(|_| unreadable())?, label.clone());
    }
    for row in source.query(&format!(
        "SELECT oid FROM pg_collation WHERE NOT collisdeterministic AND oid = ANY ({})",
        oids(&uses.collations)
    ))? {
        let [Some(oid)] = row.as_slice() else { return Err(unreadable().into()) };
        types.loose_collations.insert(oid.parse().map_err(|_| unreadable())?);
    }
    Ok(types)
}

/// The types, with those that they are made of.
fn asked(uses: &Uses) -> String {
    let all: BTreeSet<u32> = uses.types.iter().chain(&uses.read).chain(&uses.written).copied().collect();
    format!(
        "WITH RECURSIVE used (oid) AS (SELECT unnest({all}) UNION SELECT part.oid FROM used u, LATERAL ( \
         SELECT unnest(ARRAY[typelem, typbasetype]) FROM pg_type t WHERE t.oid = u.oid \
         UNION ALL SELECT a.atttypid FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid \
         WHERE t.oid = u.oid AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped \
         UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE u.oid IN (r.rngtypid, r.rngmultitypid) \
         ) part (oid) WHERE part.oid <> 0) \
         SELECT t.oid, format_type(t.oid, NULL), t.typtype, n.nspname = 'pg_catalog' AND t.oid < 16384, \
         coalesce((SELECT bool_and(p.provolatile = 'i') FROM pg_proc p \
         WHERE p.oid IN (t.typinput, t.typoutput, t.typsend)), true), \
         n.nspname = 'pg_catalog' AND (t.typname LIKE 'reg%' OR t.typname = 'aclitem') \
         AND t.typname NOT IN ('regconfig', 'regdictionary'), t.oid = ANY ({read}) \
         FROM used u JOIN pg_type t ON t.oid = u.oid JOIN pg_namespace n ON n.oid = t.typnamespace ORDER BY t.oid",
        all = oids(&all),
        read = oids(&uses.read),
    )
}

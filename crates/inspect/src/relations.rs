//! The tables behind a statement: of which kind they are, whether the publication tells all of their changes, and
//! which columns of an old row it tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::trees::{oids, unreadable};
use crate::verdict::{Catalogue, Refusal, Relation, Stop};

/// The event trigger, as a literal, that reports definitions, and materialized views that are refreshed.
const EVENT_TRIGGER: &str = "'sqlcached_definitions'";

/// Tables, partitions and children of one statement. More make the question long, and the answer seldom kept.
const TABLES_MAX: usize = 10_000;

/// A column by which rows may be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether the stream tells it of each old row, in every leaf.
    pub(crate) is_told: bool,
    /// Whether it alone tells rows apart.
    pub(crate) is_unique: bool,
}

/// A table with its columns by their numbers.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) relation: Relation,
    pub(crate) columns: BTreeMap<i32, Column>,
}

/// Reads what is known of the tables among these relations.
pub(crate) fn load(
    source: &mut dyn Catalogue,
    relations: &BTreeSet<u32>,
    publication: &str,
) -> Result<BTreeMap<u32, Table>, Stop> {
    let mut tables = BTreeMap::new();
    if relations.is_empty() {
        return Ok(tables);
    }
    let roots_first = is_told_by_roots(source, publication)?;
    let rows = source.query(&members(relations, publication))?;
    if rows.len() > TABLES_MAX {
        return Err(Refusal::new(format!("its tables have more than {TABLES_MAX} partitions")).into());
    }
    for row in &rows {
        let member = Member::of(row)?;
        let is_root = member.root == member.oid;
        member.check(publication)?;
        // PostgreSQL does not publish the TRUNCATE of a partition if it publishes changes under the root table.
        if roots_first && member.is_partition {
            return Err(Refusal::new(format!(
                "{} is a partition, and publication {publication} tells its changes under the partitioned table, \
                 and no TRUNCATE of it",
                member.name
            ))
            .with_cure(format!("ALTER PUBLICATION {publication} SET (publish_via_partition_root = false)"))
            .into());
        }
        let table = tables.entry(member.root).or_insert_with(|| Table {
            relation: Relation { oid: member.root, name: String::new(), leaves: Vec::new() },
            columns: BTreeMap::new(),
        });
        if is_root {
            table.relation.name.clone_from(&member.name);
        }
        table.relation.leaves.push(member.oid);
    }
    add_columns(source, &mut tables)?;
    Ok(tables)
}

/// Whether the publication tells changes of partitions under the partitioned table's OID. It must tell all
/// operations.
fn is_told_by_roots(source: &mut dyn Catalogue, publication: &str) -> Result<bool, Stop> {
    let rows = source.query(&format!(
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot, quote_ident(pubname) \
         FROM pg_publication WHERE pubname = {}",
        literal(publication)
    ))?;
    match rows.first().map(Vec::as_slice) {
        None => Err(Refusal::new(format!("there is no publication {publication}"))
            .with_cure(format!("CREATE PUBLICATION {publication} FOR ALL TABLES"))
            .into()),
        Some([Some(all), Some(by_roots), _]) if all == "t" => Ok(by_roots == "t"),
        Some([Some(_), _, Some(name)]) => Err(Refusal::new(format!(
            "publication {publication} leaves out some of insert, update, delete, truncate"
        ))
        .with_cure(format!("ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"))
        .into()),
        _ => Err(unreadable().into()),
    }
}

/// Each table with its partitions and children, and what the publication says of each.
fn members(relations: &BTreeSet<u32>, publication: &str) -> String {
    format!(
        "WITH RECURSIVE member (root, oid) AS (SELECT oid, oid FROM unnest({relations}) oid \
         UNION SELECT m.root, i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid) \
         SELECT m.root, c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind, c.relpersistence, \
         c.relispartition, n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast') OR c.oid < 16384, \
         p.puballtables OR EXISTS (SELECT FROM pg_publication_rel r \
         WHERE r.prpubid = p.oid AND (r.prrelid = c.oid OR r.prrelid IN (SELECT pg_partition_ancestors(c.oid)))) \
         OR EXISTS (SELECT FROM pg_publication_namespace s JOIN pg_class a ON a.relnamespace = s.pnnspid \
         WHERE s.pnpubid = p.oid AND (a.oid = c.oid OR a.oid IN (SELECT pg_partition_ancestors(c.oid)))), \
         EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid \
         AND (r.prrelid = c.oid OR r.prrelid IN (SELECT pg_partition_ancestors(c.oid))) \
         AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)), \
         EXISTS (SELECT FROM pg_event_trigger WHERE evtname = {EVENT_TRIGGER} AND evtevent = 'ddl_command_end' \
         AND evtenabled IN ('O', 'A')) \
         FROM member m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_publication p ON p.pubname = {publication} WHERE c.relkind <> 'v' OR m.root <> m.oid \
         ORDER BY m.root, c.oid",
        relations = oids(relations),
        publication = literal(publication),
    )
}

/// A table, or a part of one.
struct Member {
    root: u32,
    oid: u32,
    name: String,
    kind: String,
    persistence: String,
    is_partition: bool,
    is_catalogue: bool,
    is_published: bool,
    is_cut: bool,
    /// The source tells when a materialized view is refreshed.
    is_told_refreshed: bool,
}

impl Member {
    fn of(row: &[Option<String>]) -> Result<Self, Refusal> {
        let text = |at: usize| row.get(at).and_then(Clone::clone).ok_or_else(unreadable);
        let number = |at: usize| text(at)?.parse::<u32>().map_err(|_| unreadable());
        let truth = |at: usize| Ok::<_, Refusal>(text(at)? == "t");
        Ok(Self {
            root: number(0)?,
            oid: number(1)?,
            name: text(2)?,
            kind: text(3)?,
            persistence: text(4)?,
            is_partition: truth(5)?,
            is_catalogue: truth(6)?,
            is_published: truth(7)?,
            is_cut: truth(8)?,
            is_told_refreshed: truth(9)?,
        })
    }

    /// Whether the stream tells all changes of it.
    fn check(&self, publication: &str) -> Result<(), Refusal> {
        let name = &self.name;
        let kind = match self.kind.as_str() {
            "r" | "p" => None,
            "m" if self.is_told_refreshed => None,
            "m" => {
                let cure = "make the event trigger sqlcached_definitions (docs/forwarding.md)";
                let reason = format!("{name} is a materialized view, whose refresh the stream does not tell");
                return Err(Refusal::new(reason).with_cure(cure));
            }
            "f" => Some("a foreign table, whose changes the stream does not tell"),
            "S" => Some("a sequence, whose changes the stream does not tell"),
            _ => Some("no table"),
        };
        if self.is_catalogue {
            return Err(Refusal::new(format!("{name} is a table of the catalogue")));
        }
        if let Some(kind) = kind {
            return Err(Refusal::new(format!("{name} is {kind}")));
        }
        match self.persistence.as_str() {
            "p" => {}
            "u" => {
                return Err(Refusal::new(format!(
                    "{name} is unlogged, and the stream tells no changes of it"
                ))
                .with_cure(format!("ALTER TABLE {name} SET LOGGED")));
            }
            _ => return Err(Refusal::new(format!("{name} is a temporary table"))),
        }
        if self.is_cut {
            return Err(Refusal::new(format!(
                "publication {publication} tells only some rows or columns of {name}"
            ))
            .with_cure(format!(
                "ALTER PUBLICATION {publication} DROP TABLE {name}; ALTER PUBLICATION {publication} ADD TABLE {name}"
            )));
        }
        if self.kind == "r" && !self.is_published {
            return Err(Refusal::new(format!("table {name} is not in publication {publication}"))
                .with_cure(format!("ALTER PUBLICATION {publication} ADD TABLE {name}")));
        }
        Ok(())
    }
}

/// Adds the columns. One is told if each leaf has it in its replica identity and computes it from nothing.
fn add_columns(source: &mut dyn Catalogue, tables: &mut BTreeMap<u32, Table>) -> Result<(), Stop> {
    let rows = source.query(&format!(
        "WITH RECURSIVE member (root, oid) AS (SELECT oid, oid FROM unnest({}) oid \
         UNION SELECT m.root, i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid), \
         told (oid, name, alone) AS (SELECT i.indrelid, a.attname, i.indnkeyatts = 1 AND i.indisunique \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
         WHERE i.indisvalid AND i.indimmediate AND i.indrelid IN (SELECT oid FROM member) \
         AND (c.relreplident = 'd' AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)) \
         SELECT m.root, a.attnum, a.attname, \
         bool_and(c.relkind = 'p' OR coalesce(l.attgenerated = '', false) AND (c.relreplident = 'f' OR EXISTS ( \
         SELECT FROM told t WHERE t.oid = c.oid AND t.name = a.attname))), \
         EXISTS (SELECT FROM pg_index i WHERE i.indrelid = m.root AND i.indisunique AND i.indisvalid \
         AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum AND i.indpred IS NULL) \
         FROM member m JOIN pg_class c ON c.oid = m.oid \
         JOIN pg_attribute a ON a.attrelid = m.root AND a.attnum > 0 AND NOT a.attisdropped \
         LEFT JOIN pg_attribute l ON l.attrelid = m.oid AND l.attname = a.attname AND NOT l.attisdropped \
         GROUP BY m.root, a.attnum, a.attname ORDER BY m.root, a.attnum",
        oids(tables.keys())
    ))?;
    for row in &rows {
        let [Some(root), Some(number), Some(name), Some(is_told), Some(is_unique)] = row.as_slice() else {
            return Err(unreadable().into());
        };
        let (Ok(root), Ok(number)) = (root.parse::<u32>(), number.parse::<i32>()) else {
            return Err(unreadable().into());
        };
        // In a tag this sign ends the name.
        let is_told = is_told == "t" && !name.contains('=');
        let column = Column { name: name.clone(), is_told, is_unique: is_unique == "t" };
        tables.get_mut(&root).ok_or_else(unreadable)?.columns.insert(number, column);
    }
    Ok(())
}

/// A text as a literal, whatever `standard_conforming_strings` says.
pub fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

//! Whether a source can tell what changes: asked when a table names it, and at each connection.

use store::definition::{Dependence, ServerDef};

use crate::error::Error;
use crate::pgoutput::literal;
use crate::plan::{Named, Plan};
use crate::wire::Connection;

/// PostgreSQL 15: before, publications list no columns and have no filters.
const LISTS_COLUMNS: i32 = 150_000;

/// PostgreSQL 18: publications list the generated columns that are streamed.
const STREAMS_GENERATED: i32 = 180_000;

/// Checks the source, and each table that is depended on. The first fault says what to do about it.
pub(crate) fn check(
    connection: &mut Connection,
    server: &ServerDef,
    depends: &[Dependence],
) -> Result<(), Error> {
    let version = check_server(connection, server)?;
    let publication = publication_of(server)?;
    check_publication(connection, publication)?;
    depends.iter().try_for_each(|on| check_table(connection, publication, on, version))
}

/// What the stream does not report, as a text that changes with it: which tables, rows and columns are published, which
/// partitions they have, what old rows say, and what changes rows without an event: other files of partitions
/// (`TRUNCATE`), other columns (`ALTER TYPE ... USING` makes another version of one), other labels. Versions of rows
/// (`xmin`) are in it where something may change and change back between two looks. The file of a table that is no
/// partition is not: its `TRUNCATE` is an event, which is no reason to begin again.
pub(crate) fn published(
    connection: &mut Connection,
    publication: &str,
    plan: &Plan,
) -> Result<String, Error> {
    let (name, tables) = (literal(publication), names_of(plan));
    let rows = connection.query(&format!(
        "WITH RECURSIVE tree AS (
             SELECT c.oid, ''::text AS link FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE (n.nspname, c.relname) IN ({tables})
             UNION
             SELECT i.inhrelid, format('%s %s', i, i.xmin) FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid
         ), col AS (
             SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.xmin AS version
             FROM pg_attribute a WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT oid FROM tree)
         ), ty AS (
             SELECT atttypid AS oid FROM col
             UNION
             SELECT unnest(ARRAY[t.typelem, t.typbasetype]) FROM pg_type t JOIN ty ON ty.oid = t.oid
         )
         SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
             SELECT format('publication %s %s', oid, xmin) line FROM pg_publication WHERE pubname = {name}
             UNION ALL
             SELECT format('member %s %s', r.oid, r.xmin) FROM pg_publication_rel r
             JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = {name}
             UNION ALL
             SELECT format('table %s.%s', schemaname, tablename) FROM pg_publication_tables
             WHERE pubname = {name} AND (schemaname, tablename) IN ({tables})
             UNION ALL
             SELECT format('relation %s %s %s %s.%s %s %s %s', tree.link, c.oid,
                 CASE WHEN tree.link <> '' THEN format('%s %s', c.xmin, c.relfilenode) END, n.nspname, c.relname,
                 c.relpersistence, c.relreplident, (SELECT string_agg(i.indkey::text, ',' ORDER BY i.indkey::text)
                     FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident)))
             FROM tree JOIN pg_class c ON c.oid = tree.oid JOIN pg_namespace n ON n.oid = c.relnamespace
             UNION ALL
             SELECT format('partitioned %s %s', partrelid, xmin) FROM pg_partitioned_table
             WHERE partrelid IN (SELECT oid FROM tree)
             UNION ALL
             SELECT format('column %s %s %s %s %s %s', attrelid, attnum, attname, atttypid, atttypmod, version) FROM col
             UNION ALL
             SELECT format('label %s %s %s', e.oid, e.enumlabel, e.xmin) FROM pg_enum e JOIN ty ON ty.oid = e.enumtypid
         ) all_lines"
    ))?;
    let sum = rows.first().and_then(|row| row.first()?.clone());
    sum.ok_or_else(|| {
        Error::new("42704", format!("publication \"{publication}\" does not exist on the source"))
    })
}

/// The names of the tables that are followed, as a list of pairs.
fn names_of(plan: &Plan) -> String {
    let name = |on: &Dependence| format!("({}, {})", literal(&on.schema), literal(&on.table));
    let tables: Vec<String> = plan.targets.iter().map(|own| name(&own.on)).collect();
    // No targets: no tables.
    if tables.is_empty() { "(NULL, NULL)".to_owned() } else { tables.join(", ") }
}

/// The numbers of the tables that are followed.
pub(crate) fn named(connection: &mut Connection, plan: &Plan) -> Result<Named, Error> {
    let rows = connection.query(&format!(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE (n.nspname, c.relname) IN ({})",
        names_of(plan)
    ))?;
    let table = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?.parse().ok()?, (cells.next()?, cells.next()?)))
    };
    Ok(Named::new(rows.into_iter().filter_map(table)))
}

/// The publication of a server.
pub(crate) fn publication_of(server: &ServerDef) -> Result<&str, Error> {
    server.option("publication").ok_or_else(|| {
        Error::new("HV00J", format!("server \"{}\" names no publication", server.name)).with_hint(format!(
            "CREATE PUBLICATION cache FOR TABLE ... on the source, then ALTER SERVER {} OPTIONS (ADD publication 'cache')",
            server.name
        ))
    })
}

/// Whether it decodes its log, and for us. Returns its version.
pub(crate) fn check_server(connection: &mut Connection, server: &ServerDef) -> Result<i32, Error> {
    let rows = connection.query(
        "SELECT current_setting('wal_level'), current_setting('server_version_num'),
                (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_user",
    )?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref()).unwrap_or_default();
    if cell(0) != "logical" {
        let message =
            format!("wal_level of server \"{}\" is {}, which does not tell changes", server.name, cell(0));
        return Err(Error::new("55000", message)
            .with_hint("ALTER SYSTEM SET wal_level = logical on the source, and restart it"));
    }
    if cell(2) != "t" {
        let message = format!("user \"{}\" may not replicate from server \"{}\"", cell(3), server.name);
        return Err(Error::new("42501", message)
            .with_hint(format!("ALTER ROLE {} REPLICATION on the source", cell(3))));
    }
    Ok(cell(1).parse().unwrap_or(0))
}

fn check_publication(connection: &mut Connection, name: &str) -> Result<(), Error> {
    let rows = connection.query(&format!(
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = {}",
        literal(name)
    ))?;
    match rows.first().and_then(|row| row.first()?.as_deref()) {
        Some("t") => Ok(()),
        Some(_) => {
            Err(Error::new("55000", format!("publication \"{name}\" leaves changes out")).with_hint(format!(
                "ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate') on the source"
            )))
        }
        None => Err(Error::new("42704", format!("publication \"{name}\" does not exist on the source"))
            .with_hint(format!("CREATE PUBLICATION {name} FOR TABLE ... on the source"))),
    }
}

/// Whether every change of a table comes, with the values by which rows are found here.
fn check_table(
    connection: &mut Connection,
    publication: &str,
    on: &Dependence,
    version: i32,
) -> Result<(), Error> {
    let identity = Identity::of(connection, on)?;
    let filtered = if version >= LISTS_COLUMNS { "rowfilter IS NOT NULL, attnames" } else { "false, NULL" };
    let rows = connection.query(&format!(
        "SELECT {filtered} FROM pg_publication_tables
         WHERE pubname = {} AND schemaname = {} AND tablename = {}",
        literal(publication),
        literal(&on.schema),
        literal(&on.table)
    ))?;
    let Some(published) = rows.first() else {
        let what = if identity.is_partitioned() {
            "SET (publish_via_partition_root = true), or ADD TABLE"
        } else {
            "ADD TABLE"
        };
        return Err(Error::new("42704", format!("publication \"{publication}\" does not have table {on}"))
            .with_hint(format!("ALTER PUBLICATION {publication} {what} {on} on the source")));
    };
    if published.first().is_some_and(|filtered| filtered.as_deref() == Some("t")) {
        return Err(Error::new("0A000", format!("publication \"{publication}\" leaves rows of {on} out"))
            .with_hint("publish the table without WHERE: a row that leaves the filter would stay here"));
    }
    let listed = published.get(1).and_then(Option::as_deref).unwrap_or_default();
    let listed: Vec<&str> =
        listed.trim_matches(['{', '}']).split(',').map(|name| name.trim_matches('"')).collect();
    for (column, _) in &on.columns {
        identity.check(on, &on.to_string(), column, version)?;
        if version >= LISTS_COLUMNS && !listed.contains(&column.as_str()) {
            return Err(Error::new(
                "42703",
                format!("publication \"{publication}\" leaves column {column} of {on} out"),
            )
            .with_hint("publish the table with this column"));
        }
    }
    check_parts(connection, on, &identity, version)
}

/// Whether changes of all rows of a table come, also of those that its partitions hold.
fn check_parts(
    connection: &mut Connection,
    on: &Dependence,
    root: &Identity,
    version: i32,
) -> Result<(), Error> {
    for part in Part::all(connection, on)? {
        let name = &part.name;
        if !root.is_partitioned() {
            let message = format!(
                "table {on} has rows of {name}, which inherits from it: their changes are not its own"
            );
            return Err(Error::new("0A000", message).with_hint(format!(
                "ALTER TABLE {name} NO INHERIT {on} on the source, or partition the table instead"
            )));
        }
        match (part.kind.as_str(), part.persistence.as_str()) {
            ("f", _) => {
                let message = format!(
                    "partition {name} of {on} is a foreign table, whose changes are not in the stream"
                );
                return Err(Error::new("0A000", message)
                    .with_hint(format!("ALTER TABLE {on} DETACH PARTITION {name} on the source")));
            }
            (_, "p") => {}
            _ => {
                let message =
                    format!("partition {name} of {on} is UNLOGGED: its changes are not in the stream");
                return Err(Error::new("55000", message)
                    .with_hint(format!("ALTER TABLE {name} SET LOGGED on the source")));
            }
        }
        // A partition between the table and its rows has none.
        if part.kind == "p" {
            continue;
        }
        let own = Identity::of(connection, &part.relation())?;
        for (column, _) in &on.columns {
            own.check(on, name, column, version)?;
        }
    }
    Ok(())
}

/// A partition of a table, at any depth, or a table that inherits from it.
struct Part {
    schema: String,
    table: String,
    /// Both, as a statement has them.
    name: String,
    kind: String,
    persistence: String,
}

impl Part {
    fn all(connection: &mut Connection, on: &Dependence) -> Result<Vec<Self>, Error> {
        let rows = connection.query(&format!(
            "WITH RECURSIVE tree AS (
                 SELECT c.oid, 0 AS depth FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = {} AND c.relname = {}
                 UNION
                 SELECT i.inhrelid, t.depth + 1 FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid
             )
             SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relkind, c.relpersistence
             FROM tree JOIN pg_class c ON c.oid = tree.oid JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE tree.depth > 0 ORDER BY 3",
            literal(&on.schema),
            literal(&on.table)
        ))?;
        let part = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter();
            let mut next = || cells.next().flatten();
            Some(Self { schema: next()?, table: next()?, name: next()?, kind: next()?, persistence: next()? })
        };
        Ok(rows.into_iter().filter_map(part).collect())
    }

    fn relation(&self) -> Dependence {
        Dependence { schema: self.schema.clone(), table: self.table.clone(), columns: Vec::new() }
    }
}

/// What a table's old rows say.
struct Identity {
    /// `d`, `n`, `f` or `i`, as PostgreSQL has it, and `r` or `p` for a table with partitions.
    kind: String,
    columns: Vec<Column>,
}

/// A column of it.
struct Column {
    name: String,
    is_told: bool,
    is_generated: bool,
    /// It is of a domain over `char(n)`: the stream does not tell that its blanks mean nothing.
    hides_blanks: bool,
}

impl Identity {
    fn is_partitioned(&self) -> bool {
        self.kind.ends_with('p')
    }

    fn of(connection: &mut Connection, on: &Dependence) -> Result<Self, Error> {
        let rows = connection.query(&format!(
            "SELECT c.relreplident::text || c.relkind::text, a.attname, EXISTS (
                 SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey)
                 AND (c.relreplident = 'd' AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)),
                 a.attgenerated <> '', t.typtype = 'd' AND t.typoutput = 'bpcharout'::regproc
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             JOIN pg_type t ON t.oid = a.atttypid
             WHERE n.nspname = {} AND c.relname = {} AND c.relkind IN ('r', 'p')",
            literal(&on.schema),
            literal(&on.table)
        ))?;
        let Some(kind) = rows.first().and_then(|row| row.first()?.clone()) else {
            return Err(Error::new("42P01", format!("table {on} does not exist on the source"))
                .with_hint("a table in another schema is written with it: 'shop.product(id)'"));
        };
        let is = |row: &Vec<Option<String>>, at: usize| {
            row.get(at).is_some_and(|cell| cell.as_deref() == Some("t"))
        };
        let column = |row: &Vec<Option<String>>| {
            let name = row.get(1)?.clone()?;
            Some(Column { name, is_told: is(row, 2), is_generated: is(row, 3), hides_blanks: is(row, 4) })
        };
        Ok(Self { kind, columns: rows.iter().filter_map(column).collect() })
    }

    /// Whether a column comes with old rows: an UPDATE that changes it, or a DELETE, would not tell whose it was.
    /// `name`: the table that has the row, which may be a partition with an identity of its own.
    fn check(&self, on: &Dependence, name: &str, column: &str, version: i32) -> Result<(), Error> {
        let Some(known) = self.columns.iter().find(|own| own.name == column) else {
            return Err(Error::new("42703", format!("table {on} has no column {column} on the source")));
        };
        if known.is_generated && version < STREAMS_GENERATED {
            let message = format!("column {column} of {on} is generated, and the source does not stream it");
            return Err(
                Error::new("0A000", message).with_hint("depend on the columns that it is computed from")
            );
        }
        if known.hides_blanks {
            let message =
                format!("column {column} of {on} is of a domain over char(n), whose keys cannot be told");
            return Err(Error::new("0A000", message)
                .with_hint("give the column the type char(n) itself, or text, on the source"));
        }
        if known.is_told || self.kind.starts_with('f') {
            return Ok(());
        }
        let message = format!(
            "changes of {name} do not tell the old value of {column}: it is not in the replica identity"
        );
        let also = if self.is_partitioned() { ", and the same for each of its partitions" } else { "" };
        Err(Error::new("55000", message).with_hint(format!(
            "ALTER TABLE {name} REPLICA IDENTITY FULL on the source, or USING a unique index with this column{also}"
        )))
    }
}

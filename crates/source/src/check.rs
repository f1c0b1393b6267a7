//! Whether a source can tell what changes: asked when a table names it, and at each connection.

use store::definition::{Dependence, ServerDef};

use crate::error::Error;
use crate::pgoutput::literal;
use crate::plan::Plan;
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

/// What the stream does not report, as a text that changes with it: which tables, rows and columns are
/// published, and what old rows of the tables say.
pub(crate) fn published(
    connection: &mut Connection,
    publication: &str,
    plan: &Plan,
) -> Result<String, Error> {
    let name = literal(publication);
    let tables: Vec<String> = plan
        .targets
        .iter()
        .map(|own| format!("({}, {})", literal(&own.on.schema), literal(&own.on.table)))
        .collect();
    // No targets: no tables.
    let tables = if tables.is_empty() { "(NULL, NULL)".to_owned() } else { tables.join(", ") };
    let rows = connection.query(&format!(
        "SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
             SELECT format('publication %s %s', oid, xmin) line FROM pg_publication WHERE pubname = {name}
             UNION ALL
             SELECT format('member %s %s', r.oid, r.xmin) FROM pg_publication_rel r
             JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = {name}
             UNION ALL
             SELECT format('table %s.%s', schemaname, tablename) FROM pg_publication_tables
             WHERE pubname = {name} AND (schemaname, tablename) IN ({tables})
             UNION ALL
             SELECT format('identity %s %s %s', c.oid, c.relreplident,
                 (SELECT string_agg(i.indkey::text, ',' ORDER BY i.indkey::text) FROM pg_index i
                  WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident)))
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE (n.nspname, c.relname) IN ({tables})) all_lines"
    ))?;
    let sum = rows.first().and_then(|row| row.first()?.clone());
    sum.ok_or_else(|| {
        Error::new("42704", format!("publication \"{publication}\" does not exist on the source"))
    })
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
fn check_server(connection: &mut Connection, server: &ServerDef) -> Result<i32, Error> {
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
        let what = if identity.kind.ends_with('p') {
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
        if version >= LISTS_COLUMNS && !listed.contains(&column.as_str()) {
            return Err(Error::new(
                "42703",
                format!("publication \"{publication}\" leaves column {column} of {on} out"),
            )
            .with_hint("publish the table with this column"));
        }
        identity.check(on, column, version)?;
    }
    Ok(())
}

/// What a table's old rows say.
struct Identity {
    /// `d`, `n`, `f` or `i`, as PostgreSQL has it, and `r` or `p` for a table with partitions.
    kind: String,
    /// Its columns, whether they are of the identity, and whether they are generated.
    columns: Vec<(String, bool, bool)>,
}

impl Identity {
    fn of(connection: &mut Connection, on: &Dependence) -> Result<Self, Error> {
        let rows = connection.query(&format!(
            "SELECT c.relreplident::text || c.relkind::text, a.attname, EXISTS (
                 SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey)
                 AND (c.relreplident = 'd' AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)),
                 a.attgenerated <> ''
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
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
        let column = |row: &Vec<Option<String>>| Some((row.get(1)?.clone()?, is(row, 2), is(row, 3)));
        Ok(Self { kind, columns: rows.iter().filter_map(column).collect() })
    }

    /// Whether a column comes with old rows: an UPDATE that changes it, or a DELETE, would not tell whose it was.
    fn check(&self, on: &Dependence, column: &str, version: i32) -> Result<(), Error> {
        let Some((_, key, generated)) = self.columns.iter().find(|(name, ..)| name == column) else {
            return Err(Error::new("42703", format!("table {on} has no column {column} on the source")));
        };
        if *generated && version < STREAMS_GENERATED {
            let message = format!("column {column} of {on} is generated, and the source does not stream it");
            return Err(
                Error::new("0A000", message).with_hint("depend on the columns that it is computed from")
            );
        }
        if *key || self.kind.starts_with('f') {
            return Ok(());
        }
        let message = format!(
            "changes of {on} do not tell the old value of {column}: it is not in the replica identity"
        );
        Err(Error::new("55000", message).with_hint(format!(
            "ALTER TABLE {on} REPLICA IDENTITY FULL on the source, or USING a unique index with this column"
        )))
    }
}

//! Whether a MariaDB can tell what changes: asked when a table names it, and at each connection.

use store::definition::{Dependence, ServerDef};

use super::columns::{columns_of, literal};
use super::wire::Connection;
use crate::error::Error;

/// Storage engines whose tables show rows of other tables, files or servers.
const ELSEWHERE: &[&str] = &["MRG_MyISAM", "FEDERATED", "CONNECT", "SPIDER", "SEQUENCE", "OQGRAPH", "S3"];

/// Checks the source, and each table that is depended on. The first fault says what to do about it.
pub(super) fn check(
    connection: &mut Connection,
    server: &ServerDef,
    depends: &[Dependence],
) -> Result<(), Error> {
    check_log(connection, server)?;
    let filter = Filter::of(connection, server)?;
    for on in depends {
        let schema = schema_of(server, on)?;
        filter.check(schema)?;
        check_table(connection, schema, on)?;
        check_cascades(connection, schema, on)?;
    }
    Ok(())
}

/// The database of a table at the source.
fn schema_of<'n>(server: &'n ServerDef, on: &'n Dependence) -> Result<&'n str, Error> {
    on.schema_at(server).ok_or_else(|| {
        Error::new("HV00J", format!("server \"{}\" names no dbname", server.name)).with_hint(format!(
            "ALTER SERVER {} OPTIONS (ADD dbname '...'), or write the table with its database: 'shop.product(id)'",
            server.name
        ))
    })
}

fn check_log(connection: &mut Connection, server: &ServerDef) -> Result<(), Error> {
    let rows =
        connection.query("SELECT @@global.log_bin, @@global.binlog_format, @@global.binlog_row_image")?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref()).unwrap_or_default();
    let fault = |message: String, hint: &str| Err(Error::new("55000", message).with_hint(hint));
    if cell(0) != "1" {
        return fault(
            format!("server \"{}\" writes no binary log: log_bin is off", server.name),
            "set log_bin and server_id in the source's configuration, and restart it",
        );
    }
    if cell(1) != "ROW" {
        return fault(
            format!("binlog_format of server \"{}\" is {}, which does not tell rows", server.name, cell(1)),
            "SET GLOBAL binlog_format = ROW on the source and in its configuration; sessions that are open keep the old one",
        );
    }
    if cell(2) != "FULL" {
        return fault(
            format!(
                "binlog_row_image of server \"{}\" is {}, which leaves columns out",
                server.name,
                cell(2)
            ),
            "SET GLOBAL binlog_row_image = FULL on the source and in its configuration; sessions that are open keep the old one",
        );
    }
    Ok(())
}

/// Which databases the log has.
struct Filter {
    only: Vec<String>,
    without: Vec<String>,
}

impl Filter {
    fn of(connection: &mut Connection, server: &ServerDef) -> Result<Self, Error> {
        let rows = connection.query("SHOW MASTER STATUS").map_err(|error| {
            let user = server.mapping().and_then(|mapping| mapping.user()).unwrap_or("root");
            if error.state != "42501" {
                return error;
            }
            error.with_hint(format!("GRANT BINLOG MONITOR ON *.* TO {user} on the source"))
        })?;
        let names = |at: usize| {
            let list = rows.first().and_then(|row| row.get(at)?.as_deref()).unwrap_or_default();
            list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        Ok(Self { only: names(2), without: names(3) })
    }

    fn check(&self, schema: &str) -> Result<(), Error> {
        let has = |names: &[String]| names.iter().any(|name| name == schema);
        if has(&self.without) || !self.only.is_empty() && !has(&self.only) {
            let message = format!("the source's binary log leaves database {schema} out");
            return Err(Error::new("55000", message)
                .with_hint("remove binlog_do_db and binlog_ignore_db from the source's configuration"));
        }
        Ok(())
    }
}

fn check_table(connection: &mut Connection, schema: &str, on: &Dependence) -> Result<(), Error> {
    let name = format!("{schema}.{}", on.table);
    let rows = connection.query(&format!(
        "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        literal(schema),
        literal(&on.table)
    ))?;
    match rows.first().and_then(|row| row.first()?.as_deref()) {
        Some("BASE TABLE" | "SYSTEM VERSIONED") => {}
        Some(_) => {
            let message = format!("{name} is no table on the source: it has no changes of its own");
            return Err(Error::new("0A000", message).with_hint("depend on the tables that it reads"));
        }
        None => {
            let message = format!("table {name} does not exist on the source, or the user may not read it");
            return Err(Error::new("42P01", message).with_hint(format!(
                "GRANT SELECT ON {name} TO the user; a table in another database is written with it: 'shop.product(id)'"
            )));
        }
    }
    let engine = rows.first().and_then(|row| row.get(1)?.as_deref()).unwrap_or_default();
    if ELSEWHERE.iter().any(|own| own.eq_ignore_ascii_case(engine)) {
        let message = format!(
            "{name} is of engine {engine}: its rows are changed elsewhere, without a word in the log"
        );
        return Err(Error::new("0A000", message).with_hint("depend on the tables that have its rows"));
    }
    let columns = columns_of(connection, schema, &on.table)?;
    for (theirs, _) in &on.columns {
        let Some(column) = columns.iter().find(|own| own.name.eq_ignore_ascii_case(theirs)) else {
            let message = format!("table {name} has no column {theirs} on the source");
            return Err(Error::new("42703", message));
        };
        if column.kind.is_none() {
            let message = format!(
                "values of column {theirs} of {name} cannot be told: its type is {}, or its character set is not known",
                column.data_type
            );
            return Err(Error::new("0A000", message).with_hint(format!(
                "use another column, or a text in utf8mb4; '{}' without columns empties the table with each change",
                on.table
            )));
        }
    }
    Ok(())
}

/// The storage engine changes rows by foreign keys without a word in the log. Who may only read a table does not find
/// its keys in `information_schema`, but in its definition.
fn check_cascades(connection: &mut Connection, schema: &str, on: &Dependence) -> Result<(), Error> {
    let rows = connection.query(&format!("SHOW CREATE TABLE {}.{}", quoted(schema), quoted(&on.table)))?;
    let definition = rows.first().and_then(|row| row.get(1)?.as_deref()).unwrap_or_default();
    let Some(key) = cascading(definition) else { return Ok(()) };
    let message = format!(
        "foreign key {key} changes rows of {schema}.{}, which the binary log does not tell",
        on.table
    );
    Err(Error::new("55000", message).with_hint(
        "make the key ON DELETE RESTRICT ON UPDATE RESTRICT, and change both tables by statements",
    ))
}

/// A name as a statement has it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A foreign key that changes rows with those that they refer to.
fn cascading(definition: &str) -> Option<&str> {
    const ACTIONS: &[&str] = &["CASCADE", "SET NULL", "SET DEFAULT"];
    let changes =
        |line: &str, of: &str| ACTIONS.iter().any(|action| line.contains(&format!(" ON {of} {action}")));
    let keys = definition.lines().filter_map(|line| line.trim_start().strip_prefix("CONSTRAINT "));
    let mut keys = keys.filter(|line| line.contains(" FOREIGN KEY ("));
    let key = keys.find(|line| changes(line, "DELETE") || changes(line, "UPDATE"))?;
    key.split(" FOREIGN KEY (").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_change_rows_are_found() {
        let of = |action: &str| {
            format!(
                "CREATE TABLE `line` (\n  `id` int(11) COMMENT 'ON DELETE CASCADE',\n  CONSTRAINT `of` FOREIGN KEY (`id`) \
                 REFERENCES `product` (`id`){action}\n) ENGINE=InnoDB"
            )
        };
        assert_eq!(cascading(&of("")), None);
        assert_eq!(cascading(&of(" ON DELETE NO ACTION")), None);
        assert_eq!(cascading(&of(" ON DELETE CASCADE")), Some("`of`"));
        assert_eq!(cascading(&of(" ON DELETE NO ACTION ON UPDATE SET NULL,")), Some("`of`"));
    }
}

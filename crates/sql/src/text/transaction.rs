//! The statements that begin, end and mark transactions, as PostgreSQL and SQLite write them.

use super::reader::Reader;
use super::token::Tokens;
use crate::error::{SqlError, state};

/// A statement about the transaction itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// `BEGIN`, or `START TRANSACTION`, which has another tag.
    Begin { modes: Modes, start: bool },
    /// `COMMIT`, `END`
    Commit { chain: bool },
    /// `ROLLBACK`, `ABORT`
    Rollback { chain: bool },
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE [SAVEPOINT] name`
    Release(String),
    /// `ROLLBACK TO [SAVEPOINT] name`
    RollbackTo(String),
    /// `SET TRANSACTION`: for the transaction that is open.
    SetTransaction(Modes),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`: for those to come.
    SetDefaults(Modes),
}

/// How a transaction is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The isolation level asked for, if one was.
    pub(crate) isolation: Option<&'static str>,
    /// `READ ONLY` or `READ WRITE`, if one was given.
    pub(crate) read_only: Option<bool>,
}

/// A statement that a transaction takes which failed: nothing but its end, or a way back before the failure.
pub(crate) fn ending(sql: &str) -> Result<Control, SqlError> {
    let ends = |control: &Control| {
        matches!(control, Control::Commit { .. } | Control::Rollback { .. } | Control::RollbackTo(_))
    };
    control(sql).ok().filter(ends).ok_or_else(|| {
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        SqlError::new(state::FAILED_TRANSACTION, message)
    })
}

/// Reads such a statement.
pub(crate) fn control(sql: &str) -> Result<Control, SqlError> {
    let tokens: Vec<_> = Tokens::new(sql).collect();
    let mut reader = Reader::new(sql, &tokens);
    reader.skip_semicolons();
    let found = statement(&mut reader)?;
    reader.end()?;
    Ok(found)
}

fn statement(reader: &mut Reader<'_, '_>) -> Result<Control, SqlError> {
    if reader.keyword("BEGIN").is_ok() {
        // SQLite's kinds differ in when they lock, and nothing here locks.
        let _kind = any_of(reader, &["DEFERRED", "IMMEDIATE", "EXCLUSIVE"]);
        work(reader);
        return Ok(Control::Begin { modes: modes(reader, false)?, start: false });
    }
    if reader.keyword("START").is_ok() {
        reader.keyword("TRANSACTION")?;
        return Ok(Control::Begin { modes: modes(reader, false)?, start: true });
    }
    if any_of(reader, &["COMMIT", "END"]) {
        refuse_prepared(reader)?;
        work(reader);
        return Ok(Control::Commit { chain: chain(reader)? });
    }
    if any_of(reader, &["ROLLBACK", "ABORT"]) {
        refuse_prepared(reader)?;
        work(reader);
        if reader.keyword("TO").is_ok() {
            let _noise = reader.keyword("SAVEPOINT");
            return Ok(Control::RollbackTo(savepoint_name(reader)?));
        }
        return Ok(Control::Rollback { chain: chain(reader)? });
    }
    if reader.keyword("SAVEPOINT").is_ok() {
        return Ok(Control::Savepoint(savepoint_name(reader)?));
    }
    if reader.keyword("RELEASE").is_ok() {
        let _noise = reader.keyword("SAVEPOINT");
        return Ok(Control::Release(savepoint_name(reader)?));
    }
    set(reader)
}

fn set(reader: &mut Reader<'_, '_>) -> Result<Control, SqlError> {
    reader.keyword("SET")?;
    if reader.keyword("SESSION").is_ok() {
        for word in ["CHARACTERISTICS", "AS", "TRANSACTION"] {
            reader.keyword(word)?;
        }
        return Ok(Control::SetDefaults(modes(reader, true)?));
    }
    let _noise = reader.keyword("LOCAL");
    reader.keyword("TRANSACTION")?;
    if reader.keyword("SNAPSHOT").is_ok() {
        return Err(SqlError::not_supported("SET TRANSACTION SNAPSHOT")
            .with_hint("transactions share no snapshot: use one connection, as pg_dump does without -j"));
    }
    Ok(Control::SetTransaction(modes(reader, true)?))
}

fn any_of(reader: &mut Reader<'_, '_>, words: &[&str]) -> bool {
    words.iter().any(|word| reader.keyword(word).is_ok())
}

/// `WORK` or `TRANSACTION`, which say nothing.
fn work(reader: &mut Reader<'_, '_>) {
    let _noise = any_of(reader, &["WORK", "TRANSACTION"]);
}

fn refuse_prepared(reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
    if reader.keyword("PREPARED").is_ok() {
        return Err(SqlError::not_supported("a prepared transaction (two-phase commit)"));
    }
    Ok(())
}

/// `AND [NO] CHAIN`
fn chain(reader: &mut Reader<'_, '_>) -> Result<bool, SqlError> {
    if reader.keyword("AND").is_err() {
        return Ok(false);
    }
    let no = reader.keyword("NO").is_ok();
    reader.keyword("CHAIN")?;
    Ok(!no)
}

/// Names of savepoints, like other names, differ by more than ASCII case.
fn savepoint_name(reader: &mut Reader<'_, '_>) -> Result<String, SqlError> {
    Ok(reader.name()?.to_ascii_lowercase())
}

/// Transaction modes, with commas between them or without.
fn modes(reader: &mut Reader<'_, '_>, needed: bool) -> Result<Modes, SqlError> {
    let mut modes = Modes::default();
    let mut comma = needed;
    while comma || reader.at_word() {
        if reader.keyword("ISOLATION").is_ok() {
            reader.keyword("LEVEL")?;
            modes.isolation = Some(level(reader)?);
        } else if reader.keyword("READ").is_ok() {
            modes.read_only = Some(reader.keyword("ONLY").is_ok());
            if modes.read_only == Some(false) {
                reader.keyword("WRITE")?;
            }
        } else {
            // It matters to PostgreSQL's serializable transactions only.
            let _not = reader.keyword("NOT");
            reader.keyword("DEFERRABLE")?;
        }
        comma = reader.sign(",").is_ok();
    }
    Ok(modes)
}

fn level(reader: &mut Reader<'_, '_>) -> Result<&'static str, SqlError> {
    if reader.keyword("SERIALIZABLE").is_ok() {
        return Ok("serializable");
    }
    if reader.keyword("REPEATABLE").is_ok() {
        reader.keyword("READ")?;
        return Ok("repeatable read");
    }
    reader.keyword("READ")?;
    if reader.keyword("UNCOMMITTED").is_ok() {
        return Ok("read uncommitted");
    }
    reader.keyword("COMMITTED")?;
    Ok("read committed")
}

/// The SQLSTATE of a transaction statement that makes no sense now.
pub(crate) fn misplaced(what: &str) -> SqlError {
    SqlError::new(state::NO_TRANSACTION, format!("{what} can only be used in transaction blocks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgresql_and_sqlite_write_is_understood() {
        let begin =
            |isolation, read_only, start| Control::Begin { modes: Modes { isolation, read_only }, start };
        for (sql, wanted) in [
            ("BEGIN", begin(None, None, false)),
            (" ; begin work ; ", begin(None, None, false)),
            ("BEGIN IMMEDIATE TRANSACTION", begin(None, None, false)),
            (
                "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
                begin(Some("serializable"), Some(true), false),
            ),
            (
                "begin transaction isolation level repeatable read not deferrable",
                begin(Some("repeatable read"), None, false),
            ),
            ("START TRANSACTION READ WRITE", begin(None, Some(false), true)),
            ("COMMIT", Control::Commit { chain: false }),
            ("END TRANSACTION", Control::Commit { chain: false }),
            ("COMMIT WORK AND NO CHAIN", Control::Commit { chain: false }),
            ("COMMIT AND CHAIN", Control::Commit { chain: true }),
            ("ABORT", Control::Rollback { chain: false }),
            ("ROLLBACK TRANSACTION AND CHAIN", Control::Rollback { chain: true }),
            ("ROLLBACK TO s", Control::RollbackTo("s".into())),
            ("ROLLBACK WORK TO SAVEPOINT \"S\"", Control::RollbackTo("s".into())),
            ("SAVEPOINT a1", Control::Savepoint("a1".into())),
            ("RELEASE SAVEPOINT a1", Control::Release("a1".into())),
            ("RELEASE a1", Control::Release("a1".into())),
            (
                "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
                Control::SetTransaction(Modes { isolation: Some("read uncommitted"), read_only: None }),
            ),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                Control::SetDefaults(Modes { isolation: None, read_only: Some(true) }),
            ),
        ] {
            assert_eq!(control(sql), Ok(wanted), "{sql}");
        }
        for (sql, state) in [
            ("BEGIN READ", "42601"),
            ("BEGIN,", "42601"),
            ("BEGIN READ ONLY,", "42601"),
            ("SAVEPOINT", "42601"),
            ("COMMIT AND", "42601"),
            ("ROLLBACK TO", "42601"),
            ("COMMIT a", "42601"),
            ("SET TRANSACTION", "42601"),
            ("SET TRANSACTION SNAPSHOT 'a'", "0A000"),
            ("COMMIT PREPARED 'a'", "0A000"),
        ] {
            assert_eq!(control(sql).unwrap_err().state, state, "{sql}");
        }
    }
}

//! Statements about roles: who exists, who is a member of whom, and what they may do where no table says it.
//!
//! ```
//! use sqltext::role::{RoleStatement, read};
//! let Some(RoleStatement::Create { name, .. }) = read("CREATE USER app PASSWORD 'x'").unwrap() else { panic!() };
//! assert_eq!(name.text, "app");
//! assert!(read("CREATE TABLE t (a INT)").unwrap().is_none());
//! ```

pub use super::grant::GrantedOn;
use super::grant::{Grants, Privileges, default_privileges, grants};
use super::{Name, Reader};
use crate::error::{SqlError, state};
use crate::token::{Kind, Tokens, tokens};

/// Rights that are not those of a table. A role has its own and, with `INHERIT`, those of the roles it is a member of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Everything, definitions among it.
    pub superuser: bool,
    /// Every table may be read: `pg_read_all_data`.
    pub reads: bool,
    /// Every table may be written: `pg_write_all_data`.
    pub writes: bool,
    /// Counters, settings, and what other sessions do: `pg_monitor`.
    pub monitors: bool,
    /// Settings that tell where files are may be read: `pg_read_all_settings`.
    pub settings: bool,
    /// Other sessions' statements may be cancelled: `pg_signal_backend`.
    pub signals: bool,
}

impl Rights {
    /// Those of a superuser.
    pub const ALL: Self =
        Self { superuser: true, reads: true, writes: true, monitors: true, settings: true, signals: true };

    /// Those of a role that was given nothing.
    pub const NONE: Self = Self {
        superuser: false,
        reads: false,
        writes: false,
        monitors: false,
        settings: false,
        signals: false,
    };

    /// The privileges that they are on every table.
    pub fn on_every_table(self) -> Privileges {
        const WRITES: Privileges = Privileges::INSERT.and(Privileges::UPDATE).and(Privileges::DELETE);
        let Self { superuser, reads, writes, .. } = self;
        let reading = if reads { Privileges::SELECT } else { Privileges::NONE };
        let writing = if writes { WRITES } else { Privileges::NONE };
        if superuser { Privileges::ALL } else { reading.and(writing) }
    }
}

/// Such a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    /// `CREATE ROLE`, `CREATE USER`, `CREATE GROUP`
    Create {
        /// Its name.
        name: Name,
        /// What is said of it, `LOGIN` for a user first.
        options: Vec<RoleOption>,
    },
    /// `ALTER ROLE name WITH ...`
    Alter {
        /// Which role.
        role: RoleRef,
        /// What changes.
        options: Vec<RoleOption>,
    },
    /// `ALTER ROLE name SET`, `RESET`
    Set {
        /// Which role.
        role: RoleRef,
        /// The setting that its sessions begin with, in lower case; `None`: all that it has.
        name: Option<String>,
        /// Its value; `None`: none from now on.
        value: Option<String>,
    },
    /// `ALTER ROLE name RENAME TO ...`
    Rename {
        /// Which role.
        name: Name,
        /// What it is called from now on.
        to: Name,
    },
    /// `DROP ROLE`
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// Which roles.
        names: Vec<Name>,
    },
    /// `GRANT role TO role`
    Grant {
        /// What is granted.
        roles: Vec<Name>,
        /// Who becomes a member.
        members: Vec<RoleRef>,
        /// `WITH ADMIN OPTION`
        admin: bool,
    },
    /// `REVOKE role FROM role`
    Revoke {
        /// What is taken away.
        roles: Vec<Name>,
        /// From whom.
        members: Vec<RoleRef>,
        /// `ADMIN OPTION FOR`: they stay members.
        admin_only: bool,
    },
    /// Privileges of schemas, and those that tables get when they are made.
    Privileges(Grants),
    /// `DROP OWNED BY`
    DropOwned {
        /// By whom.
        of: Vec<RoleRef>,
        /// `CASCADE`: what depends on it goes too.
        cascade: bool,
    },
    /// `REASSIGN OWNED BY`
    ReassignOwned {
        /// By whom.
        of: Vec<RoleRef>,
        /// The owner from then on.
        to: RoleRef,
    },
}

/// A role that is named, or the session's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    /// By its name.
    Named(Name),
    /// `CURRENT_USER`, `CURRENT_ROLE`
    Current,
    /// `SESSION_USER`
    Session,
}

/// What is said of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleOption {
    /// `SUPERUSER`, `LOGIN` and their like, or the same with `NO`.
    Flag(RoleFlag, bool),
    /// `CONNECTION LIMIT`; negative: none.
    ConnectionLimit(i32),
    /// `PASSWORD`; `None` is `NULL`.
    Password(Option<String>),
    /// `VALID UNTIL`
    ValidUntil(String),
    /// `IN ROLE`: it becomes a member of these.
    InRoles(Vec<Name>),
    /// `ROLE`, `USER`: these become its members. `ADMIN`: with the right to grant it.
    Members(Vec<Name>, bool),
}

/// What a role is or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleFlag {
    /// It may do everything.
    Superuser,
    /// It may make and change roles.
    CreateRole,
    /// It may create databases, of which there is one.
    CreateDb,
    /// It has the rights of the roles that it is a member of.
    Inherit,
    /// It may connect.
    Login,
    /// It may replicate.
    Replication,
    /// It passes row security.
    BypassRls,
}

/// The words of the flags. With `NO` in front they are taken away.
pub const FLAGS: &[(&str, &str, RoleFlag)] = &[
    ("SUPERUSER", "NOSUPERUSER", RoleFlag::Superuser),
    ("CREATEROLE", "NOCREATEROLE", RoleFlag::CreateRole),
    ("CREATEDB", "NOCREATEDB", RoleFlag::CreateDb),
    ("INHERIT", "NOINHERIT", RoleFlag::Inherit),
    ("LOGIN", "NOLOGIN", RoleFlag::Login),
    ("REPLICATION", "NOREPLICATION", RoleFlag::Replication),
    ("BYPASSRLS", "NOBYPASSRLS", RoleFlag::BypassRls),
];

/// The longest name in bytes, PostgreSQL's.
const NAME_BYTES_MAX: usize = 63;

const KINDS: &[&str] = &["ROLE", "USER", "GROUP"];

/// Reads a statement; `None`: it is not about roles.
///
/// # Errors
///
/// A mistake, with its place.
pub fn read(sql: &str) -> Result<Option<RoleStatement>, SqlError> {
    if !is_one(sql) {
        return Ok(None);
    }
    let all = tokens(sql);
    let mut reader = Reader::new(sql, &all)?;
    let Some(verb) = reader.any_word(&["CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "REASSIGN"]) else {
        return Ok(None);
    };
    let statement = match verb {
        "ALTER" if reader.words(&["DEFAULT", "PRIVILEGES"]) => {
            RoleStatement::Privileges(default_privileges(&mut reader)?)
        }
        "GRANT" | "REVOKE" if has_on(sql) => {
            RoleStatement::Privileges(grants(&mut reader, verb == "REVOKE")?)
        }
        "DROP" if reader.words(&["OWNED", "BY"]) => {
            let of = reader.list(role)?;
            let cascade = reader.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
            RoleStatement::DropOwned { of, cascade }
        }
        "REASSIGN" => reassign(&mut reader)?,
        "CREATE" => create(&mut reader)?,
        "ALTER" => alter(&mut reader)?,
        "DROP" => drop_roles(&mut reader)?,
        "GRANT" => grant(&mut reader)?,
        _ => revoke(&mut reader)?,
    };
    reader.end()?;
    Ok(Some(statement))
}

/// Whether the words are those of such a statement. `GRANT ... ON` is about tables, but for schemas.
fn is_one(sql: &str) -> bool {
    let mut words = Tokens::new(sql);
    let (Some(verb), Some(next)) = (words.next(), words.next()) else { return false };
    if verb.is_any(&["CREATE", "ALTER", "DROP"]) {
        // `USER MAPPING FOR` and `USER MAPPING IF` are about foreign servers.
        let mapping = next.is("USER")
            && words.next().is_some_and(|word| word.is("MAPPING"))
            && words.next().is_some_and(|word| word.is_any(&["FOR", "IF"]));
        return !mapping && next.is_any(KINDS)
            || verb.is("ALTER") && next.is("DEFAULT")
            || verb.is("DROP") && next.is("OWNED");
    }
    if verb.is("REASSIGN") {
        return true;
    }
    let schema =
        || Tokens::new(sql).skip_while(|word| !word.is("ON")).nth(1).is_some_and(|word| word.is("SCHEMA"));
    verb.is_any(&["GRANT", "REVOKE"]) && (!has_on(sql) || schema())
}

fn has_on(sql: &str) -> bool {
    Tokens::new(sql).any(|word| word.is("ON"))
}

fn kind(reader: &mut Reader<'_, '_>) -> Result<&'static str, SqlError> {
    reader.any_word(KINDS).ok_or_else(|| reader.unexpected())
}

fn create(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    let user = kind(reader)? == "USER";
    let name = name(reader)?;
    let mut options: Vec<_> = user.then_some(RoleOption::Flag(RoleFlag::Login, true)).into_iter().collect();
    options.extend(options_of(reader, true)?);
    Ok(RoleStatement::Create { name, options })
}

fn alter(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    kind(reader)?;
    let role = role(reader)?;
    match role {
        RoleRef::Named(name) if reader.words(&["RENAME", "TO"]) => {
            Ok(RoleStatement::Rename { name, to: self::name(reader)? })
        }
        role if reader.word("SET") => set(reader, role),
        role if reader.word("RESET") => {
            let name = if reader.word("ALL") { None } else { Some(setting(reader)?) };
            Ok(RoleStatement::Set { role, name, value: None })
        }
        _ if reader.words(&["IN", "DATABASE"]) => {
            Err(SqlError::not_supported("IN DATABASE").with_hint("there is one database: leave it out"))
        }
        role => Ok(RoleStatement::Alter { role, options: options_of(reader, false)? }),
    }
}

/// What follows `SET`: `name {TO | =} value`, `TIME ZONE value`.
fn set(reader: &mut Reader<'_, '_>, role: RoleRef) -> Result<RoleStatement, SqlError> {
    if reader.words(&["TIME", "ZONE"]) {
        let value = setting_value(reader)?;
        return Ok(RoleStatement::Set { role, name: Some("timezone".to_owned()), value });
    }
    let name = setting(reader)?;
    if reader.words(&["FROM", "CURRENT"]) {
        return Err(SqlError::not_supported("SET FROM CURRENT").with_hint("write the value"));
    }
    if !reader.sign("=") {
        reader.expect_word("TO")?;
    }
    Ok(RoleStatement::Set { role, name: Some(name), value: setting_value(reader)? })
}

/// The name of a setting, which may have points.
fn setting(reader: &mut Reader<'_, '_>) -> Result<String, SqlError> {
    let mut name = reader.any_name()?;
    while reader.sign(".") {
        name = format!("{name}.{}", reader.any_name()?);
    }
    Ok(name.to_lowercase())
}

/// `DEFAULT`, or texts, words and numbers with commas between them.
fn setting_value(reader: &mut Reader<'_, '_>) -> Result<Option<String>, SqlError> {
    if reader.word("DEFAULT") {
        return Ok(None);
    }
    let mut values = Vec::new();
    loop {
        values.push(one_value(reader)?);
        if !reader.sign(",") {
            return Ok(Some(values.join(", ")));
        }
    }
}

fn one_value(reader: &mut Reader<'_, '_>) -> Result<String, SqlError> {
    let sign = if reader.sign("-") { "-" } else { "" };
    let Some(token) = reader.peek() else { return Err(reader.unexpected()) };
    let value = match token.kind {
        Kind::Number => format!("{sign}{}", token.text),
        Kind::Word if sign.is_empty() => token.text.to_lowercase(),
        Kind::Quoted if sign.is_empty() => crate::token::unquoted(token.text),
        _ if sign.is_empty() => return reader.text(),
        _ => return Err(reader.unexpected()),
    };
    reader.skip();
    Ok(value)
}

fn drop_roles(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    kind(reader)?;
    Ok(RoleStatement::Drop { if_exists: reader.if_exists()?, names: reader.list(name)? })
}

fn reassign(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    reader.expect_word("OWNED")?;
    reader.expect_word("BY")?;
    let of = reader.list(role)?;
    reader.expect_word("TO")?;
    Ok(RoleStatement::ReassignOwned { of, to: role(reader)? })
}

fn grant(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    let roles = reader.list(name)?;
    reader.expect_word("TO")?;
    let members = reader.list(role)?;
    let admin = reader.words(&["WITH", "ADMIN", "OPTION"]);
    granted_by(reader)?;
    Ok(RoleStatement::Grant { roles, members, admin })
}

fn revoke(reader: &mut Reader<'_, '_>) -> Result<RoleStatement, SqlError> {
    let admin_only = reader.words(&["ADMIN", "OPTION", "FOR"]);
    let roles = reader.list(name)?;
    reader.expect_word("FROM")?;
    let members = reader.list(role)?;
    granted_by(reader)?;
    reader.any_word(&["CASCADE", "RESTRICT"]);
    Ok(RoleStatement::Revoke { roles, members, admin_only })
}

/// `GRANTED BY role`, which says nothing here: who granted a membership is not kept.
pub(crate) fn granted_by(reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
    if reader.words(&["GRANTED", "BY"]) {
        role(reader)?;
    }
    Ok(())
}

fn options_of(reader: &mut Reader<'_, '_>, creates: bool) -> Result<Vec<RoleOption>, SqlError> {
    reader.word("WITH");
    let mut options = Vec::new();
    while reader.peek().is_some_and(|token| !token.is_sign(";")) {
        options.push(option(reader, creates)?);
    }
    Ok(options)
}

fn option(reader: &mut Reader<'_, '_>, creates: bool) -> Result<RoleOption, SqlError> {
    for (with, without, flag) in FLAGS {
        if let Some(word) = reader.any_word(&[with, without]) {
            return Ok(RoleOption::Flag(*flag, word == *with));
        }
    }
    if reader.words(&["CONNECTION", "LIMIT"]) {
        return limit(reader).map(RoleOption::ConnectionLimit);
    }
    if reader.words(&["VALID", "UNTIL"]) {
        return reader.text().map(RoleOption::ValidUntil);
    }
    reader.word("ENCRYPTED");
    if reader.word("PASSWORD") {
        return Ok(RoleOption::Password(if reader.word("NULL") { None } else { Some(reader.text()?) }));
    }
    if creates && reader.word("IN") {
        reader.any_word(&["ROLE", "GROUP"]).ok_or_else(|| reader.unexpected())?;
        return reader.list(name).map(RoleOption::InRoles);
    }
    if creates && let Some(word) = reader.any_word(&["ROLE", "USER", "ADMIN"]) {
        return Ok(RoleOption::Members(reader.list(name)?, word == "ADMIN"));
    }
    Err(reader.unexpected())
}

fn limit(reader: &mut Reader<'_, '_>) -> Result<i32, SqlError> {
    let sign = if reader.sign("-") { "-" } else { "" };
    let number = reader.peek().and_then(|token| format!("{sign}{}", token.text).parse().ok());
    let number = number.ok_or_else(|| reader.unexpected())?;
    reader.skip();
    Ok(number)
}

/// A role's name. Without quotes it is folded to lower case.
fn name(reader: &mut Reader<'_, '_>) -> Result<Name, SqlError> {
    let quoted = reader.peek().is_some_and(|token| token.kind == Kind::Quoted);
    let mut name = reader.name()?;
    if !quoted {
        name.text = name.text.to_lowercase();
    }
    if name.text.is_empty() || name.text.len() > NAME_BYTES_MAX || name.text.contains('\0') {
        let message = format!("a role's name has 1 to {NAME_BYTES_MAX} bytes");
        return Err(SqlError::new(state::BAD_NAME, message).at(reader.sql, name.place));
    }
    Ok(name)
}

pub(crate) fn role(reader: &mut Reader<'_, '_>) -> Result<RoleRef, SqlError> {
    // `GRANT a TO GROUP b` is an old form.
    reader.word("GROUP");
    if reader.any_word(&["CURRENT_USER", "CURRENT_ROLE"]).is_some() {
        return Ok(RoleRef::Current);
    }
    if reader.word("SESSION_USER") {
        return Ok(RoleRef::Session);
    }
    name(reader).map(RoleRef::Named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        match read(sql) {
            Ok(Some(statement)) => format!("{statement:?}"),
            Ok(None) => "none".into(),
            Err(error) => error.state.to_owned(),
        }
    }

    #[test]
    fn roles_are_read() {
        let flags =
            shown("create role App with nosuperuser login connection limit -1 encrypted password 'it''s'");
        assert!(flags.contains("\"app\"") && flags.contains("Flag(Login, true)"), "{flags}");
        assert!(
            flags.contains("ConnectionLimit(-1)") && flags.contains("Password(Some(\"it's\"))"),
            "{flags}"
        );
        assert!(shown("CREATE USER \"App\"").contains("\"App\""));
        assert!(shown("CREATE ROLE a IN ROLE b, c ADMIN d").contains("Members"));
        assert!(shown("ALTER USER CURRENT_USER PASSWORD NULL;").contains("Current"));
        assert!(shown("ALTER ROLE a RENAME TO b").starts_with("Rename"));
        for (text, wanted) in [
            ("ALTER ROLE a SET Search_Path TO s, \"T\", 'u v'", "search_path\"), value: Some(\"s, T, u v\")"),
            ("ALTER USER a SET statement_timeout = -1", "value: Some(\"-1\")"),
            ("ALTER ROLE CURRENT_USER SET TIME ZONE 'UTC'", "timezone"),
            ("ALTER ROLE a SET app.x TO DEFAULT", "app.x\"), value: None"),
            ("ALTER ROLE a RESET ALL", "name: None, value: None"),
        ] {
            assert!(shown(text).contains(wanted), "{}", shown(text));
        }
        for wrong in [
            "ALTER ROLE a SET x",
            "ALTER ROLE a SET x TO",
            "ALTER ROLE a SET x = 1 2",
            "ALTER ROLE a IN DATABASE d SET x = 1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(shown("DROP ROLE IF EXISTS a, b").contains("if_exists: true"));
        assert!(shown("GRANT a, b TO c WITH ADMIN OPTION").contains("admin: true"));
        assert!(shown("REVOKE ADMIN OPTION FOR a FROM c CASCADE").contains("admin_only: true"));
        let default =
            shown("ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA public GRANT SELECT, INSERT ON TABLES TO b");
        assert!(default.starts_with("Privileges") && default.contains("Future"), "{default}");
        assert!(shown("GRANT CREATE, USAGE ON SCHEMA public TO a").contains("Schemas"));
    }

    #[test]
    fn other_statements_and_mistakes() {
        for other in [
            "",
            "CREATE",
            "CREATE TABLE role (a INT)",
            "GRANT SELECT ON t TO a",
            "SELECT 1",
            "CREATE USER MAPPING FOR a SERVER b",
        ] {
            assert_eq!(shown(other), "none", "{other}");
        }
        let long = format!("CREATE ROLE {}", "x".repeat(64));
        for (sql, state) in [
            ("CREATE ROLE", "42601"),
            ("CREATE ROLE a SUPER", "42601"),
            ("CREATE ROLE a PASSWORD 1", "42601"),
            ("CREATE ROLE a CONNECTION LIMIT x", "42601"),
            ("ALTER ROLE a IN ROLE b", "42601"),
            ("DROP ROLE a b", "42601"),
            ("GRANT a", "42601"),
            (long.as_str(), "42602"),
        ] {
            assert_eq!(shown(sql), state, "{sql}");
        }
    }
}

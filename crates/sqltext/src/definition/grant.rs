//! `GRANT` and `REVOKE` of privileges, and `ALTER DEFAULT PRIVILEGES`. Memberships are in [`super::role`].

pub use store::definition::access::{Dependent, grant as grant_to, revoke as revoke_from};
pub use store::definition::{Grant, Privileges};

use super::role::{RoleRef, granted_by, role};
use super::{Name, Reader};
use crate::error::{SqlError, state};
use crate::token::Kind as TokenKind;

/// `GRANT privileges ON objects TO roles`, or the same with `REVOKE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    /// It takes away.
    pub revokes: bool,
    /// What is granted.
    pub privileges: Vec<Granted>,
    /// Of what.
    pub on: GrantedOn,
    /// To whom, or from whom.
    pub to: Vec<GrantedTo>,
    /// `WITH GRANT OPTION`, `GRANT OPTION FOR`
    pub option: bool,
    /// `CASCADE`: what was handed on goes too.
    pub cascade: bool,
}

/// One privilege, or `ALL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Its word in capitals.
    pub word: Name,
    /// The columns, if it is about columns.
    pub columns: Vec<Name>,
}

/// What privileges are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedOn {
    /// Tables and views.
    Tables(Vec<Name>),
    /// `ALL TABLES IN SCHEMA`
    AllTables(Vec<Name>),
    /// Sequences.
    Sequences(Vec<Name>),
    /// `ALL SEQUENCES IN SCHEMA`
    AllSequences(Vec<Name>),
    /// Functions and procedures by their names, with the word for them.
    Routines(&'static str, Vec<Routine>),
    /// `ALL FUNCTIONS IN SCHEMA`, `ALL PROCEDURES`, `ALL ROUTINES`, with the word for them.
    AllRoutines(&'static str, Vec<Name>),
    /// `SCHEMA`
    Schemas(Vec<Name>),
    /// What everybody may use: the database, languages, types. Its words.
    Open(String),
    /// What is yet to be made.
    Future {
        /// `FOR ROLE`: by whom; none: by who says it.
        by: Vec<RoleRef>,
        /// `IN SCHEMA`; none: in all.
        schemas: Vec<Name>,
        /// What it is.
        kind: Kind,
    },
}

/// A function or procedure that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Its name.
    pub name: String,
    /// The types of its arguments in their parentheses, if they are given.
    pub arguments: Option<String>,
}

/// Kinds of objects that have owners and privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Tables and views.
    Table,
    /// Sequences.
    Sequence,
    /// Functions and procedures.
    Function,
}

impl Kind {
    /// All privileges that such an object has.
    pub const fn all(self) -> Privileges {
        match self {
            Self::Table => Privileges::ALL,
            Self::Sequence => Privileges::OF_SEQUENCE,
            Self::Function => Privileges::EXECUTE,
        }
    }

    /// What everybody has of a new one where nobody said otherwise, as in PostgreSQL.
    pub fn of_everybody(self) -> Vec<Grant> {
        let one = Grant { to: None, by: None, privileges: Privileges::EXECUTE, grantable: Privileges::NONE };
        if self == Self::Function { vec![one] } else { Vec::new() }
    }

    /// Several of them, as `ALTER DEFAULT PRIVILEGES` calls them.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Table => "TABLES",
            Self::Sequence => "SEQUENCES",
            Self::Function => "FUNCTIONS",
        }
    }

    /// PostgreSQL's letter for it in `pg_default_acl`.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Table => "r",
            Self::Sequence => "S",
            Self::Function => "f",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Sequence => "sequence",
            Self::Function => "function",
        }
    }
}

/// Who has a privilege.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedTo {
    /// Everybody.
    Public,
    /// A role.
    Role(RoleRef),
}

impl Granted {
    /// The privileges of such an object, or of a column, that it means.
    ///
    /// # Errors
    ///
    /// It is no privilege of such.
    pub fn of(&self, kind: Kind, sql: &str) -> Result<Privileges, SqlError> {
        let possible = match kind {
            Kind::Table if !self.columns.is_empty() => Privileges::OF_COLUMN,
            kind => kind.all(),
        };
        if let Some(column) = self.columns.first().filter(|_| kind == Kind::Sequence) {
            let message = "column privileges are only valid for relations";
            return Err(SqlError::new(state::INVALID_GRANT, message).at(sql, column.place));
        }
        if self.word.text == "ALL" {
            return Ok(possible);
        }
        let named = Privileges::named(&self.word.text).filter(|named| possible.has(*named));
        named.ok_or_else(|| {
            let what = if self.columns.is_empty() { kind.word() } else { "column" };
            let message = format!("invalid privilege type {} for {what}", self.word.text);
            SqlError::new(state::INVALID_GRANT, message).at(sql, self.word.place)
        })
    }
}

/// What stands behind `GRANT` or `REVOKE`, where it is about privileges.
pub(crate) fn grants(reader: &mut Reader<'_, '_>, revokes: bool) -> Result<Grants, SqlError> {
    let mut option = revokes && reader.words(&["GRANT", "OPTION", "FOR"]);
    let privileges = privileges(reader)?;
    reader.expect_word("ON")?;
    let on = on(reader)?;
    let to = grantees(reader, revokes)?;
    option |= !revokes && reader.words(&["WITH", "GRANT", "OPTION"]);
    granted_by(reader)?;
    let cascade = revokes && reader.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
    Ok(Grants { revokes, privileges, on, to, option, cascade })
}

/// What stands behind `ALTER DEFAULT PRIVILEGES`.
pub(crate) fn default_privileges(reader: &mut Reader<'_, '_>) -> Result<Grants, SqlError> {
    let mut by = Vec::new();
    if reader.word("FOR") {
        reader.any_word(&["ROLE", "USER"]).ok_or_else(|| reader.unexpected())?;
        by = reader.list(role)?;
    }
    let schemas = if reader.words(&["IN", "SCHEMA"]) { reader.list(Reader::name)? } else { Vec::new() };
    let verb = reader.any_word(&["GRANT", "REVOKE"]).ok_or_else(|| reader.unexpected())?;
    let revokes = verb == "REVOKE";
    let mut option = revokes && reader.words(&["GRANT", "OPTION", "FOR"]);
    let privileges = privileges(reader)?;
    reader.expect_word("ON")?;
    let kind = reader.any_word(&["TABLES", "SEQUENCES", "FUNCTIONS", "ROUTINES", "TYPES", "SCHEMAS"]);
    let kind = kind.ok_or_else(|| reader.unexpected())?;
    let to = grantees(reader, revokes)?;
    option |= !revokes && reader.words(&["WITH", "GRANT", "OPTION"]);
    let cascade = revokes && reader.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
    let on = match kind {
        "TABLES" => GrantedOn::Future { by, schemas, kind: Kind::Table },
        "SEQUENCES" => GrantedOn::Future { by, schemas, kind: Kind::Sequence },
        "FUNCTIONS" | "ROUTINES" => GrantedOn::Future { by, schemas, kind: Kind::Function },
        kind => GrantedOn::Open(kind.to_ascii_lowercase()),
    };
    Ok(Grants { revokes, privileges, on, to, option, cascade })
}

fn privileges(reader: &mut Reader<'_, '_>) -> Result<Vec<Granted>, SqlError> {
    reader.list(|reader| {
        let Some(token) = reader.peek().filter(|token| token.kind == TokenKind::Word) else {
            return Err(reader.unexpected());
        };
        let word = Name { text: token.text.to_ascii_uppercase(), namespace: None, place: token.start };
        reader.skip();
        if word.text == "ALL" {
            reader.word("PRIVILEGES");
        }
        Ok(Granted { word, columns: reader.names()? })
    })
}

/// Kinds of objects whose use is open to everybody.
const OPEN: &[&str] = &["DATABASE", "LANGUAGE", "TYPE", "DOMAIN", "TABLESPACE"];

/// A function or procedure, with its arguments as they are written.
fn routine(reader: &mut Reader<'_, '_>) -> Result<Routine, SqlError> {
    let name = reader.routine()?.text;
    let Some(first) = reader.peek().filter(|token| token.is_sign("(")) else {
        return Ok(Routine { name, arguments: None });
    };
    let (mut open, mut end) = (0, first.end());
    while let Some(token) = reader.peek() {
        open += i32::from(token.is_sign("(")) - i32::from(token.is_sign(")"));
        end = token.end();
        reader.skip();
        if open == 0 {
            break;
        }
    }
    Ok(Routine { name, arguments: reader.sql.get(first.start..end).map(ToOwned::to_owned) })
}

fn on(reader: &mut Reader<'_, '_>) -> Result<GrantedOn, SqlError> {
    if reader.word("ALL") {
        let kinds = &["TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES", "ROUTINES"];
        let kind = reader.any_word(kinds).ok_or_else(|| reader.unexpected())?;
        reader.expect_word("IN")?;
        reader.expect_word("SCHEMA")?;
        let schemas = reader.list(Reader::name)?;
        return Ok(match kind {
            "TABLES" => GrantedOn::AllTables(schemas),
            "SEQUENCES" => GrantedOn::AllSequences(schemas),
            kind => GrantedOn::AllRoutines(kind, schemas),
        });
    }
    if reader.word("SCHEMA") {
        return reader.list(Reader::name).map(GrantedOn::Schemas);
    }
    if reader.word("SEQUENCE") {
        return reader.list(Reader::object).map(GrantedOn::Sequences);
    }
    if let Some(kind) = reader.any_word(&["FUNCTION", "PROCEDURE", "ROUTINE"]) {
        return Ok(GrantedOn::Routines(kind, reader.list(routine)?));
    }
    if let Some(kind) = reader.any_word(OPEN) {
        while reader.peek().is_some_and(|token| !token.is_any(&["TO", "FROM"])) {
            reader.skip();
        }
        return Ok(GrantedOn::Open(format!("{}s", kind.to_ascii_lowercase())));
    }
    reader.word("TABLE");
    reader.list(Reader::object).map(GrantedOn::Tables)
}

fn grantees(reader: &mut Reader<'_, '_>, revokes: bool) -> Result<Vec<GrantedTo>, SqlError> {
    reader.expect_word(if revokes { "FROM" } else { "TO" })?;
    reader.list(
        |reader| {
            if reader.word("PUBLIC") { Ok(GrantedTo::Public) } else { role(reader).map(GrantedTo::Role) }
        },
    )
}

/// The privileges that a list names, those of columns left out.
///
/// # Errors
///
/// One of them is no privilege of such an object, or names columns.
pub fn of_whole(kind: Kind, sql: &str, granted: &[Granted]) -> Result<Privileges, SqlError> {
    granted.iter().try_fold(Privileges::NONE, |all, one| {
        if let Some(column) = one.columns.first() {
            let message = "default privileges cannot be set for columns";
            return Err(SqlError::new(state::INVALID_GRANT, message).at(sql, column.place));
        }
        Ok(all.and(one.of(kind, sql)?))
    })
}

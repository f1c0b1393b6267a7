//! The statements that a session answers itself: about settings, prepared statements, cursors, channels and `COPY`.

use auth::statement::{GrantedOn, RoleStatement};
use sql::token::Kind;

use sql::{SqlError, SqlType, normalized};
use store::scalar::interval::Interval;

use super::copy::{self, CopyDirection, CopyStatement};
use super::reader::{Reader, folded};

/// Such a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Utility {
    /// `SET [SESSION | LOCAL] name {TO | =} value`; no value is `DEFAULT`.
    Set {
        /// The setting.
        name: String,
        /// Its value.
        value: Option<String>,
        /// Up to the end of the transaction.
        local: bool,
    },
    /// `SET CONSTRAINTS`: no constraint waits for the end of a transaction.
    SetConstraints,
    /// `SHOW name`; no name is `ALL`.
    Show(Option<String>),
    /// `RESET name`; no name is `ALL`.
    Reset(Option<String>),
    /// `DISCARD`
    Discard(Discard),
    /// `PREPARE name (types) AS statement`
    Prepare {
        /// Its name.
        name: String,
        /// The types that are given.
        types: Vec<Option<SqlType>>,
        /// The statement.
        text: String,
    },
    /// `EXECUTE name (values)`
    Execute {
        /// Its name.
        name: String,
        /// The expressions between the parentheses.
        values: String,
    },
    /// `EXPLAIN ... EXECUTE name (values)`
    Explain {
        /// What stands before `EXECUTE`.
        head: String,
        /// The prepared statement's name.
        name: String,
        /// The expressions between the parentheses.
        values: String,
    },
    /// `DEALLOCATE name`; no name is `ALL`.
    Deallocate(Option<String>),
    /// `DECLARE name CURSOR FOR query`
    Declare {
        /// Its name.
        name: String,
        /// It stays when the transaction ends.
        hold: bool,
        /// It may not go back.
        forward_only: bool,
        /// The query.
        text: String,
    },
    /// `FETCH` or `MOVE`
    Fetch {
        /// The cursor.
        name: String,
        /// Which rows.
        direction: Direction,
        /// The rows are not wanted, only counted.
        only_move: bool,
    },
    /// `CLOSE name`; no name is `ALL`.
    Close(Option<String>),
    /// `LISTEN channel`
    Listen(String),
    /// `UNLISTEN channel`; no channel is all.
    Unlisten(Option<String>),
    /// `NOTIFY channel, 'payload'`
    Notify {
        /// The channel.
        channel: String,
        /// What is announced.
        payload: String,
    },
    /// `COPY`
    Copy(Box<CopyStatement>),
    /// `LOCK TABLE`
    Lock(Lock),
    /// `CREATE ROLE` and its like
    Role(Box<RoleChange>),
}

/// A statement about roles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoleChange {
    pub(crate) statement: RoleStatement,
    /// Its text without its values: a password is one.
    pub(crate) shown: String,
}

impl Utility {
    /// What it is called where only reading is allowed, if it writes. Of statements that the SQL layer runs, that says.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        match self {
            Self::Role(change) => Some(tag_of_role(&change.statement)),
            Self::Copy(copy) => (copy.direction == CopyDirection::In).then_some("COPY FROM"),
            Self::Set { .. }
            | Self::SetConstraints
            | Self::Show(_)
            | Self::Reset(_)
            | Self::Discard(_)
            | Self::Prepare { .. }
            | Self::Execute { .. }
            | Self::Explain { .. }
            | Self::Deallocate(_)
            | Self::Declare { .. }
            | Self::Fetch { .. }
            | Self::Close(_)
            | Self::Listen(_)
            | Self::Unlisten(_)
            | Self::Notify { .. }
            | Self::Lock(_) => None,
        }
    }
}

/// The tag of a statement about roles.
pub(super) fn tag_of_role(statement: &RoleStatement) -> &'static str {
    match statement {
        RoleStatement::Create { .. } => "CREATE ROLE",
        RoleStatement::Alter { .. } | RoleStatement::Set { .. } | RoleStatement::Rename { .. } => {
            "ALTER ROLE"
        }
        RoleStatement::Drop { .. } => "DROP ROLE",
        RoleStatement::Grant { .. } => "GRANT ROLE",
        RoleStatement::Revoke { .. } => "REVOKE ROLE",
        RoleStatement::DropOwned { .. } => "DROP OWNED",
        RoleStatement::ReassignOwned { .. } => "REASSIGN OWNED",
        RoleStatement::Privileges(grants) => match (&grants.on, grants.revokes) {
            (GrantedOn::Future { .. }, _) => "ALTER DEFAULT PRIVILEGES",
            (_, true) => "REVOKE",
            (_, false) => "GRANT",
        },
    }
}

/// `LOCK [TABLE] names [IN mode MODE] [NOWAIT]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    /// As they are written.
    pub(crate) names: Vec<String>,
    /// The mode lets everything pass but definitions.
    pub(crate) only_read: bool,
    /// Any of these privileges is enough, as in PostgreSQL.
    pub(crate) privileges: &'static str,
}

/// What who locks a table against writers needs.
const LOCKS: &str = "UPDATE, DELETE, TRUNCATE";

/// What `DISCARD` throws away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discard {
    /// Everything of the session.
    All,
    /// Compiled statements, which threads keep and not sessions.
    Plans,
    /// What sequences gave last: nothing.
    Sequences,
    /// Temporary tables: none.
    Temp,
}

/// Which rows of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// So many from here on; negative is backwards, 0 the row of now once more.
    Relative(i64),
    /// All from here on.
    All,
    /// All before here, backwards.
    BackwardAll,
    /// The one row of this number, counted from the end when negative.
    Absolute(i64),
    /// The one row so far from here.
    Offset(i64),
}

/// Reads a statement, if its first word says that it is one of these.
pub(crate) fn read(text: &str) -> Result<Option<Utility>, SqlError> {
    let mut reader = Reader::new(text);
    // What is mostly asked for is none of these, and is compared with the fewest words.
    if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|word| reader.at_keyword(word)) {
        return Ok(None);
    }
    let words = &[
        "SET",
        "SHOW",
        "RESET",
        "DISCARD",
        "PREPARE",
        "EXECUTE",
        "EXPLAIN",
        "DEALLOCATE",
        "DECLARE",
        "FETCH",
        "MOVE",
        "CLOSE",
        "LISTEN",
        "UNLISTEN",
        "NOTIFY",
        "COPY",
        "LOCK",
    ];
    let about_roles = ["CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "REASSIGN"];
    if about_roles.iter().any(|word| reader.at_keyword(word))
        && let Some(statement) = auth::statement::read(text)?
    {
        return Ok(Some(Utility::Role(Box::new(RoleChange { statement, shown: normalized(text) }))));
    }
    let Some(word) = reader.one_of(words) else { return elsewhere(&mut reader).map_or(Ok(None), Err) };
    let utility = match word {
        "SET" => match set(&mut reader)? {
            Some(set) => set,
            None => return Ok(None),
        },
        // `SHOW EXPIRY RULES` is a query of the SQL layer's.
        "SHOW" if reader.keyword("EXPIRY") => return Ok(None),
        "SHOW" => Utility::Show(setting_or_all(&mut reader)?),
        "RESET" => Utility::Reset(setting_or_all(&mut reader)?),
        "DISCARD" => Utility::Discard(discard(&mut reader)?),
        "PREPARE" => return prepare(&mut reader).map(Some),
        "EXECUTE" => execute(&mut reader)?,
        // Of other statements it is the SQL layer's.
        "EXPLAIN" => match explain(text, &mut reader)? {
            Some(explain) => explain,
            None => return Ok(None),
        },
        "DEALLOCATE" => {
            reader.keyword("PREPARE");
            Utility::Deallocate(name_or_all(&mut reader)?)
        }
        "DECLARE" => return declare(&mut reader).map(Some),
        "FETCH" | "MOVE" => fetch(&mut reader, word == "MOVE")?,
        "CLOSE" => Utility::Close(name_or_all(&mut reader)?),
        "LISTEN" => Utility::Listen(reader.name()?),
        "UNLISTEN" => Utility::Unlisten(if reader.sign("*") { None } else { Some(reader.name()?) }),
        "NOTIFY" => notify(&mut reader)?,
        "LOCK" => Utility::Lock(lock(&mut reader)?),
        _ => return copy::read(&mut reader).map(|copy| Some(Utility::Copy(Box::new(copy)))),
    };
    reader.end()?;
    Ok(Some(utility))
}

/// Statements of other databases and consoles, and what does the same here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("DESC", "in psql, \\d NAME describes a table; elsewhere: SELECT * FROM information_schema.columns"),
    ("DESCRIBE", "in psql, \\d NAME describes a table; elsewhere: SELECT * FROM information_schema.columns"),
    ("HELP", "docs/sql.md has the statements; in psql, \\? lists its commands and \\dt the tables"),
    ("USE", "there is one database; all tables are in the schema \"public\""),
];

/// The error for one of them.
fn elsewhere(reader: &mut Reader<'_>) -> Option<SqlError> {
    let (_, hint) = ELSEWHERE.iter().find(|(word, _)| reader.at_keyword(word))?;
    Some(reader.unexpected().with_hint(*hint))
}

/// `SET`, unless it is about transactions.
fn set(reader: &mut Reader<'_>) -> Result<Option<Utility>, SqlError> {
    let local = reader.keyword("LOCAL");
    let session = !local && reader.keyword("SESSION");
    if reader.keyword("TRANSACTION") || session && reader.keyword("CHARACTERISTICS") {
        return Ok(None);
    }
    if reader.keyword("TIME") {
        reader.expect("ZONE")?;
        let value = zone(reader)?.filter(|value| !value.eq_ignore_ascii_case("local"));
        return Ok(Some(Utility::Set { name: "timezone".into(), value, local }));
    }
    if !local && !session && reader.keyword("CONSTRAINTS") {
        constraints(reader)?;
        return Ok(Some(Utility::SetConstraints));
    }
    if reader.keyword("ROLE") {
        return Ok(Some(Utility::Set { name: "role".into(), value: value(reader)?, local }));
    }
    if session && reader.keyword("AUTHORIZATION") {
        return Ok(Some(Utility::Set { name: "session_authorization".into(), value: value(reader)?, local }));
    }
    if reader.keyword("NAMES") {
        return Ok(Some(Utility::Set { name: "client_encoding".into(), value: value(reader)?, local }));
    }
    let name = setting(reader)?;
    if !reader.sign("=") {
        reader.expect("TO")?;
    }
    Ok(Some(Utility::Set { name, value: value(reader)?, local }))
}

/// What follows `SET TIME ZONE`: a zone, or how far it is from UTC.
fn zone(reader: &mut Reader<'_>) -> Result<Option<String>, SqlError> {
    if !reader.keyword("INTERVAL") {
        return value(reader);
    }
    let offset = reader.literal()?;
    if reader.keyword("HOUR") {
        reader.expect("TO")?;
        reader.expect("MINUTE")?;
    }
    let span = Interval::parse(&offset).map_err(|refusal| SqlError::new(refusal.state, refusal.message))?;
    if span.months != 0 || span.days != 0 {
        let message = "invalid value for parameter \"TimeZone\": \"INTERVAL\"";
        return Err(SqlError::new("22023", message).with_hint("the interval has hours and minutes only"));
    }
    Ok(Some(sql::zone::of_seconds(span.us / 1_000_000)?.name))
}

/// `ALL DEFERRED`, `a, b IMMEDIATE`
fn constraints(reader: &mut Reader<'_>) -> Result<(), SqlError> {
    if !reader.keyword("ALL") {
        reader.written_name()?;
        while reader.sign(",") {
            reader.written_name()?;
        }
    }
    reader.one_of(&["DEFERRED", "IMMEDIATE"]).map(drop).ok_or_else(|| reader.unexpected())
}

/// A setting's name, which may have parts.
fn setting(reader: &mut Reader<'_>) -> Result<String, SqlError> {
    let mut name = reader.name()?.to_lowercase();
    while reader.sign(".") {
        name = format!("{name}.{}", reader.name()?.to_lowercase());
    }
    Ok(name)
}

/// What a setting is given: words, literals and numbers, separated by commas.
fn value(reader: &mut Reader<'_>) -> Result<Option<String>, SqlError> {
    if reader.keyword("DEFAULT") {
        return Ok(None);
    }
    let mut values = Vec::new();
    loop {
        values.push(match reader.literal_if_any() {
            Some(text) => text,
            None => word_or_number(reader)?,
        });
        if !reader.sign(",") {
            return Ok(Some(values.join(", ")));
        }
    }
}

fn word_or_number(reader: &mut Reader<'_>) -> Result<String, SqlError> {
    let sign = if reader.sign("-") { "-" } else { "" };
    if let Some(number) = reader.any_of(&[Kind::Number]) {
        return Ok(format!("{sign}{}", number.text));
    }
    let word = if sign.is_empty() { reader.any_of(&[Kind::Word, Kind::Quoted]) } else { None };
    word.map(|word| folded(&word)).ok_or_else(|| reader.unexpected())
}

fn setting_or_all(reader: &mut Reader<'_>) -> Result<Option<String>, SqlError> {
    if reader.keyword("ALL") {
        return Ok(None);
    }
    if reader.keyword("TIME") {
        reader.expect("ZONE")?;
        return Ok(Some("timezone".into()));
    }
    if reader.keyword("TRANSACTION") {
        reader.expect("ISOLATION")?;
        reader.expect("LEVEL")?;
        return Ok(Some("transaction_isolation".into()));
    }
    setting(reader).map(Some)
}

fn name_or_all(reader: &mut Reader<'_>) -> Result<Option<String>, SqlError> {
    if reader.keyword("ALL") { Ok(None) } else { reader.name().map(Some) }
}

fn discard(reader: &mut Reader<'_>) -> Result<Discard, SqlError> {
    match reader.one_of(&["ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"]) {
        Some("ALL") => Ok(Discard::All),
        Some("PLANS") => Ok(Discard::Plans),
        Some("SEQUENCES") => Ok(Discard::Sequences),
        Some(_) => Ok(Discard::Temp),
        None => Err(reader.unexpected()),
    }
}

fn prepare(reader: &mut Reader<'_>) -> Result<Utility, SqlError> {
    let name = reader.name()?;
    let mut types = Vec::new();
    if reader.at_sign("(") {
        for ty in reader.parenthesised()?.split(',') {
            let ty = ty.trim();
            let name = ty.strip_prefix("pg_catalog.").unwrap_or(ty);
            if name.eq_ignore_ascii_case("unknown") {
                types.push(None);
                continue;
            }
            let error = || SqlError::new("42704", format!("type \"{ty}\" does not exist"));
            types.push(Some(SqlType::of_declared(name).ok_or_else(error)?));
        }
    }
    reader.expect("AS")?;
    Ok(Utility::Prepare { name, types, text: reader.rest().to_owned() })
}

fn execute(reader: &mut Reader<'_>) -> Result<Utility, SqlError> {
    let (name, values) = executed(reader)?;
    Ok(Utility::Execute { name, values })
}

/// What stands behind `EXECUTE`.
fn executed(reader: &mut Reader<'_>) -> Result<(String, String), SqlError> {
    let name = reader.name()?;
    let values = if reader.at_sign("(") { reader.parenthesised()?.to_owned() } else { String::new() };
    Ok((name, values))
}

/// `EXPLAIN (options) EXECUTE ...`, `EXPLAIN ANALYZE VERBOSE EXECUTE ...`
fn explain(text: &str, reader: &mut Reader<'_>) -> Result<Option<Utility>, SqlError> {
    if !reader.at_sign("(") {
        reader.one_of(&["ANALYZE", "ANALYSE"]);
        reader.keyword("VERBOSE");
    } else if reader.parenthesised().is_err() {
        return Ok(None);
    }
    let head = text.get(..reader.start()).unwrap_or_default().to_owned();
    if !reader.keyword("EXECUTE") {
        return Ok(None);
    }
    let (name, values) = executed(reader)?;
    Ok(Some(Utility::Explain { head, name, values }))
}

fn declare(reader: &mut Reader<'_>) -> Result<Utility, SqlError> {
    let name = reader.name()?;
    let mut forward_only = false;
    // Rows of a cursor are made at once, so it is always insensitive, and results are text in this protocol's way.
    while let Some(word) = reader.one_of(&["BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"]) {
        match word {
            "NO" => {
                reader.expect("SCROLL")?;
                forward_only = true;
            }
            "BINARY" => return Err(SqlError::new("0A000", "DECLARE BINARY CURSOR is not supported")),
            _ => {}
        }
    }
    reader.expect("CURSOR")?;
    let mut hold = false;
    if let Some(word) = reader.one_of(&["WITH", "WITHOUT"]) {
        reader.expect("HOLD")?;
        hold = word == "WITH";
    }
    reader.expect("FOR")?;
    Ok(Utility::Declare { name, hold, forward_only, text: reader.rest().to_owned() })
}

fn fetch(reader: &mut Reader<'_>, only_move: bool) -> Result<Utility, SqlError> {
    let direction = direction(reader)?;
    if reader.one_of(&["FROM", "IN"]).is_none() {
        let name = reader.name()?;
        return Ok(Utility::Fetch { name, direction, only_move });
    }
    Ok(Utility::Fetch { name: reader.name()?, direction, only_move })
}

fn direction(reader: &mut Reader<'_>) -> Result<Direction, SqlError> {
    if let Some(count) = reader.number() {
        return Ok(Direction::Relative(count));
    }
    let words = &["NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "ALL", "FORWARD", "BACKWARD"];
    let Some(word) = reader.one_of(words) else { return Ok(Direction::Relative(1)) };
    Ok(match word {
        "NEXT" => Direction::Relative(1),
        "PRIOR" => Direction::Relative(-1),
        "FIRST" => Direction::Absolute(1),
        "LAST" => Direction::Absolute(-1),
        "ABSOLUTE" => Direction::Absolute(reader.number().ok_or_else(|| reader.unexpected())?),
        "RELATIVE" => Direction::Offset(reader.number().ok_or_else(|| reader.unexpected())?),
        "ALL" => Direction::All,
        "FORWARD" if reader.keyword("ALL") => Direction::All,
        "FORWARD" => Direction::Relative(reader.number().unwrap_or(1)),
        _ if reader.keyword("ALL") => Direction::BackwardAll,
        _ => Direction::Relative(reader.number().unwrap_or(1).saturating_neg()),
    })
}

fn notify(reader: &mut Reader<'_>) -> Result<Utility, SqlError> {
    let channel = reader.name()?;
    let payload = if reader.sign(",") { reader.literal()? } else { String::new() };
    Ok(Utility::Notify { channel, payload })
}

fn lock(reader: &mut Reader<'_>) -> Result<Lock, SqlError> {
    reader.keyword("TABLE");
    let mut names = Vec::new();
    loop {
        reader.keyword("ONLY");
        names.push(reader.written_name()?.to_owned());
        reader.sign("*");
        if !reader.sign(",") {
            break;
        }
    }
    let (mut only_read, mut privileges) = (false, LOCKS);
    if reader.keyword("IN") {
        const MODES: &[&[&str]] = &[
            &["ACCESS", "SHARE"],
            &["ACCESS", "EXCLUSIVE"],
            &["ROW", "SHARE"],
            &["ROW", "EXCLUSIVE"],
            &["SHARE", "UPDATE", "EXCLUSIVE"],
            &["SHARE", "ROW", "EXCLUSIVE"],
            &["SHARE"],
            &["EXCLUSIVE"],
        ];
        let mut words = Vec::new();
        while let Some(word) = reader.one_of(&["ACCESS", "SHARE", "EXCLUSIVE", "ROW", "UPDATE"]) {
            words.push(word);
        }
        if !MODES.contains(&words.as_slice()) {
            return Err(reader.unexpected());
        }
        reader.expect("MODE")?;
        only_read = words == ["ACCESS", "SHARE"];
        privileges = match words.as_slice() {
            ["ACCESS", "SHARE"] => "SELECT",
            ["ROW", "EXCLUSIVE"] => "INSERT, UPDATE, DELETE, TRUNCATE",
            _ => LOCKS,
        };
    }
    reader.keyword("NOWAIT");
    Ok(Lock { names, only_read, privileges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Option<&str>, local: bool) -> Utility {
        Utility::Set { name: name.into(), value: value.map(Into::into), local }
    }

    fn lock_of(names: &[&str], only_read: bool) -> Utility {
        let privileges = if only_read { "SELECT" } else { LOCKS };
        Utility::Lock(Lock { names: names.iter().map(ToString::to_string).collect(), only_read, privileges })
    }

    #[test]
    fn settings() {
        for (text, expected) in [
            ("SET a = 1", set("a", Some("1"), false)),
            ("set session A.b to 'x''y'", set("a.b", Some("x'y"), false)),
            ("SET LOCAL search_path TO \"$user\", public", set("search_path", Some("$user, public"), true)),
            ("SET a TO DEFAULT", set("a", None, false)),
            ("SET a TO -2", set("a", Some("-2"), false)),
            ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"), false)),
            ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", set("timezone", Some("<+00>-00"), false)),
            ("SET ROLE 'app'", set("role", Some("app"), false)),
            ("SET SESSION AUTHORIZATION DEFAULT", set("session_authorization", None, false)),
            ("LOCK TABLE a, ONLY s.\"B\" IN ACCESS SHARE MODE", lock_of(&["a", "s.\"B\""], true)),
            ("lock a *, b nowait", lock_of(&["a", "b"], false)),
            ("LOCK a IN SHARE ROW EXCLUSIVE MODE", lock_of(&["a"], false)),
            ("SET CONSTRAINTS ALL DEFERRED", Utility::SetConstraints),
            ("SET CONSTRAINTS a, s.b IMMEDIATE", Utility::SetConstraints),
            ("SET NAMES 'utf8'", set("client_encoding", Some("utf8"), false)),
            ("SHOW TRANSACTION ISOLATION LEVEL", Utility::Show(Some("transaction_isolation".into()))),
            ("SHOW ALL", Utility::Show(None)),
            ("RESET a", Utility::Reset(Some("a".into()))),
            ("DISCARD ALL", Utility::Discard(Discard::All)),
        ] {
            assert_eq!(read(text).unwrap(), Some(expected), "{text}");
        }
        for other in [
            "SELECT 1",
            "SET TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "",
        ] {
            assert_eq!(read(other).unwrap(), None, "{other}");
        }
        for wrong in [
            "SET",
            "SET a",
            "SET a 1",
            "SET a = ",
            "SHOW",
            "SET a = 1 2",
            "DISCARD x",
            "describe frag",
            "HELP",
            "FETCH",
            "EXECUTE p(1",
        ] {
            assert_eq!(read(wrong).unwrap_err().state, "42601", "{wrong}");
        }
    }

    #[test]
    fn cursors() {
        let fetch = |direction| Some(Utility::Fetch { name: "c".into(), direction, only_move: false });
        for (text, direction) in [
            ("FETCH c", Direction::Relative(1)),
            ("FETCH NEXT FROM c", Direction::Relative(1)),
            ("FETCH 5 IN c", Direction::Relative(5)),
            ("FETCH -2 c", Direction::Relative(-2)),
            ("FETCH BACKWARD 3 FROM c", Direction::Relative(-3)),
            ("FETCH FORWARD ALL FROM c", Direction::All),
            ("FETCH LAST FROM c", Direction::Absolute(-1)),
            ("FETCH ABSOLUTE 7 FROM c", Direction::Absolute(7)),
            ("FETCH RELATIVE 0 FROM c", Direction::Offset(0)),
        ] {
            assert_eq!(read(text).unwrap(), fetch(direction), "{text}");
        }
        let declared =
            Utility::Declare { name: "c".into(), hold: true, forward_only: true, text: "SELECT 1".into() };
        assert_eq!(read("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1").unwrap(), Some(declared));
    }

    #[test]
    fn prepared_statements_and_channels() {
        let prepared =
            Utility::Prepare { name: "p".into(), types: vec![Some(SqlType::Int4)], text: "SELECT $1".into() };
        assert_eq!(read("PREPARE p (int) AS SELECT $1").unwrap(), Some(prepared));
        let executed = Utility::Execute { name: "p".into(), values: "1, (2)".into() };
        assert_eq!(read("EXECUTE p(1, (2))").unwrap(), Some(executed));
        let explained = |head: &str, values: &str| {
            Some(Utility::Explain { head: head.into(), name: "p".into(), values: values.into() })
        };
        assert_eq!(read("EXPLAIN EXECUTE p").unwrap(), explained("EXPLAIN ", ""));
        let options = "EXPLAIN (ANALYZE, FORMAT JSON) ";
        assert_eq!(read(&format!("{options}EXECUTE p(1)")).unwrap(), explained(options, "1"));
        assert_eq!(read("EXPLAIN ANALYZE VERBOSE SELECT 1").unwrap(), None);
        assert_eq!(read("EXPLAIN (SELECT 1)").unwrap(), None);
        let open = Utility::Prepare { name: "p".into(), types: vec![None], text: "SELECT $1".into() };
        assert_eq!(read("PREPARE p (unknown) AS SELECT $1").unwrap(), Some(open));
        assert_eq!(read("PREPARE p (nonsense) AS SELECT 1").unwrap_err().state, "42704");
        let notify = Utility::Notify { channel: "c".into(), payload: "it's".into() };
        assert_eq!(read("NOTIFY C, 'it''s'").unwrap(), Some(notify));
        assert_eq!(read("UNLISTEN *").unwrap(), Some(Utility::Unlisten(None)));
    }
}

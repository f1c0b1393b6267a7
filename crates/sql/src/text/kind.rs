//! What kind of statement a text is, by its first words.

use super::explain::Explain;
use super::parts::Parts;
use super::token::{Kind, Token, Tokens};
use crate::error::{SqlError, state};

/// How a statement is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// SQLite runs it as it stands.
    Read,
    /// `EXPLAIN QUERY PLAN` of a read: SQLite runs it as it stands.
    ExplainRead,
    /// `EXPLAIN` of a statement: the same plan in PostgreSQL's shape, one column of text.
    Explain(Explain),
    /// `EXPLAIN QUERY PLAN` of a write, whose text begins here: the plan of the rows it computes.
    ExplainWrite(usize),
    /// Rows are computed, then applied.
    Write,
    /// Its common table expressions write: it is several statements.
    Compound,
    /// A definition: `CREATE`, `DROP`, `ALTER`, `TRUNCATE`, `COMMENT`, `GRANT`. Or upkeep that the store does by
    /// itself: `ANALYZE`, `REINDEX`, `VACUUM`.
    Define,
    /// `CALL`
    Call,
    /// `DO`: several definitions.
    Block,
    /// `BEGIN`, `COMMIT`, `SAVEPOINT` and their like.
    Transaction,
    /// `SHOW EXPIRY RULES`
    ShowRules,
    /// Nothing but blanks, comments and semicolons.
    Empty,
}

/// Statements that are refused by name, with the reason.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        &["PRAGMA", "ATTACH", "DETACH"],
        state::FORBIDDEN,
        "is about database files, which a cache does not have",
    ),
    (
        &["SET", "SHOW", "RESET", "DECLARE", "FETCH", "COPY", "PREPARE", "EXECUTE", "LISTEN"],
        state::NOT_SUPPORTED,
        "is not supported",
    ),
];

/// Tells the kind of a statement.
pub(crate) fn kind_of(sql: &str) -> Result<StatementKind, SqlError> {
    let mut tokens = Tokens::new(sql).skip_while(|token| token.is_sign(";"));
    let Some(first) = tokens.next() else { return Ok(StatementKind::Empty) };
    if first.kind != Kind::Word {
        // `(SELECT ...)`, which SQLite does not take, and garbage: its words for it are better than ours.
        return Ok(StatementKind::Read);
    }
    Ok(match first.text.to_ascii_uppercase().as_str() {
        "WITH" if Parts::of(sql).is_some() => StatementKind::Compound,
        "WITH" if writes(&mut tokens) => StatementKind::Write,
        "SELECT" | "VALUES" | "WITH" | "TABLE" => StatementKind::Read,
        "EXPLAIN" => explained(sql, &first, tokens)?,
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "MERGE" => StatementKind::Write,
        "CREATE" | "DROP" | "ALTER" | "TRUNCATE" | "COMMENT" | "GRANT" | "REVOKE" | "ANALYZE" | "REINDEX"
        | "VACUUM" | "REFRESH" => StatementKind::Define,
        "CALL" => StatementKind::Call,
        "DO" => StatementKind::Block,
        "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "ABORT" => {
            StatementKind::Transaction
        }
        "SET" if sets_transaction(tokens.clone()) => StatementKind::Transaction,
        "SHOW" if shows_rules(tokens.clone()) => StatementKind::ShowRules,
        word => return refused_or_unknown(sql, &first, word),
    })
}

/// Whether what stands behind `SET` is about transactions: everything else that can be set is no business of this
/// crate.
fn sets_transaction<'a>(mut words: impl Iterator<Item = Token<'a>>) -> bool {
    match words.next() {
        Some(word) if word.is("SESSION") => words.next().is_some_and(|word| word.is("CHARACTERISTICS")),
        Some(word) if word.is("LOCAL") => words.next().is_some_and(|word| word.is("TRANSACTION")),
        Some(word) => word.is("TRANSACTION"),
        None => false,
    }
}

/// Whether `EXPIRY RULES` and nothing else stands behind `SHOW`.
fn shows_rules<'a>(tokens: impl Iterator<Item = Token<'a>>) -> bool {
    let mut words = tokens.filter(|token| !token.is_sign(";"));
    ["EXPIRY", "RULES"].iter().all(|word| words.next().is_some_and(|token| token.is(word)))
        && words.next().is_none()
}

#[cold]
fn refused_or_unknown(sql: &str, first: &Token<'_>, word: &str) -> Result<StatementKind, SqlError> {
    for (words, state, reason) in REFUSED {
        if words.contains(&word) {
            let message =
                if reason.starts_with("is ") { format!("{word} {reason}") } else { (*reason).to_owned() };
            return Err(SqlError::new(state, message).at(sql, first.start));
        }
    }
    Err(SqlError::syntax(sql, first))
}

/// Whether the statement behind a `WITH` writes: its verb stands outside all parentheses.
fn writes<'a>(tokens: &mut impl Iterator<Item = Token<'a>>) -> bool {
    let mut depth = 0_usize;
    let mut replace = false;
    for token in tokens {
        match token.kind {
            Kind::Sign if token.is_sign("(") => depth += 1,
            Kind::Sign if token.is_sign(")") => depth = depth.saturating_sub(1),
            Kind::Word if depth == 0 => {
                if token.is_any(&["SELECT", "VALUES", "TABLE"]) {
                    return false;
                }
                if token.is_any(&["INSERT", "UPDATE", "DELETE", "MERGE"]) {
                    return true;
                }
                if replace && token.is("INTO") {
                    return true;
                }
                // `replace` may also be the name of a common table expression.
                replace = token.is("REPLACE");
            }
            _ => {}
        }
    }
    false
}

/// The kind of what follows `EXPLAIN`.
fn explained<'a>(
    sql: &str,
    word: &Token<'a>,
    tokens: impl Iterator<Item = Token<'a>> + Clone,
) -> Result<StatementKind, SqlError> {
    let mut rest = tokens.peekable();
    if rest.peek().is_none() {
        return Ok(StatementKind::ExplainRead);
    }
    let options = match rest.next_if(|token| token.is("QUERY")) {
        Some(_) => {
            rest.next();
            None
        }
        None => Some(Explain::read(sql, word, &mut rest)?),
    };
    let Some(verb) = rest.next() else {
        return Err(SqlError::new(state::SYNTAX, "syntax error at end of input").at(sql, sql.len()));
    };
    if verb.is("WITH") && sql.get(verb.start..).and_then(Parts::of).is_some() {
        return Err(SqlError::not_supported("EXPLAIN of a WITH that writes")
            .with_hint("explain its parts, one by one"));
    }
    let write = verb.is_any(&["INSERT", "REPLACE", "UPDATE", "DELETE", "MERGE"])
        || (verb.is("WITH") && writes(&mut rest));
    let read = verb.is_any(&["SELECT", "VALUES", "WITH", "TABLE"]) || verb.is_sign("(");
    match options {
        Some(options) if write || read => Ok(StatementKind::Explain(options)),
        None if write => Ok(StatementKind::ExplainWrite(verb.start)),
        None if read => Ok(StatementKind::ExplainRead),
        // PostgreSQL's grammar has none of it.
        _ if verb.is("CALL") => Err(SqlError::syntax(sql, &verb)),
        _ => Err(SqlError::not_supported(format!("EXPLAIN of {}", verb.text.to_ascii_uppercase()))),
    }
}

/// Refuses a second statement behind the one that ends at `end`.
pub(crate) fn refuse_tail(sql: &str, end: usize) -> Result<(), SqlError> {
    let Some(tail) = sql.get(end..) else { return Ok(()) };
    match Tokens::new(tail).find(|token| !token.is_sign(";")) {
        None => Ok(()),
        Some(token) => Err(SqlError::new(
            state::SYNTAX,
            "only one statement can be sent at a time; send the next one separately",
        )
        .at(sql, end + token.start)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain::Format;
    use super::*;

    #[test]
    fn kinds_by_first_words() {
        for (sql, kind) in [
            ("select 1", StatementKind::Read),
            ("  -- hi\n VALUES (1)", StatementKind::Read),
            ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind::Read),
            ("WITH a AS (DELETE) INSERT INTO t SELECT * FROM a", StatementKind::Compound),
            ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", StatementKind::Write),
            ("WITH replace AS (SELECT 1) SELECT * FROM replace", StatementKind::Read),
            ("WITH a AS (SELECT 1) REPLACE INTO t SELECT * FROM a", StatementKind::Write),
            ("EXPLAIN QUERY PLAN SELECT 1", StatementKind::ExplainRead),
            ("EXPLAIN QUERY PLAN DELETE FROM t", StatementKind::ExplainWrite(19)),
            ("replace into t values (1)", StatementKind::Write),
            ("create table t (a)", StatementKind::Define),
            ("create expiry rule r on t when a", StatementKind::Define),
            ("drop expiry rule r", StatementKind::Define),
            ("truncate t", StatementKind::Define),
            ("alter table t set (ttl = 1)", StatementKind::Define),
            (" ; show expiry RULES ;", StatementKind::ShowRules),
            ("begin", StatementKind::Transaction),
            ("ROLLBACK TO a", StatementKind::Transaction),
            ("set transaction read only", StatementKind::Transaction),
            ("vacuum", StatementKind::Define),
            (" ; ;", StatementKind::Empty),
            ("", StatementKind::Empty),
        ] {
            assert_eq!(kind_of(sql), Ok(kind), "{sql}");
        }
        for (sql, state) in [
            ("pragma user_version", "42501"),
            ("attach 'x' as y", "42501"),
            ("set a = 1", "0A000"),
            ("explain create table t (a)", "0A000"),
            ("show expiry rules for t", "0A000"),
            ("explain analyze create table t (a)", "0A000"),
            ("explain (analyze, frob) select 1", "42601"),
            ("explain (analyze maybe) select 1", "42601"),
            ("explain (analyze select 1", "42601"),
            ("explain (format frob) select 1", "22023"),
            ("explain (format) select 1", "42601"),
            ("explain (timing) select 1", "22023"),
            ("selct 1", "42601"),
        ] {
            assert_eq!(kind_of(sql).unwrap_err().state, state, "{sql}");
        }
    }

    #[test]
    fn options_of_explain() {
        let explained = |sql: &str| match kind_of(sql) {
            Ok(StatementKind::Explain(options)) => options,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(explained("explain select 1").blanked("explain select 1"), "explain select 1");
        for (sql, analyze, format, blanked) in [
            ("explain analyze verbose select 1", true, Format::Text, "explain                 select 1"),
            ("EXPLAIN (ANALYZE off, FORMAT 'JSON') SELECT 1", false, Format::Json, ""),
            ("explain (costs, format yaml, analyze 1) delete from t", true, Format::Yaml, ""),
            ("explain (format xml) (select 1)", false, Format::Xml, "explain              (select 1)"),
            ("explain (select 1)", false, Format::Text, "explain (select 1)"),
        ] {
            let options = explained(sql);
            assert_eq!((options.analyze, options.format), (analyze, format), "{sql}");
            assert!(blanked.is_empty() || options.blanked(sql) == blanked, "{sql}");
            assert_eq!(options.blanked(sql).len(), sql.len(), "{sql}");
        }
    }

    #[test]
    fn one_statement_at_a_time() {
        assert_eq!(refuse_tail("select 1; -- done\n;", 9), Ok(()));
        let error = refuse_tail("select 1; select 2", 9).unwrap_err();
        assert_eq!((error.state, error.position), ("42601", Some(11)));
    }

    #[test]
    fn other_settings_are_others() {
        for (sql, ours) in [
            ("SET TRANSACTION READ ONLY", true),
            ("; set local transaction read only", true),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", true),
            ("SET SESSION statement_timeout = 1", false),
            ("SET LOCAL statement_timeout = 1", false),
            ("SET", false),
        ] {
            let kind = kind_of(sql).unwrap_or(StatementKind::Empty);
            assert_eq!(kind == StatementKind::Transaction, ours, "{sql}");
        }
    }
}

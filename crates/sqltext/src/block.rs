//! `DO`: in the one form that ORMs and migration tools send, definitions that may have been made before.
//!
//! ```
//! let sql = "DO $$ BEGIN CREATE TYPE t AS ENUM ('a'); EXCEPTION WHEN duplicate_object THEN NULL; END $$";
//! let block = sqltext::block::read(sql).unwrap();
//! assert_eq!(block.statements, ["CREATE TYPE t AS ENUM ('a')"]);
//! assert!(block.swallows("42710") && !block.swallows("42P07"));
//! ```

use crate::error::{SqlError, state};
use crate::token::{Kind, Token, text_of, tokens};

/// What a `DO` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its statements in their order.
    pub statements: Vec<String>,
    /// The errors that end it without one.
    swallowed: Vec<Condition>,
}

/// What stands behind `WHEN`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Others,
    State(String),
}

/// The conditions that definitions meet, with their SQLSTATEs.
const CONDITIONS: &[(&str, &str)] = &[
    ("duplicate_alias", "42712"),
    ("duplicate_column", "42701"),
    ("duplicate_function", "42723"),
    ("duplicate_object", "42710"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("feature_not_supported", "0A000"),
    ("invalid_table_definition", "42P16"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_object", "42704"),
    ("undefined_table", "42P01"),
    ("unique_violation", "23505"),
];

/// What a statement of a block begins with.
const VERBS: &[&str] = &["CREATE", "ALTER", "DROP", "COMMENT", "TRUNCATE"];

impl Block {
    /// Whether an error of this SQLSTATE ends the block without one.
    pub fn swallows(&self, state: &str) -> bool {
        self.swallowed.iter().any(|condition| match condition {
            // As in PostgreSQL, a client's wish to stop is no such error.
            Condition::Others => state != state::CANCELED,
            Condition::State(own) => own == state,
        })
    }
}

/// Reads a `DO`.
pub fn read(sql: &str) -> Result<Block, SqlError> {
    let all = tokens(sql);
    let mut body = None;
    let mut rest = all.iter().filter(|token| !token.is_sign(";"));
    let first = rest.next();
    while let Some(token) = rest.next() {
        if token.is("LANGUAGE") {
            let language = rest.next();
            let known = language
                .is_some_and(|name| name.text.trim_matches(['"', '\'']).eq_ignore_ascii_case("plpgsql"));
            if !known {
                return Err(SqlError::not_supported("DO in this language").at(sql, token.start));
            }
        } else if matches!(token.kind, Kind::Text | Kind::Foreign) && body.is_none() {
            body = text_of(token);
        } else {
            return Err(SqlError::syntax(sql, token));
        }
    }
    let end = || SqlError::new(state::SYNTAX, "syntax error at end of input").at(sql, sql.len());
    let (body, place) = (body.ok_or_else(end)?, first.map_or(0, |token| token.start));
    of_body(&body).ok_or_else(|| refused().at(sql, place))
}

#[cold]
fn refused() -> SqlError {
    SqlError::not_supported("this body of DO").with_hint(
        "it takes BEGIN, definitions, EXCEPTION WHEN condition THEN NULL, and END; \
         IF EXISTS and IF NOT EXISTS need no DO",
    )
}

/// The cursor over a body.
struct Body<'b> {
    text: &'b str,
    tokens: Vec<Token<'b>>,
    at: usize,
}

/// A block; `None` for a body that does something else.
fn of_body(text: &str) -> Option<Block> {
    let mut body = Body { text, tokens: tokens(text), at: 0 };
    body.word("BEGIN").then_some(())?;
    let (mut statements, mut swallowed) = (Vec::new(), Vec::new());
    while !body.next_is("EXCEPTION") && !body.next_is("END") {
        body.statement(&mut statements)?;
    }
    if body.word("EXCEPTION") {
        while body.word("WHEN") {
            swallowed.push(body.condition()?);
            while body.word("OR") {
                swallowed.push(body.condition()?);
            }
            body.word("THEN").then_some(())?;
            body.word("NULL").then_some(())?;
            body.sign().then_some(())?;
        }
    }
    body.word("END").then_some(())?;
    body.sign();
    (body.at == body.tokens.len()).then_some(Block { statements, swallowed })
}

impl<'b> Body<'b> {
    fn next_is(&self, word: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is(word))
    }

    fn word(&mut self, word: &str) -> bool {
        let there = self.next_is(word);
        self.at += usize::from(there);
        there
    }

    /// A semicolon.
    fn sign(&mut self) -> bool {
        let there = self.tokens.get(self.at).is_some_and(|token| token.is_sign(";"));
        self.at += usize::from(there);
        there
    }

    fn take(&mut self) -> Option<Token<'b>> {
        let token = self.tokens.get(self.at).copied()?;
        self.at += 1;
        Some(token)
    }

    /// Takes the next definition up to its semicolon; `NULL` is none.
    fn statement(&mut self, statements: &mut Vec<String>) -> Option<()> {
        let first = self.take()?;
        if first.is("NULL") {
            return self.sign().then_some(());
        }
        first.is_any(VERBS).then_some(())?;
        let mut end = first.end();
        loop {
            let token = self.take()?;
            if token.is_sign(";") {
                statements.push(self.text.get(first.start..end)?.to_owned());
                return Some(());
            }
            end = token.end();
        }
    }

    fn condition(&mut self) -> Option<Condition> {
        let name = self.take()?;
        if name.is("OTHERS") {
            return Some(Condition::Others);
        }
        if name.is("SQLSTATE") {
            let state = self.take().filter(|token| token.kind == Kind::Text)?;
            return text_of(&state).map(Condition::State);
        }
        let known = CONDITIONS.iter().find(|(known, _)| name.is(known))?;
        Some(Condition::State(known.1.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_definitions_are_read() {
        let block = |body: &str| read(&format!("DO {body}"));
        for (body, statements, swallows) in [
            (
                "'BEGIN CREATE TYPE \"a\" AS ENUM(''x'', '';''); EXCEPTION WHEN duplicate_object THEN null; END'",
                1,
                true,
            ),
            ("$$ begin\n ALTER TABLE t ADD x INT;\n NULL; DROP TABLE u; end; $$;", 2, false),
            (
                "LANGUAGE plpgsql $x$BEGIN NULL; EXCEPTION WHEN duplicate_table OR others THEN NULL; END$x$",
                0,
                true,
            ),
            ("$$BEGIN NULL; EXCEPTION WHEN sqlstate '42710' THEN NULL; END$$ LANGUAGE 'plpgsql'", 0, true),
            (
                "$$BEGIN NULL; EXCEPTION WHEN duplicate_table THEN NULL; WHEN undefined_table THEN NULL; END$$",
                0,
                false,
            ),
        ] {
            let found = block(body).unwrap();
            assert_eq!((found.statements.len(), found.swallows("42710")), (statements, swallows), "{body}");
        }
        for (body, state) in [
            ("", "42601"),
            ("1", "42601"),
            ("$$$$ $$$$", "42601"),
            ("$$$$", "0A000"),
            ("$$BEGIN END$$ LANGUAGE plperl", "0A000"),
            ("$$DECLARE x INT; BEGIN NULL; END$$", "0A000"),
            ("$$BEGIN IF true THEN DROP TABLE t; END IF; END$$", "0A000"),
            ("$$BEGIN DELETE FROM t; END$$", "0A000"),
            ("$$BEGIN DROP TABLE t END$$", "0A000"),
            ("$$BEGIN NULL; EXCEPTION WHEN nothing THEN NULL; END$$", "0A000"),
            ("$$BEGIN NULL; EXCEPTION WHEN others THEN RAISE; END$$", "0A000"),
            ("$$BEGIN NULL; END; NULL$$", "0A000"),
        ] {
            assert_eq!(block(body).map_err(|error| error.state), Err(state), "{body}");
        }
        assert!(!block("$$BEGIN NULL; EXCEPTION WHEN others THEN NULL; END$$").unwrap().swallows("57014"));
    }
}

//! The options of `EXPLAIN`: `EXPLAIN ANALYZE VERBOSE ...`, and `EXPLAIN (option value, ...) ...`.

use std::iter::Peekable;

use super::token::{Kind, Token, text_of};
use crate::error::{SqlError, state};

/// How a plan is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines that a person reads.
    #[default]
    Text,
    Json,
    Xml,
    Yaml,
}

/// What is to be explained, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Explain {
    /// It is run, too.
    pub(crate) analyze: bool,
    /// What SQLite would run is shown instead of the plan.
    pub(crate) bytecode: bool,
    pub(crate) format: Format,
    /// `TIMING`; `None`: as far as it is run.
    timing: Option<bool>,
    /// `SUMMARY`; `None`: as far as it is run.
    summary: Option<bool>,
    /// Where the word itself ends, and where the statement begins.
    word_end: usize,
    pub(crate) start: usize,
}

impl Explain {
    /// The options behind the word `EXPLAIN`; `tokens` then stand before the statement, whose place is still to be
    /// noted.
    pub(super) fn read<'a>(
        sql: &str,
        word: &Token<'a>,
        tokens: &mut Peekable<impl Iterator<Item = Token<'a>> + Clone>,
    ) -> Result<Self, SqlError> {
        let mut options = Self { word_end: word.end(), ..Self::default() };
        if !begins_query(tokens.clone()) && tokens.next_if(|token| token.is_sign("(")).is_some() {
            options.read_list(sql, tokens)?;
        } else {
            options.analyze = tokens.next_if(|token| token.is_any(&["ANALYZE", "ANALYSE"])).is_some();
            tokens.next_if(|token| token.is("VERBOSE"));
        }
        options.start = tokens.peek().map_or(sql.len(), |token| token.start);
        if options.timing == Some(true) && !options.analyze {
            return Err(SqlError::new(state::BAD_PARAMETER, "EXPLAIN option TIMING requires ANALYZE"));
        }
        Ok(options)
    }

    fn read_list<'a>(
        &mut self,
        sql: &str,
        tokens: &mut Peekable<impl Iterator<Item = Token<'a>>>,
    ) -> Result<(), SqlError> {
        let unfinished = || SqlError::new(state::SYNTAX, "syntax error at end of input").at(sql, sql.len());
        loop {
            let name = tokens.next().ok_or_else(unfinished)?;
            if name.kind != Kind::Word {
                return Err(SqlError::syntax(sql, &name));
            }
            let ends = |token: &Token<'_>| token.is_sign(",") || token.is_sign(")");
            let value = tokens.next_if(|token| !ends(token));
            self.set(sql, &name, value.as_ref())?;
            let end = tokens.next().ok_or_else(unfinished)?;
            if end.is_sign(")") {
                return Ok(());
            }
            if !end.is_sign(",") {
                return Err(SqlError::syntax(sql, &end));
            }
        }
    }

    fn set(&mut self, sql: &str, name: &Token<'_>, value: Option<&Token<'_>>) -> Result<(), SqlError> {
        let option = name.text.to_ascii_lowercase();
        let truth = || {
            truth_of(value).ok_or_else(|| {
                SqlError::new(state::SYNTAX, format!("{option} requires a Boolean value")).at(sql, name.start)
            })
        };
        match option.as_str() {
            "analyze" | "analyse" => self.analyze = truth()?,
            "bytecode" => self.bytecode = truth()?,
            "timing" => self.timing = Some(truth()?),
            "summary" => self.summary = Some(truth()?),
            "format" => self.format = format_of(sql, name, value)?,
            // There are no costs, buffers and settings to show.
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "generic_plan" | "memory" => {
                truth()?;
            }
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{option}\"");
                return Err(SqlError::new(state::SYNTAX, message).at(sql, name.start));
            }
        }
        Ok(())
    }

    /// Whether times are shown of steps.
    pub(crate) fn shows_times(&self) -> bool {
        self.analyze && self.timing != Some(false)
    }

    /// Whether the time of the whole is shown.
    pub(crate) fn shows_summary(&self) -> bool {
        self.summary.unwrap_or(self.analyze)
    }

    /// The text with blanks in the place of the options, so that all places stay.
    pub(crate) fn blanked(&self, sql: &str) -> String {
        let options = sql.get(self.word_end..self.start).map_or(0, str::len);
        let (head, tail) = (sql.get(..self.word_end), sql.get(self.start..));
        format!("{}{:options$}{}", head.unwrap_or_default(), "", tail.unwrap_or_default())
    }
}

/// Whether a bracket is that of a query: `EXPLAIN (SELECT ...)`.
fn begins_query<'a>(mut tokens: impl Iterator<Item = Token<'a>>) -> bool {
    let bracket = tokens.next().is_some_and(|token| token.is_sign("("));
    let inner = |token: Token<'_>| token.is_any(&["SELECT", "VALUES", "WITH", "TABLE"]) || token.is_sign("(");
    bracket && tokens.next().is_some_and(inner)
}

/// What is not said is meant.
fn truth_of(value: Option<&Token<'_>>) -> Option<bool> {
    let Some(value) = value else { return Some(true) };
    let word = word_of(value);
    match word.as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn format_of(sql: &str, name: &Token<'_>, value: Option<&Token<'_>>) -> Result<Format, SqlError> {
    let Some(value) = value else {
        return Err(SqlError::new(state::SYNTAX, "format requires a parameter").at(sql, name.start));
    };
    let word = word_of(value);
    Ok(match word.as_str() {
        "text" => Format::Text,
        "json" => Format::Json,
        "xml" => Format::Xml,
        "yaml" => Format::Yaml,
        _ => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{word}\"");
            return Err(SqlError::new(state::BAD_PARAMETER, message).at(sql, name.start));
        }
    })
}

fn word_of(token: &Token<'_>) -> String {
    text_of(token).unwrap_or_else(|| token.text.to_owned()).to_ascii_lowercase()
}

//! Statements about this cache itself, which a forwarded session answers: `SHOW sqlcached.last_answer` and
//! `EXPLAIN (CACHE) ...`.

use postgres::Format;
use postgres::backend::{Field, command_complete, row_description};
use postgres::oid;

use super::{Out, Session};
use crate::facts::of_text;
use crate::frame::put;
use crate::hub::Hub;

/// The words of `EXPLAIN (CACHE)`.
const EXPLAIN: &str = "EXPLAIN (CACHE)";
const LAST_ANSWER: &str = "SHOW sqlcached.last_answer";

/// One of these.
pub(super) enum Own<'a> {
    LastAnswer,
    /// `EXPLAIN (CACHE)` of a text.
    Explain(&'a str),
}

impl<'a> Own<'a> {
    /// The one that a text is.
    pub(super) fn of(sql: &'a str) -> Option<Self> {
        let text = sql.trim().trim_end_matches(';').trim_end();
        let behind = |words: &str| {
            let (head, rest) = text.split_at_checked(words.len())?;
            head.eq_ignore_ascii_case(words).then_some(rest)
        };
        match behind(LAST_ANSWER) {
            Some("") => Some(Self::LastAnswer),
            _ => behind(EXPLAIN).map(|rest| Self::Explain(rest.trim())),
        }
    }
}

impl Session {
    /// Answers one of these, also in a transaction, and whatever is known of the source.
    pub(super) fn answer_own(&self, hub: &Hub, own: &Own<'_>, out: &mut Out<'_>) {
        match own {
            Own::LastAnswer => self.tell("sqlcached.last_answer", "SHOW", &[self.last.to_owned()], out),
            Own::Explain(sql) => self.tell("QUERY PLAN", "EXPLAIN", &explain(hub, sql), out),
        }
    }

    /// Sends lines of text as the answer of a simple query.
    fn tell(&self, name: &str, tag: &str, lines: &[String], out: &mut Out<'_>) {
        let field = Field {
            name,
            table: 0,
            column: 0,
            type_oid: oid::TEXT,
            size: -1,
            modifier: -1,
            format: Format::Text,
        };
        row_description(std::iter::once(field), out.client);
        for line in lines {
            // Lines of a text are shorter than a message.
            let len = u32::try_from(line.len()).unwrap_or(u32::MAX).to_be_bytes();
            put(b'D', &[&[0, 1], &len, line.as_bytes()], out.client);
        }
        command_complete(tag, None, out.client);
        put(b'Z', &[&[self.shown_status()]], out.client);
    }
}

/// What is known of a statement, in lines.
fn explain(hub: &Hub, sql: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for facts in hub.texts_of(sql).iter().flat_map(|text| of_text(hub, text)) {
        lines.push(format!("Cache: {}", facts.state));
        lines.extend(facts.reason.map(|reason| format!("  Reason: {reason}")));
        lines.extend(facts.cure.map(|cure| format!("  Cure: {cure}")));
        if !facts.depends.is_empty() {
            lines.push(format!("  Depends on: {}", facts.depends.join(", ")));
        }
        lines.push(format!("  Answered: {} by the database, {} here", facts.forwarded, facts.hits));
        let mean = facts.forwarded_us.checked_div(facts.forwarded);
        lines.extend(mean.map(|us| format!("  Time at the database: {us} us")));
    }
    if lines.is_empty() {
        lines.push("Cache: this text has not come yet".to_owned());
    }
    lines
}

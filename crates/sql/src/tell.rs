//! What other caches are told of a statement that makes rows of a table invalid: which rows, in words that mean the
//! same there.
//!
//! A condition on the table's own columns, constants and parameters chooses the same rows in every cache. So the
//! statement itself is told, with nothing in it but that. Where a condition looks at anything else, as another table,
//! the time or a row's age, each cache would choose other rows. Then all rows of the table are told.

use std::sync::Arc;

use dialect::lowered::{Merge, MergeAction, MergeClause, Node, Rows, Set, Values, Verb, Write};
use dialect::{Chosen, needs_clock};
use store::definition::SqlType;
use store::value::Value;
use store::{Catalog, Table};

use crate::limits::TOLD_BYTES_MAX;
use crate::told::{Told, ToldRows};
use sqltext::token::{Kind, Token, text_of, tokens, unquoted};

/// Words that mean the same in a condition everywhere.
const WORDS: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "BETWEEN",
    "LIKE",
    "ILIKE",
    "ESCAPE",
    "TRUE",
    "FALSE",
    "ANY",
    "ALL",
    "ARRAY",
    "DISTINCT",
    "SYMMETRIC",
];

/// Functions that give the same for the same arguments in every cache, and that conditions of caches are written with.
const FUNCTIONS: &[&str] = &[
    "lower",
    "upper",
    "length",
    "char_length",
    "octet_length",
    "coalesce",
    "nullif",
    "abs",
    "substr",
    "substring",
    "left",
    "right",
    "trim",
    "btrim",
    "ltrim",
    "rtrim",
    "replace",
    "md5",
    "mod",
    "round",
    "floor",
    "ceil",
    "greatest",
    "least",
    "starts_with",
    "split_part",
    "position",
    "cardinality",
];

/// What a compiled statement tells each time it has run.
#[derive(Debug)]
pub(crate) struct Tells(Vec<(Arc<Table>, Form)>);

#[derive(Debug)]
enum Form {
    All,
    /// A statement that says which rows, and which of the parameters it takes.
    Rows {
        text: Arc<str>,
        parameters: Box<[usize]>,
        types: Box<[Option<SqlType>]>,
    },
}

impl Tells {
    /// What a statement that writes tells; none: it fills, or no other cache hears of its table.
    pub(crate) fn of(catalog: &Catalog, write: &Write, sql: &str, chosen: Chosen<'_>) -> Option<Box<Self>> {
        let (rows, alone, sets) = match &write.verb {
            Verb::Insert(_) => return None,
            Verb::Merge(merge) => return Self::of_merge(catalog, &write.table.name, merge),
            Verb::Update(update) => (&update.rows, update.from.is_none(), &update.sets[..]),
            Verb::Delete(delete) => (&delete.rows, delete.using.is_none(), &[][..]),
        };
        let table = catalog.table(&write.table.name).filter(|table| table.is_told())?;
        let head = match change(table, &write.verb, sets) {
            Change::Nothing => return None,
            Change::Deletes => format!("DELETE FROM {}", name_of(table)),
            Change::MakesStale => format!("UPDATE {} SET _stale = TRUE", name_of(table)),
        };
        let plain = alone && write.with.is_empty() && rows.limit.is_none() && rows.order.is_none();
        let form = plain.then(|| of_rows(table, write, rows, (&head, sql), chosen)).flatten();
        Some(Box::new(Self(vec![(Arc::clone(table), form.unwrap_or(Form::All))])))
    }

    /// What a `MERGE` tells: each cache would find other rows by its source.
    fn of_merge(catalog: &Catalog, table: &str, merge: &Merge) -> Option<Box<Self>> {
        let table = catalog.table(table).filter(|table| table.is_told())?;
        let changes = |clause: &MergeClause| match &clause.action {
            MergeAction::Nothing | MergeAction::Insert(_) => false,
            MergeAction::Delete => true,
            MergeAction::Update(sets) => !matches!(change_by(table, sets), Change::Nothing),
        };
        let told = merge.clauses.iter().any(changes);
        told.then(|| Box::new(Self(vec![(Arc::clone(table), Form::All)])))
    }

    /// What a statement of several parts tells: all rows of each table that one of them reports, for each part may
    /// choose its rows by what another has found.
    pub(crate) fn of_parts<'p>(parts: impl Iterator<Item = &'p Self>) -> Option<Box<Self>> {
        let mut all: Vec<(Arc<Table>, Form)> = Vec::new();
        for (table, _) in parts.flat_map(|part| &part.0) {
            if !all.iter().any(|(known, _)| known.is_same(table)) {
                all.push((Arc::clone(table), Form::All));
            }
        }
        (!all.is_empty()).then(|| Box::new(Self(all)))
    }

    /// What a run with these parameters tells.
    pub(crate) fn told<'t>(&'t self, values: &'t [Value]) -> impl Iterator<Item = Told> + 't {
        self.0.iter().map(|(table, form)| {
            let what = match form {
                Form::All => ToldRows::All,
                Form::Rows { text, parameters, types } => {
                    let values = parameters.iter().map(|&at| values.get(at).cloned().unwrap_or(Value::Null));
                    let values: Vec<Value> = values.collect();
                    let means_now = |value: &Value| matches!(value, Value::Text(text) if needs_clock(text));
                    if values.iter().any(means_now) {
                        ToldRows::All
                    } else {
                        ToldRows::Chosen { text: Arc::clone(text), values, types: types.clone() }
                    }
                }
            };
            Told::new(table, what).bounded(TOLD_BYTES_MAX)
        })
    }
}

/// What a statement does to its rows, as far as other caches are concerned.
enum Change {
    /// A deadline, a lease: what each cache has of its own.
    Nothing,
    Deletes,
    MakesStale,
}

/// Rows with new values are deleted elsewhere: what they are now is fetched there when it is wanted.
fn change(table: &Table, verb: &Verb, sets: &[Set]) -> Change {
    if matches!(verb, Verb::Delete(_)) { Change::Deletes } else { change_by(table, sets) }
}

/// The same of an `UPDATE`.
fn change_by(table: &Table, sets: &[Set]) -> Change {
    let is_own = |name: &String| table.def().column_index(name).is_some();
    if sets.iter().any(|set| set.columns.iter().any(is_own)) {
        return Change::Deletes;
    }
    let stale = |set: &&Set| set.columns.iter().any(|name| name.eq_ignore_ascii_case("_stale"));
    match sets.iter().find(stale).map(|set| &set.values) {
        None => Change::Nothing,
        Some(Values::One(piece)) if *piece.node.bare() == Node::Truth(false) => Change::Nothing,
        Some(Values::One(piece)) if *piece.node.bare() == Node::Truth(true) && sets.len() == 1 => {
            Change::MakesStale
        }
        Some(_) => Change::Deletes,
    }
}

/// A table as a statement of any session names it.
pub(crate) fn name_of(table: &Table) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let def = table.def();
    format!("{}.{}", quoted(def.namespace.as_deref().unwrap_or("public")), quoted(def.own_name()))
}

/// The rows that a statement is about, in words of its own; `None`: its condition means something else elsewhere.
fn of_rows(
    table: &Table,
    write: &Write,
    rows: &Rows,
    (head, sql): (&str, &str),
    chosen: Chosen<'_>,
) -> Option<Form> {
    let Some(_) = &rows.condition else {
        return Some(Form::Rows { text: head.into(), parameters: Box::default(), types: Box::default() });
    };
    let all = tokens(sql);
    let words = condition(&all)?;
    let called = [write.table.alias.as_deref(), Some(table.def().own_name())];
    let mut numbers = Numbers::of(&all)?;
    let mut text = format!("{head} WHERE");
    let mut before: Option<&Token<'_>> = None;
    for (at, token) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let piece = match token.kind {
            Kind::Word | Kind::Quoted => {
                if next.is_some_and(|next| next.is_sign(".")) {
                    // Its own table, by its name or alias; the column behind the point says enough.
                    let name = unquoted(token.text);
                    let known = called.iter().flatten().any(|own| own.eq_ignore_ascii_case(&name));
                    known.then(String::new)?
                } else {
                    let means = means_the_same(table, token, before, next);
                    means.then(|| token.text.to_owned())?
                }
            }
            Kind::Sign if token.is_sign(".") => String::new(),
            Kind::Parameter => numbers.take(token)?,
            // `today` is another day by another clock.
            Kind::Text if text_of(token).is_none_or(|text| needs_clock(&text)) => return None,
            Kind::Text | Kind::Blob | Kind::Number | Kind::Sign | Kind::Foreign => token.text.to_owned(),
        };
        if !piece.is_empty() {
            text.push(' ');
            text.push_str(&piece);
        }
        before = Some(token);
    }
    let parameters: Box<[usize]> = numbers.taken.into();
    let types = parameters.iter().map(|&at| chosen.get(at).copied().flatten()).collect();
    Some(Form::Rows { text: text.into(), parameters, types })
}

/// What stands between `WHERE` and the end of the statement or its `RETURNING`.
fn condition<'t, 'a>(all: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let mut depth = 0_usize;
    let (mut from, mut to) = (None, all.len());
    for (at, token) in all.iter().enumerate() {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.checked_sub(1)?,
            ";" => to = to.min(at),
            _ if depth > 0 => {}
            _ if token.is("WHERE") => from = Some(at + 1),
            _ if token.is("RETURNING") && from.is_some() => to = to.min(at),
            _ => {}
        }
    }
    all.get(from?..to)
}

/// Whether a word of a condition says in every cache what it says here.
fn means_the_same(
    table: &Table,
    token: &Token<'_>,
    before: Option<&Token<'_>>,
    next: Option<&Token<'_>>,
) -> bool {
    let name = unquoted(token.text);
    let calls = next.is_some_and(|next| next.is_sign("("));
    // A type: it says how a constant is read.
    if before.is_some_and(|before| before.is_sign("::")) {
        return !calls && SqlType::of_declared(&name).is_some_and(|ty| ty.enumeration().is_none());
    }
    if token.kind == Kind::Word && token.is_any(WORDS) {
        return true;
    }
    if calls {
        return token.kind == Kind::Word && FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(&name));
    }
    table.def().column_index(&name).is_some_and(|at| table.def().columns[at].is_visible())
}

/// The number in `$1` and `?1`.
fn number(parameter: &Token<'_>) -> Option<usize> {
    parameter.text.strip_prefix(['$', '?'])?.parse().ok()
}

/// The parameters of a text, as they are numbered there and in what is told.
struct Numbers {
    /// Those that stand before the condition and have no number.
    bare: usize,
    taken: Vec<usize>,
}

impl Numbers {
    /// `None`: they are named, or some have a number and some have not.
    fn of(all: &[Token<'_>]) -> Option<Self> {
        let mut own = all.iter().filter(|token| token.kind == Kind::Parameter);
        let numbered = own.clone().all(|token| number(token).is_some());
        let where_at = condition(all)?.first().map_or(usize::MAX, |first| first.start);
        let bare = own.clone().filter(|token| token.start < where_at).count();
        (numbered || own.all(|token| token.text == "?")).then(|| Self { bare, taken: Vec::new() })
    }

    fn take(&mut self, token: &Token<'_>) -> Option<String> {
        let at = if token.text == "?" {
            self.bare += 1;
            self.bare - 1
        } else {
            number(token)?.checked_sub(1)?
        };
        let place = self.taken.iter().position(|known| *known == at).unwrap_or_else(|| {
            self.taken.push(at);
            self.taken.len() - 1
        });
        Some(format!("${}", place + 1))
    }
}

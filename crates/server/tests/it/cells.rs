//! A table of functions, operators and casts, by the types of their arguments and by values at the edges of these. Each
//! cell is asked at a PostgreSQL 15 and at the server: the same value of the same type, or an error of one class.
//!
//! The functions are those that the server's own `pg_proc` has, which is made of the table of functions; the types of
//! their arguments, the operators, and what PostgreSQL has beside them come from PostgreSQL's catalogue. So a new
//! function has its cells by itself.
//!
//! What differs is in `cells/differences.txt`, with its reason: a line says what differs, where, and in how many cells.
//! The list may only shrink. `CELLS=FILE` writes the lines as they are now, each with a cell that shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::random_postgresql::{Answer, Both};

mod values;

use values::{TYPES, literal, of_type, words};

/// Cells of one signature.
const CELLS_MAX: usize = 24;
/// Cells of a signature that PostgreSQL does not have.
const STRANGE_MAX: usize = 2;
/// Statements that are on their way at a time.
const BATCH: usize = 64;

const DIFFERENCES: &str = include_str!("cells/differences.txt");

/// Functions of the catalogue, of the session and of the clock: what they give is not a matter of their arguments.
const ELSEWHERE: &[&str] = &[
    "pg_",
    "has_",
    "current_",
    "to_reg",
    "col_",
    "obj_",
    "shobj_",
    "txid_",
    "set_config",
    "format_type",
    "nextval",
    "currval",
    "setval",
    "lastval",
    "age",
    "row_to_json",
    "acl",
    "now",
    "statement_timestamp",
    "transaction_timestamp",
    "version",
    "inet_",
    "session_user",
    "makeacl",
    "row_security",
];

/// Types that stand for any other.
const OF_ANY: &[(&str, &str)] = &[
    ("anyelement", ""),
    ("anycompatible", ""),
    ("\"any\"", ""),
    ("anynonarray", ""),
    ("anyarray", "[]"),
    ("anycompatiblearray", "[]"),
];

/// One expression, and under what it is listed.
struct Cell {
    of: String,
    sql: String,
}

/// A function or operator with the types of its arguments.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Signature {
    name: String,
    kind: char,
    types: Vec<String>,
}

impl Signature {
    /// The signatures with types in place of what stands for any.
    fn of_types(&self) -> Vec<Self> {
        let any = |ty: &String| OF_ANY.iter().find(|(any, _)| any == ty);
        if !self.types.iter().any(|ty| any(ty).is_some()) {
            return vec![self.clone()];
        }
        let with = |element: &str| {
            let types = self
                .types
                .iter()
                .map(|ty| any(ty).map_or_else(|| ty.clone(), |(_, behind)| format!("{element}{behind}")));
            Self { types: types.collect(), ..self.clone() }
        };
        ["integer", "numeric", "text", "double precision", "date"].map(with).into()
    }

    fn is_known(&self) -> bool {
        self.types.iter().all(|ty| of_type(ty).is_some())
    }

    /// The same with another type at one place.
    fn others(&self) -> impl Iterator<Item = Self> + '_ {
        let at = 0..self.types.len();
        at.flat_map(move |at| {
            TYPES.iter().map(move |ty| {
                let mut other = self.clone();
                ty.name.clone_into(&mut other.types[at]);
                other
            })
        })
    }

    /// What is tried at one place.
    fn literals(&self, at: usize) -> Vec<String> {
        let ty = &self.types[at];
        let words = words(&self.name, at, &self.types[0]).filter(|_| ty == "text");
        let values = words.or_else(|| of_type(ty).map(|ty| ty.values)).unwrap_or_default();
        let values = values.iter().map(|value| literal(ty, Some(value)));
        values.chain([literal(ty, None)]).collect()
    }

    /// Up to so many of all combinations, evenly.
    fn arguments(&self, most: usize) -> Vec<Vec<String>> {
        let places: Vec<Vec<String>> = (0..self.types.len()).map(|at| self.literals(at)).collect();
        let all: usize = places.iter().map(Vec::len).product();
        let count = all.min(most);
        let nth = |index: usize| {
            let mut rest = index * all / count;
            // Of all places the values change, though few combinations are taken.
            let pick = |(at, values): (usize, &Vec<String>)| {
                let value = values[(rest + at * index) % values.len()].clone();
                rest /= values.len();
                value
            };
            places.iter().enumerate().map(pick).collect()
        };
        let chosen: BTreeSet<Vec<String>> = (0..count).map(nth).collect();
        chosen.into_iter().collect()
    }

    fn shown(&self) -> String {
        format!("{}({})", self.name, self.types.join(", "))
    }

    /// The cells of one that PostgreSQL may not have.
    fn strange_cells(&self) -> Vec<Cell> {
        let of = format!("{} of other types", self.name);
        let cell = |arguments: Vec<String>| Cell { of: of.clone(), sql: self.sql(&arguments) };
        self.arguments(STRANGE_MAX).into_iter().map(cell).collect()
    }

    fn cells(&self) -> Vec<Cell> {
        let cell = |arguments: Vec<String>| Cell { of: self.shown(), sql: self.sql(&arguments) };
        match self.kind {
            'a' if !self.types.is_empty() => self.groups(),
            _ => self.arguments(CELLS_MAX).into_iter().map(cell).collect(),
        }
    }

    fn sql(&self, arguments: &[String]) -> String {
        match (self.kind, arguments) {
            ('o', [right]) => format!("SELECT {} {right}", self.name),
            ('o', [left, right]) => format!("SELECT {left} {} {right}", self.name),
            ('w', _) => format!("SELECT {}({}) OVER ()", self.name, arguments.join(", ")),
            _ => format!("SELECT {}({})", self.name, arguments.join(", ")),
        }
    }

    /// An aggregate of several groups: each value beside the next one, all, and none.
    fn groups(&self) -> Vec<Cell> {
        let others: Vec<String> = (1..self.types.len()).map(|at| self.literals(at)[0].clone()).collect();
        let behind = if others.is_empty() { String::new() } else { format!(", {}", others.join(", ")) };
        let values = self.literals(0);
        let mut groups: Vec<Vec<String>> = values.windows(2).map(<[String]>::to_vec).collect();
        groups.extend(values.iter().map(|value| vec![value.clone()]));
        groups.push(values);
        let of = |group: Vec<String>| {
            let rows = group.iter().map(|value| format!("({value})")).collect::<Vec<_>>().join(", ");
            let sql = format!("SELECT {}(v.x{behind}) FROM (VALUES {rows}) AS v (x)", self.name);
            Cell { of: self.shown(), sql }
        };
        let mut cells: Vec<Cell> = groups.into_iter().map(of).collect();
        let none = format!("SELECT {}({}{behind}) WHERE false", self.name, self.literals(0)[0]);
        cells.push(Cell { of: self.shown(), sql: none });
        cells
    }
}

/// What differs in a cell.
fn difference(theirs: &Answer, ours: &Answer) -> Option<&'static str> {
    match (theirs, ours) {
        (Answer::Failed(theirs), Answer::Failed(ours)) => {
            (theirs[..2] != ours[..2]).then_some("another error")
        }
        (Answer::Failed(_), Answer::Rows(..)) => Some("an answer, not an error"),
        (Answer::Rows(..), Answer::Failed(state)) => {
            let refused = state.starts_with("42") || state.starts_with("0A");
            Some(if refused { "not supported" } else { "an error" })
        }
        (Answer::Rows(their_types, theirs), Answer::Rows(our_types, ours)) if theirs == ours => {
            let types = |columns: &[(String, u32)]| columns.iter().map(|column| column.1).collect::<Vec<_>>();
            (types(their_types) != types(our_types)).then_some("another type")
        }
        _ => Some("another value"),
    }
}

/// The rows of a query at one of them.
fn rows(answer: Answer) -> Vec<Vec<String>> {
    let Answer::Rows(_, rows) = answer else { panic!("the catalogue is there: {answer:?}") };
    rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

/// What PostgreSQL has under the names that are ours.
fn functions(both: &mut Both) -> Vec<Signature> {
    let ours = rows(both.ask("SELECT DISTINCT proname FROM pg_proc WHERE prokind <> 'p'").1);
    let ours: BTreeSet<String> = ours.into_iter().flatten().collect();
    let listed = "SELECT proname, prokind, array_to_string(ARRAY(SELECT format_type(t, NULL) FROM \
                  unnest(proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n), ';') FROM pg_proc WHERE \
                  pronamespace = 'pg_catalog'::regnamespace AND NOT proretset AND provolatile <> 'v' ORDER BY 1, 2, 3";
    let signature = |row: Vec<String>| Signature {
        name: row[0].clone(),
        kind: row[1].chars().next().unwrap_or('f'),
        types: row[2].split(';').filter(|ty| !ty.is_empty()).map(str::to_owned).collect(),
    };
    let theirs = rows(both.ask(listed).0).into_iter().map(signature);
    let is_here = |signature: &Signature| {
        ours.contains(&signature.name) && !ELSEWHERE.iter().any(|of| signature.name.starts_with(of))
    };
    theirs.filter(is_here).flat_map(|signature| signature.of_types()).filter(Signature::is_known).collect()
}

fn operators(both: &mut Both) -> Vec<Signature> {
    let listed = "SELECT DISTINCT oprname, CASE oprleft WHEN 0 THEN '' ELSE format_type(oprleft, NULL) END, \
                  format_type(oprright, NULL) FROM pg_operator WHERE oprname !~ '^~[<>]|[*]<|[*]>|[*]=' ORDER BY 1, 2, 3";
    let signature = |row: Vec<String>| Signature {
        name: row[0].clone(),
        kind: 'o',
        types: row[1..].iter().filter(|ty| !ty.is_empty()).cloned().collect(),
    };
    let all = rows(both.ask(listed).0).into_iter().map(signature);
    all.flat_map(|signature| signature.of_types()).filter(Signature::is_known).collect()
}

/// Operators of types that PostgreSQL may not have them of.
fn strange_operators() -> impl Iterator<Item = Signature> {
    let pairs = TYPES.iter().flat_map(|left| TYPES.iter().map(move |right| [left, right]));
    pairs.flat_map(|types| {
        ["+", "-", "*", "/", "%", "||", "="].map(|name| Signature {
            name: name.to_owned(),
            kind: 'o',
            types: types.iter().map(|ty| ty.name.to_owned()).collect(),
        })
    })
}

fn casts() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (from, to) in TYPES.iter().flat_map(|from| TYPES.iter().map(move |to| (from, to))) {
        let values = from.values.iter().map(|value| Some(*value)).chain([None]);
        cells.extend(values.map(|value| Cell {
            of: format!("{}::{}", from.name, to.name),
            sql: format!("SELECT ({})::{}", literal(from.name, value), to.name),
        }));
    }
    cells
}

/// The column of a type.
fn column(ty: &str) -> String {
    let at = TYPES.iter().position(|known| known.name == ty).unwrap_or_default();
    format!("c{at}")
}

/// A table with a column of each type, and a row of each value.
fn table(both: &mut Both) -> usize {
    let columns: Vec<String> = TYPES.iter().map(|ty| format!("{} {}", column(ty.name), ty.name)).collect();
    both.set(&format!("CREATE TABLE edge (id int PRIMARY KEY, {})", columns.join(", ")));
    let most = TYPES.iter().map(|ty| ty.values.len()).max().unwrap_or_default();
    for row in 0..most {
        let values = TYPES.iter().map(|ty| literal(ty.name, Some(ty.values[row % ty.values.len()])));
        let values: Vec<String> = values.collect();
        both.set(&format!("INSERT INTO edge VALUES ({row}, {})", values.join(", ")));
    }
    most
}

/// The same of columns: operators, what has one argument, and aggregates.
fn of_columns(signature: &Signature, rows: usize) -> Vec<Cell> {
    let of = format!("{} of columns", signature.shown());
    let cell = |sql: String| Cell { of: of.clone(), sql };
    let names: Vec<String> = signature.types.iter().map(|ty| column(ty)).collect();
    match (signature.kind, &names[..]) {
        ('a', [of]) => {
            let by_two = format!("SELECT {}({of}) FROM edge GROUP BY id % 2 ORDER BY id % 2", signature.name);
            vec![cell(format!("SELECT {}({of}) FROM edge", signature.name)), cell(by_two)]
        }
        ('o' | 'f', [_]) => {
            let row = |row: usize| cell(format!("{} FROM edge WHERE id = {row}", signature.sql(&names)));
            (0..rows).map(row).collect()
        }
        ('o', [left, right]) => {
            let sql = signature.sql(&[format!("a.{left}"), format!("b.{right}")]);
            let pair = |at: usize| {
                let (a, b) = (at % rows, at * 5 / 3 % rows);
                cell(format!("{sql} FROM edge a, edge b WHERE a.id = {a} AND b.id = {b}"))
            };
            (0..rows).map(pair).collect()
        }
        _ => Vec::new(),
    }
}

fn all(both: &mut Both) -> Vec<Cell> {
    let rows = table(both);
    let mut known = functions(both);
    known.extend(operators(both));
    let there: BTreeSet<Signature> = known.iter().cloned().collect();
    let functions = known.iter().filter(|known| known.kind == 'f');
    let strange: BTreeSet<Signature> =
        functions.flat_map(Signature::others).chain(strange_operators()).collect();
    let mut cells = casts();
    for signature in &there {
        cells.extend(signature.cells());
        cells.extend(of_columns(signature, rows));
    }
    cells.extend(strange.difference(&there).flat_map(Signature::strange_cells));
    cells
}

/// How many cells differ so, and one of them.
type Found = BTreeMap<(String, String), (usize, String)>;

fn found(both: &mut Both, cells: &[Cell]) -> Found {
    let mut found = Found::new();
    for batch in cells.chunks(BATCH) {
        let statements: Vec<&str> = batch.iter().map(|cell| cell.sql.as_str()).collect();
        for (cell, (theirs, ours)) in batch.iter().zip(both.ask_all(&statements)) {
            let Some(what) = difference(&theirs, &ours) else { continue };
            let shown = || format!("{}\n  PostgreSQL: {theirs:?}\n  here:       {ours:?}", cell.sql);
            found.entry((what.to_owned(), cell.of.clone())).or_insert_with(|| (0, shown())).0 += 1;
        }
    }
    found
}

/// The lines of the list: what differs, in how many cells, and where.
fn listed() -> BTreeMap<(String, String), usize> {
    let lines = DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let mut parts = line.splitn(3, " | ");
        let mut part =
            || parts.next().unwrap_or_else(|| panic!("what | how many | where: {line}")).to_owned();
        let (what, count, of) = (part(), part(), part());
        ((what, of), count.trim().parse().expect("a number of cells"))
    };
    lines.map(entry).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test may be told where to write")]
fn told(found: &Found) {
    let Ok(path) = std::env::var("CELLS") else { return };
    let mut text = String::new();
    for ((what, of), (count, shown)) in found {
        writeln!(text, "{what} | {count} | {of}\n{shown}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_cell_answers_as_postgresql_does() {
    let (_servers, mut both) = Both::start();
    let cells = all(&mut both);
    let found = found(&mut both, &cells);
    told(&found);
    let listed = listed();
    let mut wrong = Vec::new();
    for (key @ (what, of), (count, shown)) in &found {
        let known = listed.get(key).copied().unwrap_or(0);
        if *count > known {
            wrong.push(format!("{what} | {count} | {of} ({known} listed)\n{shown}\n"));
        }
    }
    for (key @ (what, of), known) in &listed {
        let count = found.get(key).map_or(0, |(count, _)| *count);
        if count < *known {
            wrong.push(format!("{what} | {count} | {of}: {known} are listed; the list shrinks\n"));
        }
    }
    let differ: usize = found.values().map(|(count, _)| count).sum();
    eprintln!("{} cells, {differ} differ", cells.len());
    assert!(wrong.is_empty(), "{} lines\n{}", wrong.len(), wrong[..wrong.len().min(20)].concat());
}

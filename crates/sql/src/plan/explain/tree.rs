//! SQLite's steps of a plan as a tree of PostgreSQL's nodes.
//!
//! SQLite lists what it reads beside one another, and behind that what it sorts by: the tables of one list are a join,
//! and what is computed of their rows stands above them. A step whose words are not known is a node of these words.

use std::collections::HashMap;

/// What computes something of each group, and of all rows.
pub(super) const GROUPS: &str = "GroupAggregate";
pub(super) const ALL_ROWS: &str = "Aggregate";

/// A step as SQLite tells it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: i64,
    /// The step that it is part of; 0: none.
    pub(super) parent: i64,
    pub(super) words: String,
}

/// What is known of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Actual {
    pub(super) rows: u64,
    /// Milliseconds until its last row; `None`: nobody asks.
    pub(super) time: Option<f64>,
}

/// A node of a plan.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Node {
    /// PostgreSQL's `Node Type`.
    pub(super) kind: String,
    /// `Insert`, `Update`, `Delete`.
    pub(super) operation: Option<&'static str>,
    pub(super) join: Option<&'static str>,
    pub(super) relation: Option<String>,
    pub(super) index: Option<String>,
    /// What its rows are found by.
    pub(super) condition: Option<String>,
    /// The query that it begins, where that is one of several: `InitPlan 1`.
    pub(super) part: Option<String>,
    pub(super) actual: Option<Actual>,
    pub(super) children: Vec<Self>,
}

impl Node {
    pub(super) fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), ..Self::default() }
    }

    /// Whether it is of this type, or a node below it is that gives its rows on.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.kind == kind || self.children.iter().any(|child| child.part.is_none() && child.has(kind))
    }

    /// It, above another.
    pub(super) fn above(self, child: Self) -> Self {
        let mut node = self;
        node.children.insert(0, child);
        node
    }
}

/// The tree of all steps.
pub(super) fn plan(steps: &[Step]) -> Node {
    let mut below: HashMap<i64, Vec<&Step>> = HashMap::new();
    for step in steps {
        below.entry(step.parent).or_default().push(step);
    }
    Steps { below }.query(0)
}

/// The steps by the step that they are part of.
struct Steps<'s> {
    below: HashMap<i64, Vec<&'s Step>>,
}

/// A query under way.
#[derive(Default)]
struct Query {
    /// What it reads, in the order of the join.
    scans: Vec<Node>,
    /// What is done with the rows, in the order in which it is done.
    above: Vec<Node>,
    /// Queries by the names under which they are read.
    named: Vec<(String, Node)>,
    /// Queries in expressions.
    parts: Vec<Node>,
}

impl Steps<'_> {
    /// What stands below a step.
    fn query(&self, number: i64) -> Node {
        let mut query = Query::default();
        for step in self.below.get(&number).into_iter().flatten() {
            self.step(step, &mut query);
        }
        query.whole()
    }

    fn step(&self, step: &Step, query: &mut Query) {
        let words = step.words.as_str();
        let below = || self.query(step.number);
        if let Some(rest) = words.strip_prefix("SCAN ").or_else(|| words.strip_prefix("SEARCH ")) {
            let scan = query.scan(rest);
            query.scans.push(scan);
        } else if let Some(name) = strip_any(words, &["CO-ROUTINE ", "MATERIALIZE "]) {
            query.named.push((name.to_owned(), below()));
        } else if let Some(what) = words.strip_prefix("USE TEMP B-TREE FOR ") {
            query.above.push(sorted(what));
        } else if let Some(what) = strip_any(words, &["COMPOUND QUERY", "MERGE ("]) {
            query.scans.push(self.compound(step, what));
        } else if let Some(part) = part_of(words) {
            query.parts.push(Node { part: Some(part), ..below() });
        } else if words == "MULTI-INDEX OR" {
            query.scans.push(self.listed(step, "BitmapOr"));
        } else if strip_any(words, &["BLOOM FILTER", "REUSE "]).is_none() || self.has_below(step) {
            let children = if self.has_below(step) { vec![below()] } else { Vec::new() };
            query.scans.push(Node { children, ..Node::new(&in_words(words)) });
        }
    }

    fn has_below(&self, step: &Step) -> bool {
        self.below.contains_key(&step.number)
    }

    /// `UNION` and its like: an arm for each step below.
    fn compound(&self, step: &Step, merged: &str) -> Node {
        let arms: Vec<&&Step> = self.below.get(&step.number).into_iter().flatten().collect();
        let last = arms.last().map_or("", |arm| arm.words.as_str());
        let of = |word: &str| last.starts_with(word) || merged.starts_with(word);
        let kind = match () {
            () if of("UNION ALL") => "Append",
            () if of("UNION") => "Unique",
            () if of("INTERSECT") => "SetOp Intersect",
            () if of("EXCEPT") => "SetOp Except",
            () => "Append",
        };
        let append = self.listed(step, "Append");
        if kind == "Append" { append } else { Node { children: append.children, ..Node::new(kind) } }
    }

    /// A node of what stands below each step below.
    fn listed(&self, step: &Step, kind: &str) -> Node {
        let arms = self.below.get(&step.number).into_iter().flatten();
        Node { children: arms.map(|arm| self.query(arm.number)).collect(), ..Node::new(kind) }
    }
}

impl Query {
    /// `t`, `t USING INDEX i (a=?)`, `t VIRTUAL TABLE INDEX 1:i (a=?)`
    fn scan(&mut self, rest: &str) -> Node {
        let (rest, left) = match rest.strip_suffix(" LEFT-JOIN") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let join = left.then_some("Left");
        if rest == "CONSTANT ROW" {
            return Node::new("Result");
        }
        if rest.ends_with("CONSTANT ROWS") || rest.ends_with("-ROW VALUES CLAUSE") {
            return Node { relation: Some("\"*VALUES*\"".to_owned()), ..Node::new("Values Scan") };
        }
        let (name, way) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Some(at) = self.named.iter().position(|(known, _)| known == name) {
            let (name, query) = self.named.remove(at);
            let scan = Node { relation: Some(name), join, ..Node::new("Subquery Scan") };
            return scan.above(query);
        }
        Node { relation: Some(name.to_owned()), join, ..found(way) }
    }

    fn whole(self) -> Node {
        let Self { scans, above, named, parts } = self;
        let mut plan = joined(scans);
        for node in above {
            plan = node.above(plan);
        }
        plan.children.extend(parts);
        let common = |(name, query): (String, Node)| Node { part: Some(format!("CTE {name}")), ..query };
        plan.children.extend(named.into_iter().map(common));
        plan
    }
}

/// How the rows of a table are found.
fn found(way: &str) -> Node {
    let (head, condition) = match way.split_once(" (") {
        Some((head, condition)) => (head, condition.strip_suffix(')')),
        None => (way, None),
    };
    let condition = condition.map(spelled);
    if let Some(index) = head.strip_prefix("VIRTUAL TABLE INDEX ") {
        let index = index.split_once(':').map_or(index, |(_, index)| index);
        return match index {
            "every row" => Node::new("Seq Scan"),
            "" => Node::new("Function Scan"),
            index => Node { index: Some(index.to_owned()), condition, ..Node::new("Index Scan") },
        };
    }
    let index = strip_any(head, &["USING COVERING INDEX ", "USING INDEX "]);
    let automatic = head.contains("AUTOMATIC");
    match index {
        _ if automatic => Node { condition, ..Node::new("Hash Scan") },
        Some(index) => Node { index: Some(index.to_owned()), condition, ..Node::new("Index Scan") },
        None => Node { condition, ..Node::new("Seq Scan") },
    }
}

/// `a=? AND b>?` with blanks around the signs.
fn spelled(condition: &str) -> String {
    let mut out = String::with_capacity(condition.len() + 8);
    let is_sign = |char: char| matches!(char, '=' | '<' | '>');
    let mut before = ' ';
    for char in condition.chars() {
        if is_sign(char) != is_sign(before) && !before.is_whitespace() && !char.is_whitespace() {
            out.push(' ');
        }
        out.push(char);
        before = char;
    }
    out
}

fn joined(scans: Vec<Node>) -> Node {
    let mut scans = scans;
    match scans.len() {
        0 => Node::new("Result"),
        1 => scans.remove(0),
        _ => {
            let mut scans = scans.into_iter();
            let first = scans.next().unwrap_or_default();
            scans.fold(first, |outer, mut inner| {
                let join = inner.join.take().unwrap_or("Inner");
                Node { join: Some(join), children: vec![outer, inner], ..Node::new("Nested Loop") }
            })
        }
    }
}

/// What a sorting of SQLite's is for.
fn sorted(what: &str) -> Node {
    let kind = match what {
        "ORDER BY" => "Sort",
        "GROUP BY" => GROUPS,
        "DISTINCT" => "Unique",
        what if what.ends_with("ORDER BY") => "Incremental Sort",
        what if what.contains('(') => "Aggregate",
        _ => "Sort",
    };
    Node::new(kind)
}

/// A query in an expression, by its words.
fn part_of(words: &str) -> Option<String> {
    let number =
        words.rsplit(' ').next().filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))?;
    if strip_any(words, &["CORRELATED SCALAR SUBQUERY", "CORRELATED LIST SUBQUERY", "LIST SUBQUERY"])
        .is_some()
    {
        Some(format!("SubPlan {number}"))
    } else if words.starts_with("SCALAR SUBQUERY") {
        Some(format!("InitPlan {number}"))
    } else {
        None
    }
}

/// Words that are not known, not shouted.
fn in_words(words: &str) -> String {
    match words {
        "SETUP" => "Recursive Union".to_owned(),
        "RECURSIVE STEP" => "WorkTable Scan".to_owned(),
        words => words.to_owned(),
    }
}

fn strip_any<'w>(words: &'w str, beginnings: &[&str]) -> Option<&'w str> {
    beginnings.iter().find_map(|beginning| words.strip_prefix(beginning))
}

//! Guards: conditions outside of which the rows of a table do not count.
//!
//! Every place where a table is read is looked at by itself. The rows that pass the `WHERE` of a query do not
//! depend on
//! rows of a table for which `WHERE` is not true: a row that is joined with others is there or not whatever else that
//! table has, and a row that an outer join fills with NULL passes no equality. So `c = k` in `WHERE` is a guard of
//! the
//! table of `c`, in any join. The same holds of `ON` for the rows that a join gives: for both sides of an inner join,
//! and for the side of an outer join that may be filled with NULL. It never holds for the other side, and in a
//! full join for none.
//!
//! In the `ON` of a left join `b.a_id = a.id` says that `b.a_id = k` where only rows with `a.id = k` count further
//! out: without the rest of `b` other rows change, and these do not count.

mod facts;
mod known;

use std::collections::{BTreeMap, BTreeSet};

use crate::node::{Node, Struct};
use crate::relations::Table;
use crate::trees::{Trees, unreadable};
use crate::types::Types;
use crate::verdict::{Guard, Occurrence, Operand, Refusal};
use facts::{Fact, Known, Reader, Values, fits};
use known::{both, conclude};

/// Places where a statement reads tables, and queries that it has, through its views.
const PLACES_MAX: usize = 500;

/// How many values an array counts for when guards are compared.
const ARRAY_WEIGHT: usize = 50;

/// A place where a table is read, with what is known of its columns there.
#[derive(Debug)]
struct Place {
    relation: u32,
    candidates: Vec<(i32, Values)>,
}

/// Every place where the statement reads a table, with the best guard that the stream can tell.
pub(crate) fn occurrences(
    trees: &Trees,
    types: &Types,
    tables: &BTreeMap<u32, Table>,
) -> Result<Vec<Occurrence>, Refusal> {
    let mut walk =
        Walk { trees, types, places: Vec::new(), secured: BTreeSet::new(), queries: 0, all_queries: 0 };
    walk.whole(&trees.statement, &[], None)?;
    let mut found: Vec<Occurrence> = Vec::new();
    for place in &walk.places {
        let occurrence = choose(place, tables.get(&place.relation).ok_or_else(unreadable)?);
        if !found.contains(&occurrence) {
            found.push(occurrence);
        }
    }
    Ok(found)
}

/// The guard of a place: by a column that the stream tells, rather by one that is unique, and by few values.
fn choose(place: &Place, table: &Table) -> Occurrence {
    let weight = |values: &Values| {
        let weigh =
            |operand: &Operand| if matches!(operand, Operand::Elements(_)) { ARRAY_WEIGHT } else { 1 };
        values.operands.iter().map(weigh).sum::<usize>()
    };
    let known = || {
        let named = |(number, values)| Some((table.columns.get(number)?, values));
        place.candidates.iter().filter_map(move |(number, values)| named((number, values)))
    };
    let best = known()
        .filter(|(column, _)| column.is_told)
        .min_by_key(|(column, values)| (!column.is_unique, weight(values)))
        .map(|(column, values)| Guard {
            column: column.name.clone(),
            kind: values.kind,
            values: values.operands.clone(),
        });
    let untold = known().find(|(column, _)| !column.is_told);
    let note = untold.filter(|_| best.is_none()).map(|(column, _)| {
        format!(
            "the stream does not tell column {} of rows that are gone; ALTER TABLE {} REPLICA IDENTITY FULL lets it",
            column.name, table.relation.name
        )
    });
    Occurrence { relation: place.relation, guard: best, note }
}

/// Walks through the queries of a statement and of its views.
struct Walk<'a> {
    trees: &'a Trees,
    types: &'a Types,
    places: Vec<Place>,
    /// Tables whose policies were looked at.
    secured: BTreeSet<u32>,
    /// Queries met in this tree.
    queries: usize,
    /// Queries met in all.
    all_queries: usize,
}

/// What is found out of the tables of one query.
#[derive(Default)]
struct Level {
    /// What is known of a table's columns where only its rows count.
    candidates: BTreeMap<usize, Vec<(i32, Values)>>,
    /// What is known beside a table, for a subquery that looks at its neighbours.
    beside: BTreeMap<usize, Known>,
}

impl Walk<'_> {
    /// A tree of its own. Every query in it must be met, or a table would be missed.
    fn whole(&mut self, tree: &Node, pushed: &[(i32, Values)], view: Option<u32>) -> Result<(), Refusal> {
        let query = tree.labelled("QUERY").ok_or_else(unreadable)?;
        self.counted(tree, |walk| walk.query(query, &[], pushed, view))
    }

    fn counted(
        &mut self,
        tree: &Node,
        walk: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let inside = count(tree);
        let met_outside = std::mem::take(&mut self.queries);
        walk(self)?;
        if self.queries != inside {
            return Err(Refusal::new("it has a query where none is expected"));
        }
        self.queries = met_outside;
        Ok(())
    }

    /// A table of its own right. Its row security only leaves rows out, so what is known of those that count holds. The
    /// tables that its policies read are read for each row, whatever that is.
    fn base_table(&mut self, relation: u32, candidates: &[(i32, Values)]) -> Result<(), Refusal> {
        self.places.push(Place { relation, candidates: candidates.to_vec() });
        if !self.secured.insert(relation) {
            return Ok(());
        }
        let trees = self.trees;
        let policies = trees.policies.get(&relation).map_or(&[][..], Vec::as_slice);
        let nothing = inside(&[], Known::new());
        policies.iter().try_for_each(|policy| self.counted(policy, |walk| walk.scan(policy, &nothing)))
    }

    fn query(
        &mut self,
        query: &Struct,
        around: &[Known],
        pushed: &[(i32, Values)],
        view: Option<u32>,
    ) -> Result<(), Refusal> {
        self.queries += 1;
        self.all_queries += 1;
        if self.places.len().max(self.all_queries) > PLACES_MAX {
            return Err(Refusal::new(format!(
                "it and its views have more than {PLACES_MAX} queries or tables"
            )));
        }
        let tables = query.field("rtable").items();
        let reader = Reader { types: self.types, tables };
        let from = query.field("jointree").labelled("FROMEXPR").ok_or_else(unreadable)?;
        let mut facts = reader.facts(from.field("quals"));
        facts.extend(through_outputs(query, reader, pushed));
        let mut level = Level::default();
        let mut joins = Joins { reader, around, level: &mut level };
        let known = joins.filtered(from.field("fromlist").items(), facts, &Known::new(), &Known::new())?;
        for (at, table) in tables.iter().enumerate() {
            let table = table.as_struct().ok_or_else(unreadable)?;
            self.table(query, table, at + 1, around, pushed, &level, view)?;
        }
        let nothing = inside(around, Known::new());
        for cte in query.field("cteList").items() {
            self.scan(cte, &nothing)?;
        }
        self.scan(from.field("fromlist"), &nothing)?;
        let inside = inside(around, known);
        self.scan(from.field("quals"), &inside)?;
        for field in ["targetList", "havingQual", "limitOffset", "limitCount", "windowClause"] {
            self.scan(query.field(field), &inside)?;
        }
        Ok(())
    }

    /// One entry of a query's list of tables.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the query's, and one more structure would hide that"
    )]
    fn table(
        &mut self,
        query: &Struct,
        table: &Struct,
        number: usize,
        around: &[Known],
        pushed: &[(i32, Values)],
        level: &Level,
        view: Option<u32>,
    ) -> Result<(), Refusal> {
        let is_joined = level.beside.contains_key(&number);
        let candidates = level.candidates.get(&number).map_or(&[][..], Vec::as_slice);
        match table.number::<u32>("rtekind") {
            Some(0) => {
                let relation = table.number::<u32>("relid").ok_or_else(unreadable)?;
                match self.trees.views.get(&relation) {
                    // A view's own tree names the view itself, for rules that write.
                    Some(_) if !is_joined && view == Some(relation) => {}
                    Some(tree) => self.whole(tree, candidates, Some(relation))?,
                    None => self.base_table(relation, candidates)?,
                }
                Ok(())
            }
            Some(1) => {
                let subquery = table.field("subquery").labelled("QUERY").ok_or_else(unreadable)?;
                let is_lateral = table.is("lateral", "true");
                let beside = level.beside.get(&number).filter(|_| is_lateral).cloned().unwrap_or_default();
                let is_arm = !is_joined && *query.field("setOperations") != Node::Nothing;
                let pushed = if is_arm && lets_through(query) { pushed } else { candidates };
                self.query(subquery, &inside(around, beside), pushed, None)
            }
            Some(2) => Ok(()),
            _ => {
                let nothing = inside(around, Known::new());
                table.fields().try_for_each(|(_, value)| self.scan(value, &nothing))
            }
        }
    }

    /// Looks for queries in an expression.
    fn scan(&mut self, node: &Node, around: &[Known]) -> Result<(), Refusal> {
        match node {
            Node::List(items) => items.iter().try_for_each(|item| self.scan(item, around)),
            Node::Struct(node) if node.label == "QUERY" => self.query(node, around, &[], None),
            Node::Struct(node) => node.fields().try_for_each(|(_, value)| self.scan(value, around)),
            _ => Ok(()),
        }
    }
}

/// How many queries a tree has.
fn count(node: &Node) -> usize {
    match node {
        Node::List(items) => items.iter().map(count).sum(),
        Node::Struct(node) => {
            usize::from(node.label == "QUERY") + node.fields().map(|(_, value)| count(value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// What is known around a query, with what is known in it.
fn inside(around: &[Known], known: Known) -> Vec<Known> {
    let mut all = around.to_vec();
    all.push(known);
    all
}

/// Whether leaving out rows of a query's answer by the value of a column is leaving out rows that it is made of.
fn lets_through(query: &Struct) -> bool {
    let nothing = |field: &str| query.field(field).items().is_empty();
    let not = |field: &str| query.is(field, "false");
    ["limitOffset", "limitCount", "groupingSets"].into_iter().all(nothing)
        && ["hasWindowFuncs", "hasDistinctOn", "hasTargetSRFs"].into_iter().all(not)
        && (!nothing("groupClause") || (not("hasAggs") && nothing("havingQual")))
}

/// What is known of the columns of a query's answer, as facts of the columns that it is made of.
fn through_outputs(query: &Struct, reader: Reader<'_>, pushed: &[(i32, Values)]) -> Vec<Fact> {
    if pushed.is_empty() || !lets_through(query) || *query.field("setOperations") != Node::Nothing {
        return Vec::new();
    }
    let groups: BTreeSet<u32> = query
        .field("groupClause")
        .items()
        .iter()
        .filter_map(|group| group.as_struct()?.number("tleSortGroupRef"))
        .collect();
    let fact = |(number, values): &(i32, Values)| {
        let targets = query.field("targetList").items().iter().filter_map(Node::as_struct);
        let target = targets.into_iter().find(|target| target.number::<i32>("resno") == Some(*number))?;
        let is_group = target.number("ressortgroupref").is_some_and(|group| groups.contains(&group));
        let (column, found) = reader.column(target.field("expr"))?;
        ((groups.is_empty() || is_group) && fits(values.kind, found))
            .then(|| Fact::Is(column, values.clone()))
    };
    pushed.iter().filter_map(fact).collect()
}

/// Goes through the joins of one query.
struct Joins<'a> {
    reader: Reader<'a>,
    around: &'a [Known],
    level: &'a mut Level,
}

impl Joins<'_> {
    /// Parts of which only the rows count for which the facts hold. `before`: what is known of tables beside them, or
    /// these are NULL. `further`: what is known further out.
    fn filtered(
        &mut self,
        parts: &[Node],
        mut facts: Vec<Fact>,
        before: &Known,
        further: &Known,
    ) -> Result<Known, Refusal> {
        for part in parts {
            self.always_true(part, &mut facts)?;
        }
        let known = conclude(&facts, before, self.around);
        let all = both(further, &known);
        for part in parts {
            for table in tables_of(part)? {
                let own = known.iter().filter(|((of, _), _)| *of == table);
                let candidates = self.level.candidates.entry(table).or_default();
                candidates.extend(own.map(|((_, number), values)| (*number, values.clone())));
                let beside = self.level.beside.entry(table).or_default();
                *beside = both(beside, &all);
            }
            self.outer_joins(part, &all)?;
        }
        Ok(known)
    }

    /// What the inner joins say that every row of a part has passed.
    fn always_true(&self, part: &Node, facts: &mut Vec<Fact>) -> Result<(), Refusal> {
        let Some(join) = join_of(part)? else { return Ok(()) };
        if join.kind == JoinKind::Inner {
            facts.extend(self.reader.facts(join.on));
        }
        if matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
            self.always_true(join.left, facts)?;
        }
        if matches!(join.kind, JoinKind::Inner | JoinKind::Right) {
            self.always_true(join.right, facts)?;
        }
        Ok(())
    }

    /// The sides of outer joins that may be filled with NULL: only what passes `ON` counts of them. What is known of
    /// their columns then, or these are NULL.
    fn outer_joins(&mut self, part: &Node, known: &Known) -> Result<Known, Refusal> {
        let Some(join) = join_of(part)? else { return Ok(Known::new()) };
        let (kept, filled) = match join.kind {
            JoinKind::Inner => {
                let left = self.outer_joins(join.left, known)?;
                return Ok(both(&left, &self.outer_joins(join.right, known)?));
            }
            JoinKind::Full => {
                for side in [join.left, join.right] {
                    self.filtered(std::slice::from_ref(side), Vec::new(), &Known::new(), &Known::new())?;
                }
                return Ok(Known::new());
            }
            JoinKind::Left => (join.left, join.right),
            JoinKind::Right => (join.right, join.left),
        };
        let below = self.outer_joins(kept, known)?;
        let tables = tables_of(kept)?;
        let mut before = both(known, &below);
        before.retain(|(table, _), _| tables.contains(table));
        let facts = self.reader.facts(join.on);
        let filled = self.filtered(std::slice::from_ref(filled), facts, &before, known)?;
        Ok(both(&below, &filled))
    }
}

/// A join of two parts.
struct Join<'a> {
    kind: JoinKind,
    left: &'a Node,
    right: &'a Node,
    on: &'a Node,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinKind {
    Inner,
    Left,
    Full,
    Right,
}

/// The join that a part is; `None` for a single table.
fn join_of(part: &Node) -> Result<Option<Join<'_>>, Refusal> {
    let node = part.as_struct().ok_or_else(unreadable)?;
    if node.label == "RANGETBLREF" {
        return Ok(None);
    }
    let kind = match (node.label.as_str(), node.number::<u32>("jointype")) {
        ("JOINEXPR", Some(0)) => JoinKind::Inner,
        ("JOINEXPR", Some(1)) => JoinKind::Left,
        ("JOINEXPR", Some(2)) => JoinKind::Full,
        ("JOINEXPR", Some(3)) => JoinKind::Right,
        _ => return Err(Refusal::new("it has a join that is not known here")),
    };
    let (left, right, on) = (node.field("larg"), node.field("rarg"), node.field("quals"));
    Ok(Some(Join { kind, left, right, on }))
}

/// The numbers of the tables in a part.
fn tables_of(part: &Node) -> Result<BTreeSet<usize>, Refusal> {
    match join_of(part)? {
        None => {
            let number = part.as_struct().and_then(|table| table.number("rtindex")).ok_or_else(unreadable)?;
            Ok(BTreeSet::from([number]))
        }
        Some(join) => {
            let mut tables = tables_of(join.left)?;
            tables.extend(tables_of(join.right)?);
            Ok(tables)
        }
    }
}

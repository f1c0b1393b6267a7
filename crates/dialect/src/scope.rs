//! Which tables a name may mean at a place of the statement: those of the `FROM` around it, innermost first.

use store::definition::SqlType;

use crate::limits::RELATIONS_MAX;

/// A column's name, and its type if it is known.
pub(super) type Column = (String, Option<SqlType>);

/// What one entry of a `FROM` is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A table, view or table of the system.
    Named(String),
    /// A query or a function, with its columns where they are known.
    Query(Option<Vec<Column>>),
}

/// An entry of a `FROM`, by the name that expressions use.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) source: Source,
    /// Names given to columns of a function, and their own.
    pub(super) renamed: Vec<(String, String)>,
    /// The column of which its rows consist, where a function gives single values: its name means that too.
    pub(super) row: Option<String>,
    /// NULLs may stand in the place of its row, or it stands in parentheses with others.
    pub(super) optional: bool,
}

/// A column that `*` stands for.
#[derive(Clone, Debug)]
pub(super) struct StarColumn {
    pub(super) name: String,
    /// In SQLite's words.
    pub(super) text: String,
    pub(super) ty: Option<SqlType>,
}

/// What one query or statement lists.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
    /// Whether a bare name may stand for columns of two of them: `USING`, `NATURAL`.
    pub(super) merged: bool,
    /// Whether rows of any of them may be missing: `RIGHT JOIN`, `FULL JOIN`.
    pub(super) all_optional: bool,
    /// What `*` stands for, where that is known and `merged`.
    pub(super) star: Option<Vec<StarColumn>>,
    /// Columns that `WHERE` leaves no NULL of, by the names of their tables.
    pub(super) present: Vec<(String, String)>,
}

impl Relation {
    pub(super) fn new(name: String, source: Source) -> Self {
        Self { name, source, renamed: Vec::new(), row: None, optional: false }
    }
}

/// What the queries around a place list.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// The entries of each query or statement, innermost last.
    all: Vec<Scope>,
    /// The queries of each `WITH` around the place, innermost last.
    common: Vec<Relation>,
}

/// How much was known at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    scopes: usize,
    common: usize,
}

impl Known {
    /// How many queries there were around the place.
    pub(super) fn queries(self) -> usize {
        self.scopes
    }

    /// How many queries of a `WITH` there were.
    pub(super) fn commons(self) -> usize {
        self.common
    }
}

impl Scopes {
    /// The scopes around the place, innermost first.
    pub(super) fn around(&self) -> impl Iterator<Item = &[Relation]> {
        self.all.iter().rev().map(|scope| scope.relations.as_slice())
    }

    /// What the query under way lists.
    pub(super) fn innermost(&self) -> Option<&Scope> {
        self.all.last()
    }

    /// The same, to say more of it.
    pub(super) fn innermost_mut(&mut self) -> Option<&mut Scope> {
        self.all.last_mut()
    }

    /// How many entries the query under way has so far.
    pub(super) fn len(&self) -> usize {
        self.all.last().map_or(0, |scope| scope.relations.len())
    }

    /// The entries from this one on may have no row.
    pub(super) fn make_optional(&mut self, from: usize) {
        let scope = self.all.last_mut();
        for relation in scope.into_iter().flat_map(|scope| scope.relations.iter_mut().skip(from)) {
            relation.optional = true;
        }
    }

    /// The entry of this name that is nearest, if an outer join may leave it without a row.
    pub(super) fn optional(&self, name: &str) -> Option<&Relation> {
        let named = |relation: &&Relation| relation.name.eq_ignore_ascii_case(name);
        self.all.iter().rev().find_map(|scope| {
            let found = scope.relations.iter().find(named)?;
            Some((scope.all_optional || found.optional).then_some(found))
        })?
    }

    /// Whether an entry around the place is called so.
    pub(super) fn list(&self, name: &str) -> bool {
        self.around().flatten().any(|relation| relation.name.eq_ignore_ascii_case(name))
    }

    /// Begins a query, or a statement that writes.
    pub(super) fn begin(&mut self) {
        self.all.push(Scope::default());
    }

    pub(super) fn known(&self) -> Known {
        Known { scopes: self.all.len(), common: self.common.len() }
    }

    /// Forgets what came later.
    pub(super) fn back_to(&mut self, known: Known) {
        self.all.truncate(known.scopes);
        self.common.truncate(known.common);
    }

    /// Forgets the entries of queries that began later.
    pub(super) fn end(&mut self, known: Known) {
        self.all.truncate(known.scopes);
    }

    /// Adds an entry to the query that is under way.
    pub(super) fn add(&mut self, relation: Relation) {
        if let Some(scope) = self.all.last_mut()
            && scope.relations.len() < RELATIONS_MAX
        {
            scope.relations.push(relation);
        }
    }

    /// Adds a query of a `WITH`, in the place of an earlier one of its name.
    pub(super) fn add_common(&mut self, relation: Relation) {
        self.common.push(relation);
    }

    /// The number of the query of a `WITH` that a name means, from 0.
    pub(super) fn place_of_common(&self, name: &str) -> Option<usize> {
        self.common.iter().rposition(|relation| relation.name.eq_ignore_ascii_case(name))
    }

    /// The query of a `WITH` that a name means.
    pub(super) fn common(&self, name: &str) -> Option<&Source> {
        let found = self.common.iter().rev().find(|relation| relation.name.eq_ignore_ascii_case(name));
        found.map(|relation| &relation.source)
    }
}

//! What a statement became, piece by piece, for those who carry it out otherwise than by handing SQLite its text.
//!
//! A statement that writes is never run by SQLite: queries are made of its pieces. A statement that needs no SQLite at
//! all is recognised by its [`Node`]s, which say what an expression is in SQLite's words.

use store::value::Value;

/// What was made of a statement beside its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Lowered {
    /// It reads. The query, where it is one `SELECT` of tables without more than a condition, groups, an order and a
    /// limit.
    Read(Option<Box<Select>>),
    /// It writes, and has no text as a whole.
    Write(Box<Write>),
    /// It was copied, and nothing is known of it.
    Unread,
}

/// An expression, as far as anybody but SQLite looks at it.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Anything else.
    Other,
    /// A literal.
    Value(Value),
    /// A number behind a sign.
    Signed(Value),
    /// `TRUE` or `FALSE`, where no column is called so.
    Truth(bool),
    /// Its number, from 0.
    Parameter(usize),
    /// `[table.]column`
    Column {
        /// What stands before the point.
        table: Option<String>,
        /// The name.
        name: String,
    },
    /// What stands in brackets: one expression or several.
    List(Vec<Self>),
    /// `ARRAY[a, b]`
    Array(Vec<Self>),
    /// `NOT a`
    Not(Box<Self>),
    /// `-a`
    Negative(Box<Self>),
    /// `a + b`, `a AND b`
    Binary(Operator, Box<[Self; 2]>),
    /// `a IN (b, c)`
    In(Box<Self>, Vec<Self>),
    /// `a BETWEEN b AND c`
    Between(Box<[Self; 3]>),
    /// `a IS NULL`
    IsNull(Box<Self>),
    /// `f(a)`, `f(a, b)`, or `f(*)` where there is no argument.
    Call {
        /// The function as it is written, or as SQLite knows it where it is an operator.
        name: String,
        /// Its arguments.
        arguments: Vec<Self>,
    },
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum Operator {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// The operator that SQLite spells so.
    pub(super) fn spelled(text: &str) -> Option<Self> {
        Some(match text {
            "=" | "==" => Self::Equal,
            "<>" | "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Remainder,
            word if word.eq_ignore_ascii_case("AND") => Self::And,
            word if word.eq_ignore_ascii_case("OR") => Self::Or,
            _ => return None,
        })
    }
}

impl Node {
    /// What stands between brackets, however many.
    pub fn bare(&self) -> &Self {
        match self {
            Self::List(inner) => match &inner[..] {
                [only] => only.bare(),
                _ => self,
            },
            other => other,
        }
    }
}

/// A `SELECT` of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Its columns.
    pub list: Vec<Listed>,
    /// What it reads.
    pub tables: Tables,
    /// Its `WHERE`.
    pub condition: Option<Node>,
    /// The terms of `GROUP BY`.
    pub group: Vec<Node>,
    /// The terms of `ORDER BY`.
    pub order: Vec<Order>,
    /// How many rows it gives.
    pub limit: Option<Node>,
    /// How many it leaves out before these.
    pub offset: Option<Node>,
}

/// What stands between two commas of a list of columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// `*`, or `table.*`
    All(Option<String>),
    /// An expression, and the name that it is given.
    Value(Node, Option<String>),
}

/// A table as a statement names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// What stands before the point.
    pub schema: Option<String>,
    /// Its own name.
    pub name: String,
    /// What the statement calls it.
    pub alias: Option<String>,
}

/// One table or two.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// The first.
    pub first: Named,
    /// The second.
    pub second: Option<Joined>,
}

/// A table that is joined with the one before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The table.
    pub table: Named,
    /// Whether rows of the first come without one of it.
    pub left: bool,
    /// The condition.
    pub on: Option<Node>,
}

/// A term of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// By what.
    pub by: Node,
    /// `DESC`
    pub descending: bool,
    /// NULL comes before all values, and not behind them.
    pub nulls_first: bool,
}

/// A statement that writes rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it does.
    pub verb: Verb,
    /// The table.
    pub table: Named,
    /// `WITH ...`, or nothing.
    pub with: String,
    /// `OR ...`
    pub resolve: Option<Resolve>,
    /// The list of `RETURNING`.
    pub returning: Option<String>,
    /// How many parameters it takes.
    pub parameters: usize,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// `INSERT`, `REPLACE`
    Insert(Insert),
    /// `UPDATE`
    Update(Update),
    /// `DELETE`
    Delete(Delete),
    /// `MERGE`
    Merge(Merge),
}

/// `OR ...`: what becomes of a row whose key or unique value is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of SQLite")]
pub enum Resolve {
    Rollback,
    Abort,
    Fail,
    Ignore,
    Replace,
}

/// `INSERT INTO table (columns) source ON CONFLICT ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The columns that it names.
    pub columns: Option<Vec<String>>,
    /// `OVERRIDING SYSTEM VALUE`: numbers that the server gives may be given instead.
    pub overrides: bool,
    /// Where its rows come from.
    pub source: Source,
    /// Its `ON CONFLICT` clauses.
    pub conflicts: Vec<Conflict>,
}

/// Where the rows of an `INSERT` come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `DEFAULT VALUES`
    Defaults,
    /// `VALUES` or a query.
    Query {
        /// Its text.
        sql: String,
        /// Whether it begins with `WITH`.
        with: bool,
        /// The rows of bare `VALUES`.
        rows: Option<Vec<Vec<Node>>>,
    },
}

/// An expression, and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text.
    pub sql: String,
    /// What it is.
    pub node: Node,
}

/// `ON CONFLICT (terms) WHERE ... DO ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What is meant to be unique; `None`: anything.
    pub target: Option<ConflictTarget>,
    /// `DO UPDATE`; `None`: `DO NOTHING`.
    pub update: Option<ConflictUpdate>,
}

/// `(terms) WHERE condition`
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictTarget {
    /// What is unique together.
    pub terms: Vec<Term>,
    /// In which rows.
    pub condition: Option<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The term itself, without the collation by which it is compared.
    pub piece: Piece,
    /// Whether it has one.
    pub collated: bool,
}

/// `SET ... WHERE ...` of an `ON CONFLICT`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictUpdate {
    /// What becomes of the row.
    pub sets: Vec<Set>,
    /// Which rows are changed.
    pub condition: Option<String>,
}

/// `UPDATE table SET ... FROM ... WHERE ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// What becomes of the rows.
    pub sets: Vec<Set>,
    /// The tables that it reads beside its own.
    pub from: Option<String>,
    /// The rows.
    pub rows: Rows,
}

/// `DELETE FROM table USING ... WHERE ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The tables that it reads beside its own.
    pub using: Option<String>,
    /// The rows.
    pub rows: Rows,
}

/// `MERGE INTO table USING source ON condition WHEN ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// What is merged, as it stands in a `FROM`.
    pub source: String,
    /// Which row of it is which row of the table.
    pub on: String,
    /// What becomes of its rows: the first that holds.
    pub clauses: Vec<MergeClause>,
}

/// `WHEN [NOT] MATCHED [AND condition] THEN action`
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    /// It is about rows of the source that are rows of the table.
    pub matched: bool,
    /// Which of them; none: all.
    pub condition: Option<String>,
    /// What becomes of them.
    pub action: MergeAction,
}

/// What becomes of a row that is merged.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    /// `DO NOTHING`
    Nothing,
    /// `DELETE`
    Delete,
    /// `UPDATE SET ...`
    Update(Vec<Set>),
    /// `INSERT ...`
    Insert(MergeInsert),
}

/// `INSERT (columns) VALUES (values)` of a `MERGE`
#[derive(Clone, Debug, PartialEq)]
pub struct MergeInsert {
    /// The columns that it names.
    pub columns: Option<Vec<String>>,
    /// `OVERRIDING SYSTEM VALUE`
    pub overrides: bool,
    /// What they become.
    pub values: Vec<String>,
}

/// Which rows an `UPDATE` or `DELETE` is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// `INDEXED BY ...`
    pub indexed: Option<Indexed>,
    /// Its `WHERE`.
    pub condition: Option<Piece>,
    /// The terms of its `ORDER BY`.
    pub order: Option<String>,
    /// `LIMIT ...`
    pub limit: Option<String>,
}

/// By which index the rows are to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// `NOT INDEXED`
    Not,
    /// `INDEXED BY name`
    By(String),
}

/// `a = value`, `(a, b) = (value, value)`
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// The columns.
    pub columns: Vec<String>,
    /// What they become.
    pub values: Values,
}

/// What columns are set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One value.
    One(Piece),
    /// One for each column.
    Each(Vec<String>),
    /// The columns of a query, which stands in parentheses.
    Query(String),
    /// Something that is no list of values.
    Other,
}

//! What a statement takes and gives, known before it runs.

use store::definition::SqlType;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDescription {
    /// What it is called: by `AS`, by its own name, or by the text of its expression, as SQLite has it.
    pub name: String,
    /// What PostgreSQL would call it: as above, but an expression is named after its function or is `?column?`.
    pub label: String,
    /// What its values are. A value that does not fit is text beside this type, never another number.
    pub ty: SqlType,
    /// The OID of the table that it comes from unchanged, and its number there, from 1.
    pub table: Option<(u32, u16)>,
    /// What its type has in parentheses there, as PostgreSQL numbers it; -1: nothing.
    pub modifier: i32,
}

impl ColumnDescription {
    /// A column that is a text to all.
    pub(crate) fn text(name: String) -> Self {
        Self { label: name.clone(), name, ty: SqlType::Text, table: None, modifier: -1 }
    }
}

/// What a statement takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The type of each parameter, by its number.
    pub parameters: Vec<SqlType>,
    /// The columns of its rows; `None` for a statement that returns none.
    pub columns: Option<Vec<ColumnDescription>>,
    /// The types that the client chose, where the statement means something else by them: it is run with these.
    pub chosen: Vec<Option<SqlType>>,
    /// What it is: `SELECT`, `INSERT`, `CREATE TABLE`... Empty for no statement at all.
    pub tag: &'static str,
}

//! An ordered index: its columns, how each is ordered, and which rows it holds.

use serde::{Deserialize, Serialize};

use super::{Collation, ColumnDef};

/// A secondary index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    /// Its name, unique in the catalogue.
    pub name: String,
    /// Positions of its columns in the table, the leading one first. An indexed expression is a hidden column.
    pub columns: Vec<usize>,
    /// Whether two rows may not share all columns (NULLs never count as shared).
    pub unique: bool,
    /// Which of its columns descend; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descending: Vec<bool>,
    /// The collations that differ from the columns' own; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collations: Vec<Option<Collation>>,
    /// The hidden column that is 1 in the rows that a partial index holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<usize>,
    /// The array that it has an entry for each element of, instead of one for the row: it has no columns then, and is
    /// of use for nothing that an order serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<usize>,
    /// Whether it stands for a `UNIQUE` in the table's definition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constraint: bool,
    /// Whether it stands for a `PRIMARY KEY` that was added to the table later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub primary: bool,
    /// What `COMMENT ON` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl IndexDef {
    /// An index of whole columns, ascending, of all rows.
    pub fn new(name: impl Into<String>, columns: Vec<usize>, unique: bool) -> Self {
        Self { name: name.into(), columns, unique, ..Self::default() }
    }

    /// An index over the elements of an array.
    pub fn of_elements(name: impl Into<String>, column: usize) -> Self {
        Self { name: name.into(), elements: Some(column), ..Self::default() }
    }

    /// The columns that it is said to be of.
    pub fn named(&self) -> &[usize] {
        self.elements.as_ref().map_or(&self.columns, std::slice::from_ref)
    }

    /// Whether the column at this place of the index descends.
    pub fn is_descending(&self, at: usize) -> bool {
        self.descending.get(at).copied().unwrap_or(false)
    }

    /// How texts of the column at this place of the index compare.
    pub fn collation(&self, at: usize, columns: &[ColumnDef]) -> Collation {
        let own = self.named().get(at).and_then(|&column| columns.get(column));
        let own = own.map_or(Collation::Binary, |column| column.collation.of_index());
        self.collations.get(at).copied().flatten().unwrap_or(own)
    }

    /// All columns that it reads, the predicate's among them.
    pub fn reads(&self) -> impl Iterator<Item = usize> {
        self.named().iter().copied().chain(self.predicate)
    }
}

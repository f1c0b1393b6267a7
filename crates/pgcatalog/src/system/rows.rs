//! Rows of a system table, written column by column, by name.

use store::value::Value;

use super::columns::Layout;

/// Gathers the rows of one table.
#[derive(Debug)]
pub(super) struct Rows {
    layout: &'static Layout,
    all: Vec<Vec<Value>>,
    /// The only table that rows are wanted of.
    table_name: Option<String>,
}

impl Rows {
    pub(super) fn new(layout: &'static Layout, table_name: Option<String>) -> Self {
        Self { layout, all: Vec::new(), table_name }
    }

    /// The only table that rows are wanted of; none: of all.
    pub(super) fn table_name(&self) -> Option<&str> {
        self.table_name.as_deref()
    }

    /// Adds a row. A column that is not named is NULL, or the zero of its type where it cannot be NULL.
    pub(super) fn add<'n>(&mut self, cells: impl IntoIterator<Item = (&'n str, Value)>) {
        let mut row: Vec<Value> =
            self.layout.columns.iter().map(super::columns::ColumnLayout::unset).collect();
        for (name, value) in cells {
            let place = self.layout.position(name);
            debug_assert!(place.is_some(), "{} has no column {name}", self.layout.name);
            if let Some(cell) = place.and_then(|place| row.get_mut(place)) {
                *cell = value;
            }
        }
        self.all.push(row);
    }

    /// The table that they are of.
    pub(super) fn layout(&self) -> &'static Layout {
        self.layout
    }

    pub(super) fn finish(self) -> Vec<Vec<Value>> {
        self.all
    }
}

/// An integer of any width.
pub(super) fn int(value: impl TryInto<i64>) -> Value {
    Value::Integer(value.try_into().unwrap_or(i64::MAX))
}

/// A text.
pub(super) fn text(value: &str) -> Value {
    Value::from(value)
}

/// A truth value.
pub(super) fn flag(value: bool) -> Value {
    Value::Integer(i64::from(value))
}

/// `YES` or `NO`, as `information_schema` says it.
pub(super) fn yes_or_no(value: bool) -> Value {
    Value::from(if value { "YES" } else { "NO" })
}

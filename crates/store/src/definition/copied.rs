//! Rows that are those of a table of the source (`mode = 'update'` and `'mirror'`): which of its columns ours are.

use super::{DefinitionError, Dependence, Mode, TableDef};

/// Where the rows of a table come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The table there, with the columns of our primary key.
    pub on: Dependence,
    /// Columns there, each with the position of ours. Those of the primary key come first, in its order.
    pub columns: Vec<(String, usize)>,
}

impl Copied {
    /// How many of the columns are the key's.
    pub fn key_len(&self) -> usize {
        self.on.columns.len()
    }
}

impl TableDef {
    /// The tables of the source that rows depend on, each with the columns that say which rows. What cannot be read
    /// was refused when it was written.
    pub fn dependences(&self) -> Vec<Dependence> {
        if let Some(copied) = self.copied() {
            return vec![copied.on];
        }
        let options = &self.options;
        let text = if self.source_of_view().is_some() { &options.refresh_on } else { &options.depends };
        let all = text.as_deref().and_then(|text| Dependence::read_all(text).ok());
        all.unwrap_or_default()
    }

    /// Whether changes of its source matter to it: not to a view that is refreshed by time alone.
    pub fn follows_source(&self) -> bool {
        let view = self.source_of_view().is_some();
        self.options.source.is_some() && (!view || self.options.refresh_on.is_some())
    }

    /// Where its rows come from, unless changes only invalidate them.
    pub fn copied(&self) -> Option<Copied> {
        if self.options.mode == Mode::Invalidate { None } else { self.read_copied().ok() }
    }

    /// The key as `depends` names it, and all other columns by it or by their own names.
    fn read_copied(&self) -> Result<Copied, String> {
        let text = self.options.depends.as_deref().ok_or("it needs source and depends")?;
        let [on]: [Dependence; 1] = Dependence::read_all(text)?
            .try_into()
            .map_err(|_| "depends must name one table, that of the rows".to_owned())?;
        let named = |at: usize| {
            let is_it = |(_, ours): &&(String, String)| self.column_index(ours) == Some(at);
            on.columns.iter().find(is_it).map(|(theirs, _)| theirs.clone())
        };
        let key = if self.key_dropped { &[][..] } else { &self.primary_key[..] };
        let mut columns = Vec::with_capacity(self.columns.len());
        for &at in key {
            let theirs = named(at).ok_or_else(|| {
                format!("depends must name the column of the source for {}", self.columns[at].name)
            })?;
            columns.push((theirs, at));
        }
        if columns.is_empty() {
            return Err("the table needs a primary key".to_owned());
        }
        let on_key = columns.iter().map(|(theirs, at)| (theirs.clone(), self.columns[*at].name.clone()));
        let key =
            Dependence { schema: on.schema.clone(), table: on.table.clone(), columns: on_key.collect() };
        for (at, column) in self.columns.iter().enumerate() {
            if column.generated.is_some() {
                match named(at) {
                    Some(_) => return Err(format!("column {} is generated here", column.name)),
                    None => continue,
                }
            }
            if column.is_visible() && !self.primary_key.contains(&at) {
                columns.push((named(at).unwrap_or_else(|| column.name.to_ascii_lowercase()), at));
            }
        }
        Ok(Copied { on: key, columns })
    }

    /// Whether the table can have the rows of the source.
    pub(super) fn validate_mode(&self) -> Result<(), DefinitionError> {
        let mode = self.options.mode;
        if mode == Mode::Invalidate {
            return Ok(());
        }
        let refused = |why: &str| Err(DefinitionError::invalid(format!("mode = '{}': {why}", mode.name())));
        if mode == Mode::Answers {
            let is_list = |at: usize| self.columns[at].sql_type().is_array();
            let tagged = self.column_index("tags").is_some_and(is_list);
            let alone = self.options.depends.is_none() && self.options.query.is_none();
            return match self.options.source {
                Some(_) if tagged && alone => Ok(()),
                _ => refused("it is for the table that the daemon makes for a server with cache = 'auto'"),
            };
        }
        if let Err(why) = self.read_copied() {
            return refused(&why);
        }
        if !self.checks.is_empty() || self.indexes.iter().any(|index| index.unique) {
            return refused(
                "conditions and unique columns are checked at the source, so leave them out here",
            );
        }
        let options = &self.options;
        let forgets = [options.ttl_ms, options.max_rows, options.max_ops, options.max_memory];
        if mode == Mode::Mirror && (forgets.iter().any(Option::is_some) || !self.rules.is_empty()) {
            return refused("a mirror has all rows: no ttl, max_rows, max_ops, max_memory or expiry rule");
        }
        Ok(())
    }
}

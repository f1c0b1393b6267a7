//! Changes of a source as the tags of answers that depend on them.

use forward::{Answers, Hub, Touches};
use inspect::told;

use crate::batch::Batch;
use crate::error::{Error, of_cache};
use crate::row::{Cell, Cells, Relation};
use crate::source::Source;
use crate::wire::Connection;

/// Has changes be told by the tags of the answers that an earlier process has kept.
pub(crate) fn recover_tags(source: &Source, beside: &mut Connection, hub: &Hub) -> Result<(), Error> {
    let tags = Answers::new(&source.engine).tag_columns(&source.server.name).map_err(of_cache)?;
    let relations: Vec<String> = tags.keys().map(u32::to_string).collect();
    let rows = beside.query(&format!(
        "WITH RECURSIVE member (root, oid) AS (SELECT oid, oid FROM unnest('{{{}}}'::oid[]) oid
         UNION SELECT m.root, i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid)
         SELECT oid, root FROM member",
        relations.join(",")
    ))?;
    let number = |row: &[Option<String>], at: usize| row.get(at)?.as_deref()?.parse().ok();
    let leaves: Option<Vec<(u32, u32)>> =
        rows.iter().map(|row| Some((number(row, 0)?, number(row, 1)?))).collect();
    let leaves = leaves.ok_or_else(|| Error::connection("the source gives no numbers of its tables"))?;
    hub.tell_again(&tags, &leaves);
    Ok(())
}

/// Where the tags of changes go: the keys of the table of answers, which is the target of this number.
pub(crate) struct Tags<'b> {
    pub(crate) under_way: &'b mut Batch,
    pub(crate) target: usize,
    pub(crate) hub: &'b Hub,
}

impl Tags<'_> {
    /// A row of a table came, changed or went. True: answers may depend on it.
    pub(crate) fn change<R: Cells>(&mut self, table: &Relation, old: Option<&R>, new: Option<&R>) -> bool {
        let all = self.touches(table.id);
        let any = !all.is_empty();
        for touches in all {
            self.add(&touches.relation.to_string());
            for column in touches.columns.iter() {
                self.column(&touches, table, column, old, new);
            }
        }
        any
    }

    /// All of a table is another one.
    pub(crate) fn whole(&mut self, relation: u64) {
        for touches in self.touches(relation) {
            self.add(&touches.relation.to_string());
            self.add(&format!("{}.*", touches.relation));
        }
    }

    fn touches(&self, relation: u64) -> Vec<Touches> {
        // The numbers of PostgreSQL's tables have 32 bits.
        u32::try_from(relation).map_or_else(|_| Vec::new(), |relation| self.hub.touches(relation))
    }

    /// Adds the values that a column had and has. A change that does not tell them concerns every answer of the table.
    fn column<R: Cells>(
        &mut self,
        touches: &Touches,
        table: &Relation,
        column: &str,
        old: Option<&R>,
        new: Option<&R>,
    ) {
        let relation = touches.relation;
        let at = table.columns.iter().position(|(name, is_told)| name == column && (table.full || *is_told));
        let Some(at) = at else { return self.add(&format!("{relation}.*")) };
        // Where the source is a PostgreSQL, its types are known.
        let type_oid = table.types.get(at).map_or(0, |(oid, _)| *oid);
        for row in [old, new].into_iter().flatten() {
            match row.cell(at) {
                Cell::Null => {}
                Cell::Text(value) => {
                    let mut tag = format!("{relation}.{column}=").into_bytes();
                    tag.extend_from_slice(&told(type_oid, value));
                    self.under_way.keys(self.target).add(&[&tag]);
                }
                // The old row has it, where one was told.
                Cell::Unchanged if old.is_some() => {}
                Cell::Unchanged => self.add(&format!("{relation}.*")),
            }
        }
    }

    fn add(&mut self, tag: &str) {
        self.under_way.keys(self.target).add(&[tag.as_bytes()]);
    }
}

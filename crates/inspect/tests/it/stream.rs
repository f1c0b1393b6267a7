//! The stream of changes, read from a slot in SQL, and the tags that a change carries.

use std::collections::{BTreeMap, BTreeSet};

use inspect::{Dependences, told};

use crate::server::Connection;

/// The publication and the slot of the tests.
pub(crate) const PUBLICATION: &str = "told";

/// What changed: in which table, and the columns of the old and new rows that the stream tells.
#[derive(Debug)]
pub(crate) struct Change {
    table: u32,
    /// `None`: all rows.
    columns: Option<Vec<(String, Option<String>)>>,
}

impl Change {
    /// Whether it is one of a table that the answer is made of.
    pub(crate) fn is_of(&self, dependences: &Dependences) -> bool {
        dependences.relations.iter().any(|relation| relation.leaves.contains(&self.table))
    }

    /// Whether it drops an answer with these tags.
    pub(crate) fn drops(&self, dependences: &Dependences, tags: &BTreeSet<String>) -> bool {
        let ancestors = dependences.relations.iter().filter(|relation| relation.leaves.contains(&self.table));
        ancestors.into_iter().any(|relation| {
            let oid = relation.oid;
            let by_column = match &self.columns {
                None => tags.contains(&format!("{oid}.*")),
                Some(columns) => columns.iter().any(|(column, value)| {
                    value.as_ref().is_some_and(|value| tags.contains(&format!("{oid}.{column}={value}")))
                }),
            };
            by_column || tags.contains(&oid.to_string())
        })
    }
}

/// Reads `pgoutput`, version 1 of its protocol.
#[derive(Default)]
pub(crate) struct Stream {
    /// The columns of each table, whether they are in its replica identity, and their types.
    tables: BTreeMap<u32, Vec<(String, bool, u32)>>,
}

impl Stream {
    /// Makes the publication and the slot.
    pub(crate) fn begin(session: &mut Connection) -> Self {
        session.rows(&format!("CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES"));
        session.rows("SELECT pg_create_logical_replication_slot('told', 'pgoutput')");
        Self::default()
    }

    /// What changed since the last call.
    pub(crate) fn changes(&mut self, session: &mut Connection) -> Vec<Change> {
        let messages = session.rows(&format!(
            "SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes( \
             'told', NULL, NULL, 'proto_version', '1', 'publication_names', '{PUBLICATION}')"
        ));
        let mut changes = Vec::new();
        for row in messages {
            let text = row[0].clone().unwrap();
            let bytes: Vec<u8> = text
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            self.message(Reader(&bytes), &mut changes);
        }
        changes
    }

    fn message(&mut self, mut message: Reader<'_>, changes: &mut Vec<Change>) {
        match message.byte() {
            b'R' => {
                let table = message.u32();
                let _ = (message.text(), message.text(), message.byte());
                let columns = (0..message.u16()).map(|_| {
                    let is_key = message.byte() & 1 == 1;
                    let name = message.text();
                    let type_oid = message.u32();
                    let _ = message.u32();
                    (name, is_key, type_oid)
                });
                let columns = columns.collect();
                self.tables.insert(table, columns);
            }
            b'I' | b'U' | b'D' => {
                let table = message.u32();
                let mut columns = Vec::new();
                while let Some(kind) = message.next_byte() {
                    self.row(table, kind, &mut message, &mut columns);
                }
                changes.push(Change { table, columns: Some(columns) });
            }
            b'T' => {
                let count = message.u32();
                let _ = message.byte();
                changes.extend((0..count).map(|_| Change { table: message.u32(), columns: None }));
            }
            _ => {}
        }
    }

    /// A row: of an old one by its key (`K`) only the key is told.
    fn row(
        &self,
        table: u32,
        kind: u8,
        message: &mut Reader<'_>,
        columns: &mut Vec<(String, Option<String>)>,
    ) {
        let _ = message.u16();
        for (name, is_key, type_oid) in &self.tables[&table] {
            let value = match message.byte() {
                b't' => {
                    let length = message.u32() as usize;
                    Some(String::from_utf8(told(*type_oid, message.take(length)).into_owned()).unwrap())
                }
                b'n' => None,
                other => panic!("the stream tells a column as {other}"),
            };
            if kind != b'K' || *is_key {
                columns.push((name.clone(), value));
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn next_byte(&mut self) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.byte())
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.take(end).to_vec()).unwrap();
        self.byte();
        text
    }
}

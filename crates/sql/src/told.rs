//! What a session has made invalid and other caches are to hear: at once, or when its transaction commits.

use std::fmt;
use std::sync::Arc;

use pgcatalog::function::like::LikeStyle;
use store::Table;
use store::definition::SqlType;
use store::scalar::zone::Zone;
use store::value::Value;

use crate::journal::value_bytes;
use crate::limits::TOLD_IN_BLOCK_MAX;

/// Rows of a table that are not valid any more.
#[derive(Clone, Debug)]
pub struct Told {
    /// The table.
    pub table: Arc<Table>,
    /// Which of them.
    pub what: ToldRows,
    /// Where the session is: moments in texts without an offset are of there.
    pub zone: Option<Zone>,
    /// What `LIKE` means to it.
    pub like: LikeStyle,
}

/// Which rows.
#[derive(Clone, Debug)]
pub enum ToldRows {
    /// All of the table.
    All,
    /// Those that a statement chooses.
    Chosen {
        /// The statement, of which nothing but the table's own columns, constants and parameters is a part.
        text: Arc<str>,
        /// The values of its parameters.
        values: Vec<Value>,
        /// The types that the client chose for them.
        types: Box<[Option<SqlType>]>,
    },
}

impl Told {
    pub(crate) fn new(table: &Arc<Table>, what: ToldRows) -> Self {
        Self { table: Arc::clone(table), what, zone: None, like: LikeStyle::default() }
    }

    /// It, or all rows where it takes more bytes than this.
    pub(crate) fn bounded(mut self, bytes: usize) -> Self {
        if let ToldRows::Chosen { text, values, .. } = &self.what
            && text.len() + values.iter().map(value_bytes).sum::<usize>() > bytes
        {
            self.what = ToldRows::All;
        }
        self
    }
}

/// Tells other caches which rows a statement changes before it tells what they are now.
pub trait Teller: fmt::Debug + Send + Sync {
    /// This thread is about to change these rows of tables whose rows travel. `zone` is the name of the session's time
    /// zone.
    fn tell_first(&self, told: Vec<Told>, zone: Option<&str>);

    /// It has changed them, or not: then nobody hears of it.
    fn end(&self, changed: bool);
}

/// What an open transaction has to tell.
#[derive(Debug, Default)]
pub(crate) struct ToTell {
    list: Vec<Told>,
    /// The savepoints, each with how much there was to tell.
    marks: Vec<(String, usize)>,
}

impl ToTell {
    /// Adds to it. Of very many, all rows of their tables are told, and no savepoint takes that back.
    pub(crate) fn push(&mut self, told: Told) {
        self.list.push(told);
        if self.list.len() > TOLD_IN_BLOCK_MAX {
            let mut all: Vec<Told> = Vec::new();
            for told in self.list.drain(..) {
                if !all.iter().any(|known| known.table.is_same(&told.table)) {
                    all.push(Told { what: ToldRows::All, ..told });
                }
            }
            self.marks.iter_mut().for_each(|(_, mark)| *mark = all.len());
            self.list = all;
        }
    }

    pub(crate) fn savepoint(&mut self, name: &str) {
        self.marks.push((name.to_owned(), self.list.len()));
    }

    /// Forgets what came after the newest mark of this name.
    pub(crate) fn roll_back_to(&mut self, name: &str) {
        if let Some(at) = self.marks.iter().rposition(|(own, _)| own == name) {
            self.list.truncate(self.marks[at].1);
            self.marks.truncate(at + 1);
        }
    }

    /// Forgets the newest mark of this name and those after it.
    pub(crate) fn release(&mut self, name: &str) {
        if let Some(at) = self.marks.iter().rposition(|(own, _)| own == name) {
            self.marks.truncate(at);
        }
    }

    /// Takes out what is to be told before it takes effect.
    pub(crate) fn take_first(&mut self) -> Vec<Told> {
        if !self.list.iter().any(|told| told.table.replicates_rows()) {
            return Vec::new();
        }
        self.marks.iter_mut().for_each(|(_, mark)| *mark = 0);
        self.list.extract_if(.., |told| told.table.replicates_rows()).collect()
    }

    /// What took effect is told. Savepoints stay: nothing before them is to be taken back.
    pub(crate) fn take(&mut self) -> Vec<Told> {
        self.marks.iter_mut().for_each(|(_, mark)| *mark = 0);
        std::mem::take(&mut self.list)
    }
}

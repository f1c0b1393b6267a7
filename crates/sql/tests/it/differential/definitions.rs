//! Definitions in the midst of statements: columns that are renamed and dropped, views of any query, tables made of
//! one.

use super::World;
use super::compare::compare;
use super::schema::Table;

impl World {
    /// A change that both sides take, or neither.
    pub(crate) fn redefine(&mut self) -> Result<(), String> {
        match self.rng.u32(0..6) {
            0 => self.rename_column(),
            1 => self.drop_column(),
            2 => self.rename_table(),
            3 => {
                for sql in ["REINDEX", "ANALYZE"] {
                    self.both(sql)?;
                }
                Ok(())
            }
            4 => self.through_view(),
            _ => self.through_table(),
        }
    }

    /// Runs a definition on both sides; says whether they took it.
    fn both(&mut self, sql: &str) -> Result<bool, String> {
        self.log.push(sql.to_owned());
        match (self.native.query(sql), self.db.execute(sql, &[])) {
            (Ok(_), Ok(_)) => Ok(true),
            (Err(_), Err(_)) => Ok(false),
            (native, ours) => Err(format!("native {native:?}, ours {ours:?}")),
        }
    }

    /// Columns that nothing is made of; a view is, here, of all of them.
    fn loose_column(&mut self, at: usize) -> Option<usize> {
        let table = &self.tables[at];
        let loose = |&column: &usize| table.is_free(column) && !table.is_read(&table.columns[column].name);
        let loose: Vec<usize> = (0..table.columns.len()).filter(loose).collect();
        self.rng.choice(&loose).copied().filter(|_| self.tables[at].view.is_none())
    }

    fn rename_column(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..2);
        let table = &self.tables[at];
        let column = self.rng.usize(0..table.columns.len());
        if table.view.is_some() {
            return Ok(());
        }
        let (old, new) = (table.columns[column].name.clone(), format!("{}r{}", table.name, self.log.len()));
        let sql = format!("ALTER TABLE {} RENAME COLUMN {old} TO {new}", table.name);
        if self.both(&sql)? {
            self.tables[at].rename_column(&old, &new);
        }
        self.compare_table(at)
    }

    fn drop_column(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..2);
        let Some(column) = self.loose_column(at).filter(|_| self.tables[at].columns.len() > 2) else {
            return Ok(());
        };
        let table = &self.tables[at];
        let sql = format!("ALTER TABLE {} DROP COLUMN {}", table.name, table.columns[column].name);
        if self.both(&sql)? {
            self.tables[at].forget_column(column);
        }
        self.compare_table(at)
    }

    /// Under another name and back.
    fn rename_table(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..2);
        if self.tables[at].view.is_some() {
            return Ok(());
        }
        let name = self.tables[at].name.clone();
        if self.both(&format!("ALTER TABLE {name} RENAME TO other"))? {
            let all = "SELECT * FROM other";
            let ours = self.db.execute(all, &[]).map_err(|error| error.to_string())?.1.rows;
            compare(self.native.query(all)?, ours, false, false)?;
            self.both(&format!("ALTER TABLE other RENAME TO {name}"))?;
        }
        self.compare_table(at)
    }

    /// A query as it is, and as a view.
    fn through_view(&mut self) -> Result<(), String> {
        let (query, _) = if self.rng.bool() { self.advanced_select() } else { self.select() };
        // SQLite looks at a view's query when it is read, we when it is made.
        if self.native.query(&query).is_err() || self.is_of_types(&query) {
            return Ok(());
        }
        self.through(&format!("CREATE VIEW w AS {query}"), "DROP VIEW w")
    }

    fn through_table(&mut self) -> Result<(), String> {
        let (query, _) = if self.rng.bool() { self.advanced_select() } else { self.select() };
        if self.is_of_types(&query) {
            return Ok(());
        }
        self.through(&format!("CREATE TABLE w AS SELECT * FROM ({query})"), "DROP TABLE w")
    }

    fn through(&mut self, create: &str, drop: &str) -> Result<(), String> {
        if !self.both(create)? {
            return Ok(());
        }
        let all = "SELECT * FROM w";
        let (native, ours) = (self.native.query(all), self.db.execute(all, &[]));
        match (native, ours) {
            (Ok(native), Ok((_, ours))) => {
                let folds = self.folds || create.contains("COLLATE");
                compare(native, ours.rows, false, folds)?;
            }
            (Err(_), Err(_)) => {}
            (native, ours) => return Err(format!("native {native:?}, ours {ours:?}")),
        }
        self.both(drop).map(|_| ())
    }
}

impl Table {
    /// Whether a definition reads a column.
    fn is_read(&self, name: &str) -> bool {
        let texts = self.expressions.iter().chain(&self.conditions).chain(&self.terms).chain(&self.checks);
        let made = self.columns.iter().filter_map(|column| column.generated.as_ref());
        texts.chain(made).any(|text| words(text).any(|word| word == name))
    }

    fn forget_column(&mut self, gone: usize) {
        self.columns.remove(gone);
        for at in self.key.iter_mut().chain(&mut self.watched) {
            *at -= usize::from(*at > gone);
        }
    }

    fn rename_column(&mut self, old: &str, new: &str) {
        for column in &mut self.columns {
            if column.name == old {
                new.clone_into(&mut column.name);
            }
            if let Some(generated) = &mut column.generated {
                *generated = renamed(generated, old, new);
            }
        }
        let lists = [
            &mut self.expressions,
            &mut self.conditions,
            &mut self.terms,
            &mut self.checks,
            &mut self.targets,
        ];
        for text in lists.into_iter().flatten() {
            *text = renamed(text, old, new);
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_alphanumeric())
}

/// The text with each word of this name replaced.
fn renamed(text: &str, old: &str, new: &str) -> String {
    let mut made = String::new();
    let mut word = String::new();
    for sign in text.chars().chain([' ']) {
        if sign.is_alphanumeric() {
            word.push(sign);
            continue;
        }
        made.push_str(if word == old { new } else { &word });
        word.clear();
        made.push(sign);
    }
    made.pop();
    made
}

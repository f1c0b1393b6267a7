//! Where answers are kept: rows of an ordinary table, found and written by a session of this program's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Counter, Engine, Formats, Prepared, RowSink,
    SqlError, SqlSession, SqlThreadContext, Tick, Value, ValueRef,
};

use crate::state::Hash;

/// An answer to be kept.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) id: Hash,
    /// The number of its statement.
    pub(crate) statement: u64,
    pub(crate) tags: &'a [String],
    pub(crate) body: Vec<u8>,
}

/// The columns of tables, by the tables' OIDs, whose values are in tags of answers.
pub type TagColumns = BTreeMap<u32, BTreeSet<String>>;

/// What a thread finds and keeps answers with.
pub struct Answers {
    session: SqlSession,
    context: SqlThreadContext,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

/// The table of a server's answers, as statements name it.
pub fn table_of(server: &str) -> String {
    format!("public.\"{}_answers\"", server.replace('"', "\"\""))
}

/// The statements that make it, where there is none.
pub fn definition_of(server: &str) -> [String; 2] {
    let (table, name) = (table_of(server), server.replace('\'', "''"));
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (
                id BYTEA PRIMARY KEY, statement BIGINT NOT NULL, tags TEXT[] NOT NULL, answer BYTEA NOT NULL
             ) WITH (source = '{name}', mode = 'answers')"
        ),
        format!(
            "CREATE INDEX IF NOT EXISTS \"{}_answers_each_tag\" ON {table} USING gin (tags)",
            server.replace('"', "\"\"")
        ),
    ]
}

/// The statements for the answers of one server.
#[derive(Debug)]
pub(crate) struct Texts {
    find: String,
    keep: String,
}

impl Texts {
    pub(crate) fn of(server: &str) -> Self {
        let table = table_of(server);
        Self {
            find: format!("SELECT answer FROM {table} WHERE id = $1"),
            keep: format!("REPLACE INTO {table} (id, statement, tags, answer) VALUES ($1, $2, $3, $4)"),
        }
    }
}

impl Answers {
    /// For one thread.
    pub fn new(engine: &Arc<Engine>) -> Self {
        let context = SqlThreadContext::new(engine.context());
        Self { session: SqlSession::source(Arc::clone(engine)), context }
    }

    /// Runs the statements that make the table.
    ///
    /// # Errors
    ///
    /// The first that fails.
    pub fn define(&mut self, statements: &[String]) -> Result<(), SqlError> {
        statements
            .iter()
            .try_for_each(|sql| self.session.run_text(&mut self.context, sql, true, &mut Nobody).map(drop))
    }

    /// The columns that are in the tags of a server's answers.
    ///
    /// # Errors
    ///
    /// The table of answers is not what it was made as, or has tags that nobody here writes.
    pub fn tag_columns(&mut self, server: &str) -> Result<TagColumns, SqlError> {
        let mut found = Tags::default();
        let sql = format!("SELECT tags FROM {}", table_of(server));
        self.session.run_text(&mut self.context, &sql, true, &mut found)?;
        Ok(found.0)
    }

    /// The time, as rows have it and in microseconds.
    pub fn now(&self) -> (Tick, u64) {
        let context = self.context.context();
        (context.now(), context.engine().store().clock().now_ns() / 1_000)
    }

    /// Counts something for the statistics of the program.
    pub fn count(&self, counter: Counter, by: u64) {
        self.context.context().count(counter, by);
    }

    /// Looks at the clock once for all that follows.
    pub fn begin_turn(&mut self) {
        self.context.context_mut().begin_batch();
    }

    /// Appends an answer to `out`; false: there is none.
    pub(crate) fn find(&mut self, of: &Texts, id: &Hash, out: &mut Vec<u8>) -> bool {
        let mut found = Found { out, any: false };
        let fill = |values: &mut Vec<Value>| values.push(Value::Blob(id.to_vec()));
        let done = self.run(&of.find, fill, &mut found);
        found.any && done.is_ok()
    }

    /// Keeps an answer; false: it does not fit, or there is no table for it.
    pub(crate) fn keep(&mut self, of: &Texts, answer: Answer<'_>) -> bool {
        let Answer { id, statement, tags, body } = answer;
        let fill = |values: &mut Vec<Value>| {
            values.push(Value::Blob(id.to_vec()));
            values.push(Value::Integer(i64::try_from(statement).unwrap_or(i64::MAX)));
            // The form that lists have in the store.
            values.push(Value::Text(serde_json::json!(tags).to_string()));
            values.push(Value::Blob(body));
        };
        let done = self.run(&of.keep, fill, &mut Nobody);
        done.inspect_err(|error| tracing::debug!("an answer is not kept: {}", error.message)).is_ok()
    }

    /// Runs a statement, which is prepared under its own text.
    fn run(
        &mut self,
        sql: &str,
        fill: impl FnOnce(&mut Vec<Value>),
        sink: &mut dyn ClientSink,
    ) -> Result<(), SqlError> {
        let prepared = self.prepared(sql)?;
        let mut values = self.session.recycled_values();
        fill(&mut values);
        self.session.bind("", prepared, values, Formats::Binary)?;
        let done = self.session.execute(&mut self.context, "", 0, false, sink).map(drop);
        let synced = self.session.sync(&mut self.context);
        // The table may be another one by now: it is prepared again.
        done.and(synced).inspect_err(|_| self.session.close_statement(sql))
    }

    fn prepared(&mut self, sql: &str) -> Result<Arc<Prepared>, SqlError> {
        if let Ok(prepared) = self.session.prepared(sql) {
            return Ok(Arc::clone(prepared));
        }
        self.session.parse(&mut self.context, sql, sql, std::iter::empty())?;
        self.session.prepared(sql).cloned()
    }
}

/// Takes an answer.
struct Found<'o> {
    out: &'o mut Vec<u8>,
    any: bool,
}

impl RowSink for Found<'_> {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if let [ValueRef::Blob(answer)] = values {
            self.out.extend_from_slice(answer);
            self.any = true;
        }
        Ok(())
    }
}

impl ClientSink for Found<'_> {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

/// Takes the tags of answers.
#[derive(Default)]
struct Tags(TagColumns);

impl RowSink for Tags {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let unknown = || SqlError::new("XX001", "the table of answers has tags that are not known here");
        let [ValueRef::Text(tags)] = values else { return Err(unknown()) };
        let tags: Vec<String> = serde_json::from_str(tags).map_err(|_| unknown())?;
        for tag in &tags {
            let (relation, column) = tag.split_once('.').unwrap_or((tag, ""));
            let columns = self.0.entry(relation.parse().map_err(|_| unknown())?).or_default();
            if let Some((column, _)) = column.split_once('=')
                && !columns.contains(column)
            {
                columns.insert(column.to_owned());
            }
        }
        Ok(())
    }
}

impl ClientSink for Tags {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

/// Nobody reads what a statement gives.
struct Nobody;

impl RowSink for Nobody {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}

impl ClientSink for Nobody {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

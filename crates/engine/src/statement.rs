//! SQL statements over a protocol that wants rows as JSON.

use std::sync::Arc;

use sql::{Cancel, ColumnDescription, Done, DoneKind, Executor, RowSink, SqlError, SqlType, StatementText};
use store::value::ValueRef;

use crate::activity::Concern;
use crate::answer::Answer;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::json;
use crate::latency::Class;
use crate::parameters::{self, refused};
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::ThreadContext;

/// The protocol of these statements.
const MEMCACHED: &str = "memcached";

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// A statement.
    Statement(&'a [u8]),
    /// A call of the function or procedure of this name: the parameters are what it is given.
    Call(&'a [u8]),
}

impl<'a> From<&'a [u8]> for Asked<'a> {
    fn from(statement: &'a [u8]) -> Self {
        Self::Statement(statement)
    }
}

impl<'a> Asked<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Statement(bytes) | Self::Call(bytes) => bytes,
        }
    }
}

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It gave rows, which are in the buffer.
    Rows,
    /// It changed this many rows, and gave none.
    Changed(u64),
    /// It failed and changed nothing; the buffer is as it was.
    Failed(SqlError),
}

impl Session {
    /// Runs one statement on the calling thread and appends its rows to `out`, one JSON object a line. All rows are
    /// there before the first is sent, so that a slow reader holds nothing but these bytes.
    pub fn sql<'a>(
        &self,
        context: &mut ThreadContext,
        executor: &mut Executor,
        asked: impl Into<Asked<'a>>,
        parameters: Option<&[u8]>,
        cancel: &Cancel,
        out: &mut Vec<u8>,
    ) -> Finished {
        let asked = asked.into();
        context.count(Counter::CmdSql, 1);
        context.count(Counter::SqlByMemcached, 1);
        let begin = out.len();
        match self.run(context, executor, asked, parameters, cancel, out) {
            Ok(Done { kind: DoneKind::Rows, .. }) => Finished::Rows,
            Ok(done) => Finished::Changed(done.affected),
            Err(error) => {
                out.truncate(begin);
                self.note_failed(&String::from_utf8_lossy(asked.bytes()), &error);
                context.count(Counter::SqlErrors, 1);
                Finished::Failed(error)
            }
        }
    }

    fn run(
        &self,
        context: &mut ThreadContext,
        executor: &mut Executor,
        asked: Asked<'_>,
        parameters: Option<&[u8]>,
        cancel: &Cancel,
        out: &mut Vec<u8>,
    ) -> Result<Done, SqlError> {
        if let Err(Answer::NotAllowed(message)) = self.allow(Command::Sql) {
            return Err(refused("42501", message.to_owned()));
        }
        #[cfg(debug_assertions)]
        crate::testing::pass("sql", asked.bytes());
        let statement = std::str::from_utf8(asked.bytes()).map_err(|error| {
            refused("22021", format!("statement is not UTF-8 at byte {}", error.valid_up_to()))
        })?;
        let parameters = parameters.map(parameters::parse).transpose()?.unwrap_or_default();
        let call = match asked {
            Asked::Call(_) => Some(executor.text_of_call(statement, parameters.len())?),
            Asked::Statement(_) => None,
        };
        let statement = call.as_deref().unwrap_or(statement);
        let limit = out.len().saturating_add(context.engine().options().result_size_max);
        let mut rows = JsonRows { names: Vec::new(), decimal: Vec::new(), out, limit };
        let text = StatementText::new(statement);
        let counted = context.statement(&text);
        let sampled = context.is_timed_statement();
        let session = &mut sql::Session::for_single_statements();
        session.set_teller(Arc::<Engine>::clone(context.engine()));
        if let Some(identity) = self.identity() {
            session.set_identity(identity);
        }
        let engine = context.engine();
        if counted.concern(&engine.store) == Concern::Writes {
            engine.spoil_fetches_of(&counted);
        }
        let (slow, store) = (&engine.activity.slow, &engine.store);
        let (result, took) = counted.run(store, executor, statement, sampled || slow.is_on(), |executor| {
            executor.execute_text(session, &text, (&parameters, &[]), cancel, &mut rows)
        });
        let told = session.take_told();
        let receipt = if told.is_empty() { None } else { engine.tell(told, (None, None)) };
        if let Some(took) = took.filter(|_| sampled) {
            context.note_statement_time(Class::MEMCACHED_SQL.of_statement(&result), took);
        }
        let invalidates = result.as_ref().is_ok_and(|done| done.invalidated.is_some());
        if invalidates || took.is_some_and(|took| slow.is_slow(took)) {
            let who = self.who(MEMCACHED);
            let text = (statement, &parameters[..]);
            let happening = engine.activity.note(store, &counted, text, (&result, took), &who);
            if let Some(happening) = happening {
                engine.activity.keep(happening);
            }
        }
        if let Ok(done) = &result {
            engine.activity.note_done(|| self.who(MEMCACHED), counted.query(), done.tag);
        }
        context.receipt = receipt;
        context.note_written_too();
        result
    }
}

/// Writes rows as they come.
struct JsonRows<'o> {
    /// Each column's name as JSON text with what stands before and after it: `{"name":` or `,"name":`.
    names: Vec<Vec<u8>>,
    /// Whether each column's values are decimal numbers, whose texts are numbers of JSON's.
    decimal: Vec<bool>,
    out: &'o mut Vec<u8>,
    /// How long `out` may become.
    limit: usize,
}

impl RowSink for JsonRows<'_> {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.names.clear();
        self.decimal.clear();
        self.decimal.extend(columns.iter().map(|column| column.ty == SqlType::Numeric));
        for (at, column) in columns.iter().enumerate() {
            let mut text = vec![if at == 0 { b'{' } else { b',' }];
            json::write_text(&column.name, &mut text);
            text.push(b':');
            self.names.push(text);
        }
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        for ((name, decimal), value) in self.names.iter().zip(&self.decimal).zip(values) {
            self.out.extend_from_slice(name);
            match value {
                ValueRef::Text(text) if *decimal && json::is_number(text) => {
                    self.out.extend_from_slice(text.as_bytes());
                }
                _ => json::write_value(*value, self.out),
            }
        }
        self.out.extend_from_slice(b"}\r\n");
        if self.out.len() > self.limit { Err(self.too_large()) } else { Ok(()) }
    }
}

impl JsonRows<'_> {
    #[cold]
    fn too_large(&self) -> SqlError {
        let message = format!("result is larger than {} bytes (max_result_size)", self.limit);
        let hint = Some("use LIMIT, or ask for fewer columns".to_owned());
        SqlError { hint, ..SqlError::new("54000", message) }
    }
}

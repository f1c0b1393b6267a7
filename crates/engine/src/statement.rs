//! SQL statements over a protocol that wants rows as JSON.

use sql::{Cancel, ColumnDescription, Done, DoneKind, Executor, RowSink, SqlError, SqlType, StatementText};
use store::value::ValueRef;

use crate::answer::Answer;
use crate::counters::Counter;
use crate::json;
use crate::parameters::{self, refused};
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::ThreadContext;

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
    pub fn sql(
        &self,
        context: &mut ThreadContext,
        executor: &mut Executor,
        statement: &[u8],
        parameters: Option<&[u8]>,
        cancel: &Cancel,
        out: &mut Vec<u8>,
    ) -> Finished {
        context.count(Counter::CmdSql, 1);
        let begin = out.len();
        match self.run(context, executor, statement, parameters, cancel, out) {
            Ok(Done { kind: DoneKind::Rows, .. }) => Finished::Rows,
            Ok(done) => Finished::Changed(done.affected),
            Err(error) => {
                out.truncate(begin);
                self.note_failed(&String::from_utf8_lossy(statement), &error);
                context.count(Counter::SqlErrors, 1);
                Finished::Failed(error)
            }
        }
    }

    fn run(
        &self,
        context: &mut ThreadContext,
        executor: &mut Executor,
        statement: &[u8],
        parameters: Option<&[u8]>,
        cancel: &Cancel,
        out: &mut Vec<u8>,
    ) -> Result<Done, SqlError> {
        if let Err(Answer::NotAllowed(message)) = self.allow(Command::Sql) {
            return Err(refused("42501", message.to_owned()));
        }
        #[cfg(feature = "testing")]
        crate::testing::pass("sql", statement);
        let statement = std::str::from_utf8(statement).map_err(|error| {
            refused("22021", format!("statement is not UTF-8 at byte {}", error.valid_up_to()))
        })?;
        let parameters = parameters.map(parameters::parse).transpose()?.unwrap_or_default();
        let limit = out.len().saturating_add(context.engine().options().result_size_max);
        let mut rows = JsonRows { names: Vec::new(), decimal: Vec::new(), out, limit };
        let text = StatementText::new(statement);
        let counted = context.statement(&text);
        let session = &mut sql::Session::for_single_statements();
        if let Some(identity) = self.identity() {
            session.set_identity(identity);
        }
        counted.run(&context.engine().store, executor, statement, |executor| {
            executor.execute_text(session, &text, (&parameters, &[]), cancel, &mut rows)
        })
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

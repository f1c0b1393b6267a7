//! The init file: statements that say which tables there are. It holds at every start.
//!
//! An empty arena runs all of it. With tables in the arena, the file is first run in a store beside it ([`rehearse`]),
//! so that it is known what each statement makes. Then whatever is missing is made; what is there is left, with its
//! rows; and where the two differ, the file is followed if no row is lost by it, or else the log names the difference.

mod apply;
mod picture;
mod rehearse;
mod split;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::{Cancel, Engine, Finished, Session};

pub(crate) use apply::apply;
use split::Statement;

/// What the statements of an init file are run with.
struct Runner {
    session: Session,
    context: engine::ThreadContext,
    executor: engine::Executor,
    rows: Vec<u8>,
}

/// Why a statement failed: SQLSTATE and message.
type Failure = (String, String);

impl Runner {
    fn new(engine: &Arc<Engine>) -> Result<Self, String> {
        let executor = engine.executor(None).map_err(|error| format!("init_file: {}", error.message))?;
        Ok(Self { session: Session::local(), context: engine.context(), executor, rows: Vec::new() })
    }

    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.rows.clear();
        let (bytes, cancel) = (statement.as_bytes(), Cancel::default());
        let finished =
            self.session.sql(&mut self.context, &mut self.executor, bytes, None, &cancel, &mut self.rows);
        match finished {
            Finished::Failed(error) => Err((error.state.to_string(), error.message.clone())),
            _ => Ok(()),
        }
    }
}

/// Runs every statement of the file, in order; gives back how many there were. The first that fails ends it.
pub(crate) fn run(path: &Path, engine: &Arc<Engine>) -> Result<usize, String> {
    let text = read(path)?;
    let statements = split::statements(&text);
    let mut runner = Runner::new(engine)?;
    for statement in &statements {
        runner.run(statement.text).map_err(|failure| failed(path, statement, &failure))?;
    }
    Ok(statements.len())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("init_file {}: {error}", path.display()))
}

fn failed(path: &Path, statement: &Statement<'_>, (state, message): &Failure) -> String {
    format!("init_file {} line {}: {state} {message}", path.display(), statement.line)
}

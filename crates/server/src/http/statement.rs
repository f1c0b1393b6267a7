//! `POST /sql`: one statement, run by a SQL thread.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};

use engine::auth::Authenticated;
use engine::{Cancel, Identity, JsonStatement, SqlError, SqlSession, error_as_json};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};

use super::answer::{Answer, Refusal, body};
use super::{Door, access};
use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_PATIENCE, HTTP_PROCESSES};
use crate::sql_threads::JsonWork;

const JSON: &str = "application/json; charset=utf-8";

/// The number of the next session: such a session cannot be cancelled by its secret, and needs none.
static PROCESS: AtomicI32 = AtomicI32::new(HTTP_PROCESSES);

/// Reads a body whole.
pub(super) async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    let whole = Limited::new(body, HTTP_BODY_BYTES_MAX).collect();
    match tokio::time::timeout(HTTP_PATIENCE, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(_)) => Err(Refusal::Body),
        Err(_) => Err(Refusal::Slow),
    }
}

/// Runs the statement of a body and answers with its rows or its error. Dropped with its connection, it stops the
/// statement.
pub(super) async fn answer(
    door: &Door,
    who: &Authenticated,
    address: IpAddr,
    request: &[u8],
) -> Result<Answer, Refusal> {
    let place = Turn::take(&door.statement_places).filter(|_| !door.shared.is_draining());
    let _place = place.ok_or(Refusal::Busy)?;
    let (work, cancel, reply) = match begin(door, who, address, request) {
        Ok(begun) => begun,
        Err(error) => return Ok(failed(&error)),
    };
    let mut stop = StopOnDrop(Some(cancel));
    if door.statements.submit_json(work).is_break() {
        return Err(Refusal::Busy);
    }
    let replied = reply.await;
    stop.0 = None;
    match replied {
        Ok(Ok(bytes)) => Ok(body(StatusCode::OK, JSON, bytes)),
        Ok(Err(error)) => Ok(failed(&error)),
        Err(_) => Err(Refusal::Busy),
    }
}

type Reply = tokio::sync::oneshot::Receiver<Result<Vec<u8>, SqlError>>;

/// The session of a statement, ready for a SQL thread.
fn begin(
    door: &Door,
    who: &Authenticated,
    address: IpAddr,
    request: &[u8],
) -> Result<(JsonWork, Cancel, Reply), SqlError> {
    let statement = JsonStatement::read(request)?;
    let engine = &door.shared.engine;
    let mut session = SqlSession::by(engine.clone(), who, Some(address), access::HTTP);
    let user = who.role().unwrap_or("sqlcached").to_owned();
    // Relaxed: only that two which run at once differ.
    let pid = HTTP_PROCESSES + (PROCESS.fetch_add(1, Ordering::Relaxed) - HTTP_PROCESSES).rem_euclid(1 << 20);
    let identity = Identity { pid, role: user.clone(), user, ..Identity::stranger() };
    let timeout = door.shared.statement_timeout().map_or(HTTP_PATIENCE, |timeout| timeout.min(HTTP_PATIENCE));
    // As a setting of the session it counts from its first statement on.
    let own = ("statement_timeout".to_owned(), format!("{}ms", timeout.as_millis()));
    let settings = [&statement.settings()[..], &[own]].concat();
    session.start(identity, Some(address.to_string()), Some(timeout), &settings)?;
    let cancel = session.cancel().clone();
    let (sender, reply) = tokio::sync::oneshot::channel();
    Ok((JsonWork { session, statement, reply: sender }, cancel, reply))
}

fn failed(error: &SqlError) -> Answer {
    let status = match error.state {
        "42501" => StatusCode::FORBIDDEN,
        "XX000" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    body(status, JSON, error_as_json(error))
}

/// Stops a statement whose client is gone.
struct StopOnDrop(Option<Cancel>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

/// A place among the statements, given back when it is dropped.
struct Turn(Rc<Cell<usize>>);

impl Turn {
    fn take(places: &Rc<Cell<usize>>) -> Option<Self> {
        places.set(places.get().checked_sub(1)?);
        Some(Self(Rc::clone(places)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

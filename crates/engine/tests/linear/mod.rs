//! Histories of what concurrent clients did to one row, and a search for an order that explains them.
//!
//! Commands change different parts of a row: `touch` its deadline, `incr` its value, an `UPDATE` another column, a
//! claim its lease. Each must take effect at one moment between its beginning and its answer. `row` says what a command
//! does to a row that nobody else uses, `search` looks for the order, `run` makes the histories.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

pub(crate) mod row;
pub(crate) mod run;
pub(crate) mod search;

/// Expiry times are whole multiples of this many seconds, far more than a run takes. Where the clock moves on, the time
/// that is left of one still shows which it was. The greatest stays below memcached's thirty days.
pub(crate) const TTL_STEP: u64 = 10_000;

/// Seconds that a row has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ttl {
    Never,
    Seconds(u64),
}

impl Ttl {
    /// Of an expiry time as memcached has it: 0 is none.
    pub(crate) fn of(exptime: u64) -> Self {
        if exptime == 0 { Self::Never } else { Self::Seconds(exptime) }
    }

    fn is_below(self, seconds: u64) -> bool {
        matches!(self, Self::Seconds(left) if left < seconds)
    }

    /// Of the seconds that a client was shown, if it was shown any.
    pub(crate) fn shown(left: Option<u64>) -> Self {
        left.map_or(Self::Never, |left| Self::Seconds(left.div_ceil(TTL_STEP) * TTL_STEP))
    }
}

/// What a client asks for. An expiry time of 0 is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Set {
        value: u64,
        flags: u32,
        exptime: u64,
    },
    Add {
        value: u64,
        flags: u32,
        exptime: u64,
    },
    Replace {
        value: u64,
        flags: u32,
        exptime: u64,
    },
    /// With the CAS value that the client saw last.
    Cas {
        cas: u64,
        value: u64,
        flags: u32,
        exptime: u64,
    },
    Append(u8),
    Prepend(u8),
    Incr(u64),
    Decr(u64),
    Get,
    GetAndTouch(u64),
    Touch(u64),
    Delete,
    /// `mg` with all facts. The first client that asks for a stale row wins: it takes the lease.
    MetaGet,
    /// `mg` with a new expiry time.
    MetaGetAndTouch(u64),
    /// `ma` with a new expiry time.
    MetaIncr {
        delta: u64,
        exptime: u64,
    },
    /// `md` with `I`.
    Invalidate,
    /// Value, n, time to live, CAS value, staleness and lease.
    Select,
    /// `get_key` of a client of shared memory, which asks the daemon as `mg` does where somebody should refresh the
    /// row.
    Near,
    Insert {
        value: u64,
        n: i64,
    },
    Upsert {
        value: u64,
    },
    UpdateValue(u64),
    /// `SET n = n + ...`
    AddToN(i64),
    UpdateTtl(u64),
    UpdateStale,
    /// `SET _leased = TRUE ... AND NOT _leased RETURNING body`
    Claim,
    SqlDelete,
    /// `DELETE ... AND _ttl < ...`, of less than so many seconds.
    DeleteSoon(u64),
}

/// What a client was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing: the server died. The command may have taken effect or not.
    Unknown,
    /// It took effect.
    Done,
    /// There was no row, or one too many, or the condition did not hold.
    Not,
    /// `cas`: another version.
    Exists,
    /// The value is no number.
    NoNumber,
    Number(u64),
    /// It took effect, and this is what it showed.
    Row(Seen),
}

/// The parts of a row that were shown; the others are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) flags: Option<u32>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) n: Option<i64>,
    pub(crate) stale: Option<bool>,
    pub(crate) leased: Option<bool>,
    pub(crate) cas: Option<u64>,
    /// Whether this client is to refresh the row.
    pub(crate) won: Option<bool>,
}

/// One operation of a history. Moments are numbers of one counter.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) client: usize,
    pub(crate) op: Op,
    pub(crate) answer: Answer,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

impl Event {
    /// Whether another client's operation was under way at the same time.
    fn meets(&self, other: &Self) -> bool {
        self.client != other.client && self.began < other.ended && other.began < self.ended
    }
}

/// The statement of an operation in SQL.
pub(crate) fn sql_of(key: usize, op: &Op) -> String {
    match op {
        Op::Select => {
            let columns = "body, n, _ttl AS ttl, _cas AS cas, _stale AS stale, _leased AS leased";
            format!("SELECT {columns} FROM t WHERE id = {key}")
        }
        Op::Insert { value, n } => format!("INSERT INTO t (id, body, n) VALUES ({key}, '{value}', {n})"),
        Op::Upsert { value } => format!(
            "INSERT INTO t (id, body) VALUES ({key}, '{value}') ON CONFLICT (id) DO UPDATE SET body = excluded.body"
        ),
        Op::UpdateValue(value) => format!("UPDATE t SET body = '{value}' WHERE id = {key}"),
        Op::AddToN(by) => format!("UPDATE t SET n = n + {by} WHERE id = {key}"),
        Op::UpdateTtl(0) => format!("UPDATE t SET _ttl = NULL WHERE id = {key}"),
        Op::UpdateTtl(exptime) => format!("UPDATE t SET _ttl = {exptime} WHERE id = {key}"),
        Op::UpdateStale => format!("UPDATE t SET _stale = TRUE WHERE id = {key}"),
        Op::Claim => {
            format!("UPDATE t SET _leased = TRUE WHERE id = {key} AND NOT _leased RETURNING body")
        }
        Op::SqlDelete => format!("DELETE FROM t WHERE id = {key}"),
        // What is left of the next step is less than that by the time that the run takes.
        Op::DeleteSoon(seconds) => {
            format!("DELETE FROM t WHERE id = {key} AND _ttl < {}", seconds - TTL_STEP / 2)
        }
        other => panic!("{other:?} has no statement"),
    }
}

/// The row of a `SELECT` of `body`, `n`, `ttl`, `cas`, `stale` and `leased` as JSON, as far as they are named.
pub(crate) fn seen_in_json(line: &str) -> Answer {
    if line.is_empty() {
        return Answer::Not;
    }
    let row: serde_json::Value =
        serde_json::from_str(line.trim_end()).unwrap_or_else(|error| panic!("{line}: {error}"));
    let integer = |name: &str| row.get(name).and_then(serde_json::Value::as_i64);
    Answer::Row(Seen {
        value: row.get("body").and_then(|body| body.as_str()).map(|body| body.as_bytes().to_vec()),
        ttl: row.get("ttl").map(|ttl| Ttl::shown(ttl.as_u64())),
        n: integer("n"),
        stale: integer("stale").map(|stale| stale == 1),
        leased: integer("leased").map(|leased| leased == 1),
        cas: integer("cas").map(i64::cast_unsigned),
        ..Seen::default()
    })
}

/// A number that the environment gives.
#[allow(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

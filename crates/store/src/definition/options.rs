//! Table options: what may stand in `CREATE TABLE ... WITH (...)` and `ALTER TABLE ... SET (...)`.

use serde::{Deserialize, Serialize};

use super::bus::{Acknowledge, Replicated, parse_acknowledge, parse_replicated};
use super::{ColumnDef, DefinitionError, Dependence, find_column, nearest, units};

use crate::limits::TTL_MS_MAX;
use crate::limits::{DEPENDENCES_MAX, DEPENDS_BYTES_MAX};
use crate::limits::{FETCH_MS_MAX, QUERY_BYTES_MAX};
use crate::limits::{PREFIX_BYTES_MAX, REFRESH_MS_MIN};

/// What a number without a unit counts, in options.
const SECOND_MS: u64 = 1_000;
/// Least `max_memory`: a table takes segments, and rows above 8 KiB share segments of this size.
const TABLE_MEMORY_MIN: u64 = 1 << 20;
/// Least and greatest `weight`, in hundredths: beyond them a table would be as good as reserved, or as good as without
/// memory.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// The weight of a table that does not say, in hundredths.
const WEIGHT_DEFAULT: u32 = 100;

/// The options of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableOptions {
    /// Rows expire this long after they were written; `None` is never.
    pub ttl_ms: Option<u64>,
    /// One client refreshes a row so long before its deadline.
    pub refresh_before_ms: Option<u64>,
    /// A row may be served so long after its deadline, while one client refreshes it.
    pub stale_for_ms: Option<u64>,
    /// Rows whose own deadline is this tick or an earlier one were gone before `stale_for` came, and stay gone.
    pub stale_from: u32,
    /// How long a client that refreshes a row has for it.
    pub lease_ms: Option<u64>,
    /// More rows than this evict older ones.
    pub max_rows: Option<u64>,
    /// Rows go after so many operations on the table since they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ops: Option<u64>,
    /// More bytes of segments than this evict older rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<u64>,
    /// So many bytes of segments are not evicted for other tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<u64>,
    /// How dear its rows are beside those of other tables, in hundredths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// memcached keys that begin with this are rows of this table.
    pub prefix: Option<String>,
    /// The column that memcached reads and writes.
    pub value: Option<usize>,
    /// The column that takes the tags of a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<usize>,
    /// The channel on which keys are announced whose rows left.
    pub notify: Option<String>,
    /// `flush_all` of memcached's clients leaves its rows.
    #[serde(skip_serializing_if = "is_off_switch")]
    pub unflushed: bool,
    /// A memcached key that begins with the prefix and is no key of the table is one of the built-in table.
    #[serde(skip_serializing_if = "is_off_switch")]
    pub loose_keys: bool,
    /// Whether the primary key has an ordered index beside the hash index.
    pub ordered: bool,
    /// Whether other processes may read the table in shared memory.
    #[serde(skip_serializing_if = "is_off_switch")]
    pub shared_memory: bool,
    /// The foreign server whose changes invalidate rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Which tables there rows depend on, as [`Dependence`] reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends: Option<String>,
    /// What such a change does to a row.
    #[serde(skip_serializing_if = "OnChange::is_delete")]
    pub on_change: OnChange,
    /// What becomes of rows that may have missed changes.
    #[serde(skip_serializing_if = "OnLag::is_empty")]
    pub on_lag: OnLag,
    /// What is known here of the source's rows.
    #[serde(skip_serializing_if = "Mode::is_invalidate")]
    pub mode: Mode,
    /// A materialized view is refreshed this long after the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_ms: Option<u64>,
    /// It is refreshed when these tables change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_on: Option<String>,
    /// Its query may take so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_timeout_ms: Option<u64>,
    /// The query that gives missing rows of the source, by lists of their keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// How long it is remembered that the source has no row of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_ttl_ms: Option<u64>,
    /// How long a client waits for a missing row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_timeout_ms: Option<u64>,
    /// The foreign server on which caches tell each other what they invalidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// What they tell each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicated: Option<Replicated>,
    /// Who must have heard of an invalidation before its client is answered.
    #[serde(skip_serializing_if = "Acknowledge::is_bus")]
    pub acknowledge: Acknowledge,
}

/// What becomes of the rows of a table whose source is not followed, or was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLag {
    /// They go.
    #[default]
    Empty,
    /// They are stale: each is served while one client refreshes it.
    Stale,
    /// They go, and who reads the table in SQL meanwhile gets an error.
    Fail,
    /// They go. A read fetches the row from the source, and does not store it.
    Through,
}

impl OnLag {
    /// Whether it is what a table has that does not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_empty(&self) -> bool {
        *self == Self::Empty
    }

    /// Whether the table has to know that its source is not followed.
    pub fn looks_at_source(self) -> bool {
        matches!(self, Self::Fail | Self::Through)
    }

    /// As the option has it.
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Stale => "stale",
            Self::Fail => "fail",
            Self::Through => "through",
        }
    }
}

/// What a table knows of the rows of its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// That they changed: rows here are made by others, and invalidated.
    #[default]
    Invalidate,
    /// What they are: rows that are here change with them.
    Update,
    /// All of them: the table is copied, and followed.
    Mirror,
    /// Which answers of forwarded statements are not valid any more: rows are such answers, with tags.
    Answers,
}

impl Mode {
    /// Whether it is what a table has that does not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_invalidate(&self) -> bool {
        *self == Self::Invalidate
    }

    /// As the option has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Invalidate => "invalidate",
            Self::Update => "update",
            Self::Mirror => "mirror",
            Self::Answers => "answers",
        }
    }
}

/// What a change of the source does to a row that depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnChange {
    /// It goes.
    #[default]
    Delete,
    /// It is stale: served while one client refreshes it.
    Stale,
}

impl OnChange {
    /// Whether it is what a table has that does not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_delete(&self) -> bool {
        *self == Self::Delete
    }
}

impl TableOptions {
    /// Whether the numbers are such as texts of the options give: a file may say others.
    pub(super) fn validate(&self) -> Result<(), DefinitionError> {
        let spans = [self.ttl_ms, self.refresh_before_ms, self.stale_for_ms, self.lease_ms];
        let spans = spans.into_iter().chain([self.refresh_ms, self.refresh_timeout_ms]);
        if spans.flatten().any(|ms| ms > TTL_MS_MAX) {
            return Err(DefinitionError::invalid("the longest time is 100 years"));
        }
        if self.weight.is_some_and(|weight| !WEIGHTS.contains(&weight)) {
            return Err(DefinitionError::invalid("a weight is a number from 0.01 to 100"));
        }
        if self.depends.as_deref().is_some_and(|text| Dependence::read_all(text).is_err()) {
            return Err(DefinitionError::invalid("depends cannot be read"));
        }
        if self.on_change == OnChange::Stale && self.mode != Mode::Invalidate {
            return Err(DefinitionError::invalid("on_change is for mode = 'invalidate'"));
        }
        if self.query.is_some() && self.mode != Mode::Invalidate {
            return Err(DefinitionError::invalid("query is for mode = 'invalidate'"));
        }
        if self.query.is_some() && self.source.is_none() {
            return Err(DefinitionError::invalid(
                "query needs source and depends: which server is asked, and whose changes end rows",
            ));
        }
        if self.query.is_none() && (self.miss_ttl_ms.is_some() || self.fetch_timeout_ms.is_some()) {
            return Err(DefinitionError::invalid(
                "miss_ttl and fetch_timeout need query, which fetches rows",
            ));
        }
        if self.on_change == OnChange::Stale && self.stale_for_ms.is_none() {
            return Err(DefinitionError::invalid(
                "on_change = 'stale' needs stale_for: without it no plain get refreshes a stale row",
            ));
        }
        if self.on_lag == OnLag::Stale && self.stale_for_ms.is_none() {
            return Err(DefinitionError::invalid(
                "on_lag = 'stale' needs stale_for: without it no plain get refreshes a stale row",
            ));
        }
        self.validate_lag()
    }

    fn validate_lag(&self) -> Result<(), DefinitionError> {
        self.validate_bus()?;
        if self.on_lag.looks_at_source() && self.mode != Mode::Invalidate {
            return Err(DefinitionError::invalid(
                "on_lag = 'fail' and 'through' are for mode = 'invalidate'",
            ));
        }
        if self.on_lag == OnLag::Through && self.query.is_none() {
            return Err(DefinitionError::invalid("on_lag = 'through' needs query, which fetches rows"));
        }
        if self.on_lag == OnLag::Fail && self.shared_memory {
            return Err(DefinitionError::invalid(
                "on_lag = 'fail' needs shared_memory = off: who reads there does not ask whether the source is followed",
            ));
        }
        Ok(())
    }
}

/// One option: all that parses, prints and documents it.
#[derive(Debug)]
pub struct OptionDef {
    /// Its name in `WITH (...)`.
    pub name: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// Sets it from its text, which is refused with a reason.
    parse: fn(&mut TableOptions, &str, &[ColumnDef]) -> Result<(), String>,
    /// Puts it back to what a table without it has.
    reset: fn(&mut TableOptions),
    /// Its text, in a form that `parse` takes; `None` where it is unset.
    print: fn(&TableOptions, &[ColumnDef]) -> Option<String>,
}

/// Every option, in the order shown.
pub static OPTIONS: &[OptionDef] = &[
    OptionDef {
        name: "ttl",
        meaning: "rows expire this long after they were written ('5 min', '30 s'; 0 or off: never)",
        parse: |options, text, _| parse_ttl(text).map(|ttl_ms| options.ttl_ms = ttl_ms),
        reset: |options| options.ttl_ms = None,
        print: |options, _| options.ttl_ms.map(print_ttl),
    },
    OptionDef {
        name: "refresh_before",
        meaning: "this long before a row's deadline one client gets a miss and refreshes the row ('10 s'; 0 or off: no client)",
        parse: |options, text, _| parse_ttl(text).map(|ms| options.refresh_before_ms = ms),
        reset: |options| options.refresh_before_ms = None,
        print: |options, _| options.refresh_before_ms.map(print_ttl),
    },
    OptionDef {
        name: "stale_for",
        meaning: "a row is served this long after its deadline, while one client refreshes it ('30 s'; 0 or off: not served)",
        parse: |options, text, _| parse_ttl(text).map(|ms| options.stale_for_ms = ms),
        reset: |options| options.stale_for_ms = None,
        print: |options, _| options.stale_for_ms.map(print_ttl),
    },
    OptionDef {
        name: "lease",
        meaning: "a client that got the miss has this long to store the row; then another client gets the miss ('10 s')",
        parse: |options, text, _| parse_ttl(text).map(|ms| options.lease_ms = ms),
        reset: |options| options.lease_ms = None,
        print: |options, _| options.lease_ms.map(print_ttl),
    },
    OptionDef {
        name: "max_rows",
        meaning: "the table holds at most this many rows and evicts others (0 or off: no limit)",
        parse: |options, text, _| parse_rows(text).map(|rows| options.max_rows = rows),
        reset: |options| options.max_rows = None,
        print: |options, _| options.max_rows.map(|rows| rows.to_string()),
    },
    OptionDef {
        name: "max_ops",
        meaning: "rows expire after this many operations on the table since they were written (0 or off: never)",
        parse: |options, text, _| parse_ops(text).map(|ops| options.max_ops = ops),
        reset: |options| options.max_ops = None,
        print: |options, _| options.max_ops.map(|ops| ops.to_string()),
    },
    OptionDef {
        name: "max_memory",
        meaning: "the table takes at most this much memory and evicts rows ('64 MB'; 0 or off: no limit of its own)",
        parse: |options, text, _| parse_max_memory(text).map(|bytes| options.max_memory = bytes),
        reset: |options| options.max_memory = None,
        print: |options, _| options.max_memory.map(print_size),
    },
    OptionDef {
        name: "min_memory",
        meaning: "this much of its memory is not evicted for other tables ('16 MB'; 0 or off: none)",
        parse: |options, text, _| parse_size(text).map(|bytes| options.min_memory = bytes),
        reset: |options| options.min_memory = None,
        print: |options, _| options.min_memory.map(print_size),
    },
    OptionDef {
        name: "weight",
        meaning: "when tables compete for memory, its rows may become this many times older before they are evicted (0.01 to 100; 1)",
        parse: |options, text, _| parse_weight(text).map(|weight| options.weight = weight),
        reset: |options| options.weight = None,
        print: |options, _| options.weight.map(print_weight),
    },
    OptionDef {
        name: "prefix",
        meaning: "memcached keys that begin with this text are rows of this table",
        parse: |options, text, _| parse_prefix(text).map(|prefix| options.prefix = Some(prefix)),
        reset: |options| options.prefix = None,
        print: |options, _| options.prefix.clone(),
    },
    OptionDef {
        name: "value",
        meaning: "the column that memcached clients get and set",
        parse: |options, text, columns| parse_column(text, columns).map(|value| options.value = Some(value)),
        reset: |options| options.value = None,
        print: |options, columns| Some(columns.get(options.value?)?.name.clone()),
    },
    OptionDef {
        name: "tags",
        meaning: "the TEXT[] column that takes the tags that memcached clients send (flag L of ms)",
        parse: |options, text, columns| parse_column(text, columns).map(|tags| options.tags = Some(tags)),
        reset: |options| options.tags = None,
        print: |options, columns| Some(columns.get(options.tags?)?.name.clone()),
    },
    OptionDef {
        name: "notify",
        meaning: "the channel on which LISTEN reports keys that were invalidated, expired or evicted",
        parse: |options, text, _| parse_channel(text).map(|channel| options.notify = channel),
        reset: |options| options.notify = None,
        print: |options, _| options.notify.clone(),
    },
    OptionDef {
        name: "flush",
        meaning: "flush_all of memcached clients empties the table (on or off; on)",
        parse: |options, text, _| parse_switch(text).map(|on| options.unflushed = !on),
        reset: |options| options.unflushed = false,
        print: |options, _| options.unflushed.then(|| "off".into()),
    },
    OptionDef {
        name: "strict_keys",
        meaning: "refuse memcached keys that begin with the prefix and do not fit the primary key; off: they are rows of the table memcached (on or off; on)",
        parse: |options, text, _| parse_switch(text).map(|on| options.loose_keys = !on),
        reset: |options| options.loose_keys = false,
        print: |options, _| options.loose_keys.then(|| "off".into()),
    },
    OptionDef {
        name: "ordered",
        meaning: "keep the primary key in order, for ranges and ORDER BY (on or off)",
        parse: |options, text, _| parse_switch(text).map(|on| options.ordered = on),
        reset: |options| options.ordered = false,
        print: |options, _| options.ordered.then(|| "on".into()),
    },
    OptionDef {
        name: "shared_memory",
        meaning: "processes on the same machine can read the table in shared memory (on or off); changing it empties the table",
        parse: |options, text, _| parse_switch(text).map(|on| options.shared_memory = on),
        reset: |options| options.shared_memory = false,
        print: |options, _| options.shared_memory.then(|| "on".into()),
    },
    OptionDef {
        name: "source",
        meaning: "the foreign server whose changes invalidate rows of this table, or which runs the query of this materialized view",
        parse: |options, text, _| parse_source(text).map(|source| options.source = Some(source)),
        reset: |options| options.source = None,
        print: |options, _| options.source.clone(),
    },
    OptionDef {
        name: "depends",
        meaning: "tables of the source that rows depend on, with the columns that say which rows ('product(id), review(product_id => id)')",
        parse: |options, text, columns| {
            parse_depends(text, columns).map(|depends| options.depends = Some(depends))
        },
        reset: |options| options.depends = None,
        print: |options, _| options.depends.clone(),
    },
    OptionDef {
        name: "on_change",
        meaning: "what a change of the source does to a row: delete it, or make it stale, which needs stale_for (delete)",
        parse: |options, text, _| parse_on_change(text).map(|on_change| options.on_change = on_change),
        reset: |options| options.on_change = OnChange::Delete,
        print: |options, _| (options.on_change == OnChange::Stale).then(|| "stale".into()),
    },
    OptionDef {
        name: "on_lag",
        meaning: "what becomes of rows that may have missed changes of the source: empty the table; make them stale, which needs stale_for; empty it and fail who reads it in SQL; or empty it and read through, which needs query (empty)",
        parse: |options, text, _| parse_on_lag(text).map(|on_lag| options.on_lag = on_lag),
        reset: |options| options.on_lag = OnLag::Empty,
        print: |options, _| (!options.on_lag.is_empty()).then(|| options.on_lag.name().into()),
    },
    OptionDef {
        name: "mode",
        meaning: "what changes of the source do: invalidate rows, update the rows that are here, mirror the whole table, or drop answers of forwarded statements by their tags, for tables that the server makes itself (invalidate, update, mirror or answers; invalidate)",
        parse: |options, text, _| parse_mode(text).map(|mode| options.mode = mode),
        reset: |options| options.mode = Mode::Invalidate,
        print: |options, _| (options.mode != Mode::Invalidate).then(|| options.mode.name().into()),
    },
    OptionDef {
        name: "refresh",
        meaning: "a materialized view is refreshed this long after the last time ('30 s'; 0 or off: not by time)",
        parse: |options, text, _| parse_refresh(text).map(|ms| options.refresh_ms = ms),
        reset: |options| options.refresh_ms = None,
        print: |options, _| options.refresh_ms.map(print_ttl),
    },
    OptionDef {
        name: "refresh_on",
        meaning: "a materialized view is refreshed when one of these tables changes, which are its source's where it has one ('product, orders')",
        parse: |options, text, _| parse_refresh_on(text).map(|tables| options.refresh_on = tables),
        reset: |options| options.refresh_on = None,
        print: |options, _| options.refresh_on.clone(),
    },
    OptionDef {
        name: "refresh_timeout",
        meaning: "the query of a materialized view may take this long (1 min)",
        parse: |options, text, _| parse_ttl(text).map(|ms| options.refresh_timeout_ms = ms),
        reset: |options| options.refresh_timeout_ms = None,
        print: |options, _| options.refresh_timeout_ms.map(print_ttl),
    },
    OptionDef {
        name: "query",
        meaning: "the query at the source that gives missing rows, by lists of their keys ('SELECT id, name FROM product WHERE id = ANY($1)')",
        parse: |options, text, _| parse_query(text).map(|query| options.query = Some(query)),
        reset: |options| options.query = None,
        print: |options, _| options.query.clone(),
    },
    OptionDef {
        name: "miss_ttl",
        meaning: "it is remembered this long that the source has no row of a key ('5 s'; 0 or off: not at all)",
        parse: |options, text, _| parse_fetch_span(text).map(|ms| options.miss_ttl_ms = ms),
        reset: |options| options.miss_ttl_ms = None,
        print: |options, _| options.miss_ttl_ms.map(print_ttl),
    },
    OptionDef {
        name: "fetch_timeout",
        meaning: "a client waits this long for a missing row, and then gets a miss ('2 s')",
        parse: |options, text, _| parse_fetch_span(text).map(|ms| options.fetch_timeout_ms = ms),
        reset: |options| options.fetch_timeout_ms = None,
        print: |options, _| options.fetch_timeout_ms.map(print_ttl),
    },
    OptionDef {
        name: "bus",
        meaning: "the foreign server on which the caches of several machines tell each other which rows are not valid any more",
        parse: |options, text, _| parse_source(text).map(|bus| options.bus = Some(bus)),
        reset: |options| options.bus = None,
        print: |options, _| options.bus.clone(),
    },
    OptionDef {
        name: "replicated",
        meaning: "what is told on the bus: invalidate, which rows are not valid any more; rows, the rows, too",
        parse: |options, text, _| parse_replicated(text).map(|what| options.replicated = Some(what)),
        reset: |options| options.replicated = None,
        print: |options, _| options.replicated.map(|what| what.name().into()),
    },
    OptionDef {
        name: "acknowledge",
        meaning: "an invalidation is answered when the bus has it, or at once (bus or local; bus)",
        parse: |options, text, _| parse_acknowledge(text).map(|by| options.acknowledge = by),
        reset: |options| options.acknowledge = Acknowledge::Bus,
        print: |options, _| (options.acknowledge == Acknowledge::Local).then(|| "local".into()),
    },
];

fn parse_on_lag(text: &str) -> Result<OnLag, String> {
    let all = [OnLag::Empty, OnLag::Stale, OnLag::Fail, OnLag::Through];
    let named = all.into_iter().find(|on_lag| on_lag.name().eq_ignore_ascii_case(text));
    named.ok_or_else(|| "write empty, stale, fail or through".into())
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    let all = [Mode::Invalidate, Mode::Update, Mode::Mirror, Mode::Answers];
    let named = all.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(text));
    named.ok_or_else(|| "write invalidate, update, mirror or answers".into())
}

/// A view that is refreshed more often is never at rest.
fn parse_refresh(text: &str) -> Result<Option<u64>, String> {
    match parse_ttl(text)? {
        Some(ms) if ms < REFRESH_MS_MIN => Err(format!("the shortest is {}", print_ttl(REFRESH_MS_MIN))),
        ms => Ok(ms),
    }
}

fn parse_refresh_on(text: &str) -> Result<Option<String>, String> {
    if text.len() > DEPENDS_BYTES_MAX {
        return Err(format!("{DEPENDS_BYTES_MAX} bytes is the limit"));
    }
    let options = TableOptions { refresh_on: Some(text.to_owned()), ..TableOptions::default() };
    let count = options.refresh_tables().count();
    if count > DEPENDENCES_MAX {
        return Err(format!("{DEPENDENCES_MAX} tables are the limit"));
    }
    Ok((count > 0).then(|| options.refresh_tables().collect::<Vec<_>>().join(", ")))
}

fn parse_query(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("write a query with $1 for the list of keys".into()),
        1..=QUERY_BYTES_MAX => Ok(text.trim_end_matches([';', ' ', '\n']).to_owned()),
        _ => Err(format!("{QUERY_BYTES_MAX} bytes is the limit")),
    }
}

fn parse_fetch_span(text: &str) -> Result<Option<u64>, String> {
    match parse_ttl(text)? {
        Some(ms) if ms > FETCH_MS_MAX => Err("the longest is one hour".into()),
        span => Ok(span),
    }
}

fn parse_on_change(text: &str) -> Result<OnChange, String> {
    match text.to_ascii_lowercase().as_str() {
        "delete" => Ok(OnChange::Delete),
        "stale" => Ok(OnChange::Stale),
        _ => Err("write delete or stale".into()),
    }
}

fn parse_source(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("name a foreign server".into()) } else { Ok(text.to_owned()) }
}

/// Columns of ours must be there; those of the source are looked for when the source is asked.
fn parse_depends(text: &str, columns: &[ColumnDef]) -> Result<String, String> {
    if text.len() > DEPENDS_BYTES_MAX {
        return Err(format!("{DEPENDS_BYTES_MAX} bytes is the limit"));
    }
    for on in Dependence::read_all(text)? {
        on.columns.iter().try_for_each(|(_, ours)| parse_column(ours, columns).map(drop))?;
    }
    Ok(text.to_owned())
}

/// Options that the design names and this version does not have; a promise not kept must not be silent.
const NOT_YET: &[&str] = &["compress", "snapshot"];

impl TableOptions {
    /// Sets one option from its text; `columns` are the table's, for options that name one.
    pub fn set(&mut self, name: &str, text: &str, columns: &[ColumnDef]) -> Result<(), DefinitionError> {
        let option = option_named(name)?;
        (option.parse)(self, text.trim(), columns)
            .map_err(|reason| DefinitionError::invalid(format!("{} = '{text}': {reason}", option.name)))
    }

    /// Puts one option back to what a table without it has.
    pub fn reset(&mut self, name: &str) -> Result<(), DefinitionError> {
        (option_named(name)?.reset)(self);
        Ok(())
    }

    /// Whether the table has a bound of its own that somebody has to look after.
    pub(crate) fn limits_itself(&self) -> bool {
        self.max_rows.is_some() || self.max_memory.is_some() || self.max_ops.is_some()
    }

    /// How dear its rows are beside those of other tables, in hundredths.
    pub fn weight_or_default(&self) -> u32 {
        self.weight.unwrap_or(WEIGHT_DEFAULT)
    }

    /// The options that are set, as (name, text); setting them again gives the same options.
    pub fn list(&self, columns: &[ColumnDef]) -> Vec<(&'static str, String)> {
        OPTIONS.iter().filter_map(|option| Some((option.name, (option.print)(self, columns)?))).collect()
    }
}

fn option_named(name: &str) -> Result<&'static OptionDef, DefinitionError> {
    if let Some(option) = OPTIONS.iter().find(|option| option.name.eq_ignore_ascii_case(name)) {
        return Ok(option);
    }
    if NOT_YET.iter().any(|other| other.eq_ignore_ascii_case(name)) {
        return Err(DefinitionError::new("0A000", format!("table option \"{name}\" is not supported yet")));
    }
    let near = nearest(name, OPTIONS.iter().map(|option| (option.name, option.name)));
    let advice = near.map_or_else(all_options, |near| format!("did you mean {near}?"));
    Err(DefinitionError::invalid(format!("table option \"{name}\" is not known; {advice}")))
}

fn all_options() -> String {
    let known: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
    format!("the options are {}", known.join(", "))
}

/// A span of time as options take it, in milliseconds; `None` for none. The error says what would be right.
pub fn parse_span(text: &str) -> Result<Option<u64>, String> {
    parse_ttl(text.trim())
}

/// A span of time as [`parse_span`] takes it.
pub fn print_span(ms: u64) -> String {
    print_ttl(ms)
}

fn parse_ttl(text: &str) -> Result<Option<u64>, String> {
    if is_off(text) {
        return Ok(None);
    }
    let ttl_ms = units::time_ms(text, SECOND_MS)
        .ok_or("write a number and a unit, as in '5 min', '1.5 h', '30 s', '250 ms' or '1 day 2 hours'")?;
    if ttl_ms > TTL_MS_MAX {
        return Err("the longest is 100 years".into());
    }
    Ok(Some(ttl_ms).filter(|ms| *ms > 0))
}

fn print_ttl(ttl_ms: u64) -> String {
    units::print(ttl_ms, units::TIME_UNITS)
}

fn parse_rows(text: &str) -> Result<Option<u64>, String> {
    if is_off(text) {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "write a whole number of rows".into())
}

fn parse_ops(text: &str) -> Result<Option<u64>, String> {
    if is_off(text) {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "write a whole number of operations".into())
}

fn parse_size(text: &str) -> Result<Option<u64>, String> {
    if is_off(text) {
        return Ok(None);
    }
    let bytes = units::size_bytes(text)
        .ok_or("write a number and a unit, as in '64 MB', '512 kB', '64 MiB' or '1.5 GB'")?;
    Ok(Some(bytes).filter(|bytes| *bytes > 0))
}

fn print_size(bytes: u64) -> String {
    units::print(bytes, units::SIZE_UNITS)
}

fn parse_max_memory(text: &str) -> Result<Option<u64>, String> {
    let bytes = parse_size(text)?;
    match bytes {
        Some(bytes) if bytes < TABLE_MEMORY_MIN => Err(format!(
            "the smallest value is {}, because tables get memory in segments",
            print_size(TABLE_MEMORY_MIN)
        )),
        bytes => Ok(bytes),
    }
}

/// A decimal number of at most two places, as hundredths.
fn parse_weight(text: &str) -> Result<Option<u32>, String> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hundredths = (digits(whole) && digits(places) && places.len() <= 2)
        .then(|| format!("{whole}{places:0<2}").parse::<u32>().ok())
        .flatten();
    match hundredths {
        Some(weight) if WEIGHTS.contains(&weight) => Ok(Some(weight)),
        _ => Err("write a number from 0.01 to 100".into()),
    }
}

fn print_weight(weight: u32) -> String {
    let text = format!("{}.{:02}", weight / 100, weight % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `0`, `off` and `none` switch a limit off.
fn is_off(text: &str) -> bool {
    ["0", "off", "none"].iter().any(|off| text.eq_ignore_ascii_case(off))
}

/// A prefix is the beginning of a memcached key, so it obeys the rules of one.
fn parse_prefix(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an empty prefix would match every key".into());
    }
    if text.len() > PREFIX_BYTES_MAX {
        return Err(format!("it is {} bytes long; the limit is {PREFIX_BYTES_MAX}", text.len()));
    }
    if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err("memcached keys have no blanks or control characters".into());
    }
    Ok(text.into())
}

/// A channel is named as `LISTEN` names one: an identifier.
fn parse_channel(text: &str) -> Result<Option<String>, String> {
    if is_off(text) {
        return Ok(None);
    }
    if text.is_empty() || text.len() > super::NAME_BYTES_MAX {
        return Err(format!("a channel's name has 1 to {} bytes", super::NAME_BYTES_MAX));
    }
    Ok(Some(text.into()))
}

fn parse_column(text: &str, columns: &[ColumnDef]) -> Result<usize, String> {
    find_column(columns, text).ok_or_else(|| "the table has no such column".into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
fn is_off_switch(on: &bool) -> bool {
    !*on
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("write on or off".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<ColumnDef> {
        ["key", "body"].iter().map(|name| ColumnDef::new(name, "TEXT").unwrap()).collect()
    }

    fn set(name: &str, text: &str) -> Result<TableOptions, DefinitionError> {
        let mut options = TableOptions::default();
        options.set(name, text, &columns()).map(|()| options)
    }

    #[test]
    fn ttl_takes_units() {
        for (text, ttl_ms) in [
            ("5 min", Some(300_000)),
            ("5min", Some(300_000)),
            ("1 h", Some(3_600_000)),
            ("30 s", Some(30_000)),
            ("250 ms", Some(250)),
            ("2 days", Some(2 * 86_400_000)),
            ("90", Some(90_000)),
            ("10 mins", Some(600_000)),
            ("1 day 2 hours", Some(26 * 3_600_000)),
            ("1.5 h", Some(5_400_000)),
            ("1 Week", Some(7 * 86_400_000)),
            ("0", None),
            ("off", None),
            ("0 s", None),
        ] {
            assert_eq!(set("ttl", text).unwrap().ttl_ms, ttl_ms, "{text}");
        }
        for text in
            ["", "min", "-5 s", "1.5.0 h", "5 parsecs", "101 years", "99999999999999999999", "36501 d"]
        {
            assert_eq!(set("ttl", text).unwrap_err().sqlstate, "22023", "{text}");
        }
    }

    #[test]
    fn sizes_take_units() {
        for (text, bytes) in [
            ("64 MB", Some(64 << 20)),
            ("64mb", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("64m", Some(64 << 20)),
            ("2g", Some(2 << 30)),
            ("1536 kB", Some(1536 << 10)),
            ("2097152", Some(2 << 20)),
            ("0", None),
            ("off", None),
            ("0 MB", None),
        ] {
            assert_eq!(set("max_memory", text).unwrap().max_memory, bytes, "{text}");
        }
        for (text, weight) in [("1", 100), ("0.01", 1), ("2.5", 250), ("100", 10_000), (".5", 50)] {
            assert_eq!(set("weight", text).unwrap().weight, Some(weight), "{text}");
        }
    }

    #[test]
    fn every_option_prints_what_it_parses() {
        for (name, text) in [
            ("ttl", "90 s"),
            ("refresh_before", "10 s"),
            ("stale_for", "1 h"),
            ("lease", "3 s"),
            ("max_rows", "1000"),
            ("max_ops", "1000000"),
            ("max_memory", "64 MB"),
            ("min_memory", "1536 kB"),
            ("weight", "2.5"),
            ("prefix", "frag:"),
            ("value", "body"),
            ("tags", "body"),
            ("notify", "gone"),
            ("flush", "off"),
            ("strict_keys", "off"),
            ("ordered", "on"),
            ("shared_memory", "on"),
            ("query", "SELECT key, body FROM page WHERE key = ANY($1)"),
            ("miss_ttl", "5 s"),
            ("fetch_timeout", "2 s"),
        ] {
            let mut options = set(name, text).unwrap();
            assert_eq!(options.list(&columns()), [(name, text.to_owned())]);
            options.reset(name).unwrap();
            assert_eq!(options, TableOptions::default());
        }
        assert_eq!(set("VALUE", "Body").unwrap().value, Some(1));
    }

    #[test]
    fn faulty_options_are_refused() {
        for (name, text, sqlstate) in [
            ("frobnicate", "1", "22023"),
            ("max_ops", "few", "22023"),
            ("max_memory", "64 kB", "22023"),
            ("max_memory", "64 parsecs", "22023"),
            ("min_memory", "99999999999999999999", "22023"),
            ("min_memory", "-1", "22023"),
            ("weight", "0", "22023"),
            ("weight", "100.01", "22023"),
            ("weight", "1.234", "22023"),
            ("weight", ".", "22023"),
            ("shared_memory", "perhaps", "22023"),
            ("max_rows", "-1", "22023"),
            ("max_rows", "many", "22023"),
            ("prefix", "", "22023"),
            ("prefix", "a b", "22023"),
            ("value", "nobody", "22023"),
            ("ordered", "perhaps", "22023"),
            ("flush", "perhaps", "22023"),
            ("strict_keys", "perhaps", "22023"),
            ("query", "", "22023"),
            ("miss_ttl", "2 h", "22023"),
            ("fetch_timeout", "soon", "22023"),
        ] {
            let error = set(name, text).unwrap_err();
            assert_eq!(error.sqlstate, sqlstate, "{name} = {text}: {error}");
        }
        assert!(
            set("frobnicate", "1")
                .unwrap_err()
                .message
                .contains("ttl, refresh_before, stale_for, lease, max_rows")
        );
        assert!(set("prefix", &"p".repeat(PREFIX_BYTES_MAX + 1)).is_err());
        assert!(set("prefix", &"p".repeat(PREFIX_BYTES_MAX)).is_ok());
    }
}

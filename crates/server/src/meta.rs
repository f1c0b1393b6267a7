//! Meta commands: from the request's flags to the engine, and back to bytes.

use engine::{
    Answer, Condition, InPlace, MetaArithmetic, MetaDelete, MetaDone, MetaGet, MetaGot, MetaItem, MetaSet,
    MetaSink, MetaWritten, Session, ThreadContext,
};
use memcache::compose::{number, value_end};
use memcache::{ItemFacts, KEY_MAX, Meta, MetaCode, MetaFacts, MetaOptions, Mode, meta_debug, meta_line};

use crate::limits::SLAB_CLASS;
use crate::reply::write_answer;

/// `mg`; none: it was refused. A row that is missing is to be fetched, unless it was asked for at its source before
/// (`fetched`): then nothing was answered yet.
pub(crate) fn get(
    session: &Session,
    context: &mut ThreadContext,
    request: &Meta<'_>,
    fetched: bool,
    out: &mut Vec<u8>,
) -> Option<MetaGot> {
    let mut options = request.options();
    // Of two expiry times for a place that is taken the later counts.
    if options.vivify.is_some() && options.exptime.is_some() && comes_last(request, b'N', b'T') {
        options.vivify = options.exptime;
    }
    let asked = MetaGet {
        value: options.value,
        unnoticed: options.unnoticed,
        exptime: options.exptime,
        vivify: options.vivify,
        recache: options.recache,
        recache_as_touched: options.recache.is_some() && comes_last(request, b'T', b'R'),
        own_cas: options.own_cas,
        known: options.compare,
        fetched,
    };
    let begin = out.len();
    let mut sink = ItemWriter { request, begin, out: &mut *out };
    let mut buffer = [0; KEY_MAX];
    let got = session.meta_get(context, request.key.bytes(&mut buffer), &asked, &mut sink);
    match &got {
        Ok(MetaGot::Value | MetaGot::Fetch) => {}
        Ok(MetaGot::Head(item)) => meta_line(MetaCode::Done, request, &facts_of(item), out),
        Ok(MetaGot::Miss) if options.quiet => {}
        Ok(MetaGot::Miss) => meta_line(MetaCode::Miss, request, &MetaFacts::default(), out),
        Err(refusal) => write_answer(refusal, out),
    }
    got.ok()
}

/// Answers `mg` with a value that is in no row.
pub(crate) fn give(value: &[u8], request: &Meta<'_>, out: &mut Vec<u8>) {
    let item = MetaItem { bytes: value.len(), ttl: Some(0), ..MetaItem::default() };
    if request.options().value {
        meta_line(MetaCode::Value(value.len()), request, &facts_of(&item), out);
        out.extend_from_slice(value);
        value_end(out);
    } else {
        meta_line(MetaCode::Done, request, &facts_of(&item), out);
    }
}

/// Whether of two flags that are both there the second comes last.
fn comes_last(request: &Meta<'_>, first: u8, second: u8) -> bool {
    let mut letters = request.flags().map(|(letter, _)| letter);
    letters.find(|letter| *letter == first || *letter == second) == Some(first)
}

/// `ms`.
pub(crate) fn set(
    session: &Session,
    context: &mut ThreadContext,
    request: &Meta<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let options = request.options();
    let asked = asked_to_set(request, &options);
    let mut buffer = [0; KEY_MAX];
    let done = session.meta_set(context, request.key.bytes(&mut buffer), &asked, value);
    write_set(done, request, options.quiet, out);
}

/// `ms`, of a value that has come to where it was reserved for.
pub(crate) fn set_in_place(
    session: &Session,
    context: &mut ThreadContext,
    request: &Meta<'_>,
    in_place: InPlace,
    out: &mut Vec<u8>,
) {
    let options = request.options();
    let mut buffer = [0; KEY_MAX];
    let key = request.key.bytes(&mut buffer);
    let done = session.meta_set_in_place(context, key, &asked_to_set(request, &options), in_place);
    write_set(done, request, options.quiet, out);
}

/// What the flags of `ms` ask for.
pub(crate) fn asked_to_set<'a>(request: &Meta<'a>, options: &MetaOptions) -> MetaSet<'a> {
    MetaSet {
        condition: match options.mode {
            Mode::Add => Condition::Absent,
            Mode::Replace => Condition::Present,
            Mode::Append => Condition::Append,
            Mode::Prepend => Condition::Prepend,
            Mode::Set | Mode::Increment | Mode::Decrement => Condition::Always,
        },
        client_flags: options.client_flags.unwrap_or(0),
        exptime: options.exptime.unwrap_or(0),
        compare: options.compare,
        even_if_invalidated: options.invalidate,
        vivify: options.vivify,
        own_cas: options.own_cas,
        tags: request.tags(),
    }
}

fn write_set(done: Result<MetaDone, Answer>, request: &Meta<'_>, quiet: bool, out: &mut Vec<u8>) {
    let facts = |made: &MetaWritten| MetaFacts {
        cas: Some(made.cas),
        bytes: Some(made.bytes),
        ..MetaFacts::default()
    };
    // What was not stored has the CAS 0.
    let nothing = MetaFacts { cas: Some(0), ..MetaFacts::default() };
    write_done(done, request, quiet, facts, &nothing, out);
}

/// `md`.
pub(crate) fn delete(session: &Session, context: &mut ThreadContext, request: &Meta<'_>, out: &mut Vec<u8>) {
    let options = request.options();
    let asked = MetaDelete {
        compare: options.compare,
        invalidate: options.invalidate,
        empty: options.empty,
        exptime: options.exptime,
        own_cas: options.own_cas,
    };
    let mut buffer = [0; KEY_MAX];
    let done = session.meta_delete(context, request.key.bytes(&mut buffer), &asked);
    let nothing = MetaFacts::default();
    write_done(done, request, options.quiet, |_| nothing, &nothing, out);
}

/// `ma`.
pub(crate) fn arithmetic(
    session: &Session,
    context: &mut ThreadContext,
    request: &Meta<'_>,
    out: &mut Vec<u8>,
) {
    let options = request.options();
    let asked = MetaArithmetic {
        decrement: options.mode == Mode::Decrement,
        delta: options.delta,
        compare: options.compare,
        vivify: options.vivify,
        initial: options.initial,
        exptime: options.exptime,
        own_cas: options.own_cas,
    };
    let mut buffer = [0; KEY_MAX];
    let done = session.meta_arithmetic(context, request.key.bytes(&mut buffer), &asked);
    let facts = |made: &MetaWritten| MetaFacts {
        cas: Some(made.cas),
        ttl: Some(made.ttl),
        new_ttl: made.new_ttl,
        made: made.made,
        ..MetaFacts::default()
    };
    match done {
        Ok(MetaDone::Done(made)) if options.value && !options.quiet => {
            let mut digits = Vec::new();
            number(made.number, &mut digits);
            meta_line(MetaCode::Value(digits.len()), request, &facts(&made), out);
            out.extend_from_slice(&digits);
            value_end(out);
        }
        done => write_done(done, request, options.quiet, facts, &MetaFacts::default(), out),
    }
}

/// `me`.
pub(crate) fn debug(session: &Session, context: &mut ThreadContext, request: &Meta<'_>, out: &mut Vec<u8>) {
    let mut buffer = [0; KEY_MAX];
    let key = request.key.bytes(&mut buffer);
    match session.meta_debug(context, key) {
        Ok(Some(debug)) => {
            let facts = ItemFacts {
                exptime: debug.item.ttl,
                used: debug.item.unused_seconds,
                cas: debug.item.cas,
                fetched: debug.item.fetched,
                class: SLAB_CLASS,
                size: debug.size,
            };
            meta_debug(&request.key, &facts, out);
        }
        // Its answer repeats nothing of the request.
        Ok(None) => out.extend_from_slice(b"EN\r\n"),
        Err(refusal) => write_answer(&refusal, out),
    }
}

/// The answer to a command that writes. `q` hides that all went well.
fn write_done(
    done: Result<MetaDone, Answer>,
    request: &Meta<'_>,
    quiet: bool,
    facts: impl FnOnce(&MetaWritten) -> MetaFacts,
    nothing: &MetaFacts,
    out: &mut Vec<u8>,
) {
    match done {
        Ok(MetaDone::Done(_)) if quiet => {}
        Ok(MetaDone::Done(made)) => meta_line(MetaCode::Done, request, &facts(&made), out),
        Ok(MetaDone::NotStored) => meta_line(MetaCode::NotStored, request, nothing, out),
        Ok(MetaDone::Exists) => meta_line(MetaCode::Exists, request, nothing, out),
        Ok(MetaDone::NotFound) => meta_line(MetaCode::NotFound, request, nothing, out),
        Err(refusal) => write_answer(&refusal, out),
    }
}

fn facts_of(item: &MetaItem) -> MetaFacts {
    MetaFacts {
        cas: Some(item.cas),
        client_flags: Some(item.client_flags),
        bytes: Some(item.bytes),
        ttl: Some(item.ttl),
        new_ttl: item.new_ttl,
        fetched: Some(item.fetched),
        unused_seconds: Some(item.unused_seconds),
        claimed: item.claimed,
        stale: item.stale,
        won: item.won,
        made: item.made,
    }
}

/// Writes a value straight from the store into the replies of a turn.
struct ItemWriter<'o> {
    request: &'o Meta<'o>,
    out: &'o mut Vec<u8>,
    /// Where the reply begins.
    begin: usize,
}

impl MetaSink for ItemWriter<'_> {
    #[inline]
    fn open(&mut self, item: &MetaItem) -> &mut Vec<u8> {
        meta_line(MetaCode::Value(item.bytes), self.request, &facts_of(item), self.out);
        self.out
    }

    #[inline]
    fn close(&mut self) {
        value_end(self.out);
    }

    fn discard(&mut self) {
        self.out.truncate(self.begin);
    }
}

//! The commands that operators and their scripts send: statistics, and memcached's own machinery.

use crate::Malformed;
use crate::parse::{Frame, Parsed};
use crate::request::{Dump, Operator, Request, Stats};
use crate::token::{self, Words};

/// Slab classes that memcached can have. Client libraries that list keys ask class after class and stop at the
/// first that is refused.
const SLAB_CLASSES: u32 = 64;

/// The least memory limit in MiB that memcached takes.
const MEMLIMIT_MIN: u64 = 8;

/// A memory limit in MiB above this can only have been meant as bytes; memcached's number.
const MEMLIMIT_MAX: u64 = 1_000_000_000;

/// The longest sleep of memcached's crawler, in microseconds.
const CRAWLER_SLEEP_MAX: u32 = 1_000_000;

/// `None` if the command is none of these.
pub(crate) fn parse<'a>(frame: &Frame<'a>, verb: &[u8], rest: &'a [u8]) -> Option<Parsed<'a>> {
    let words = Words::new(rest);
    Some(match verb {
        b"stats" => outcome(frame, stats(words).map(Request::Stats)),
        b"cache_memlimit" => cache_memlimit(frame, rest),
        b"shutdown" => outcome(frame, shutdown(words)),
        b"slabs" => outcome(frame, slabs(words)),
        b"lru" => outcome(frame, lru(words)),
        b"lru_crawler" => outcome(frame, lru_crawler(words)),
        b"extstore" => outcome(frame, extstore(words)),
        b"refresh_certs" => frame.complete(Request::Operator { command: Operator::RefreshCerts }),
        b"watch" => frame.complete(Request::Dump { dump: Dump::Watch }),
        _ => return None,
    })
}

fn outcome<'a>(frame: &Frame<'a>, request: Result<Request<'a>, Malformed>) -> Parsed<'a> {
    match request {
        Ok(request) => frame.complete(request),
        Err(reply) => frame.malformed(reply, 0),
    }
}

/// `stats` and its subjects.
fn stats(mut words: Words<'_>) -> Result<Stats, Malformed> {
    Ok(match words.next() {
        None => Stats::General,
        Some(b"settings") => Stats::Settings,
        Some(b"items") => Stats::Items,
        Some(b"slabs") => Stats::Slabs,
        Some(b"sizes") => Stats::Sizes,
        Some(b"conns") => Stats::Connections,
        Some(b"reset") => Stats::Reset,
        Some(b"detail") => match words.next() {
            Some(b"on") => Stats::Detail { on: true },
            Some(b"off") => Stats::Detail { on: false },
            Some(b"dump") => Stats::DetailDump,
            _ => return Err(Malformed::StatsDetailUsage),
        },
        Some(b"cachedump") => cache_dump(words)?,
        Some(_) => return Err(Malformed::UnknownCommand),
    })
}

fn cache_dump(mut words: Words<'_>) -> Result<Stats, Malformed> {
    let (Some(class), Some(limit)) = (words.next(), words.next()) else {
        return Err(Malformed::TooFewArguments);
    };
    let (Some(class), Some(limit)) = (token::unsigned_32(class), token::unsigned_32(limit)) else {
        return Err(Malformed::CommandLine);
    };
    if class >= SLAB_CLASSES {
        return Err(Malformed::SlabClass);
    }
    Ok(Stats::CacheDump { class, limit })
}

/// `cache_memlimit`.
fn cache_memlimit<'a>(frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let noreply = token::ends_in_noreply(rest);
    match Words::new(rest).next().and_then(token::unsigned_32).map(u64::from) {
        None => frame.malformed_unless(Malformed::UnknownCommand, noreply),
        Some(0..MEMLIMIT_MIN) => frame.malformed_unless(Malformed::MemlimitTooSmall, noreply),
        Some(mebibytes @ MEMLIMIT_MIN..=MEMLIMIT_MAX) => {
            frame.complete(Request::CacheMemlimit { mebibytes, noreply })
        }
        Some(_) => frame.malformed_unless(Malformed::MemlimitInBytes, noreply),
    }
}

fn shutdown(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    match (words.next(), words.next()) {
        (None, _) => Ok(Request::Shutdown { graceful: false }),
        (Some(b"graceful"), None) => Ok(Request::Shutdown { graceful: true }),
        _ => Err(Malformed::ShutdownMode),
    }
}

const fn operator<'a>(command: Operator) -> Request<'a> {
    Request::Operator { command }
}

fn slabs(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    let known = match (words.next(), words.next(), words.next()) {
        (Some(b"reassign"), Some(_), last)
        | (Some(b"automove"), Some(b"ratio" | b"freeratio" | b"window"), last) => last.is_some(),
        (Some(b"automove"), level, _) => level.is_some(),
        _ => false,
    };
    if known { Ok(operator(Operator::Slabs)) } else { Err(Malformed::UnknownCommand) }
}

fn lru(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    let known = match words.next() {
        Some(b"tune") => words.count() >= 4,
        Some(b"mode") => matches!(words.next(), Some(b"flat" | b"segmented")),
        Some(b"temp_ttl") => words.next().and_then(token::exptime).is_some(),
        _ => false,
    };
    if known { Ok(operator(Operator::Lru)) } else { Err(Malformed::UnknownCommand) }
}

fn lru_crawler(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    let done = Ok(operator(Operator::LruCrawler));
    match (words.next(), words.next(), words.next()) {
        (Some(b"enable" | b"disable"), None, None) | (Some(b"crawl"), Some(_), None) => done,
        (Some(b"tocrawl"), Some(number), None) => {
            if token::unsigned_32(number).is_some() {
                done
            } else {
                Err(Malformed::CommandLine)
            }
        }
        (Some(b"sleep"), Some(number), None) => match token::unsigned_32(number) {
            None => Err(Malformed::CommandLine),
            Some(0..=CRAWLER_SLEEP_MAX) => done,
            Some(_) => Err(Malformed::CrawlerSleep),
        },
        (Some(b"metadump"), Some(_), None) => Ok(Request::Dump { dump: Dump::Metadump }),
        (Some(b"mgdump"), Some(_), None) => Ok(Request::Dump { dump: Dump::Mgdump }),
        _ => Err(Malformed::UnknownCommand),
    }
}

fn extstore(words: Words<'_>) -> Result<Request<'_>, Malformed> {
    if words.count() >= 2 { Ok(operator(Operator::Extstore)) } else { Err(Malformed::UnknownCommand) }
}

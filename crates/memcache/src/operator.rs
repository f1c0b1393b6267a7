//! The commands that operators and their scripts send: statistics, and memcached's own machinery.

use crate::Malformed;
use crate::frame::{Frame, Parsed};
use crate::limits::{AUTOMOVE_MAX, CRAWLER_SLEEP_MAX, MEMLIMIT_MAX, MEMLIMIT_MIN};
use crate::request::{Classes, Dump, Operator, Request, Stats, Watch};
use crate::token::{self, Words};

/// Slab classes that memcached can have. Client libraries that list keys ask class after class and stop at the
/// first that is refused.
const SLAB_CLASSES: u32 = 64;

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
        b"watch" => outcome(frame, watch(words)),
        #[cfg(debug_assertions)]
        b"debugtime" => outcome(frame, debug_time(words)),
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

/// `debugtime`, which memcached has in its test builds too.
#[cfg(debug_assertions)]
fn debug_time(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    use crate::request::DebugTime;
    Ok(Request::DebugTime(match words.next() {
        Some(b"p") => DebugTime::Pause,
        Some(b"r") => DebugTime::Resume,
        // Seconds are written as an expiry time is: with a sign where they are negative.
        Some(seconds) => DebugTime::Add(token::exptime(seconds).ok_or(Malformed::UnknownCommand)?),
        None => return Err(Malformed::UnknownCommand),
    }))
}

const fn operator<'a>(command: Operator) -> Request<'a> {
    Request::Operator { command }
}

fn slabs(mut words: Words<'_>) -> Result<Request<'_>, Malformed> {
    match (words.next(), words.next(), words.next()) {
        (Some(b"reassign"), Some(from), Some(to)) => Err(reassign(from, to)),
        (Some(b"automove"), Some(b"ratio" | b"freeratio" | b"window"), Some(_)) => {
            Ok(operator(Operator::Slabs))
        }
        (Some(b"automove"), Some(b"ratio" | b"freeratio" | b"window"), None) => {
            Err(Malformed::UnknownCommand)
        }
        (Some(b"automove"), Some(level), _) => match token::unsigned_32(level) {
            None => Err(Malformed::CommandLine),
            Some(0..=AUTOMOVE_MAX) => Ok(operator(Operator::Slabs)),
            Some(_) => Err(Malformed::UnknownCommand),
        },
        _ => Err(Malformed::UnknownCommand),
    }
}

/// Why a page does not move from one class to another: there is one class, and it has no page to spare.
fn reassign(from: &[u8], to: &[u8]) -> Malformed {
    let class =
        |word: &[u8]| token::unsigned_32(word.strip_prefix(b"-").unwrap_or(word)).map(|_| word.to_vec());
    match (class(from), class(to)) {
        (None, _) | (_, None) => Malformed::CommandLine,
        (Some(from), Some(to)) if from == to => Malformed::SlabsSame,
        _ if slab_class(from).is_none() || slab_class(to).is_none() => Malformed::SlabsClass,
        _ => Malformed::SlabsNoSpare,
    }
}

/// A class that memcached can have. 0 is the page pool.
fn slab_class(word: &[u8]) -> Option<u32> {
    token::unsigned_32(word).filter(|class| *class < SLAB_CLASSES)
}

/// The classes that a crawl or a dump goes through: `all`, where it can go by the hash table `hash`, or a list.
fn classes(word: &[u8], hash: bool) -> Result<Classes, Malformed> {
    if word == b"all" || (hash && word == b"hash") {
        return Ok(Classes::ALL);
    }
    let mut bits = 0_u64;
    for class in word.split(|byte| *byte == b',') {
        match slab_class(class) {
            Some(class @ 1..) => bits |= 1_u64.checked_shl(class).unwrap_or(0),
            _ => return Err(Malformed::BadClass),
        }
    }
    Ok(Classes(bits))
}

/// `watch` and what to watch; alone it means those who fetch.
fn watch(words: Words<'_>) -> Result<Request<'_>, Malformed> {
    let mut watch = Watch::default();
    let mut alone = true;
    for word in words {
        alone = false;
        match word {
            b"fetchers" => watch.fetchers = true,
            b"mutations" => watch.mutations = true,
            b"evictions" => watch.evictions = true,
            b"connevents" => watch.connevents = true,
            b"deletions" => watch.deletions = true,
            // What moves memcached's own machinery: there is nothing to tell.
            b"sysevents" => {}
            _ => return Err(Malformed::UnknownCommand),
        }
    }
    watch.fetchers |= alone;
    Ok(Request::Watch(watch))
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
        (Some(b"enable" | b"disable"), None, None) => done,
        (Some(b"crawl"), Some(word), None) => classes(word, false).map(|_| Request::Crawl),
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
        (Some(b"metadump"), Some(word), None) => {
            classes(word, true).map(|classes| Request::Dump { dump: Dump::Metadump, classes })
        }
        (Some(b"mgdump"), Some(word), None) => {
            classes(word, true).map(|classes| Request::Dump { dump: Dump::Mgdump, classes })
        }
        _ => Err(Malformed::UnknownCommand),
    }
}

fn extstore(words: Words<'_>) -> Result<Request<'_>, Malformed> {
    if words.count() >= 2 { Ok(operator(Operator::Extstore)) } else { Err(Malformed::UnknownCommand) }
}

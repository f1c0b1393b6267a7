//! What must hold for every stream of bytes sent to the memcached listener.
//!
//! The functions here are run by libFuzzer through `fuzz_targets/memcache.rs`, and on the stable toolchain by the
//! tests of the `memcache` crate, which include this file.

use memcache::{
    Dump, Key, Limits, Meta, MetaCode, MetaFacts, Operator, Parsed, Parser, Request, Stats, Then, Verb,
    meta_line,
};

/// Runs one input: the first byte chooses limits and cuts, the rest is the stream.
pub fn fuzz_memcache(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else { return };
    let parser = Parser::new(if choice & 1 == 0 { Limits::default() } else { small_limits() });
    let whole = transcript(&parser, [stream]);
    assert_eq!(whole, transcript(&parser, stream.chunks(1)), "byte by byte");
    let cut = 2 + usize::from(choice >> 1) % 40;
    assert_eq!(whole, transcript(&parser, stream.chunks(cut)), "pieces of {cut}");
    let _ = memcache::stranger(stream);
}

/// Limits that inputs of a few dozen bytes reach.
pub fn small_limits() -> Limits {
    Limits {
        key_max: 8,
        line_max: 60,
        retrieval_line_max: 120,
        value_max: 16,
        sql_statement_max: 12,
        sql_parameters_max: 10,
    }
}

/// Everything that a connection understands of a stream that arrives in these pieces, in words.
pub fn transcript<'a>(parser: &Parser, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut connection = Connection::new(parser);
    for piece in pieces {
        connection.receive(piece);
    }
    connection.transcript
}

/// A connection as a server would keep it, and the checks of every step.
struct Connection<'a> {
    parser: &'a Parser,
    buffer: Vec<u8>,
    swallow: usize,
    searched: usize,
    needed: usize,
    closed: bool,
    transcript: Vec<String>,
}

impl<'a> Connection<'a> {
    fn new(parser: &'a Parser) -> Self {
        Self {
            parser,
            buffer: Vec::new(),
            swallow: 0,
            searched: 0,
            needed: 1,
            closed: false,
            transcript: Vec::new(),
        }
    }

    fn receive(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
        while !self.closed {
            let swallowed = self.swallow.min(self.buffer.len());
            self.buffer.drain(..swallowed);
            self.swallow -= swallowed;
            if self.buffer.is_empty() || !self.step() {
                return;
            }
        }
    }

    /// Parses once; `false` if more bytes are wanted.
    fn step(&mut self) -> bool {
        let parsed = self.parser.parse(&self.buffer);
        assert_eq!(parsed, self.parser.parse_from(&self.buffer, self.searched), "searched is right");
        if self.buffer.len() < self.needed {
            assert!(!matches!(parsed, Parsed::Complete { .. }), "{} bytes were needed", self.needed);
        }
        let consumed = match parsed {
            Parsed::Complete { request, consumed } => {
                check_request(self.parser.limits(), &request);
                check_round_trip(self.parser, &request);
                self.transcript.push(describe(&request));
                consumed
            }
            Parsed::Malformed { reply, consumed, swallow, then, invalidate, noreply } => {
                let mut line = Vec::new();
                reply.compose(&mut line);
                check_line(&line);
                self.transcript.push(describe_malformed(&line, swallow, then, invalidate, noreply));
                self.swallow = swallow;
                self.closed = then == Then::Close;
                consumed
            }
            Parsed::Incomplete { needed, searched } => {
                assert!(needed > self.buffer.len(), "more is needed than is there");
                assert!(searched <= self.buffer.len());
                assert!(needed <= most_needed(self.parser.limits()), "{needed} bytes are beyond the limits");
                (self.needed, self.searched) = (needed, searched);
                return false;
            }
        };
        assert!(0 < consumed && consumed <= self.buffer.len(), "progress within the input");
        self.buffer.drain(..consumed);
        (self.needed, self.searched) = (1, 0);
        true
    }
}

/// The longest request that the limits allow, with its line ends.
fn most_needed(limits: &Limits) -> usize {
    let line = limits.line_max.max(limits.retrieval_line_max) + 2;
    line + limits.value_max.max(limits.sql_statement_max + limits.sql_parameters_max) + 4
}

fn check_line(line: &[u8]) {
    if let Some((end, text)) = line.split_last_chunk::<2>().map(|(text, end)| (end, text)) {
        assert_eq!(end, b"\r\n");
        assert!(!text.iter().any(u8::is_ascii_control), "one line: {}", line.escape_ascii());
    }
}

fn check_key(limits: &Limits, key: &[u8]) {
    assert!(!key.is_empty(), "a key is not empty");
    assert!(key.len() <= limits.key_max, "a key is within its limit");
    let bad = key.iter().any(|byte| *byte == b' ' || byte.is_ascii_control());
    assert!(!bad, "a key has no space and no control character");
}

/// The rules of the protocol that every accepted request keeps.
fn check_request(limits: &Limits, request: &Request<'_>) {
    match request {
        Request::Get { keys, .. } | Request::GetAndTouch { keys, .. } => {
            assert!(keys.clone().next().is_some(), "at least one key");
            keys.clone().for_each(|key| check_key(limits, key));
        }
        Request::Store { key, value, .. } => {
            check_key(limits, key);
            assert!(value.len() <= limits.value_max);
        }
        Request::MetaGet(meta)
        | Request::MetaSet { meta, .. }
        | Request::MetaDelete(meta)
        | Request::MetaArithmetic(meta)
        | Request::MetaDebug(meta) => check_meta(limits, meta),
        Request::Delete { key, .. } | Request::Arithmetic { key, .. } | Request::Touch { key, .. } => {
            check_key(limits, key);
        }
        Request::Sql { statement } => assert!(statement.len() <= limits.sql_statement_max),
        Request::Call { arguments, .. } => assert!(arguments.len() <= limits.sql_parameters_max),
        Request::SqlParams { statement, parameters } => {
            assert!(statement.len() <= limits.sql_statement_max);
            assert!(parameters.len() <= limits.sql_parameters_max);
        }
        _ => {}
    }
}

/// A meta command's key is one, its flags are letters that come once, and what is sent back of it stays on its line.
fn check_meta(limits: &Limits, meta: &Meta<'_>) {
    let text = meta.key.text;
    // Four letters of base64 are three bytes.
    let longest = if meta.key.base64 { limits.key_max.div_ceil(3) * 4 } else { limits.key_max };
    check_key(&Limits { key_max: longest, ..limits.clone() }, text);
    assert!(!meta.key.bytes(&mut [0; memcache::KEY_MAX]).is_empty(), "a key is not empty");
    let mut seen = Vec::new();
    for (letter, _) in meta.flags() {
        assert!(letter.is_ascii_alphabetic() && !seen.contains(&letter), "letters that come once");
        seen.push(letter);
    }
    let mut line = Vec::new();
    meta_line(MetaCode::Done, meta, &MetaFacts::default(), &mut line);
    check_line(&line);
}

/// A meta command as a client would write it.
fn meta_text(verb: &str, length: Option<usize>, meta: &Meta<'_>) -> Vec<u8> {
    let mut line = joined(verb, [meta.key.text]);
    if let Some(length) = length {
        line.extend(format!(" {length}").bytes());
    }
    for (letter, token) in meta.flags() {
        line.extend([b' ', letter]);
        line.extend_from_slice(token);
    }
    line
}

/// A request written as a client would write it is parsed to itself.
fn check_round_trip(parser: &Parser, request: &Request<'_>) {
    let Some(bytes) = written(request) else { return };
    let limits = Limits { line_max: bytes.len(), retrieval_line_max: bytes.len(), ..parser.limits().clone() };
    match Parser::new(limits).parse(&bytes) {
        Parsed::Complete { request: again, consumed } => {
            assert_eq!(describe(&again), describe(request));
            assert_eq!(consumed, bytes.len());
        }
        other => panic!("{} became {other:?}", bytes.escape_ascii()),
    }
}

/// The bytes of a request; `None` for those without arguments, or whose arguments are not kept.
fn written(request: &Request<'_>) -> Option<Vec<u8>> {
    let mut line = match request {
        Request::Get { keys, cas } => joined(if *cas { "gets" } else { "get" }, keys.clone()),
        Request::GetAndTouch { exptime, keys, cas } => {
            joined(&format!("{} {exptime}", if *cas { "gats" } else { "gat" }), keys.clone())
        }
        Request::Store { verb, key, flags, exptime, value, .. } => {
            let mut line = joined(verb_name(*verb), [*key]);
            line.extend(format!(" {flags} {exptime} {}", value.len()).bytes());
            if let Verb::Cas(cas) = verb {
                line.extend(format!(" {cas}").bytes());
            }
            line
        }
        Request::Delete { key, .. } => joined("delete", [*key]),
        Request::Arithmetic { incr, key, delta, .. } => {
            let mut line = joined(if *incr { "incr" } else { "decr" }, [*key]);
            line.extend(format!(" {delta}").bytes());
            line
        }
        Request::Touch { key, exptime, .. } => {
            let mut line = joined("touch", [*key]);
            line.extend(format!(" {exptime}").bytes());
            line
        }
        Request::FlushAll { delay, .. } => {
            delay.map_or_else(|| "flush_all".into(), |delay| format!("flush_all {delay}")).into_bytes()
        }
        Request::MetaGet(meta) => meta_text("mg", None, meta),
        Request::MetaSet { meta, value } => meta_text("ms", Some(value.len()), meta),
        Request::MetaDelete(meta) => meta_text("md", None, meta),
        Request::MetaArithmetic(meta) => meta_text("ma", None, meta),
        Request::MetaDebug(meta) => meta_text("me", None, meta),
        Request::Sql { statement } => format!("sql {}", statement.len()).into_bytes(),
        Request::Call { name, arguments } => {
            let mut line = b"call ".to_vec();
            line.extend_from_slice(name);
            line.extend_from_slice(format!(" {}", arguments.len()).as_bytes());
            line
        }
        Request::SqlParams { statement, parameters } => {
            format!("sqlp {} {}", statement.len(), parameters.len()).into_bytes()
        }
        _ => return None,
    };
    if wants_no_reply(request) {
        line.extend_from_slice(b" noreply");
    }
    line.extend_from_slice(b"\r\n");
    match request {
        Request::Store { value: data, .. }
        | Request::MetaSet { value: data, .. }
        | Request::Call { arguments: data, .. }
        | Request::Sql { statement: data } => {
            line.extend_from_slice(data);
            line.extend_from_slice(b"\r\n");
        }
        Request::SqlParams { statement, parameters } => {
            for data in [statement, parameters] {
                line.extend_from_slice(data);
                line.extend_from_slice(b"\r\n");
            }
        }
        _ => {}
    }
    Some(line)
}

fn joined<'a>(before: &str, keys: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut line = before.as_bytes().to_vec();
    for key in keys {
        line.push(b' ');
        line.extend_from_slice(key);
    }
    line
}

fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Set => "set",
        Verb::Add => "add",
        Verb::Replace => "replace",
        Verb::Append => "append",
        Verb::Prepend => "prepend",
        Verb::Cas(_) => "cas",
    }
}

fn wants_no_reply(request: &Request<'_>) -> bool {
    match request {
        Request::Store { noreply, .. }
        | Request::Delete { noreply, .. }
        | Request::Arithmetic { noreply, .. }
        | Request::Touch { noreply, .. }
        | Request::FlushAll { noreply, .. }
        | Request::Verbosity { noreply, .. }
        | Request::CacheMemlimit { noreply, .. } => *noreply,
        _ => false,
    }
}

/// A request in words, for tables of expected outcomes.
pub fn describe(request: &Request<'_>) -> String {
    let words = match request {
        Request::Get { keys, cas } => {
            format!("{} [{}]", if *cas { "gets" } else { "get" }, key_list(keys.clone()))
        }
        Request::GetAndTouch { exptime, keys, cas } => {
            format!("{} {exptime} [{}]", if *cas { "gats" } else { "gat" }, key_list(keys.clone()))
        }
        Request::Store { verb, key, flags, exptime, value, .. } => {
            let cas = if let Verb::Cas(cas) = verb { format!(" cas={cas}") } else { String::new() };
            format!(
                "{} {} flags={flags} exptime={exptime}{cas} '{}'",
                verb_name(*verb),
                key.escape_ascii(),
                value.escape_ascii()
            )
        }
        Request::Delete { key, .. } => format!("delete {}", key.escape_ascii()),
        Request::Arithmetic { incr, key, delta, .. } => {
            format!("{} {} {delta}", if *incr { "incr" } else { "decr" }, key.escape_ascii())
        }
        Request::Touch { key, exptime, .. } => format!("touch {} {exptime}", key.escape_ascii()),
        Request::FlushAll { delay, .. } => {
            delay.map_or_else(|| "flush_all".into(), |delay| format!("flush_all {delay}"))
        }
        Request::Version => "version".into(),
        Request::Verbosity { .. } => "verbosity".into(),
        Request::Quit => "quit".into(),
        Request::Stats(stats) => describe_stats(*stats),
        Request::CacheMemlimit { mebibytes, .. } => format!("cache_memlimit {mebibytes}"),
        Request::Shutdown { graceful } => format!("shutdown graceful={graceful}"),
        Request::MetaSet { meta, value } => {
            format!("{} '{}'", meta_text("ms", Some(value.len()), meta).escape_ascii(), value.escape_ascii())
        }
        Request::MetaGet(_) | Request::MetaDelete(_) | Request::MetaArithmetic(_) | Request::MetaDebug(_) => {
            written(request).unwrap_or_default().trim_ascii_end().escape_ascii().to_string()
        }

        Request::MetaNoop => "mn".into(),
        Request::Operator { command } => describe_operator(*command).into(),
        Request::Dump { dump, classes } => {
            let own = if classes.contains(1) { "" } else { " of others" };
            match dump {
                Dump::Metadump => format!("metadump{own}"),
                Dump::Mgdump => format!("mgdump{own}"),
                Dump::Watch => format!("{dump:?}"),
            }
        }
        Request::Watch(watch) => format!("{watch:?}"),
        Request::Crawl => "crawl".into(),
        Request::Sql { statement } => format!("sql '{}'", statement.escape_ascii()),
        Request::Call { name, arguments } => {
            format!("call '{}' '{}'", name.escape_ascii(), arguments.escape_ascii())
        }
        Request::SqlParams { statement, parameters } => {
            format!("sqlp '{}' '{}'", statement.escape_ascii(), parameters.escape_ascii())
        }
        other => format!("{other:?}"),
    };
    if wants_no_reply(request) { words + " noreply" } else { words }
}

fn key_list<'a>(keys: impl Iterator<Item = &'a [u8]>) -> String {
    keys.map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

fn describe_stats(stats: Stats) -> String {
    match stats {
        Stats::General => "stats".into(),
        other => format!("stats {other:?}"),
    }
}

fn describe_operator(command: Operator) -> &'static str {
    match command {
        Operator::Slabs => "slabs",
        Operator::Lru => "lru",
        Operator::LruCrawler => "lru_crawler",
        Operator::Extstore => "extstore",
        Operator::RefreshCerts => "refresh_certs",
    }
}

fn describe_malformed(
    line: &[u8],
    swallow: usize,
    then: Then,
    invalidate: Option<Key<'_>>,
    noreply: bool,
) -> String {
    let mut words = String::from_utf8_lossy(line).trim_end().to_string();
    if swallow > 0 {
        words += &format!(" (swallow {swallow})");
    }
    if let Some(key) = invalidate {
        words += &format!(" (invalidate {})", key.text.escape_ascii());
    }
    if noreply {
        words += " (silent)";
    }
    if then == Then::Close {
        words += " (close)";
    }
    words.trim_start().to_string()
}

//! The answers to meta commands.

use crate::compose::{number, text, value_end};
use crate::meta::{Key, Meta};

/// How the answer to a meta command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaCode {
    /// `HD`: done.
    Done,
    /// `VA` and the length of the value that follows.
    Value(usize),
    /// `EN`: `mg` and `me` found nothing.
    Miss,
    /// `NF`: there is no such key.
    NotFound,
    /// `NS`: the condition of the mode did not hold.
    NotStored,
    /// `EX`: the CAS is another.
    Exists,
}

/// What an answer may say of an item; what is none is left out though it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFacts {
    /// `c`.
    pub cas: Option<u64>,
    /// `f`.
    pub client_flags: Option<u32>,
    /// `s`: bytes of the value.
    pub bytes: Option<usize>,
    /// `t`: seconds left as the item was found.
    pub ttl: Option<TimeLeft>,
    /// `t` behind a `T` in the request: seconds left by the new expiry time.
    pub new_ttl: Option<TimeLeft>,
    /// `h`: whether it was fetched before.
    pub fetched: Option<bool>,
    /// `l`: seconds since it was used last.
    pub unused_seconds: Option<u64>,
    /// `Z`: somebody was asked to refresh it.
    pub claimed: bool,
    /// `X`: it is stale.
    pub stale: bool,
    /// `W`: the peer is to refresh it.
    pub won: bool,
    /// `N` has made it, so that `t` behind `N` shows the new time.
    pub made: bool,
}

/// Seconds until an item expires; none if it does not.
pub type TimeLeft = Option<u64>;

/// Appends the first line of an answer: the code, then what the request's flags ask for, in their order. The value and
/// [`value_end`] follow a [`MetaCode::Value`].
pub fn meta_line(code: MetaCode, request: &Meta<'_>, facts: &MetaFacts, out: &mut Vec<u8>) {
    match code {
        MetaCode::Done => out.extend_from_slice(b"HD"),
        MetaCode::Miss => out.extend_from_slice(b"EN"),
        MetaCode::NotFound => out.extend_from_slice(b"NF"),
        MetaCode::NotStored => out.extend_from_slice(b"NS"),
        MetaCode::Exists => out.extend_from_slice(b"EX"),
        MetaCode::Value(bytes) => {
            out.extend_from_slice(b"VA ");
            number(u64::try_from(bytes).unwrap_or(u64::MAX), out);
        }
    }
    let mut ttl = facts.ttl;
    for (letter, token) in request.flags() {
        match letter {
            b'T' => ttl = facts.new_ttl.or(ttl),
            b'N' if facts.made => ttl = facts.new_ttl.or(ttl),
            b'k' => key(&request.key, out),
            b'O' => {
                out.extend_from_slice(b" O");
                out.extend_from_slice(token);
            }
            b'c' => flag(b" c", facts.cas, out),
            b'f' => flag(b" f", facts.client_flags.map(u64::from), out),
            b's' => flag(b" s", facts.bytes.and_then(|bytes| u64::try_from(bytes).ok()), out),
            b't' => match ttl {
                Some(None) => out.extend_from_slice(b" t-1"),
                seconds => flag(b" t", seconds.flatten(), out),
            },
            b'h' => flag(b" h", facts.fetched.map(u64::from), out),
            b'l' => flag(b" l", facts.unused_seconds, out),
            _ => {}
        }
    }
    for (is_so, word) in [(facts.claimed, b" Z"), (facts.stale, b" X"), (facts.won, b" W")] {
        if is_so {
            out.extend_from_slice(word);
        }
    }
    value_end(out);
}

#[inline]
fn flag(before: &[u8], value: Option<u64>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.extend_from_slice(before);
        number(value, out);
    }
}

/// The key as the peer wrote it, and whether that was base64.
fn key(key: &Key<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b" k");
    out.extend_from_slice(key.text);
    if key.base64 {
        out.extend_from_slice(b" b");
    }
}

/// The fields of `me` for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemFacts {
    /// `exp`: seconds left; none is -1.
    pub exptime: Option<u64>,
    /// `la`: seconds since it was used last.
    pub used: u64,
    /// `cas`.
    pub cas: u64,
    /// `fetch`.
    pub fetched: bool,
    /// `cls`.
    pub class: u32,
    /// `size`: bytes that it takes.
    pub size: usize,
}

/// Appends the answer to `me`, the key as the peer wrote it.
pub fn meta_debug(request: &Key<'_>, facts: &ItemFacts, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(request.text);
    item_facts(facts, out);
    value_end(out);
}

fn item_facts(facts: &ItemFacts, out: &mut Vec<u8>) {
    match facts.exptime {
        Some(exptime) => flag(b" exp=", Some(exptime), out),
        None => out.extend_from_slice(b" exp=-1"),
    }
    flag(b" la=", Some(facts.used), out);
    flag(b" cas=", Some(facts.cas), out);
    text(if facts.fetched { " fetch=yes" } else { " fetch=no" }, out);
    flag(b" cls=", Some(u64::from(facts.class)), out);
    flag(b" size=", u64::try_from(facts.size).ok(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parsed, Parser, Request};

    fn answered(line: &[u8], code: MetaCode, facts: &MetaFacts) -> String {
        let mut out = Vec::new();
        if let Parsed::Complete { request: Request::MetaGet(meta), .. } = Parser::default().parse(line) {
            meta_line(code, &meta, facts, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn flags_are_answered_in_their_order() {
        let facts = MetaFacts {
            cas: Some(7),
            client_flags: Some(5),
            bytes: Some(3),
            ttl: Some(Some(60)),
            new_ttl: Some(Some(90)),
            fetched: Some(true),
            unused_seconds: Some(0),
            claimed: true,
            stale: true,
            won: true,
            made: false,
        };
        for (line, expected) in [
            ("mg k c f s t h l k Oab\r\n", "HD c7 f5 s3 t60 h1 l0 kk Oab Z X W\r\n"),
            ("mg k t T90 c\r\n", "HD t60 c7 Z X W\r\n"),
            ("mg k T90 t\r\n", "HD t90 Z X W\r\n"),
            ("mg a2V5 k b\r\n", "HD ka2V5 b Z X W\r\n"),
        ] {
            assert_eq!(answered(line.as_bytes(), MetaCode::Done, &facts), expected);
        }
        let none = MetaFacts::default();
        assert_eq!(answered(b"mg k c t k O1\r\n", MetaCode::Miss, &none), "EN kk O1\r\n");
        let never = MetaFacts { ttl: Some(None), ..none };
        assert_eq!(answered(b"mg k t v\r\n", MetaCode::Value(0), &never), "VA 0 t-1\r\n");
    }
}

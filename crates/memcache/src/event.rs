//! Lines of the streams that operators read: keys of a dump, and events of `watch`. Keys in them are written as in a
//! URL, so that a key never ends a line or looks like another word of it.

use std::fmt::Write;

/// Digits of a byte in a URL.
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// An item in a dump of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpItem<'a> {
    /// The whole key.
    pub key: &'a [u8],
    /// Unix second of its end, none without one.
    pub expires_at: Option<u64>,
    /// Unix second of its last use.
    pub used_at: u64,
    /// Its CAS.
    pub cas: u64,
    /// It was fetched.
    pub fetched: bool,
    /// Its slab class.
    pub class: u32,
    /// Bytes that it takes.
    pub size: usize,
    /// Bytes of its value.
    pub value_bytes: usize,
}

/// Appends a line of `lru_crawler metadump`.
pub fn metadump(item: &DumpItem<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"key=");
    url_encoded(item.key, out);
    let fetched = if item.fetched { "yes" } else { "no" };
    let DumpItem { used_at, cas, class, size, .. } = item;
    line(out, format_args!(" exp={}", Seconds(item.expires_at)));
    line(out, format_args!(" la={used_at} cas={cas} fetch={fetched} cls={class} size={size}\n"));
}

/// Appends a line of `lru_crawler mgdump`: the command that would fetch the item.
pub fn mgdump(item: &DumpItem<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"mg ");
    if item.key.iter().all(|byte| *byte > b' ' && *byte != 0x7f) {
        out.extend_from_slice(item.key);
        out.extend_from_slice(b"\r\n");
    } else {
        crate::base64::encode(item.key, out);
        out.extend_from_slice(b" b\r\n");
    }
}

/// Appends a line of `stats cachedump`, which memcached gives for keys without spaces only.
pub fn cachedump(item: &DumpItem<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(item.key);
    let end = item.expires_at.unwrap_or(0);
    line(out, format_args!(" [{} b; {end} s]\r\n", item.value_bytes));
}

/// Appends a key as in a URL: letters, digits and `-._~` as they are, all else as `%` and two digits.
pub fn url_encoded(key: &[u8], out: &mut Vec<u8>) {
    for &byte in key {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte);
        } else {
            let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Seconds, or -1 for never.
struct Seconds(Option<u64>);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(seconds) => seconds.fmt(f),
            None => f.write_str("-1"),
        }
    }
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let mut words = String::new();
    // Writing to a string does not fail.
    let _ = words.write_fmt(text);
    out.extend_from_slice(words.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: DumpItem<'_> = DumpItem {
        key: b"a%b:c d",
        expires_at: Some(1_795_305_751),
        used_at: 1_795_305_721,
        cas: 5,
        fetched: true,
        class: 1,
        size: 65,
        value_bytes: 3,
    };

    #[test]
    fn lines_of_the_dumps() {
        let mut out = Vec::new();
        metadump(&ITEM, &mut out);
        metadump(&DumpItem { key: b"k", expires_at: None, fetched: false, ..ITEM }, &mut out);
        mgdump(&ITEM, &mut out);
        mgdump(&DumpItem { key: b"k", ..ITEM }, &mut out);
        cachedump(&DumpItem { key: b"k", expires_at: None, ..ITEM }, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "key=a%25b%3Ac%20d exp=1795305751 la=1795305721 cas=5 fetch=yes cls=1 size=65\n\
             key=k exp=-1 la=1795305721 cas=5 fetch=no cls=1 size=65\n\
             mg YSViOmMgZA== b\r\nmg k\r\nITEM k [3 b; 0 s]\r\n"
        );
    }
}

//! The page's files: kept compressed, with a mark by which a browser asks whether they changed.

use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY,
};

use super::answer::{Answer, body};

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    Page,
    Style,
    Script,
    Icon,
}

/// The files with their types, in the order of [`File`].
const FILES: [(&str, &str); 4] = [
    ("text/html; charset=utf-8", include_str!("console/index.html")),
    ("text/css; charset=utf-8", include_str!("console/console.css")),
    ("text/javascript; charset=utf-8", include_str!("console/console.js")),
    ("image/svg+xml", include_str!("console/icon.svg")),
];

/// A file, ready to be sent.
#[derive(Debug)]
struct Asset {
    content_type: &'static str,
    plain: &'static str,
    packed: Option<Bytes>,
    mark: String,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Assets([Asset; 4]);

impl Assets {
    /// Compresses them: a millisecond, once.
    pub(super) fn new() -> Self {
        Self(FILES.map(|(content_type, plain)| {
            // Its keys are fixed: the same file has the same mark after a restart.
            let mut hasher = DefaultHasher::new();
            hasher.write(plain.as_bytes());
            let mark = format!("\"{:016x}\"", hasher.finish());
            Asset { content_type, plain, packed: packed(plain), mark }
        }))
    }

    /// The answer to a request for one: the file, packed if the client can unpack it, or that it has not changed.
    pub(super) fn answer(&self, file: File, headers: &HeaderMap) -> Answer {
        let Asset { content_type, plain, packed, mark } = &self.0[file as usize];
        let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
        let is_known = known.split(',').any(|known| known.trim().trim_start_matches("W/") == mark);
        let packed = packed.as_ref().filter(|_| unpacks(headers));
        let mut answer = match packed {
            _ if is_known => body(StatusCode::NOT_MODIFIED, content_type, Bytes::new()),
            Some(packed) => body(StatusCode::OK, content_type, packed.clone()),
            None => body(StatusCode::OK, content_type, *plain),
        };
        let own = answer.headers_mut();
        if packed.is_some() && !is_known {
            own.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        own.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        own.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        own.extend(HeaderValue::from_str(mark).ok().map(|mark| (ETAG, mark)));
        answer
    }
}

fn packed(plain: &str) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain.as_bytes()).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Whether a client takes gzip.
fn unpacks(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|quality| quality.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody looks at it because the server is ill, perhaps from far away.
    #[test]
    fn the_page_is_small() {
        const BYTES_MAX: usize = 60 << 10;
        let all: usize = Assets::new().0.iter().map(|asset| asset.packed.as_ref().unwrap().len()).sum();
        assert!(all < BYTES_MAX, "{all} bytes");
    }

    #[test]
    fn encodings() {
        let takes = |accepted: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            unpacks(&headers)
        };
        assert!(takes("gzip, deflate, br") && takes("br;q=1, GZIP;q=0.5"));
        assert!(!takes("") && !takes("br") && !takes("gzip;q=0") && !takes("gzip; q=0.0"));
    }
}

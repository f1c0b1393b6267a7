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

/// The files with their paths and types. A script is listed here alone: the page has its line by [`preloads`].
const FILES: &[(&str, &str, &str)] = &[
    (PAGE, "text/html; charset=utf-8", include_str!("console/index.html")),
    ("/console/console.css", "text/css; charset=utf-8", include_str!("console/console.css")),
    ("/console/icon.svg", "image/svg+xml", include_str!("console/icon.svg")),
    (MAIN, SCRIPT, include_str!("console/console.js")),
    ("/console/ask.js", SCRIPT, include_str!("console/ask.js")),
    ("/console/chart.js", SCRIPT, include_str!("console/chart.js")),
    ("/console/dom.js", SCRIPT, include_str!("console/dom.js")),
    ("/console/editor.js", SCRIPT, include_str!("console/editor.js")),
    ("/console/figures.js", SCRIPT, include_str!("console/figures.js")),
    ("/console/grid.js", SCRIPT, include_str!("console/grid.js")),
    ("/console/kept.js", SCRIPT, include_str!("console/kept.js")),
    ("/console/lists.js", SCRIPT, include_str!("console/lists.js")),
    ("/console/overview.js", SCRIPT, include_str!("console/overview.js")),
    ("/console/query.js", SCRIPT, include_str!("console/query.js")),
    ("/console/rows.js", SCRIPT, include_str!("console/rows.js")),
    ("/console/state.js", SCRIPT, include_str!("console/state.js")),
    ("/console/table.js", SCRIPT, include_str!("console/table.js")),
    ("/console/tables.js", SCRIPT, include_str!("console/tables.js")),
    ("/console/time.js", SCRIPT, include_str!("console/time.js")),
    ("/console/timeline.js", SCRIPT, include_str!("console/timeline.js")),
    ("/console/view.js", SCRIPT, include_str!("console/view.js")),
    ("/console/words.js", SCRIPT, include_str!("console/words.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The page, and the script that begins.
const PAGE: &str = "/";
const MAIN: &str = "/console/console.js";
/// What stands in the page where its scripts belong.
const SCRIPTS_BELONG: &str = "<!-- modules -->";

/// The lines of the page that load its scripts: all at once, and not one after the other as they name each other.
fn preloads() -> String {
    let scripts = FILES.iter().filter(|(_, content_type, _)| *content_type == SCRIPT);
    let lines = scripts.map(|(path, ..)| format!("<link rel=\"modulepreload\" href=\"{path}\">\n"));
    lines.chain([format!("<script type=\"module\" src=\"{MAIN}\"></script>")]).collect()
}

/// A file, ready to be sent.
#[derive(Debug)]
pub(super) struct Asset {
    path: &'static str,
    content_type: &'static str,
    plain: Bytes,
    packed: Option<Bytes>,
    mark: String,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Assets(Vec<Asset>);

impl Assets {
    /// Compresses them: some milliseconds, once.
    pub(super) fn new() -> Self {
        Self(FILES.iter().map(|(path, content_type, text)| Asset::new(path, content_type, text)).collect())
    }

    /// The file of a path.
    pub(super) fn find(&self, path: &str) -> Option<&Asset> {
        self.0.iter().find(|asset| asset.path == path)
    }
}

impl Asset {
    fn new(path: &'static str, content_type: &'static str, text: &'static str) -> Self {
        let plain: Bytes =
            if path == PAGE { text.replace(SCRIPTS_BELONG, &preloads()).into() } else { text.into() };
        // Its keys are fixed: the same file has the same mark after a restart.
        let mut hasher = DefaultHasher::new();
        hasher.write(&plain);
        let mark = format!("\"{:016x}\"", hasher.finish());
        Self { path, content_type, packed: packed(&plain), plain, mark }
    }

    /// The answer to a request for it: the file, packed if the client can unpack it, or that it has not changed.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Answer {
        let Self { content_type, plain, packed, mark, .. } = self;
        let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
        let is_known = known.split(',').any(|known| known.trim().trim_start_matches("W/") == mark);
        let packed = packed.as_ref().filter(|_| unpacks(headers));
        let mut answer = match packed {
            _ if is_known => body(StatusCode::NOT_MODIFIED, content_type, Bytes::new()),
            Some(packed) => body(StatusCode::OK, content_type, packed.clone()),
            None => body(StatusCode::OK, content_type, plain.clone()),
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

fn packed(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
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
        const BYTES_MAX: usize = 60_000;
        let all: usize = Assets::new().0.iter().map(|asset| asset.packed.as_ref().unwrap().len()).sum();
        println!("the console has {all} bytes, packed");
        assert!(all < BYTES_MAX, "{all} bytes");
    }

    /// A script that another one names, and that nobody listed, would be missing in the browser only.
    #[test]
    fn every_script_that_another_names_is_listed() {
        let assets = Assets::new();
        for (path, content_type, text) in FILES.iter().filter(|(_, content_type, _)| *content_type == SCRIPT)
        {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let name = line.rsplit_once("\"./").unwrap().1.trim_end_matches("\";");
                let named = assets.find(&format!("/console/{name}"));
                assert!(named.is_some_and(|named| named.content_type == *content_type), "{path}: {line}");
            }
        }
        let page = String::from_utf8(assets.find(PAGE).unwrap().plain.to_vec()).unwrap();
        assert!(page.contains("modulepreload") && !page.contains(SCRIPTS_BELONG), "{page}");
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

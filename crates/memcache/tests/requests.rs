//! Bytes and what they mean: each command and each error, as tables. Every row is fed whole and byte by byte.

mod common;

use common::{understood, understood_within};
use memcache::Limits;

/// Checks each row with CRLF and, where it is lines only, with LF alone.
fn table(rows: &[(&str, &[&str])]) {
    for (input, expected) in rows {
        assert_eq!(understood(input.as_bytes()), *expected, "{input:?}");
        let has_data =
            |outcome: &&str| ["'", "swallow", "data chunk"].iter().any(|sign| outcome.contains(sign));
        if !expected.iter().any(has_data) && !input.contains("\r\r") {
            let bare = input.replace("\r\n", "\n");
            assert_eq!(understood(bare.as_bytes()), *expected, "{bare:?}");
        }
    }
}

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";

#[test]
fn retrieval() {
    table(&[
        ("get key\r\n", &["get [key]"]),
        ("get a b  c \r\n", &["get [a b c]"]),
        ("get a a\r\n", &["get [a a]"]),
        ("  get a\r\n", &["get [a]"]),
        ("gets a b\r\n", &["gets [a b]"]),
        ("gat 0 a\r\n", &["gat 0 [a]"]),
        ("gats -1 a b\r\n", &["gats -1 [a b]"]),
        ("get noreply\r\n", &["get [noreply]"]),
        ("get sch\u{f6}n\r\n", &["get [sch\\xc3\\xb6n]"]),
        ("get\r\n", &[BAD_LINE]),
        ("get \r\n", &[BAD_LINE]),
        ("gets\r\n", &[BAD_LINE]),
        ("gat\r\n", &[BAD_LINE]),
        ("gat 0\r\n", &[BAD_LINE]),
        ("gats 0 \r\n", &[BAD_LINE]),
        ("gat key other\r\n", &[BAD_EXPTIME]),
        ("gat 9223372036854775808 a\r\n", &[BAD_EXPTIME]),
        ("get a\tb\r\n", &[BAD_LINE]),
        ("get a b\x01 c\r\n", &[BAD_LINE]),
        ("get a\0\r\n", &[BAD_LINE]),
        ("get a\x7f\r\n", &[BAD_LINE]),
        ("get a\r\r\n", &[BAD_LINE]),
        ("get a\rb\r\n", &[BAD_LINE]),
        ("GET a\r\n", &["ERROR"]),
        ("geta\r\n", &["ERROR"]),
    ]);
}

#[test]
fn keys_end_at_250_bytes() {
    let (longest, longer) = ("k".repeat(250), "k".repeat(251));
    for verb in ["get ", "gets ", "gat 0 ", "get other "] {
        let accepted = understood(format!("{verb}{longest}\r\n").as_bytes());
        assert!(accepted[0].ends_with(&format!("{longest}]")), "{verb}");
        assert_eq!(understood(format!("{verb}{longer}\r\n").as_bytes()), [BAD_LINE], "{verb}");
        assert_eq!(understood(format!("{verb}{longer} b\r\n").as_bytes()), [BAD_LINE], "{verb}");
    }
    for arguments in ["delete", "incr 1", "decr 1", "touch 0"] {
        let (verb, after) = arguments.split_once(' ').unwrap_or((arguments, ""));
        assert_eq!(understood(format!("{verb} {longest} {after}\r\n").as_bytes()).len(), 1);
        assert_eq!(understood(format!("{verb} {longer} {after}\r\n").as_bytes()), [BAD_LINE], "{verb}");
    }
    assert_eq!(
        understood(format!("set {longer} 0 0 3\r\nabc\r\nget a\r\n").as_bytes()),
        [&format!("{BAD_LINE} (swallow 5)"), "get [a]"]
    );
}

#[test]
fn storage() {
    table(&[
        ("set k 1 2 3\r\nabc\r\n", &["set k flags=1 exptime=2 'abc'"]),
        ("add k 1 2 3\r\nabc\r\n", &["add k flags=1 exptime=2 'abc'"]),
        ("replace k 1 2 3\r\nabc\r\n", &["replace k flags=1 exptime=2 'abc'"]),
        ("append k 1 2 3\r\nabc\r\n", &["append k flags=1 exptime=2 'abc'"]),
        ("prepend k 1 2 3\r\nabc\r\n", &["prepend k flags=1 exptime=2 'abc'"]),
        ("cas k 1 2 3 4\r\nabc\r\n", &["cas k flags=1 exptime=2 cas=4 'abc'"]),
        (
            "cas k 0 0 1 18446744073709551615 noreply\r\na\r\n",
            &["cas k flags=0 exptime=0 cas=18446744073709551615 'a' noreply"],
        ),
        ("set k 0 0 0\r\n\r\n", &["set k flags=0 exptime=0 ''"]),
        ("set k 0 0 4\r\n\r\n\r\n\r\n", &["set k flags=0 exptime=0 '\\r\\n\\r\\n'"]),
        ("set k 0 0 3\nabc\r\n", &["set k flags=0 exptime=0 'abc'"]),
        ("set k 0 0 3 noreply\r\nabc\r\n", &["set k flags=0 exptime=0 'abc' noreply"]),
        ("set k 0 -1 3\r\nabc\r\n", &["set k flags=0 exptime=-1 'abc'"]),
        ("set k 0 0 3 surplus\r\nabc\r\n", &["set k flags=0 exptime=0 'abc'"]),
        ("set k 4294967295 0 1\r\na\r\n", &["set k flags=4294967295 exptime=0 'a'"]),
        ("set k 4294967296 0 1\r\na\r\n", &["set k flags=0 exptime=0 'a'"]),
        ("set k 0 2147483648 1\r\na\r\n", &["set k flags=0 exptime=-2147483648 'a'"]),
        ("set k 0 0 1\r\na\r\nget k\r\n", &["set k flags=0 exptime=0 'a'", "get [k]"]),
    ]);
}

#[test]
fn storage_that_is_refused_swallows_its_data() {
    let swallowed = "CLIENT_ERROR bad command line format (swallow 3)";
    table(&[
        ("set k -1 0 1\r\na\r\nget k\r\n", &[swallowed, "get [k]"]),
        ("set k x 0 1\r\na\r\nget k\r\n", &[swallowed, "get [k]"]),
        ("set k 0 x 1\r\na\r\n", &[swallowed]),
        ("set k 0 9223372036854775808 1\r\na\r\n", &[swallowed]),
        ("set k 18446744073709551616 0 1\r\na\r\n", &[swallowed]),
        ("set a\tb 0 0 1\r\na\r\n", &[swallowed]),
        ("cas k 0 0 1\r\na\r\n", &[swallowed]),
        ("cas k 0 0 1 x\r\na\r\n", &[swallowed]),
        ("set k 0 x 1 noreply\r\na\r\n", &["CLIENT_ERROR bad command line format (swallow 3) (silent)"]),
    ]);
}

#[test]
fn storage_without_a_length_goes_on_with_the_next_line() {
    table(&[
        ("set\r\n", &[BAD_LINE]),
        ("set k\r\n", &[BAD_LINE]),
        ("set k 0 0\r\n", &[BAD_LINE]),
        ("set k 0 0 noreply\r\n", &[BAD_LINE]),
        ("set k 0 0 -1\r\nget a\r\n", &[BAD_LINE, "get [a]"]),
        ("set k 0 0 x\r\nget a\r\n", &[BAD_LINE, "get [a]"]),
        ("set k 0 0 2147483646\r\nget a\r\n", &[BAD_LINE, "get [a]"]),
        ("set k 0 0 4294967295\r\nget a\r\n", &[BAD_LINE, "get [a]"]),
        ("set k 0 0 18446744073709551616\r\nget a\r\n", &[BAD_LINE, "get [a]"]),
    ]);
}

#[test]
fn a_value_must_end_where_its_length_says() {
    let bad = "CLIENT_ERROR bad data chunk";
    table(&[
        ("set k 0 0 3\r\nabcdefg\r\nget a\r\n", &[bad, "ERROR", "get [a]"]),
        ("set k 0 0 3\r\nabcx\r\nget a\r\n", &[bad, BAD_LINE, "get [a]"]),
        ("set k 0 0 5\r\nabc\r\nget a\r\n", &[bad, "ERROR"]),
        ("set k 0 0 3 noreply\r\nabcde\r\n", &[&format!("{bad} (silent)"), BAD_LINE]),
    ]);
    // Only CRLF ends a value, so the byte after a lone LF is still awaited.
    assert!(understood(b"set k 0 0 3\r\nabc\n").is_empty());
    assert_eq!(understood(b"set k 0 0 3\r\nabc\nx"), [bad]);
}

#[test]
fn values_end_at_their_limit() {
    let limits = Limits { value_max: 10, ..Limits::default() };
    let too_large = "SERVER_ERROR object too large for cache (swallow 13)";
    for (verb, outcome) in [("set", format!("{too_large} (invalidate k)")), ("add", too_large.to_string())] {
        let at = format!("{verb} k 0 0 10\r\n0123456789\r\n");
        assert_eq!(understood_within(&limits, at.as_bytes()).len(), 1);
        let over = format!("{verb} k 0 0 11\r\n01234567890\r\nget a\r\n");
        assert_eq!(understood_within(&limits, over.as_bytes()), [outcome.as_str(), "get [a]"]);
    }
    let silent = understood_within(&limits, b"append k 0 0 11 noreply\r\n");
    assert_eq!(silent, [format!("{too_large} (silent)")]);
    // The longest that memcached's own arithmetic takes.
    assert_eq!(
        understood(b"set k 0 0 2147483645\r\n"),
        ["SERVER_ERROR object too large for cache (swallow 2147483647) (invalidate k)"]
    );
}

#[test]
fn deletion() {
    table(&[
        ("delete k\r\n", &["delete k"]),
        ("delete k 0\r\n", &["delete k"]),
        ("delete k noreply\r\n", &["delete k noreply"]),
        ("delete k 0 noreply\r\n", &["delete k noreply"]),
        ("delete k 10 noreply\r\n", &["delete k noreply"]),
        ("delete noreply\r\n", &["delete noreply"]),
        ("delete\r\n", &[BAD_LINE]),
        ("delete k 10\r\n", &["delete k"]),
        ("delete k x\r\n", &[BAD_DELETE]),
        ("delete k 10 x\r\n", &[BAD_DELETE]),
        ("delete k junk\r\n", &[BAD_DELETE]),
        ("delete a b c d e\r\n", &[BAD_DELETE]),
        ("delete k 0 noreply x\r\n", &[BAD_DELETE]),
        ("delete k x noreply\r\n", &[&format!("{BAD_DELETE} (silent)")]),
        ("delete a\x01\r\n", &[BAD_LINE]),
    ]);
}

#[test]
fn arithmetic_and_touch() {
    table(&[
        ("incr k 1\r\n", &["incr k 1"]),
        ("decr k 18446744073709551615\r\n", &["decr k 18446744073709551615"]),
        ("incr k 1 noreply\r\n", &["incr k 1 noreply"]),
        ("incr k\r\n", &[BAD_LINE]),
        ("incr\r\n", &[BAD_LINE]),
        ("incr k x\r\n", &[BAD_DELTA]),
        ("incr k -1\r\n", &[BAD_DELTA]),
        ("incr k 18446744073709551616\r\n", &[BAD_DELTA]),
        ("decr k x noreply\r\n", &[&format!("{BAD_DELTA} (silent)")]),
        ("incr k noreply\r\n", &[&format!("{BAD_DELTA} (silent)")]),
        ("touch k 0\r\n", &["touch k 0"]),
        ("touch k -1 noreply\r\n", &["touch k -1 noreply"]),
        ("touch k\r\n", &[BAD_LINE]),
        ("touch\r\n", &[BAD_LINE]),
        ("touch k x\r\n", &[BAD_EXPTIME]),
        ("touch k noreply\r\n", &[&format!("{BAD_EXPTIME} (silent)")]),
    ]);
}

#[test]
fn everything_else_of_the_classic_protocol() {
    table(&[
        ("flush_all\r\n", &["flush_all"]),
        ("flush_all noreply\r\n", &["flush_all noreply"]),
        ("flush_all 10\r\n", &["flush_all 10"]),
        ("flush_all -1 noreply\r\n", &["flush_all -1 noreply"]),
        ("flush_all x\r\n", &[BAD_EXPTIME]),
        ("flush_all x noreply\r\n", &[&format!("{BAD_EXPTIME} (silent)")]),
        ("version\r\n", &["version"]),
        ("verbosity 1\r\n", &["verbosity"]),
        ("verbosity 0 noreply\r\n", &["verbosity noreply"]),
        ("verbosity\r\n", &[BAD_LINE]),
        ("verbosity noreply\r\n", &[&format!("{BAD_LINE} (silent)")]),
        ("verbosity foo bar my\r\n", &[BAD_LINE]),
        ("quit\r\n", &["quit"]),
        ("mn\r\n", &["mn"]),
        ("\r\n", &[BAD_LINE]),
        ("x\r\n", &[BAD_LINE]),
        ("      \r\n", &["ERROR"]),
        ("nonsense\r\n", &["ERROR"]),
        ("nonsense noreply\r\n", &["ERROR (silent)"]),
    ]);
}

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const BAD_FLAG: &str = "CLIENT_ERROR invalid flag";
const TWICE: &str = "CLIENT_ERROR duplicate flag";
const EITHER: &str = "CLIENT_ERROR invalid or duplicate flag";

#[test]
fn meta_commands() {
    table(&[
        ("mg k\r\n", &["mg k"]),
        ("mg  k   v \r\n", &["mg k v"]),
        (
            "mg k s v t c f h l k q u Oabc T60 N30 R10 E5 C7\r\n",
            &["mg k s v t c f h l k q u Oabc T60 N30 R10 E5 C7"],
        ),
        ("mg k T-1\r\n", &["mg k T-1"]),
        ("mg k P L\r\n", &["mg k P L"]),
        ("mg Zm9v b k\r\n", &["mg Zm9v b k"]),
        ("md k q I T30 x C18446744073709551615\r\n", &["md k q I T30 x C18446744073709551615"]),
        ("ma k N0 J13 D5 M- T60 q t c v k\r\n", &["ma k N0 J13 D5 M- T60 q t c v k"]),
        ("ma k MI\r\n", &["ma k MI"]),
        ("ma k M+\r\n", &["ma k M+"]),
        ("ma k MD\r\n", &["ma k MD"]),
        ("me k\r\n", &["me k"]),
        ("me Zm9v b\r\n", &["me Zm9v b"]),
        ("ms k 2\r\nhi\r\n", &["ms k 2 'hi'"]),
        ("ms k 2 T0 F4294967296 I MP q\r\nhi\r\n", &["ms k 2 T0 F4294967296 I MP q 'hi'"]),
        ("ms k 0\r\n\r\nmn\r\n", &["ms k 0 ''", "mn"]),
    ]);
}

#[test]
fn meta_commands_that_are_refused() {
    table(&[
        ("mg\r\n", &[BAD_LINE]),
        ("md \r\n", &[BAD_LINE]),
        ("ma\r\n", &[BAD_LINE]),
        ("me\r\n", &[BAD_LINE]),
        ("ms\r\n", &[BAD_LINE]),
        ("ms k\r\n", &[BAD_LINE]),
        ("ms k x\r\n", &[BAD_LINE]),
        ("ms k -1\r\n", &[BAD_LINE]),
        ("mg a\tb\r\n", &[BAD_LINE]),
        ("mg k !\r\n", &[BAD_LINE]),
        ("mg k 1\r\n", &[BAD_LINE]),
        ("mg k Z\r\n", &[BAD_FLAG]),
        ("mg k noreply\r\n", &[BAD_FLAG]),
        ("mg k v v\r\n", &[TWICE]),
        ("mg k P Px\r\n", &[TWICE]),
        ("mg k T\r\n", &[BAD_TOKEN]),
        ("mg k Tx\r\n", &[BAD_TOKEN]),
        ("mg k R\r\n", &[BAD_TOKEN]),
        ("mg k O\x01\r\n", &[BAD_TOKEN]),
        ("mg k a b c d e f g h i j k l m n o p q r\r\n", &[BAD_FLAG]),
        ("mg k b c f h k l q s t u v x O P L F1 D1 J1 I\r\n", &["CLIENT_ERROR options flags are too long"]),
        ("mg Zm9 b\r\n", &["CLIENT_ERROR error decoding key"]),
        ("md k v v\r\n", &[EITHER]),
        ("md k Z\r\n", &[EITHER]),
        ("md k C\r\n", &[EITHER]),
        ("ma k Dx\r\n", &[EITHER]),
        ("ma k MA\r\n", &["CLIENT_ERROR invalid mode for ma M token"]),
        ("ma k Mi\r\n", &["CLIENT_ERROR invalid mode for ma M token"]),
        ("ms k 2 Z\r\nhi\r\nmn\r\n", &["CLIENT_ERROR invalid flag (swallow 4)", "mn"]),
        ("ms k 2 MI\r\nhi\r\n", &["CLIENT_ERROR invalid mode for ms M token (swallow 4)"]),
        ("ms k 2 M\r\nhi\r\n", &["CLIENT_ERROR incorrect length for M token (swallow 4)"]),
        ("ms k 2 Mset\r\nhi\r\n", &["CLIENT_ERROR incorrect length for M token (swallow 4)"]),
        ("ms k 2 Fx\r\nhi\r\n", &["CLIENT_ERROR bad command line format (swallow 4)"]),
        ("ms Zm9 2 b\r\nhi\r\n", &["CLIENT_ERROR error decoding key (swallow 4)"]),
        ("ms k 2\r\nhiho\r\nmn\r\n", &["CLIENT_ERROR bad data chunk", BAD_LINE, "mn"]),
    ]);
    let (longest, longer) = ("x".repeat(31), "x".repeat(32));
    assert_eq!(understood(format!("mg k O{}\r\n", &longest[1..]).as_bytes()).len(), 1);
    assert_eq!(understood(format!("mg k O{longest}\r\n").as_bytes()), [format!("mg k O{longest}")]);
    assert_eq!(understood(format!("mg k O{longer}\r\n").as_bytes()), ["CLIENT_ERROR opaque token too long"]);
    let (longest, longer) = ("k".repeat(250), "k".repeat(251));
    assert_eq!(understood(format!("mg {longest}\r\n").as_bytes()), [format!("mg {longest}")]);
    assert_eq!(understood(format!("mg {longer}\r\n").as_bytes()), [BAD_LINE]);
    assert_eq!(
        understood_within(
            &Limits { value_max: 4, ..Limits::default() },
            b"ms k 5\r\nabcde\r\nms k 5 MA\r\nabcde\r\n"
        ),
        [
            "SERVER_ERROR object too large for cache (swallow 7) (invalidate k)",
            "SERVER_ERROR object too large for cache (swallow 7)"
        ]
    );
}

#[test]
fn statistics() {
    table(&[
        ("stats\r\n", &["stats"]),
        ("stats settings\r\n", &["stats Settings"]),
        ("stats items\r\n", &["stats Items"]),
        ("stats slabs\r\n", &["stats Slabs"]),
        ("stats sizes\r\n", &["stats Sizes"]),
        ("stats conns\r\n", &["stats Connections"]),
        ("stats reset\r\n", &["stats Reset"]),
        ("stats detail on\r\n", &["stats Detail { on: true }"]),
        ("stats detail off\r\n", &["stats Detail { on: false }"]),
        ("stats detail dump\r\n", &["stats DetailDump"]),
        ("stats detail\r\n", &["CLIENT_ERROR usage: stats detail on|off|dump"]),
        ("stats detail x\r\n", &["CLIENT_ERROR usage: stats detail on|off|dump"]),
        ("stats cachedump 1 100\r\n", &["stats CacheDump { class: 1, limit: 100 }"]),
        ("stats cachedump 63 0\r\n", &["stats CacheDump { class: 63, limit: 0 }"]),
        ("stats cachedump 64 0\r\n", &["CLIENT_ERROR Illegal slab id"]),
        ("stats cachedump 1\r\n", &["CLIENT_ERROR bad command line"]),
        ("stats cachedump x 0\r\n", &[BAD_LINE]),
        ("stats nonsense\r\n", &["ERROR"]),
    ]);
}

#[test]
fn operator_commands() {
    table(&[
        ("cache_memlimit 64\r\n", &["cache_memlimit 64"]),
        ("cache_memlimit 8 noreply\r\n", &["cache_memlimit 8 noreply"]),
        ("cache_memlimit 7\r\n", &["MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"]),
        ("cache_memlimit 1000000001\r\n", &["MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"]),
        ("cache_memlimit\r\n", &["ERROR"]),
        ("cache_memlimit x\r\n", &["ERROR"]),
        ("shutdown\r\n", &["shutdown graceful=false"]),
        ("shutdown graceful\r\n", &["shutdown graceful=true"]),
        ("shutdown now\r\n", &["CLIENT_ERROR invalid shutdown mode"]),
        ("slabs reassign 1 2\r\n", &["NOSPARE source class has no spare pages"]),
        ("slabs reassign 1 1\r\n", &["SAME src and dst class are identical"]),
        ("slabs reassign 64 1\r\n", &["BADCLASS invalid src or dst class id"]),
        ("slabs reassign -1 5\r\n", &["BADCLASS invalid src or dst class id"]),
        ("slabs reassign x 5\r\n", &[BAD_LINE]),
        ("slabs automove 1\r\n", &["slabs"]),
        ("slabs automove 3\r\n", &["ERROR"]),
        ("slabs automove x\r\n", &[BAD_LINE]),
        ("slabs automove window 30\r\n", &["slabs"]),
        ("slabs automove ratio\r\n", &["ERROR"]),
        ("slabs automove\r\n", &["ERROR"]),
        ("slabs\r\n", &["ERROR"]),
        ("lru mode flat\r\n", &["lru"]),
        ("lru tune 10 25 0.1 2.0\r\n", &["lru"]),
        ("lru temp_ttl -1\r\n", &["lru"]),
        ("lru mode\r\n", &["ERROR"]),
        ("lru\r\n", &["ERROR"]),
        ("lru_crawler enable\r\n", &["lru_crawler"]),
        ("lru_crawler crawl all\r\n", &["crawl"]),
        ("lru_crawler crawl 1,2,63\r\n", &["crawl"]),
        ("lru_crawler crawl 64\r\n", &["BADCLASS invalid class id"]),
        ("lru_crawler crawl x\r\n", &["BADCLASS invalid class id"]),
        ("lru_crawler crawl hash\r\n", &["BADCLASS invalid class id"]),
        ("lru_crawler tocrawl 5\r\n", &["lru_crawler"]),
        ("lru_crawler tocrawl x\r\n", &[BAD_LINE]),
        ("lru_crawler sleep 1000000\r\n", &["lru_crawler"]),
        ("lru_crawler sleep 1000001\r\n", &["CLIENT_ERROR sleep must be one second or less"]),
        ("lru_crawler metadump all\r\n", &["metadump"]),
        ("lru_crawler metadump hash\r\n", &["metadump"]),
        ("lru_crawler metadump 1,2\r\n", &["metadump"]),
        ("lru_crawler metadump 2,3\r\n", &["metadump of others"]),
        ("lru_crawler metadump 0\r\n", &["BADCLASS invalid class id"]),
        ("lru_crawler metadump 1,\r\n", &["BADCLASS invalid class id"]),
        ("lru_crawler mgdump all\r\n", &["mgdump"]),
        ("lru_crawler metadump\r\n", &["ERROR"]),
        (
            "watch\r\n",
            &[
                "Watch { fetchers: true, mutations: false, evictions: false, connevents: false, deletions: false }",
            ],
        ),
        (
            "watch fetchers sysevents\r\n",
            &[
                "Watch { fetchers: true, mutations: false, evictions: false, connevents: false, deletions: false }",
            ],
        ),
        (
            "watch mutations evictions connevents deletions\r\n",
            &[
                "Watch { fetchers: false, mutations: true, evictions: true, connevents: true, deletions: true }",
            ],
        ),
        ("watch nothing\r\n", &["ERROR"]),
        ("extstore item_age 5\r\n", &["extstore"]),
        ("extstore\r\n", &["ERROR"]),
        ("refresh_certs\r\n", &["refresh_certs"]),
    ]);
}

#[test]
fn sql() {
    let usage = "ERROR 08P01 usage: sql <bytes> or sqlp <statement bytes> <parameter bytes>, then the data";
    let unended = "ERROR 08P01 the data does not end where its length says";
    table(&[
        ("sql 8\r\nSELECT 1\r\n", &["sql 'SELECT 1'"]),
        ("sql 8\nSELECT 1\n", &["sql 'SELECT 1'"]),
        ("sql 8\nSELECT 1\nget a\n", &["sql 'SELECT 1'", "get [a]"]),
        ("sql 9\r\nSELECT\r\n1\r\n", &["sql 'SELECT\\r\\n1'"]),
        ("sql 0\r\n\r\n", &["sql ''"]),
        ("sqlp 8 3\r\nSELECT ?\r\n[1]\r\nmn\r\n", &["sqlp 'SELECT ?' '[1]'", "mn"]),
        ("sqlp 8 3\nSELECT ?\n[1]\nmn\n", &["sqlp 'SELECT ?' '[1]'", "mn"]),
        ("sqlp 0 0\r\n\r\n\r\n", &["sqlp '' ''"]),
        ("sql\r\n", &[usage]),
        ("sql x\r\n", &[usage]),
        ("sql -1\r\n", &[usage]),
        ("sql 1 2\r\n", &[usage]),
        ("sqlp 1\r\n", &[usage]),
        ("sqlp 1 x\r\n", &[usage]),
        ("sqlp 1 2 3\r\n", &[usage]),
        ("sql SELECT 1\r\n", &[usage]),
    ]);
    assert_eq!(understood(b"sql 6\r\nSELECT 1\r\nget a\r\n"), [unended, BAD_LINE, "get [a]"]);
    assert_eq!(understood(b"sql 8\r\nSELECT 1\rxget a\r\n"), [unended, "ERROR"]);
    assert_eq!(understood(b"sqlp 8 3\r\nSELECT ?\r\n[1]x\r\n"), [unended, BAD_LINE]);
}

#[test]
fn statements_and_parameters_end_at_their_limits() {
    let limits = Limits { sql_statement_max: 8, sql_parameters_max: 3, ..Limits::default() };
    let outcome = |input: &[u8]| understood_within(&limits, input);
    assert_eq!(outcome(b"sql 8\r\nSELECT 1\r\n"), ["sql 'SELECT 1'"]);
    let statement = "ERROR 54000 statement is 9 bytes; the limit is 8 (sql_statement_max)";
    let parameters = "ERROR 54000 parameters are 4 bytes; the limit is 3 (sql_parameters_max)";
    assert_eq!(outcome(b"sql 9\r\nSELECT 12\r\nmn\r\n"), [&format!("{statement} (swallow 11)"), "mn"]);
    assert_eq!(outcome(b"sql 9\nSELECT 12\nmn\n"), [&format!("{statement} (swallow 10)"), "mn"]);
    assert_eq!(
        outcome(b"sqlp 9 3\r\nSELECT ??\r\n[1]\r\nmn\r\n"),
        [&format!("{statement} (swallow 16)"), "mn"]
    );
    assert_eq!(
        outcome(b"sqlp 8 4\r\nSELECT ?\r\n[12]\r\nmn\r\n"),
        [&format!("{parameters} (swallow 16)"), "mn"]
    );
    assert_eq!(
        outcome(b"sql 18446744073709551615\r\nmn\r\n"),
        ["ERROR 54000 statement is 18446744073709551615 bytes; the limit is 8 (sql_statement_max) (close)"]
    );
}

#[test]
fn lines_end_at_2048_bytes_unless_they_fetch() {
    let too_long = "CLIENT_ERROR line too long (close)";
    for (bytes, refused) in [(2048, false), (2049, true)] {
        let mut line = format!("touch k 0 {}", "x".repeat(bytes - 10)).into_bytes();
        assert_eq!(line.len(), bytes);
        assert_eq!(understood(&line), if refused { vec![too_long] } else { vec![] });
        line.extend(b"\r\n");
        assert_eq!(understood(&line), if refused { [too_long] } else { ["touch k 0"] }, "{bytes}");
    }
    for verb in ["get", "gets", "gat 0", "gats 0"] {
        let line = format!("{verb}{}\r\n", " key".repeat(10_000));
        assert_eq!(understood(line.as_bytes()).len(), 1);
        assert!(understood(line.as_bytes())[0].contains("key key"), "{verb}");
    }
    let indented = |spaces| format!("{}get{}\r\n", " ".repeat(spaces), " key".repeat(1000));
    assert_ne!(understood(indented(100).as_bytes()), [too_long]);
    assert_eq!(understood(indented(101).as_bytes()), [too_long]);
    let endless = format!("get {}", "k ".repeat(600_000));
    assert_eq!(understood(endless.as_bytes()), [too_long]);
}

#[test]
fn http_is_closed() {
    table(&[
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", &["(close)"]),
        ("POST /x HTTP/1.0\r\nset k 0 0 1\r\na\r\n", &["(close)"]),
        ("GET /\r\n", &["ERROR"]),
        ("get HTTP/1.1\r\n", &["get [HTTP/1.1]"]),
    ]);
}

#[test]
fn what_is_needed_is_said_as_soon_as_it_is_known() {
    use memcache::{Parsed, Parser};
    let parser = Parser::default();
    for (input, expected) in [
        (&b""[..], 1),
        (b"get", 4),
        (b"set k 0 0 100\r\n", 15 + 102),
        (b"set k 0 0 100\r\nabc", 15 + 102),
        (b"set k 0 0 3\r\nabc\r", 13 + 5),
        (b"sql 8\r\n", 7 + 9),
        (b"sql 8\r\nSELECT 1\r", 7 + 10),
        (b"sqlp 8 3\r\n", 10 + 9 + 4),
        (b"sqlp 8 3\r\nSELECT ?\r\n[1]", 10 + 10 + 4),
    ] {
        match parser.parse(input) {
            Parsed::Incomplete { needed, .. } => assert_eq!(needed, expected, "{}", input.escape_ascii()),
            other => panic!("{} is {other:?}", input.escape_ascii()),
        }
    }
}

//! The museum of malformed packets: what stopped, crashed or took over other caches when it arrived, and what it
//! gets here. Each exhibit also shows that the connection (or, where it is closed, the next one) still works.
//!
//! Exhibits are kept for ever: memcached's CVE-2017-9951 was the part of a bug of 2016 that its fix left behind.

mod common;

use common::{understood, understood_within};
use memcache::Limits;

/// One packet, or a few of one kind.
struct Exhibit {
    /// What happened, where.
    story: &'static str,
    /// The bytes.
    packets: &'static [&'static [u8]],
    /// What each of them gets here.
    outcome: &'static [&'static str],
}

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const SQL_USAGE: &str =
    "ERROR 08P01 usage: sql <bytes> or sqlp <statement bytes> <parameter bytes>, then the data";

const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        story: "CVE-2009-2415: a value's length near 2^31 or 2^32 overflowed when the line end was added to it, \
                and the value was written past its memory. Here a length is unsigned, bounded before anything is \
                added to it, and nothing is reserved for bytes that have not come.",
        packets: &[
            b"set k 0 0 4294967295\r\n",
            b"set k 0 0 4294967294\r\n",
            b"set k 0 0 2147483647\r\n",
            b"set k 0 0 2147483648\r\n",
            b"set k 0 0 18446744073709551615\r\n",
            b"set k 0 0 18446744073709551614\r\n",
            b"set k 0 0 9223372036854775807\r\n",
        ],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "CVE-2011-4971 and CVE-2017-9951: a negative length was compared as a signed number, passed every \
                limit, and moved the reader backwards or for ever. A minus sign is no digit here.",
        packets: &[
            b"set k 0 0 -1\r\n",
            b"set k 0 0 -2\r\n",
            b"set k 0 0 -2147483648\r\n",
            b"append k 0 0 -1\r\n",
            b"cas k 0 0 -1 1\r\n",
        ],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "CVE-2016-8704, 8705 and 8706: in append, prepend and the updates the sum of key, header and body \
                lengths overflowed to something small. The largest length that is a length at all is refused as \
                too large, and its bytes are counted off without being kept.",
        packets: &[
            b"append k 0 0 2147483645\r\n",
            b"prepend k 0 0 2147483645\r\n",
            b"replace k 0 0 2147483645\r\n",
        ],
        outcome: &["SERVER_ERROR object too large for cache (swallow 2147483647)"],
    },
    Exhibit {
        story: "memcached 1.6.42: an empty value made a length of zero underflow. It is a value like any other.",
        packets: &[b"set k 0 0 0\r\n\r\n"],
        outcome: &["set k flags=0 exptime=0 ''"],
    },
    Exhibit {
        story: "CVE-2013-0179, CVE-2013-7290 and 7291: with verbose logging a key without terminator was printed \
                until the next zero byte, in or beyond the buffer. Keys are slices; a zero byte in one is refused.",
        packets: &[b"get a\0b\r\n", b"delete a\0b\r\n", b"incr a\0 1\r\n", b"touch \0 0\r\n"],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "CVE-2019-11596: `lru mode` without its argument dereferenced a null pointer.",
        packets: &[
            b"lru mode\r\n",
            b"lru\r\n",
            b"lru tune 1 2\r\n",
            b"lru temp_ttl\r\n",
            b"slabs\r\n",
            b"slabs reassign\r\n",
            b"slabs reassign 1\r\n",
            b"slabs automove\r\n",
            b"slabs automove window\r\n",
            b"lru_crawler\r\n",
            b"lru_crawler crawl\r\n",
            b"lru_crawler metadump\r\n",
            b"extstore\r\n",
            b"extstore free_memchunks\r\n",
            b"cache_memlimit\r\n",
        ],
        outcome: &["ERROR"],
    },
    Exhibit {
        story: "The same class in the commands of every day: an argument that is not there is not looked at.",
        packets: &[
            b"get\r\n",
            b"gets \r\n",
            b"gat\r\n",
            b"gat 0\r\n",
            b"set\r\n",
            b"set k\r\n",
            b"set k 0\r\n",
            b"set k 0 0\r\n",
            b"cas\r\n",
            b"delete\r\n",
            b"incr\r\n",
            b"incr k\r\n",
            b"touch\r\n",
            b"touch k\r\n",
            b"verbosity\r\n",
        ],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "CVE-2020-22570: meta commands with broken flags read memory that was never written. Every flag is \
                looked at before anything is done.",
        packets: &[b"mg\r\n\r\n", b"ma k \xff\r\n\r\n", b"mg k \0\r\n\r\n"],
        outcome: &[BAD_LINE, BAD_LINE],
    },
    Exhibit {
        story: "memcached 1.6.42: numbers in the tokens of meta flags ran past their end, or were taken in part.",
        packets: &[
            b"mg k T100000000000000000000\r\n",
            b"mg k T\r\n",
            b"mg k N1x\r\n",
            b"mg k R-\r\n",
            b"mg k C-1\r\n",
            b"mg k E18446744073709551616\r\n",
        ],
        outcome: &["CLIENT_ERROR bad token in command line format"],
    },
    Exhibit {
        story: "CVE-2022-48571: an receiving split over several datagrams dereferenced a null pointer; \
                CVE-2018-1000115: a datagram of 15 bytes got an answer 50,000 times as long. There is no UDP here, \
                and the eight-byte header of a datagram is no beginning of a command.",
        packets: &[b"\0\x01\0\0\0\x01\0\0get k\r\n", b"\0\x01\0\0\0\x02\0\0stats\r\n"],
        outcome: &["ERROR"],
    },
    Exhibit {
        story: "CVE-2023-46853: a bare LF where CRLF was assumed read one byte before the buffer. The same line with \
                either end is the same request.",
        packets: &[b"get k\n", b"get k\r\n", b"get  k \n"],
        outcome: &["get [k]"],
    },
    Exhibit {
        story: "CVE-2023-46853 again, in its shortest form: a line of LF alone, or of CR alone before it.",
        packets: &[b"\n", b"\r\n", b"\r\r\n", b"a\n"],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "memcached 1.6.42: a line of nothing but spaces was read beyond its end in search of a command.",
        packets: &[b"      \r\n", b"                                        \n", b"     noreplx\r\n"],
        outcome: &["ERROR"],
    },
    Exhibit {
        story: "memcached 1.6.42: strtol and its like ran past the end of a number, or took what is no number. \
                Numbers are ASCII digits up to the next space.",
        packets: &[
            b"incr k 0x10\r\n",
            b"incr k +1\r\n",
            b"incr k -1\r\n",
            b"incr k 1e3\r\n",
            b"incr k 18446744073709551616\r\n",
            b"incr k 99999999999999999999999999999999999999999999\r\n",
            b"incr k \xd9\xa1\r\n",
        ],
        outcome: &["CLIENT_ERROR invalid numeric delta argument"],
    },
    Exhibit {
        story: "An expiry time beyond 64 bits is refused, never wrapped into one that has passed or never comes.",
        packets: &[
            b"touch k 9223372036854775808\r\n",
            b"touch k 18446744073709551616\r\n",
            b"touch k -9223372036854775809\r\n",
            b"gat 9223372036854775808 k\r\n",
            b"flush_all 9223372036854775808\r\n",
        ],
        outcome: &["CLIENT_ERROR invalid exptime argument"],
    },
    Exhibit {
        story: "memcached 1.6.42: a slab class beyond the table picked what lay behind it.",
        packets: &[
            b"stats cachedump 64 0\r\n",
            b"stats cachedump 255 1\r\n",
            b"stats cachedump 4294967295 4294967295\r\n",
        ],
        outcome: &["CLIENT_ERROR Illegal slab id"],
    },
    Exhibit {
        story: "CVE-2009-1255: `stats maps` told the layout of the server's memory to whoever asked. It is no \
                subject of statistics.",
        packets: &[b"stats maps\r\n", b"stats malloc\r\n", b"stats proxy\r\n"],
        outcome: &["ERROR"],
    },
    Exhibit {
        story: "php-memcached CVE-2022-26635 and Dalli GHSA-6wmv-xq9m-fmp7: clients that let line ends into a key or \
                a default value send an attacker's commands. A line end in a key ends the line for every server; \
                a carriage return alone, or another control character, is refused.",
        packets: &[
            b"get a\rflush_all\r\n",
            b"get a\x0bb\r\n",
            b"get a\x00\r\n",
            b"get a\tb\r\n",
            b"get \x7f\r\n",
        ],
        outcome: &[BAD_LINE],
    },
    Exhibit {
        story: "The value of a storage command that is refused must not be taken for commands, or a cached text \
                becomes a way to speak to the cache.",
        packets: &[
            b"set k x 0 11\r\nflush_all\r\n\r\nget a\r\n",
            b"set a\x01 0 0 11\r\nflush_all\r\n\r\nget a\r\n",
        ],
        outcome: &["CLIENT_ERROR bad command line format (swallow 13)", "get [a]"],
    },
    Exhibit {
        story: "Web pages send forms to ports of the local machine; what their bodies hold must not be obeyed. \
                The connection is closed at the request line, before the body.",
        packets: &[
            b"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nflush_all\r\n",
            b"GET /set HTTP/1.0\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ],
        outcome: &["(close)"],
    },
    Exhibit {
        story: "Redis CVE-2021-32675: a header that announces a thousand million arguments took the memory for them \
                at once. Its protocol is not spoken here, and no announcement takes memory.",
        packets: &[b"*1000000000\r\n", b"*1\r\n"],
        outcome: &["ERROR"],
    },
    Exhibit {
        story: "Redis CVE-2023-28425: the same key twice in one command stopped the server. Keys may repeat, and \
                are answered as often.",
        packets: &[b"get a a\r\n"],
        outcome: &["get [a a]"],
    },
    Exhibit {
        story: "pgproto3 CVE-2024-27304 and 2026-4427, for our own commands with data: lengths that wrap, or are \
                negative, of a statement and of its parameters.",
        packets: &[
            b"sql -1\r\n",
            b"sql -9223372036854775808\r\n",
            b"sqlp -1 0\r\n",
            b"sqlp 0 -1\r\n",
            b"sql 18446744073709551616\r\n",
            b"sqlp 18446744073709551616 18446744073709551616\r\n",
            b"sql\r\n",
            b"sqlp 1\r\n",
        ],
        outcome: &[SQL_USAGE],
    },
    Exhibit {
        story: "The sum of two lengths wraps although neither does. The connection is out of step and is closed.",
        packets: &[b"sqlp 9223372036854775808 9223372036854775808\r\n"],
        outcome: &[
            "ERROR 54000 statement is 9223372036854775808 bytes; the limit is 1048576 (sql_statement_max) (close)",
        ],
    },
    Exhibit {
        story: "memcached's issue of mismatched answers after a bad write (2023): noreply on a request that fails \
                gets no answer either, or every answer after it belongs to another question.",
        packets: &[b"touch k x noreply\r\n", b"touch k 9999999999999999999 noreply\r\n"],
        outcome: &["CLIENT_ERROR invalid exptime argument (silent)"],
    },
];

#[test]
fn every_exhibit_has_its_outcome() {
    for exhibit in EXHIBITS {
        for packet in exhibit.packets {
            assert_eq!(understood(packet), exhibit.outcome, "{}\n{}", exhibit.story, packet.escape_ascii());
        }
    }
}

#[test]
fn the_connection_goes_on_behind_every_exhibit_that_does_not_close_it() {
    for exhibit in EXHIBITS {
        for packet in exhibit.packets {
            let before = understood(packet);
            // A length that was accepted takes what follows for data, as it must.
            if before.iter().any(|outcome| outcome.contains("(close)") || outcome.contains("swallow 2147")) {
                continue;
            }
            let after = understood(&[packet, &b"get alive\r\n"[..]].concat());
            assert_eq!(after.last().map(String::as_str), Some("get [alive]"), "{}", packet.escape_ascii());
            assert_eq!(after.len(), before.len() + 1, "{}", packet.escape_ascii());
        }
    }
}

/// CVE-2023-46852: a `get` with hundreds of spaces before its key overflowed a buffer of the proxy. Spaces are
/// skipped one by one and count only towards the length of the line.
#[test]
fn hundreds_of_spaces_before_a_key() {
    for spaces in [1, 2, 63, 64, 65, 100, 101, 255, 256, 1000, 2000] {
        let space = " ".repeat(spaces);
        assert_eq!(understood(format!("get{space}k\r\n").as_bytes()), ["get [k]"], "{spaces}");
        assert_eq!(understood(format!("get k{space}\r\n").as_bytes()), ["get [k]"], "{spaces}");
        assert_eq!(understood(format!("{space}get k\r\n").as_bytes()), ["get [k]"], "{spaces}");
        assert_eq!(understood(format!("touch{space}k{space}0\r\n").as_bytes()).len(), 1, "{spaces}");
    }
    let line = format!("get{}k\r\n", " ".repeat(100_000));
    assert_eq!(understood(line.as_bytes()), ["get [k]"]);
}

/// A line that never ends made servers keep all of it. It is given up at its limit, also when it comes slowly.
#[test]
fn a_line_that_never_ends() {
    let too_long = "CLIENT_ERROR line too long (close)";
    for beginning in ["", "set ", "delete ", "sql ", "\0\0\0\0", "getx ", "get\0 "] {
        let line = format!("{beginning}{}", "x".repeat(3000));
        assert_eq!(understood(line.as_bytes()), [too_long], "{beginning:?}");
    }
    let limits = Limits { retrieval_line_max: 5000, ..Limits::default() };
    let line = format!("get {}", "k ".repeat(3000));
    assert_eq!(understood_within(&limits, line.as_bytes()), [too_long]);
}

/// memcached's pipelined sets that failed after a short read (2025): what a stream means does not depend on where
/// the packets of the network cut it.
#[test]
fn pipelined_sets_with_short_reads() {
    let stream: Vec<u8> =
        (0..50).flat_map(|n| format!("set key{n} 0 0 {n}\r\n{}\r\n", "v".repeat(n)).into_bytes()).collect();
    let parser = memcache::Parser::default();
    let whole = common::fuzz::transcript(&parser, [&stream[..]]);
    assert_eq!(whole.len(), 50);
    for cut in 1..200 {
        assert_eq!(common::fuzz::transcript(&parser, stream.chunks(cut)), whole, "pieces of {cut}");
    }
}

/// Each length a request can declare, at each of the values where arithmetic breaks: nothing is stored, and what is
/// awaited never exceeds what the limits allow (which `understood` checks at every step).
#[test]
fn the_length_lie_matrix() {
    let lies: [i128; 15] = [
        0,
        1,
        1 << 20,
        (1 << 20) + 1,
        1 << 15,
        (1 << 16) - 1,
        (1 << 31) - 3,
        (1 << 31) - 2,
        (1 << 31) - 1,
        1 << 31,
        (1 << 32) - 1,
        1 << 63,
        (1 << 64) - 1,
        -1,
        -2,
    ];
    for lie in lies {
        for line in [
            format!("set k 0 0 {lie}\r\n"),
            format!("cas k 0 0 {lie} 1\r\n"),
            format!("ms k {lie}\r\n"),
            format!("sql {lie}\r\n"),
            format!("sqlp {lie} 2\r\n"),
            format!("sqlp 2 {lie}\r\n"),
            format!("sqlp {lie} {lie}\r\n"),
        ] {
            let outcome = understood(line.as_bytes());
            assert!(outcome.len() <= 1, "{line:?} {outcome:?}");
            let accepted = outcome.iter().any(|words| !words.contains("ERROR"));
            assert!(!accepted, "{line:?} {outcome:?}");
        }
    }
}

/// Bytes of other protocols at the beginning of a connection are known for what they are, and taken for commands
/// they do no harm.
#[test]
fn strangers() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let startup = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    for greeting in [&hello[..], startup, b"*1\r\n$4\r\nPING\r\n"] {
        assert!(memcache::stranger(greeting).is_some(), "{}", greeting.escape_ascii());
        assert!(understood(greeting).iter().all(|words| words.contains("ERROR")));
    }
}

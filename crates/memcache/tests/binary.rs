//! The binary protocol: each opcode as bytes and what is understood of it, and frames that are none.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::binary::{describe, frame, fuzz_binary, opcode, small_limits, transcript};
use common::harness::{Random, Run, fails};
use memcache::Limits;
use memcache::binary::{Answer, Id, Parsed, Status, parse};

/// Inputs of a run, if its seconds allow so many.
const INPUTS: u64 = 300_000;

fn id(opcode: u8) -> Id {
    Id { opcode, opaque: 7_u32.to_be_bytes() }
}

/// What a connection understands of a frame, however it is cut, and of a noop behind it.
fn understood(opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<String> {
    of_stream(&Limits::default(), &[frame(id(opcode), cas, extras, key, value), noop()].concat())
}

fn of_stream(limits: &Limits, stream: &[u8]) -> Vec<String> {
    let whole = transcript(limits, [stream]);
    assert_eq!(whole, transcript(limits, stream.chunks(1)), "byte by byte");
    whole
}

fn noop() -> Vec<u8> {
    frame(Id { opcode: 0x0a, opaque: 9_u32.to_be_bytes() }, 0, b"", b"", b"")
}

const NOOP: &str = "Noop '' #9";

#[test]
fn every_opcode_is_understood() {
    let four = 300_u32.to_be_bytes();
    let eight = [5_u32.to_be_bytes(), four].concat();
    let twenty = [&2_u64.to_be_bytes()[..], &10_u64.to_be_bytes(), &four].concat();
    let nothing: &[u8] = b"";
    for (opcodes, extras, key, value, expected) in [
        (&[0x00, 0x09][..], nothing, &b"k"[..], nothing, "Get { with_key: false } 'k'"),
        (&[0x0c, 0x0d], nothing, b"k", nothing, "Get { with_key: true } 'k'"),
        (&[0x1d, 0x1e], &four, b"k", nothing, "GetAndTouch { with_key: false, exptime: 300 } 'k'"),
        (&[0x23, 0x24], &four, b"k", nothing, "GetAndTouch { with_key: true, exptime: 300 } 'k'"),
        (&[0x1c], &four, b"k", nothing, "Touch { exptime: 300 } 'k'"),
        (&[0x01, 0x11], &eight, b"k", b"v", "Store { condition: Set, flags: 5, exptime: 300 } 'k' = 'v'"),
        (&[0x02, 0x12], &eight, b"k", b"v", "Store { condition: Add, flags: 5, exptime: 300 } 'k' = 'v'"),
        (&[0x03, 0x13], &eight, b"k", nothing, "Store { condition: Replace, flags: 5, exptime: 300 } 'k'"),
        (&[0x04, 0x14], nothing, b"a key\r\n", nothing, "Delete 'a key\\r\\n'"),
        (
            &[0x05, 0x15],
            &twenty,
            b"k",
            nothing,
            "Arithmetic { decrement: false, delta: 2, initial: 10, exptime: Some(300) } 'k'",
        ),
        (
            &[0x06, 0x16],
            &twenty,
            b"k",
            nothing,
            "Arithmetic { decrement: true, delta: 2, initial: 10, exptime: Some(300) } 'k'",
        ),
        (&[0x08, 0x18], nothing, nothing, nothing, "Flush { exptime: None } ''"),
        (&[0x08, 0x18], &four, nothing, nothing, "Flush { exptime: Some(300) } ''"),
        (&[0x0e, 0x19], nothing, b"k", b"v", "Join { append: true } 'k' = 'v'"),
        (&[0x0f, 0x1a], nothing, b"k", b"v", "Join { append: false } 'k' = 'v'"),
        (&[0x10], nothing, b"items", nothing, "Stat 'items'"),
        (&[0x10], nothing, nothing, nothing, "Stat ''"),
        (&[0x0b], nothing, nothing, nothing, "Version ''"),
        (&[0x07, 0x17], nothing, nothing, nothing, "Quit ''"),
    ] {
        for (place, opcode) in opcodes.iter().enumerate() {
            let quiet = if place == 1 { " quiet" } else { "" };
            let found = understood(*opcode, 0, extras, key, value);
            assert_eq!(found, [format!("{expected}{quiet} #7"), NOOP.into()], "{opcode:#x}");
        }
    }
}

#[test]
fn a_missing_number_is_not_made_when_the_exptime_is_all_ones() {
    let extras = [&1_u64.to_be_bytes()[..], &0_u64.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
    let found = understood(0x05, 3, &extras, b"k", b"");
    assert_eq!(found[0], "Arithmetic { decrement: false, delta: 1, initial: 0, exptime: None } 'k' cas=3 #7");
}

#[test]
fn unknown_opcodes_cost_their_frame_alone() {
    for opcode in (0..=u8::MAX).filter(|opcode| !matches!(opcode, 0x00..=0x1a | 0x1c..=0x1e | 0x20..=0x24)) {
        let found = understood(opcode, 0, b"extr", b"key", b"value");
        assert_eq!(found, ["UnknownCommand 12 Continue None", NOOP], "{opcode:#x}");
    }
}

/// There is no SASL, which a client takes for no need of it.
#[test]
fn sasl_is_unknown() {
    for (opcode, key, value) in
        [(0x20, &b""[..], &b""[..]), (0x21, b"PLAIN", b"\0u\0p"), (0x22, b"PLAIN", b"")]
    {
        let swallowed = format!("UnknownCommand {} Continue None", key.len() + value.len());
        assert_eq!(understood(opcode, 0, b"", key, value), [swallowed.as_str(), NOOP], "{opcode:#x}");
    }
    assert_eq!(understood(0x21, 0, b"", b"", b"x"), ["InvalidArguments 0 Close None"]);
}

#[test]
fn frames_that_are_not_what_their_opcode_needs_close() {
    let (four, eight, twenty) = ([0; 4], [0; 8], [0; 20]);
    let long = [b'k'; 251];
    for (opcode, extras, key, value) in [
        (0x00, &b""[..], &b""[..], &b""[..]),
        (0x00, &four, b"k", b""),
        (0x00, b"", b"k", b"v"),
        (0x00, b"", &long, b""),
        (0x01, &four, b"k", b"v"),
        (0x01, &eight, b"", b"v"),
        (0x01, &eight, &long, b"v"),
        (0x04, b"", b"k", b"v"),
        (0x05, &eight, b"k", b""),
        (0x05, &twenty, b"k", b"v"),
        (0x07, b"", b"k", b""),
        (0x08, &eight, b"", b""),
        (0x08, b"", b"k", b""),
        (0x0a, b"", b"", b"v"),
        (0x0b, b"", b"k", b""),
        (0x0e, &eight, b"k", b"v"),
        (0x10, &four, b"", b""),
        (0x10, b"", b"", b"v"),
        (0x1c, b"", b"k", b""),
        (0x1d, &four, b"k", b"v"),
    ] {
        let found = understood(opcode, 0, extras, key, value);
        assert_eq!(found, ["InvalidArguments 0 Close None"], "{opcode:#x} {}", key.escape_ascii());
    }
}

/// memcached's CVE-2016-8704, 8705 and 8706 began with such sums.
#[test]
fn lengths_that_lie_close() {
    let with_body = |body: u32, key: u16, extras: u8| {
        let mut lying = frame(id(0x01), 0, &[0; 8], b"key", b"value");
        lying[2..4].copy_from_slice(&key.to_be_bytes());
        lying[4] = extras;
        lying[8..12].copy_from_slice(&body.to_be_bytes());
        of_stream(&Limits::default(), &lying)
    };
    for (body, key, extras) in [(0, 3, 8), (10, 3, 8), (10, 11, 0), (254, 3, 255), (0, u16::MAX, u8::MAX)] {
        assert_eq!(with_body(body, key, extras), ["UnknownCommand 0 Close None"], "{body} {key} {extras}");
    }
    for body in [u32::MAX, 1 << 31, (1 << 30) + 1] {
        assert_eq!(with_body(body, 3, 8), ["InvalidArguments 0 Close None"], "{body}");
    }
    assert_eq!(with_body(1 << 30, 3, 8), ["TooLarge 1073741813 Continue Some(\"key\")"]);
}

#[test]
fn what_is_no_frame_closes_without_an_answer() {
    for stream in [&b"get k\r\n"[..], b"\x81\x0a", b"\0", b"\xff"] {
        assert_eq!(of_stream(&Limits::default(), &[&noop(), stream].concat()), [NOOP, "out of step"]);
    }
}

#[test]
fn a_value_that_is_too_large_is_thrown_away() {
    let limits = small_limits();
    for (opcode, key) in [(0x01, "Some(\"k\")"), (0x11, "Some(\"k\")"), (0x02, "None"), (0x13, "None")] {
        let large = frame(id(opcode), 0, &[0; 8], b"k", &[b'v'; 17]);
        let found = of_stream(&limits, &[large, noop()].concat());
        assert_eq!(found, [format!("TooLarge 17 Continue {key}"), NOOP.into()]);
    }
    let large = frame(id(0x0e), 0, b"", b"k", &[b'v'; 17]);
    assert_eq!(of_stream(&limits, &[large, noop()].concat())[0], "TooLarge 17 Continue None");
}

#[test]
fn answers_are_frames() {
    let mut out = Vec::new();
    id(0x0d).found(b"key", 0xdead_beef, 5, 0x0102, &mut out);
    assert_eq!(out, b"\x81\x0d\0\x03\x04\0\0\0\0\0\0\x0c\0\0\0\x07\0\0\0\0\0\0\x01\x02\xde\xad\xbe\xefkey");
    out.clear();
    id(0x05).number(17, 3, &mut out);
    assert_eq!(out, b"\x81\x05\0\0\0\0\0\0\0\0\0\x08\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x11");
    out.clear();
    id(0x10).stat("pid", b"1", &mut out);
    assert_eq!(out, b"\x81\x10\0\x03\0\0\0\0\0\0\0\x04\0\0\0\x07\0\0\0\0\0\0\0\0pid1");
    out.clear();
    id(0x01).refuse(Status::OutOfMemory, &mut out);
    assert_eq!(out, b"\x81\x01\0\0\0\0\0\x82\0\0\0\x0d\0\0\0\x07\0\0\0\0\0\0\0\0Out of memory");
    out.clear();
    id(0x0c).answer(&Answer { status: Status::NotFound, key: b"k", ..Answer::default() }, &mut out);
    assert_eq!(out, b"\x81\x0c\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0\0k");
}

/// Mostly frames that are right or nearly so; some of it flipped or cut.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut stream = vec![random.byte()];
    for _ in 0..=random.below(5) {
        let opcode = u8::try_from(random.below(0x26)).unwrap();
        let fitting: usize = match opcode {
            0x01..=0x03 | 0x11..=0x13 => 8,
            0x05 | 0x06 | 0x15 | 0x16 => 20,
            0x1c..=0x1e | 0x23 | 0x24 => 4,
            _ => 0,
        };
        let extras = vec![random.byte(); if random.below(12) == 0 { random.below(24) } else { fitting }];
        let stores = matches!(opcode, 0x01..=0x03 | 0x0e | 0x0f | 0x11..=0x13 | 0x19 | 0x1a);
        let value = if stores || random.below(12) == 0 { random.bytes(20) } else { Vec::new() };
        let bare = matches!(opcode, 0x07 | 0x08 | 0x0a | 0x0b | 0x17 | 0x18 | 0x20);
        let key = if bare && random.below(12) > 0 { Vec::new() } else { random.bytes(10) };
        stream.extend(frame(id(opcode), random.next() & 1, &extras, &key, &value));
    }
    for _ in 0..random.below(3) {
        let at = random.below(stream.len());
        stream[at] ^= 1 << random.below(8);
    }
    if random.below(4) == 0 {
        stream.truncate(random.below(stream.len()) + 1);
    }
    stream
}

#[test]
fn generated_streams_keep_the_rules() {
    Run::new(INPUTS).of(|| fuzz_binary, stream);
}

/// A target that takes one command for a mistake, and only where its frame is whole and right.
#[test]
fn a_planted_mistake_is_noticed() {
    let planted = || {
        |data: &[u8]| {
            let Parsed::Complete { request, .. } =
                parse(&Limits::default(), data.get(1..).unwrap_or_default())
            else {
                return;
            };
            assert_ne!(opcode(&request.command, request.quiet), 0x24, "{}", describe(&request));
        }
    };
    assert!(fails(Run::new(INPUTS), planted, stream));
}

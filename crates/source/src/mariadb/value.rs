//! Values of a binary log as text, as PostgreSQL would write them: the tables here read that.

use std::fmt::Write as _;
use std::io::Write as _;

use super::cursor::{big, cut, little};
use super::table::{
    BLOB, BYTES_OF_DIGITS, DATE, DATETIME2, DECIMAL, DOUBLE, ENUM, FLOAT, INT24, LONG, LONGLONG, NEWDATE,
    SET, SHORT, STRING, TIME2, TIMESTAMP2, TINY, Type, VARCHAR, YEAR,
};
use crate::error::Error;

/// What must be known of a column beside its type in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    /// The labels of an `ENUM` or a `SET`.
    Labels(Vec<String>),
    Text(Charset),
    /// Bytes.
    Binary,
    Uuid,
    /// Nothing: the type says it all.
    Plain,
}

/// How the bytes of a text mean letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    /// The one of Windows, which MariaDB calls so.
    Latin1,
}

/// The letters of Windows between those of ISO 8859-1; five bytes stand for themselves.
const LATIN1_UPPER: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}',
    '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}',
    '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}',
    '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// Writes a value; false: it cannot be told as text.
pub(super) fn write(out: &mut Vec<u8>, of: Type, kind: &Kind, raw: &[u8]) -> Result<bool, Error> {
    match (of.code, kind) {
        (TINY | SHORT | INT24 | LONG | LONGLONG, Kind::Unsigned) => {
            print(out, format_args!("{}", little(raw)));
        }
        (TINY | SHORT | INT24 | LONG | LONGLONG, Kind::Signed) => print(out, format_args!("{}", signed(raw))),
        (FLOAT, _) => print(out, format_args!("{}", f32::from_le_bytes(raw.try_into().map_err(|_| cut())?))),
        (DOUBLE, _) => print(out, format_args!("{}", f64::from_le_bytes(raw.try_into().map_err(|_| cut())?))),
        (DECIMAL, _) => decimal(out, of, raw),
        (DATE | NEWDATE, _) => date(out, little(raw)),
        (YEAR, _) => print(out, format_args!("{:04}", year(raw[0]))),
        (DATETIME2, _) => datetime(out, of, raw),
        (TIMESTAMP2, _) => timestamp(out, of, raw),
        (TIME2, _) => time(out, of, raw),
        (ENUM, Kind::Labels(labels)) => return Ok(enumerated(out, labels, little(raw))),
        (SET, Kind::Labels(labels)) => set(out, labels, little(raw)),
        (VARCHAR | STRING | BLOB, Kind::Text(Charset::Utf8)) => out.extend_from_slice(raw),
        (VARCHAR | STRING | BLOB, Kind::Text(Charset::Latin1)) => latin1(out, raw),
        (VARCHAR | STRING | BLOB, Kind::Binary) => {
            out.extend_from_slice(b"\\x");
            hex(out, raw);
            hex(out, padding(of, raw));
        }
        (STRING, Kind::Uuid) => uuid(out, raw),
        _ => return Ok(false),
    }
    Ok(true)
}

fn print(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _infallible = out.write_fmt(text);
}

fn hex(out: &mut Vec<u8>, raw: &[u8]) {
    for byte in raw {
        print(out, format_args!("{byte:02x}"));
    }
}

/// Zeros at the end of a value of fixed length, which are not in the log.
fn padding(of: Type, raw: &[u8]) -> &'static [u8] {
    const ZEROS: &[u8] = &[0; 255];
    let missing = usize::from(of.meta).saturating_sub(raw.len());
    if of.code == STRING { &ZEROS[..missing.min(ZEROS.len())] } else { &[] }
}

/// Sixteen bytes, in the order in which they are written.
fn uuid(out: &mut Vec<u8>, raw: &[u8]) {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(raw).for_each(|(byte, known)| *byte = *known);
    for (at, part) in bytes.chunks(2).enumerate() {
        if (2..=5).contains(&at) {
            out.push(b'-');
        }
        hex(out, part);
    }
}

/// A number with a sign, of up to eight bytes.
fn signed(raw: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(raw.len().min(8)).unwrap_or(8);
    little(raw).checked_shl(unused).unwrap_or(0).cast_signed() >> unused.min(63)
}

fn year(byte: u8) -> u16 {
    if byte == 0 { 0 } else { 1900 + u16::from(byte) }
}

fn date(out: &mut Vec<u8>, bits: u64) {
    let (year, month, day) = (bits >> 9, bits >> 5 & 15, bits & 31);
    print(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

/// Nine digits in four bytes, the first sign in the first bit, and all of a negative number turned around.
fn decimal(out: &mut Vec<u8>, of: Type, raw: &[u8]) {
    let (precision, scale) = (usize::from(of.meta >> 8), usize::from(of.meta & 0xff));
    let whole = precision.saturating_sub(scale);
    let negative = raw.first().is_some_and(|first| first & 0x80 == 0);
    let turned = if negative { 0xff } else { 0 };
    let mut bytes: Vec<u8> = raw.iter().map(|byte| byte ^ turned).collect();
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    let mut rest = bytes.as_slice();
    let mut digits = String::new();
    let mut group = |count: usize| {
        let (taken, behind) = rest.split_at_checked(BYTES_OF_DIGITS[count]).unwrap_or((&[], &[]));
        rest = behind;
        if count > 0 {
            let _infallible = write!(digits, "{:0count$}", big(taken));
        }
    };
    group(whole % 9);
    (0..whole / 9 + scale / 9).for_each(|_| group(9));
    group(scale % 9);
    let (before, behind) = digits.split_at_checked(whole).unwrap_or((&digits, ""));
    let before = before.trim_start_matches('0');
    let sign = if negative { "-" } else { "" };
    let before = if before.is_empty() { "0" } else { before };
    let point = if behind.is_empty() { "" } else { "." };
    print(out, format_args!("{sign}{before}{point}{behind}"));
}

/// A fraction of a second in as few bytes as its digits need; ends without zeros, as PostgreSQL writes it.
fn fraction(out: &mut Vec<u8>, micros: u64) {
    if micros > 0 {
        let text = format!(".{micros:06}");
        out.extend_from_slice(text.trim_end_matches('0').as_bytes());
    }
}

/// Bytes of a fraction, which are hundredths, ten-thousandths or millionths, as millionths.
fn micros(of: Type, raw: &[u8]) -> u64 {
    big(raw) * [1, 10_000, 100, 1][usize::from(of.meta.div_ceil(2).min(3))]
}

fn datetime(out: &mut Vec<u8>, of: Type, raw: &[u8]) {
    let (whole, behind) = raw.split_at(raw.len().min(5));
    // The first bit is a sign that is never used.
    let bits = big(whole) & 0x7f_ffff_ffff;
    let (days, clock) = (bits >> 17, bits & 0x1_ffff);
    let (months, day) = (days >> 5, days & 31);
    let (year, month) = (months / 13, months % 13);
    print(out, format_args!("{year:04}-{month:02}-{day:02} "));
    print(out, format_args!("{:02}:{:02}:{:02}", clock >> 12, clock >> 6 & 63, clock & 63));
    fraction(out, micros(of, behind));
}

fn timestamp(out: &mut Vec<u8>, of: Type, raw: &[u8]) {
    let (whole, behind) = raw.split_at(raw.len().min(4));
    let seconds = big(whole);
    let (year, month, day) = civil(seconds / 86_400);
    let clock = seconds % 86_400;
    print(out, format_args!("{year:04}-{month:02}-{day:02} "));
    print(out, format_args!("{:02}:{:02}:{:02}", clock / 3_600, clock / 60 % 60, clock % 60));
    fraction(out, micros(of, behind));
    out.extend_from_slice(b"+00");
}

/// The date of a day behind 1970-01-01, by Howard Hinnant's rule: years begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) =
        (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// A time of up to 838 hours with a sign: a number that is moved so that it has none.
fn time(out: &mut Vec<u8>, of: Type, raw: &[u8]) {
    let behind = raw.len().saturating_sub(3);
    let middle = 1_i64 << (8 * raw.len().clamp(1, 7) - 1);
    let moved = big(raw).cast_signed() - middle;
    let (sign, packed) = (if moved < 0 { "-" } else { "" }, moved.unsigned_abs());
    let clock = packed >> (8 * behind);
    print(out, format_args!("{sign}{:02}:{:02}:{:02}", clock >> 12, clock >> 6 & 63, clock & 63));
    let part = packed & ((1_u64 << (8 * behind)) - 1);
    fraction(out, micros(of, &part.to_be_bytes()[8 - behind.min(8)..]));
}

/// The label of a number; 0 stands for the empty text that was stored for a wrong one.
fn enumerated(out: &mut Vec<u8>, labels: &[String], number: u64) -> bool {
    if number == 0 {
        return true;
    }
    let label = usize::try_from(number - 1).ok().and_then(|at| labels.get(at));
    out.extend_from_slice(label.map_or(&[][..], |label| label.as_bytes()));
    label.is_some()
}

fn set(out: &mut Vec<u8>, labels: &[String], bits: u64) {
    let chosen = labels.iter().take(64).enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    let chosen: Vec<&str> = chosen.map(|(_, label)| label.as_str()).collect();
    out.extend_from_slice(chosen.join(",").as_bytes());
}

fn latin1(out: &mut Vec<u8>, raw: &[u8]) {
    for byte in raw {
        let letter = match byte {
            0x80..=0x9f => LATIN1_UPPER[usize::from(byte - 0x80)],
            byte => char::from(*byte),
        };
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

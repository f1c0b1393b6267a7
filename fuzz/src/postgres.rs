//! What must hold for every stream of bytes sent to the PostgreSQL listener.
//!
//! The functions here are run by libFuzzer through `fuzz_targets/postgres.rs`, and on the stable toolchain by the
//! tests of the `postgres` crate, which include this file.

use postgres::copy::{CopyError, Layout, Options, Reader, Row};
use postgres::frontend::{self, Parsed, Request};
use postgres::limits::MESSAGE_BYTES_MAX;
use postgres::opening::{self, Opening};
use postgres::{Datum, Format, Value, decode, encode, oid};

/// Runs one input: the first byte chooses what it is taken for.
pub fn fuzz_postgres(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice % 4 {
        0 => check_opening(rest),
        1 => check_stream(rest),
        2 => check_values(rest),
        _ => check_copy(choice >> 2, rest),
    }
}

/// Types whose values are read and written.
pub const TYPES: &[u32] = &[
    oid::BOOL,
    oid::BYTEA,
    oid::INT2,
    oid::INT4,
    oid::INT8,
    oid::OID,
    oid::FLOAT4,
    oid::FLOAT8,
    oid::NUMERIC,
    oid::TEXT,
    oid::VARCHAR,
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::UUID,
    oid::JSON,
    oid::JSONB,
    oid::INTERVAL,
    oid::INT4_ARRAY,
    oid::TEXT_ARRAY,
    oid::FLOAT8_ARRAY,
    oid::UUID_ARRAY,
    0,
    999_999,
];

fn check_opening(bytes: &[u8]) {
    match opening::parse(bytes) {
        Opening::Encryption { consumed, .. } | Opening::Startup { consumed, .. } => {
            assert!(0 < consumed && consumed <= bytes.len(), "progress within the input");
        }
        Opening::Incomplete => {
            assert!(bytes.len() < postgres::limits::OPENING_BYTES_MAX, "a packet has an end");
        }
        Opening::Cancel { secret, .. } => assert!(secret.len() <= bytes.len()),
        Opening::Refused(_) => {}
    }
}

/// A stream is understood alike however it is cut.
fn check_stream(stream: &[u8]) {
    let mut at = 0;
    while at < stream.len() {
        match frontend::parse(&stream[at..]) {
            Parsed::Complete { request, consumed } => {
                assert!(5 <= consumed && at + consumed <= stream.len(), "progress within the input");
                visit(&request);
                for cut in [0, 1, 4, 5, consumed - 1].into_iter().filter(|cut| *cut < consumed) {
                    let part = frontend::parse(&stream[at..at + cut]);
                    assert!(
                        matches!(part, Parsed::Incomplete { needed } if cut < needed && needed <= consumed)
                    );
                }
                at += consumed;
            }
            Parsed::Incomplete { needed } => {
                assert!(needed > stream.len() - at, "more is needed than is there");
                assert!(needed <= MESSAGE_BYTES_MAX + 1, "{needed} bytes are beyond the limits");
                return;
            }
            Parsed::Broken(_) => return,
        }
    }
}

/// Looks at everything that a request holds.
fn visit(request: &Request<'_>) {
    match request {
        Request::Bind(bind) => {
            assert_eq!(bind.parameters().count(), bind.count());
            for (format, bytes) in bind.parameters() {
                for type_oid in TYPES {
                    let _value = bytes.map(|bytes| decode(*type_oid, format, bytes));
                }
            }
            let _last = bind.result_formats().of(bind.result_formats().count());
        }
        Request::Parse(parse) => assert_eq!(parse.types().count(), parse.types().len()),
        _ => {}
    }
}

/// What is read as a value is written and read again to the same.
fn check_values(bytes: &[u8]) {
    for type_oid in TYPES {
        for format in [Format::Text, Format::Binary] {
            let Ok(value) = decode(*type_oid, format, bytes) else { continue };
            if oid::element_of(*type_oid).is_some() || *type_oid == oid::INTERVAL {
                continue;
            }
            check_value(*type_oid, &value);
        }
    }
}

fn check_value(type_oid: u32, value: &Value) {
    for format in [Format::Text, Format::Binary] {
        let mut out = Vec::new();
        if encode(type_oid, format, datum(value), &mut out).is_err() {
            continue;
        }
        let again = decode(type_oid, format, &out);
        assert!(
            again.as_ref().is_ok_and(|again| alike(again, value)),
            "{type_oid} {format:?} {value:?}: {again:?}"
        );
    }
}

/// Equal, as far as the type keeps it: a single loses digits, and times have more than one way to be written.
fn alike(one: &Value, two: &Value) -> bool {
    match (one, two) {
        #[allow(clippy::cast_possible_truncation, reason = "a single is what the type keeps")]
        (Value::Real(one), Value::Real(two)) => one == two || one.is_nan() || *one as f32 == *two as f32,
        (Value::Integer(one), Value::Real(two)) | (Value::Real(two), Value::Integer(one)) => {
            *one as f64 == *two
        }
        (Value::Text(_), Value::Text(_) | Value::Real(_)) => true,
        (one, two) => one == two,
    }
}

fn datum(value: &Value) -> Datum<'_> {
    match value {
        Value::Null => Datum::Null,
        Value::Integer(number) => Datum::Integer(*number),
        Value::Real(number) => Datum::Real(*number),
        Value::Text(text) => Datum::Text(text),
        Value::Bytes(bytes) => Datum::Bytes(bytes),
    }
}

/// Data of a `COPY` gives the same rows however it is cut.
fn check_copy(choice: u8, data: &[u8]) {
    let layout = match choice % 3 {
        0 => Layout::Text,
        1 => Layout::Csv,
        _ => Layout::Binary,
    };
    let null = if layout == Layout::Csv { "" } else { "\\N" };
    let options = Options {
        layout,
        header: layout != Layout::Binary && choice & 32 != 0,
        delimiter: b',',
        null: null.into(),
        quote: b'"',
        escape: if choice & 16 == 0 { b'"' } else { b'\\' },
    };
    let whole = rows(&options, [data]);
    assert_eq!(whole, rows(&options, data.chunks(1)), "byte by byte");
    assert_eq!(whole, rows(&options, data.chunks(7)), "in sevens");
}

type Rows = (Vec<Vec<Option<Vec<u8>>>>, Option<CopyError>);

fn rows<'a>(options: &Options, pieces: impl IntoIterator<Item = &'a [u8]>) -> Rows {
    let mut reader = Reader::new(options.clone(), 2);
    let mut rows = Vec::new();
    let mut take = |row: &Row<'_>| -> Result<(), CopyError> {
        rows.push((0..2).map(|at| row.get(at).map(<[u8]>::to_vec)).collect());
        Ok(())
    };
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| reader.feed(piece, &mut take));
    }
    let result = result.and_then(|()| reader.finish(&mut take));
    (rows, result.err())
}

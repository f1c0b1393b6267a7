//! Both directions held against `pgwire`, a codec of other hands; and what is refused.
#![allow(clippy::unwrap_used, reason = "a test")]

use bytes::{Bytes, BytesMut};
use pgwire::messages::extendedquery as extended;
use pgwire::messages::startup::Startup;
use pgwire::messages::{DecodeContext, Message, PgWireBackendMessage, ProtocolVersion, copy, simplequery};
use postgres::backend::{self, Field, Report, Severity, Status};
use postgres::frontend::{Broken, Malformed, Parsed, Request, Target, parse};
use postgres::opening::{self, Encryption, Opening, Refusal};
use postgres::{Datum, Format, oid};

fn bytes(message: &impl Message) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    message.encode(&mut buffer).unwrap();
    buffer.to_vec()
}

fn request(bytes: &[u8]) -> Request<'_> {
    match parse(bytes) {
        Parsed::Complete { request, consumed } if consumed == bytes.len() => request,
        other => panic!("{}: {other:?}", bytes.escape_ascii()),
    }
}

#[test]
fn requests_as_pgwire_writes_them() {
    let query = bytes(&simplequery::Query::new("SELECT '\u{e9}'".into()));
    assert_eq!(request(&query), Request::Query("SELECT '\u{e9}'"));
    let message = bytes(&extended::Parse::new(Some("p".into()), "SELECT $1".into(), vec![23, 0]));
    let Request::Parse(parsed) = request(&message) else { panic!() };
    assert_eq!((parsed.name, parsed.sql), ("p", "SELECT $1"));
    assert_eq!(parsed.types().collect::<Vec<_>>(), [23, 0]);
    let message = bytes(&extended::Execute::new(Some("c".into()), 7));
    assert_eq!(request(&message), Request::Execute { portal: "c", max_rows: 7 });
    let message = bytes(&extended::Describe::new(b'S', Some("p".into())));
    assert_eq!(request(&message), Request::Describe(Target::Statement("p")));
    let message = bytes(&extended::Close::new(b'P', None));
    assert_eq!(request(&message), Request::Close(Target::Portal("")));
    assert_eq!(request(&bytes(&extended::Sync::new())), Request::Sync);
    assert_eq!(request(&bytes(&extended::Flush::new())), Request::Flush);
    let message = bytes(&copy::CopyData::new(Bytes::from_static(b"1\n")));
    assert_eq!(request(&message), Request::CopyData(b"1\n"));
    assert_eq!(request(&bytes(&copy::CopyDone::new())), Request::CopyDone);
    assert_eq!(request(&bytes(&copy::CopyFail::new("why".into()))), Request::CopyFail("why"));
}

#[test]
fn binds_as_pgwire_writes_them() {
    let values = vec![Some(Bytes::from_static(b"abc")), None, Some(Bytes::new())];
    let message =
        bytes(&extended::Bind::new(Some("c".into()), Some("p".into()), vec![0, 1, 0], values, vec![1]));
    let Request::Bind(bind) = request(&message) else { panic!() };
    assert_eq!((bind.portal, bind.statement, bind.count()), ("c", "p", 3));
    let parameters: Vec<_> = bind.parameters().collect();
    let expected =
        [(Format::Text, Some(&b"abc"[..])), (Format::Binary, None), (Format::Text, Some(&b""[..]))];
    assert_eq!(parameters, expected);
    assert_eq!(bind.result_formats().of(5), Format::Binary);
}

#[test]
fn lengths_that_lie() {
    for (length, broken) in
        [(0, true), (3, true), (-1, true), (i32::MAX, true), (i32::MIN, true), (4, false), (9, false)]
    {
        for kind in *b"QPBEDCHSXdcfp" {
            let mut message = vec![kind];
            message.extend_from_slice(&i32::to_be_bytes(length));
            match parse(&message) {
                Parsed::Broken(Broken::Length { kind: found, length: said }) => {
                    assert!(broken && found == kind && said == length);
                }
                other => assert!(!broken, "{other:?}"),
            }
        }
    }
    for kind in (0..=255_u8).filter(|kind| !b"QPBEDCHSXdcfpF".contains(kind)) {
        assert_eq!(parse(&[kind, 0, 0, 0, 4]), Parsed::Broken(Broken::Type(kind)));
    }
}

#[test]
fn malformed_bodies() {
    let table: &[(&[u8], &str, bool)] = &[
        (b"Q\0\0\0\x06ab", "08P01", false),
        (b"Q\0\0\0\x06\xff\0", "22021", false),
        (b"Q\0\0\0\x06\0x", "08P01", false),
        (b"E\0\0\0\x06\0\0", "08P01", true),
        (b"D\0\0\0\x06X\0", "08P01", true),
        (b"P\0\0\0\x08\0\0\0\x09", "08P01", true),
        // A parameter of 9 bytes, of which none is there.
        (b"B\0\0\0\x0e\0\0\0\0\0\x01\0\0\0\x09", "08P01", true),
        // A format 2.
        (b"B\0\0\0\x0e\0\0\0\x01\0\x02\0\0\0\0", "22023", true),
        // Two formats for no parameter.
        (b"B\0\0\0\x10\0\0\0\x02\0\0\0\0\0\0\0\0", "08P01", true),
    ];
    for (message, state, extended) in table {
        match request(message) {
            Request::Malformed(Malformed { state: found, extended: skips, .. }) => {
                assert_eq!((found, skips), (*state, *extended), "{}", message.escape_ascii());
            }
            other => panic!("{}: {other:?}", message.escape_ascii()),
        }
    }
}

#[test]
fn opening_packets() {
    let mut startup = Startup::new();
    startup.parameters.insert("user".into(), "me".into());
    let packet = bytes(&startup);
    let parameters = vec![("user".to_owned(), "me".to_owned())];
    assert_eq!(opening::parse(&packet), Opening::Startup { consumed: packet.len(), minor: 0, parameters });
    for cut in 0..packet.len() {
        assert_eq!(opening::parse(&packet[..cut]), Opening::Incomplete);
    }
    assert_eq!(
        opening::parse(b"\0\0\0\x08\x04\xd2\x16\x2f"),
        Opening::Encryption { consumed: 8, by: Encryption::Tls }
    );
    assert_eq!(
        opening::parse(b"\0\0\0\x08\x04\xd2\x16\x30"),
        Opening::Encryption { consumed: 8, by: Encryption::Gss }
    );
    let cancel = opening::parse(b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd");
    assert_eq!(cancel, Opening::Cancel { process: 7, secret: b"abcd".to_vec() });
    for (packet, refusal) in [
        (&b"get a\r\n\0"[..], Refusal::Length),
        (b"GET / HTTP/1.1\r\n", Refusal::Length),
        (b"\0\0\0\0\0\0\0\0", Refusal::Length),
        (b"\xff\xff\xff\xff", Refusal::Length),
        (b"\0\0\0\x08\0\x02\0\0", Refusal::Version { major: 2, minor: 0 }),
        (b"\0\0\0\x0a\0\x03\0\0us", Refusal::Layout),
        (b"\0\0\0\x08\x04\xd2\x16\x2e", Refusal::Layout),
    ] {
        assert_eq!(opening::parse(packet), Opening::Refused(refusal), "{}", packet.escape_ascii());
    }
}

/// What `pgwire` reads in the bytes, in its own words.
fn heard(bytes: &[u8]) -> Vec<String> {
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_2);
    (context.awaiting_frontend_ssl, context.awaiting_frontend_startup) = (false, false);
    let mut buffer = BytesMut::from(bytes);
    let mut heard = Vec::new();
    while let Some(message) = PgWireBackendMessage::decode(&mut buffer, &context).unwrap() {
        heard.push(format!("{message:?}"));
    }
    assert!(buffer.is_empty(), "bytes are left: {heard:?}");
    heard
}

#[test]
fn answers_as_pgwire_reads_them() {
    let mut out = Vec::new();
    backend::authentication_ok(&mut out);
    backend::parameter_status("a", "b", &mut out);
    backend::backend_key(7, b"0123456789", &mut out);
    let field = Field {
        name: "n",
        table: 16_384,
        column: 2,
        type_oid: oid::INT8,
        size: 8,
        modifier: 24,
        format: Format::Binary,
    };
    backend::row_description([field].into_iter(), &mut out);
    let row = [(oid::INT8, Format::Binary, Datum::Integer(-2)), (oid::TEXT, Format::Text, Datum::Null)];
    backend::data_row(2, row.into_iter(), &mut out).unwrap();
    backend::command_complete("INSERT", Some(12), &mut out);
    backend::command_complete("CREATE TABLE", None, &mut out);
    let report = Report {
        severity: Severity::Error,
        state: "42P01",
        message: "no\0pe",
        detail: Some("d"),
        hint: Some("h"),
        position: Some(3),
        context: None,
        table: Some(("public", "t")),
        column: None,
        constraint: Some("t_pkey"),
        routine: Some("f"),
    };
    backend::report(&report, &mut out);
    backend::parameter_description(&[23, 25], &mut out);
    backend::ready(Status::Failed, &mut out);
    let heard = heard(&out);
    let expected = [
        "Ok",
        "ParameterStatus { name: \"a\", value: \"b\" }",
        "pid: 7",
        "table_id: 16384, column_id: 2, type_id: 20, type_size: 8, type_modifier: 24, format_code: 1",
        "field_count: 2",
        "INSERT 0 12",
        "CREATE TABLE",
        "(67, \"42P01\"), (77, \"no pe\"), (68, \"d\"), (72, \"h\"), (80, \"3\"), (115, \"public\"), (116, \"t\"), (110, \"t_pkey\"), (82, \"f\")",
        "types: [23, 25]",
        "Error",
    ];
    assert_eq!(heard.len(), expected.len(), "{heard:#?}");
    for (message, part) in heard.iter().zip(expected) {
        assert!(message.contains(part), "{message} does not say {part}");
    }
}

#[test]
fn a_row_that_cannot_be_written_leaves_nothing() {
    let mut out = b"before".to_vec();
    let row =
        [(oid::INT8, Format::Binary, Datum::Integer(1)), (oid::INT2, Format::Binary, Datum::Integer(70_000))];
    assert_eq!(backend::data_row(2, row.into_iter(), &mut out).unwrap_err().state, "22003");
    assert_eq!(out, b"before");
}

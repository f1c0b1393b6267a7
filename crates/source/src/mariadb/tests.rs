//! No bytes of a source stop the daemon: events that are cut, changed or made up are read or refused.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use store::definition::{MappingDef, ServerDef, Wrapper};

use super::columns::Column;
use super::event::{Event, Reader};
use super::row::{Table, each};
use super::table::TableMap;
use super::value::{Charset, Kind};
use crate::row::{Cell, Cells as _};

/// An event of this kind, with its checksum.
fn event(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(19 + body.len() + 4).unwrap();
    let mut bytes = vec![0, 0, 0, 0, kind, 1, 0, 0, 0];
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[200, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(body);
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// `shop.t (a INT UNSIGNED, b VARCHAR(20), c DECIMAL(10,2), d TIME(3))`
const TABLE: &[u8] = b"\x12\0\0\0\0\0\x01\0\x04shop\0\x01t\0\x04\x03\x0f\xf6\x13\x05\x14\0\x0a\x02\x03\x0f";
/// A row of it: 7, `x`, -12.50, NULL.
const ROW: &[u8] = b"\xf8\x07\0\0\0\x01x\x7f\xff\xff\xf3\xcd";

fn rows(kind: u8, values: &[u8]) -> Vec<u8> {
    event(kind, &[b"\x12\0\0\0\0\0\x01\0\x04\xff".as_slice(), values].concat())
}

fn kinds() -> Vec<Kind> {
    vec![Kind::Unsigned, Kind::Text(Charset::Utf8), Kind::Plain, Kind::Plain]
}

fn table(map: TableMap, kinds: Vec<Kind>) -> Table {
    let column = |kind| Column { name: "c".into(), data_type: "any".into(), kind: Some(kind) };
    let columns: Vec<_> = kinds.into_iter().map(column).collect();
    let wanted = vec![true; columns.len()];
    Table { map, columns, wanted }
}

/// What rows of an event say, if they can be read.
fn told(reader: &mut Reader, map: &TableMap, bytes: &[u8]) -> Option<Vec<String>> {
    let read = reader.read(bytes).ok()?;
    let Event::Rows(rows) = read.event else { return None };
    let mut told = Vec::new();
    each(&table(map.clone(), kinds()), &rows, |before, after| {
        let row = before.or(after).unwrap();
        let cells = (0..4).map(|at| match row.cell(at) {
            Cell::Null => "NULL".to_owned(),
            Cell::Unchanged => "?".to_owned(),
            Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
        });
        told.push(cells.collect::<Vec<_>>().join(" "));
    })
    .ok()?;
    Some(told)
}

fn map() -> TableMap {
    let bytes = event(19, TABLE);
    match Reader::new(true).read(&bytes).unwrap().event {
        Event::Table(map) => map,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_told() {
    let (map, mut reader) = (map(), Reader::new(true));
    assert_eq!((map.schema.as_str(), map.name.as_str(), map.types.len()), ("shop", "t", 4));
    let one = "7 x -12.50 NULL".to_owned();
    assert_eq!(told(&mut reader, &map, &rows(23, ROW)), Some(vec![one.clone()]));
    assert_eq!(
        told(&mut reader, &map, &rows(25, &[ROW, ROW].concat())),
        Some(vec![one.clone(), one.clone()])
    );
    // Compressed: one byte of length.
    let mut packed = ZlibEncoder::new(vec![0x81, u8::try_from(ROW.len()).unwrap()], Compression::fast());
    packed.write_all(ROW).unwrap();
    assert_eq!(told(&mut reader, &map, &rows(166, &packed.finish().unwrap())), Some(vec![one]));
    assert_eq!(told(&mut reader, &map, &rows(23, &ROW[..ROW.len() - 1])), None);
}

#[test]
fn what_is_not_known_is_refused() {
    let mut reader = Reader::new(true);
    let state =
        |reader: &mut Reader, bytes: &[u8]| reader.read(bytes).map(|_| ()).map_err(|error| error.state);
    assert_eq!(state(&mut reader, &event(99, b"")), Err("0A000".into()));
    assert_eq!(state(&mut reader, &event(160, b"note")), Ok(()));
    let mut wrong = event(16, &[0; 8]);
    assert_eq!(state(&mut reader, &wrong), Ok(()));
    wrong[20] ^= 1;
    assert_eq!(state(&mut reader, &wrong), Err("08006".into()));
    assert_eq!(state(&mut reader, &wrong[..30]), Err("08006".into()));
}

#[expect(clippy::disallowed_methods, reason = "a seed to replay comes from outside")]
fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| fastrand::u64(..))
}

/// Whatever comes instead of events is read or refused; it never panics, and ends.
#[test]
fn random_and_cut_events_are_harmless() {
    let seed = seed();
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let map = map();
    let good = [
        event(19, TABLE),
        rows(23, ROW),
        rows(24, &[&[0xff], ROW, ROW].concat()),
        rows(32, &[b"\x02\0".as_slice(), ROW].concat()),
        rows(166, b"\x81\x0c\x78\x9c"),
        event(2, b"\0\0\0\0\0\0\0\0\x04\0\0\0\0shop\0TRUNCATE t"),
        event(38, b"\0\x01\0\0\0\x01\0\0\0\x01\0\0\0gb"),
        event(4, b"\x04\0\0\0\0\0\0\0bin.000002"),
        event(162, &[0; 13]),
        event(15, &[0; 100]),
    ];
    let kinds = [
        Kind::Signed,
        Kind::Unsigned,
        Kind::Labels(vec!["a".into()]),
        Kind::Text(Charset::Latin1),
        Kind::Binary,
        Kind::Uuid,
        Kind::Plain,
    ];
    for _ in 0..200_000 {
        let mut bytes = random.choice(&good).unwrap().clone();
        for _ in 0..random.usize(..4) {
            let at = random.usize(19..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(..8),
                2 => bytes.truncate(at.max(20)),
                _ => bytes.insert(at, random.u8(..)),
            }
        }
        if random.u8(..8) == 0 {
            bytes[4] = random.u8(..);
        }
        // Most have the length that they say, and no checksum that would refuse them.
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[9..13].copy_from_slice(&length.to_le_bytes());
        let mut reader = Reader::new(false);
        let Ok(read) = reader.read(&bytes) else { continue };
        match read.event {
            Event::Rows(rows) => {
                let chosen = (0..4).map(|_| random.choice(&kinds).unwrap().clone()).collect();
                let _refused = each(&table(map.clone(), chosen), &rows, |_, _| {});
            }
            Event::Table(other) => {
                let chosen = (0..4).map(|_| random.choice(&kinds).unwrap().clone()).collect();
                let values: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
                let count = u8::try_from(other.types.len().min(200)).unwrap();
                let present = vec![0xff; usize::from(count).div_ceil(8)];
                let body = [b"\x12\0\0\0\0\0\x01\0".as_slice(), &[count], &present, &values].concat();
                let bytes = event(23, &body);
                let Ok(read) = Reader::new(true).read(&bytes) else { panic!("these are rows") };
                let Event::Rows(rows) = read.event else { panic!("these are rows") };
                let _refused = each(&table(other, chosen), &rows, |_, _| {});
            }
            Event::Statement { text } => {
                let _any =
                    (super::statement::meaning(&text), super::statement::may_be_about(&text, "a", "b"));
            }
            _ => {}
        }
    }
}

/// A server that answers with anything: connecting fails, and that is all.
#[test]
fn whatever_a_server_answers_connecting_ends() {
    let mut random = fastrand::Rng::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let rounds = 200;
    let server = thread::spawn(move || {
        for _ in 0..rounds {
            let (mut socket, _) = listener.accept().unwrap();
            let mut greeting =
                b"\x0a5.5.5-10.11.19-MariaDB\0\x01\0\0\0abcdefgh\0\xfe\xf7\x08\x02\0\xff\x81\x15".to_vec();
            greeting.extend_from_slice(&[0; 10]);
            greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
            if random.bool() {
                let at = random.usize(..greeting.len());
                greeting[at] = random.u8(..);
            }
            let mut bytes = vec![u8::try_from(greeting.len()).unwrap(), 0, 0, 0];
            bytes.extend_from_slice(&greeting);
            for _ in 0..random.usize(..5) {
                let length = random.usize(..30);
                bytes.extend_from_slice(&[u8::try_from(length).unwrap(), 0, 0, 2]);
                bytes.push(*random.choice(&[0, 1, 0xfb, 0xfe, 0xff]).unwrap());
                bytes.extend((1..length).map(|_| random.u8(..)));
            }
            let _gone = socket.write_all(&bytes);
            let _gone = socket.shutdown(std::net::Shutdown::Write);
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _all = socket.read_to_end(&mut Vec::new());
        }
    });
    let options = [("host", "127.0.0.1"), ("port", &port), ("connect_timeout", "5")];
    let mapping = MappingDef { id: 1, role: None, options: vec![("password".into(), "hidden".into())] };
    let source = ServerDef {
        id: 1,
        name: "shop".into(),
        wrapper: Wrapper::MariaDb,
        kind: None,
        version: None,
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        mappings: vec![mapping],
        access: store::definition::Access::default(),
        queries: Vec::new(),
    };
    for _ in 0..rounds {
        assert!(super::ask(&source, &[], None).is_err());
    }
    server.join().unwrap();
}

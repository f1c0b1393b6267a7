//! The suite of tokio-postgres, which is a library of Rust's and so a part of this binary.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Error, IsolationLevel, NoTls};

use crate::client::Client as Memcached;
use crate::drivers::place::Place;
use crate::drivers::suite::Line;

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) \
                       SELECT count(*) FROM n";

/// A check: it panics when it does not hold.
type Check = fn(&Runtime, &Place);

const CHECKS: &[(&str, Check)] = &[
    ("connects over TCP and over a Unix socket", connects),
    ("prepared statements tell their types and give the same rows", prepared),
    ("types go in and come out as binary, and NULLs", types),
    ("= ANY($1) takes a slice", arrays),
    ("errors have a SQLSTATE, and leave the connection usable", errors),
    ("transactions, savepoints, and a lost race", transactions),
    ("many queries are in flight at once", pipelining),
    ("a portal gives its rows in pieces", portals),
    ("COPY in and out, text and binary", copies),
    ("a statement is cancelled, and statement_timeout ends one", cancels),
    ("LISTEN gets what NOTIFY sends", notifications),
];

/// Makes all checks.
pub(super) fn run(place: &Place) -> Vec<Line> {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut checks = CHECKS.to_vec();
    if place.memcached.is_some() {
        checks.push((
            "a row written by SQL is read by memcached's get, and the other way round",
            memcached_sees,
        ));
    }
    let make = |&(name, check): &(&str, Check)| {
        let held = catch_unwind(AssertUnwindSafe(|| check(&runtime, place))).is_ok();
        Line { held, text: format!("{} - {name}", if held { "ok" } else { "not ok" }) }
    };
    checks.iter().map(make).collect()
}

fn config(place: &Place) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(place.port).user(place.user).dbname(place.database);
    config
}

async fn connect_with(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    // It ends when the client is dropped, or with the error that the client's next request reports.
    tokio::spawn(connection);
    client
}

async fn connect(place: &Place) -> Client {
    connect_with(&config(place)).await
}

async fn fresh(client: &Client, name: &str, columns: &str) {
    let text = format!("DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({columns})");
    client.batch_execute(&text).await.unwrap();
}

fn fails_with<T>(result: Result<T, Error>, state: &SqlState) -> Error {
    let error = result.err().unwrap_or_else(|| panic!("no error {}", state.code()));
    assert_eq!(error.code(), Some(state), "{error:?}");
    error
}

async fn ids(client: &Client, query: &str) -> Vec<i32> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

fn connects(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let mut local = Config::new();
        local.host_path(&place.sockets).port(place.port).user(place.user).dbname(place.database);
        for config in [config(place), local] {
            let client = connect_with(&config).await;
            assert_eq!(client.query_one("SELECT 1", &[]).await.unwrap().get::<_, i32>(0), 1);
        }
    });
}

fn prepared(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        fresh(&client, "rust_plain", "id INTEGER PRIMARY KEY, name TEXT").await;
        let put = client.prepare("INSERT INTO rust_plain VALUES ($1, $2)").await.unwrap();
        assert_eq!(put.params(), [Type::INT4, Type::TEXT]);
        for id in 0..20 {
            assert_eq!(client.execute(&put, &[&id, &format!("it's {id}")]).await.unwrap(), 1);
        }
        let get = client.prepare_typed("SELECT name, id FROM rust_plain WHERE id = $1", &[Type::INT4]).await;
        let get = get.unwrap();
        let columns: Vec<_> = get.columns().iter().map(|each| (each.name(), each.type_().clone())).collect();
        assert_eq!(columns, [("name", Type::TEXT), ("id", Type::INT4)]);
        for id in [3, 19] {
            let row = client.query_one(&get, &[&id]).await.unwrap();
            assert_eq!(row.get::<_, &str>("name"), format!("it's {id}"));
        }
        assert!(client.query_opt(&get, &[&99]).await.unwrap().is_none());
    });
}

fn types(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        let columns = "id INTEGER PRIMARY KEY, flag BOOLEAN, small SMALLINT, big BIGINT, real4 FLOAT4, \
                       real8 DOUBLE PRECISION, name TEXT, code VARCHAR(20), raw BYTEA, at TIMESTAMPTZ, doc JSON, \
                       docb JSONB, uid UUID";
        fresh(&client, "rust_types", columns).await;
        let at = UNIX_EPOCH + Duration::from_millis(1_770_091_506_789);
        let uid = uuid::Uuid::from_u128(0x1234_5678_1234_5678_1234_5678_1234_5678);
        let raw: Vec<u8> = (0..=255).collect();
        let (doc, docb) = (json!({"a": [1, null, "x"]}), json!({"b": {"c": true}}));
        let put = client
            .prepare("INSERT INTO rust_types VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")
            .await
            .unwrap();
        let (name, code) = ("Gr\u{fc}\u{df}e \\", "x-1");
        client
            .execute(
                &put,
                &[
                    &1_i32, &true, &-7_i16, &i64::MAX, &1.5_f32, &0.1_f64, &name, &code, &raw, &at, &doc, &docb,
                    &uid,
                ],
            )
            .await
            .unwrap();
        client.execute("INSERT INTO rust_types (id) VALUES ($1)", &[&2_i32]).await.unwrap();
        let rows = client.query("SELECT * FROM rust_types ORDER BY id", &[]).await.unwrap();
        let row = &rows[0];
        assert_eq!((row.get(0), row.get(1), row.get(2), row.get(3)), (1_i32, true, -7_i16, i64::MAX));
        assert_eq!((row.get(4), row.get(5)), (1.5_f32, 0.1_f64));
        assert_eq!((row.get(6), row.get(7)), (name, code));
        assert_eq!((row.get::<_, &[u8]>(8), row.get::<_, SystemTime>(9)), (&raw[..], at));
        assert_eq!((row.get(10), row.get(11), row.get(12)), (doc, docb, uid));
        assert_eq!(rows[1].get::<_, Option<bool>>(1), None);
        assert_eq!(rows[1].get::<_, Option<i64>>(3), None);
        assert_eq!(rows[1].get::<_, Option<String>>(6), None);
        assert_eq!(rows[1].get::<_, Option<Vec<u8>>>(8), None);
        assert_eq!(rows[1].get::<_, Option<SystemTime>>(9), None);
        assert_eq!(rows[1].get::<_, Option<uuid::Uuid>>(12), None);
    });
}

fn arrays(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        fresh(&client, "rust_plain", "id INTEGER PRIMARY KEY, name TEXT").await;
        client.batch_execute("INSERT INTO rust_plain VALUES (1, 'a'), (2, 'b'), (3, 'c,\"d')").await.unwrap();
        let query = "SELECT id FROM rust_plain WHERE id = ANY($1) ORDER BY id";
        let rows = client.query(query, &[&vec![1_i32, 3, 9]]).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 3]);
        assert!(client.query(query, &[&Vec::<i32>::new()]).await.unwrap().is_empty());
        let query = "SELECT id FROM rust_plain WHERE name = ANY($1)";
        let rows = client.query(query, &[&["c,\"d", "zz"].as_slice()]).await.unwrap();
        assert_eq!(rows[0].get::<_, i32>(0), 3);
    });
}

fn errors(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        fresh(&client, "rust_plain", "id INTEGER PRIMARY KEY, name TEXT").await;
        client.batch_execute("INSERT INTO rust_plain VALUES (1, 'a')").await.unwrap();
        fails_with(client.query("SELEC 1", &[]).await, &SqlState::SYNTAX_ERROR);
        fails_with(client.query("SELECT * FROM rust_none", &[]).await, &SqlState::UNDEFINED_TABLE);
        let taken = client.execute("INSERT INTO rust_plain VALUES ($1, 'b')", &[&1_i32]).await;
        let taken = fails_with(taken, &SqlState::UNIQUE_VIOLATION);
        assert_eq!(taken.as_db_error().unwrap().constraint(), Some("rust_plain_pkey"));
        let text = "INSERT INTO rust_plain VALUES ('x', 'b')";
        fails_with(client.batch_execute(text).await, &SqlState::INVALID_TEXT_REPRESENTATION);
        assert_eq!(ids(&client, "SELECT id FROM rust_plain").await, [1]);
    });
}

fn transactions(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let (mut one, two) = (connect(place).await, connect(place).await);
        fresh(&two, "rust_plain", "id INTEGER PRIMARY KEY, n INTEGER").await;
        let mut transaction = one.transaction().await.unwrap();
        transaction.batch_execute("INSERT INTO rust_plain VALUES (1, 0)").await.unwrap();
        let savepoint = transaction.savepoint("a").await.unwrap();
        let taken = savepoint.batch_execute("INSERT INTO rust_plain VALUES (1, 0)").await;
        fails_with(taken, &SqlState::UNIQUE_VIOLATION);
        fails_with(savepoint.query("SELECT 1", &[]).await, &SqlState::IN_FAILED_SQL_TRANSACTION);
        savepoint.rollback().await.unwrap();
        assert!(ids(&two, "SELECT id FROM rust_plain").await.is_empty());
        transaction.commit().await.unwrap();
        assert_eq!(ids(&two, "SELECT id FROM rust_plain").await, [1]);
        // A transaction that is dropped is rolled back.
        one.transaction().await.unwrap().batch_execute("DELETE FROM rust_plain").await.unwrap();
        assert_eq!(ids(&one, "SELECT id FROM rust_plain").await, [1]);
        lost_race(&mut one, &two, place.memcached.is_some()).await;
    });
}

async fn lost_race(one: &mut Client, two: &Client, ours: bool) {
    let begun = one.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await;
    let transaction = begun.unwrap();
    let row = transaction.query_one("SELECT n FROM rust_plain WHERE id = $1", &[&1_i32]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 0);
    let change = "UPDATE rust_plain SET n = n + 1";
    let late = if ours {
        // No write waits for another in sqlcached; the one who commits late is refused.
        transaction.batch_execute(change).await.unwrap();
        two.batch_execute("UPDATE rust_plain SET n = 10").await.unwrap();
        transaction.commit().await
    } else {
        two.batch_execute("UPDATE rust_plain SET n = 10").await.unwrap();
        transaction.batch_execute(change).await
    };
    fails_with(late, &SqlState::T_R_SERIALIZATION_FAILURE);
    assert_eq!(ids(two, "SELECT n FROM rust_plain").await, [10]);
}

fn pipelining(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        let statement = client.prepare("SELECT $1::int4 + 1").await.unwrap();
        let numbers: Vec<i32> = (0..200).collect();
        let asked = numbers.iter().map(|number| async {
            let row = client.query_one(&statement, &[number]).await.unwrap();
            row.get::<_, i32>(0)
        });
        assert_eq!(future::join_all(asked).await, (1..=200).collect::<Vec<i32>>());
    });
}

fn portals(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let mut client = connect(place).await;
        let transaction = client.transaction().await.unwrap();
        let text =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i FROM n";
        let portal = transaction.bind(text, &[]).await.unwrap();
        let mut pieces = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 100).await.unwrap();
            pieces.push(rows.len());
            if rows.len() < 100 {
                break;
            }
        }
        assert_eq!(pieces, [100, 100, 50]);
    });
}

fn copies(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        fresh(&client, "rust_copy", "id INTEGER PRIMARY KEY, name TEXT").await;
        let mut sink = pin!(client.copy_in("COPY rust_copy FROM STDIN").await.unwrap());
        for part in ["1\ton", "e\n2\t\\N", "\n"] {
            sink.send(Bytes::from_static(part.as_bytes())).await.unwrap();
        }
        assert_eq!(sink.finish().await.unwrap(), 2);
        let stream = client.copy_out("COPY (SELECT * FROM rust_copy ORDER BY id) TO STDOUT").await.unwrap();
        let parts: Vec<Bytes> = stream.try_collect().await.unwrap();
        assert_eq!(parts.concat(), b"1\tone\n2\t\\N\n");
        let kinds = [Type::INT4, Type::TEXT];
        let sink = client.copy_in("COPY rust_copy FROM STDIN BINARY").await.unwrap();
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &kinds));
        for id in 3..1000_i32 {
            writer.as_mut().write(&[&id, &format!("n{id}")]).await.unwrap();
        }
        assert_eq!(writer.finish().await.unwrap(), 997);
        let stream = client.copy_out("COPY rust_copy TO STDOUT (FORMAT binary)").await.unwrap();
        let rows = pin!(BinaryCopyOutStream::new(stream, &kinds));
        let found: Vec<_> = rows.try_collect().await.unwrap();
        assert_eq!(found.len(), 999);
        assert!(found.iter().any(|row| row.get::<i32>(0) == 2 && row.get::<Option<&str>>(1).is_none()));
    });
}

fn cancels(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        let token = client.cancel_token();
        let later = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.unwrap();
        };
        let (ended, ()) = future::join(client.query(ENDLESS, &[]), later).await;
        fails_with(ended, &SqlState::QUERY_CANCELED);
        client.batch_execute("SET statement_timeout = '100ms'").await.unwrap();
        fails_with(client.query(ENDLESS, &[]).await, &SqlState::QUERY_CANCELED);
        assert_eq!(ids(&client, "SELECT 1").await, [1]);
    });
}

fn notifications(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let (client, mut connection) = config(place).connect(NoTls).await.unwrap();
        let messages = poll_fn(move |context| connection.poll_message(context));
        let task = tokio::spawn(async move {
            let mut messages = pin!(futures_util::stream::unfold(messages, |mut next| async {
                (&mut next).await.map(|message| (message.unwrap(), next))
            }));
            while let Some(message) = messages.next().await {
                if let AsyncMessage::Notification(note) = message {
                    return (note.channel().to_owned(), note.payload().to_owned());
                }
            }
            panic!("the connection ended");
        });
        client.batch_execute("LISTEN rust_channel").await.unwrap();
        connect(place).await.batch_execute("NOTIFY rust_channel, 'hello'").await.unwrap();
        let note = tokio::time::timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
        assert_eq!(note, ("rust_channel".to_owned(), "hello".to_owned()));
    });
}

fn memcached_sees(runtime: &Runtime, place: &Place) {
    runtime.block_on(async {
        let client = connect(place).await;
        let text = "DROP TABLE IF EXISTS rust_frag; CREATE TABLE rust_frag (key TEXT PRIMARY KEY, page INT, \
                    body BYTEA) WITH (prefix = 'rust:', value = 'body')";
        client.batch_execute(text).await.unwrap();
        let put = "INSERT INTO rust_frag VALUES ($1, $2, $3)";
        client.execute(put, &[&"a", &17_i32, &b"hello".as_slice()]).await.unwrap();
        let mut memcached = Memcached::tcp(place.memcached.unwrap());
        assert_eq!(memcached.get("rust:a").as_deref(), Some(b"hello".as_slice()));
        assert_eq!(memcached.set("rust:b", b"hi"), "STORED");
        let row = client.query_one("SELECT body FROM rust_frag WHERE key = 'b'", &[]).await.unwrap();
        assert_eq!(row.get::<_, &[u8]>(0), b"hi");
        assert_eq!(client.execute("DELETE FROM rust_frag WHERE page = $1", &[&17_i32]).await.unwrap(), 1);
        assert_eq!(memcached.get("rust:a"), None);
    });
}

//! The pieces of statements that write, and what expressions became.

use dialect::lowered::{Listed, Lowered, Node, Operator, Select, Source, Values, Verb, Write};
use store::value::Value;
use store::{Catalog, Clock, Store, StoreOptions};

fn catalog() -> std::sync::Arc<Catalog> {
    let options = StoreOptions {
        path: None,
        memory_bytes: 16 << 20,
        cold: true,
        clock: Clock::System,
        row_bytes_max: 1 << 20,
    };
    Store::open(&options).expect("a store in memory").store.catalog()
}

fn lowered(sql: &str) -> Lowered {
    dialect::translate(&catalog(), sql, &[], None).expect(sql).lowered
}

fn write(sql: &str) -> Write {
    match lowered(sql) {
        Lowered::Write(write) => *write,
        Lowered::Read(_) | Lowered::Unread => panic!("{sql} writes"),
    }
}

fn select(sql: &str) -> Option<Select> {
    match lowered(sql) {
        Lowered::Read(select) => select.map(|select| *select),
        Lowered::Write(_) | Lowered::Unread => panic!("{sql} reads"),
    }
}

fn column(name: &str) -> Node {
    Node::Column { table: None, name: name.to_owned() }
}

/// What the condition of a query became.
fn condition(sql: &str) -> Node {
    select(&format!("SELECT a FROM t WHERE {sql}")).and_then(|select| select.condition).expect(sql)
}

#[test]
fn conditions_are_what_they_mean_to_sqlite() {
    let equal = |value: Node| Node::Binary(Operator::Equal, Box::new([column("a"), value]));
    for (sql, node) in [
        ("a = $2", equal(Node::Parameter(1))),
        ("a == $1::int", equal(Node::Parameter(0))),
        ("a = CAST($1 AS uuid)", equal(Node::Parameter(0))),
        ("a = -9223372036854775808", equal(Node::Signed(Value::Integer(i64::MIN)))),
        ("a = E'x\\n'", equal(Node::Value(Value::from("x\n")))),
        ("a = '2026-1-2'::date", equal(Node::Value(Value::from("2026-01-02")))),
        ("a = TRUE", equal(Node::Truth(true))),
        ("a = lower(b)", equal(Node::Call { name: "lower".into(), arguments: vec![column("b")] })),
        ("a = upper(b) || 'x'", equal(Node::Other)),
        (
            "a = ANY (ARRAY[1, NULL])",
            Node::In(Box::new(column("a")), vec![Node::Value(Value::Integer(1)), Node::Value(Value::Null)]),
        ),
        ("a IS NOT UNKNOWN", Node::Not(Box::new(Node::IsNull(Box::new(column("a")))))),
        ("a ~ 'x'", Node::Other),
    ] {
        assert_eq!(condition(sql), node, "{sql}");
    }
}

#[test]
fn only_plain_queries_of_tables_are_shown() {
    let found =
        select("SELECT t.a AS x, * FROM main.t JOIN u AS v ON t.a = v.b ORDER BY 1 DESC LIMIT 3").unwrap();
    assert_eq!(found.list.len(), 2);
    assert_eq!(found.list[1], Listed::All(None));
    let second = found.tables.second.unwrap();
    assert_eq!((second.table.alias.as_deref(), second.left, second.on.is_some()), (Some("v"), false, true));
    assert_eq!((found.order[0].descending, found.limit), (true, Some(Node::Value(Value::Integer(3)))));
    for sql in [
        "SELECT 1",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t UNION SELECT b FROM u",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a FROM (SELECT a FROM t) AS x",
        "SELECT a FROM t INDEXED BY i",
        "SELECT a FROM generate_series(1, 2) a",
        "SELECT a FROM t GROUP BY a HAVING a > 1",
    ] {
        assert_eq!(select(sql), None, "{sql}");
    }
}

#[test]
fn what_writes_becomes_pieces_with_numbered_parameters() {
    let insert =
        write("WITH w AS (SELECT ?) INSERT INTO t AS x (a, b) VALUES (:n, -1), (:m, :n) RETURNING a, $1");
    assert_eq!((insert.with.as_str(), insert.parameters), ("WITH w AS (SELECT ?1) ", 3));
    assert_eq!(insert.returning.as_deref(), Some("a, ?1"));
    let Verb::Insert(rows) = insert.verb else { panic!("it inserts") };
    let Source::Query { sql, rows: Some(rows), .. } = rows.source else { panic!("it has rows") };
    assert_eq!(sql, "VALUES ( ?2, -1), ( ?3, ?2)");
    assert_eq!(rows[0], [Node::Parameter(1), Node::Signed(Value::Integer(-1))]);

    let update =
        write("UPDATE t SET (a, b) = (1, c || 'x'), d = (SELECT 1) FROM u, v WHERE a = $1 AND t.b ILIKE 'x'");
    let Verb::Update(update) = update.verb else { panic!("it updates") };
    assert_eq!(update.sets[0].values, Values::Each(vec!["1".into(), "c || 'x'".into()]));
    assert_eq!(update.from.as_deref(), Some("u, v"));
    assert_eq!(update.rows.condition.unwrap().sql, "a = ?1 AND t.b LIKE ilike_pattern( 'x')");

    let delete = write("DELETE FROM t y USING u WHERE y.a = u.a ORDER BY y.b LIMIT 1 OFFSET 2");
    let Verb::Delete(deleted) = delete.verb else { panic!("it deletes") };
    assert_eq!((delete.table.alias.as_deref(), deleted.using.as_deref()), (Some("y"), Some("u")));
    assert_eq!(deleted.rows.limit.as_deref(), Some("LIMIT 1 OFFSET 2"));
}

/// What reads has its text without schemas, and mistakes in them have their places.
#[test]
fn schemas_are_left_out() {
    let catalog = catalog();
    for (sql, expected) in [
        ("SELECT 1 FROM pg_catalog.pg_class c", "SELECT 1 FROM pg_class c"),
        ("SELECT 1 FROM \"pg_catalog\".\"pg_class\"", "SELECT 1 FROM \"pg_class\""),
        ("SELECT public.t.a, public.b FROM public.t JOIN Public.u", "SELECT t.a, b FROM t JOIN u"),
        ("SELECT public.a FROM t AS public", "SELECT public.a FROM t AS public"),
        ("SELECT public.* FROM public.t AS public", "SELECT public.* FROM t AS public"),
        ("SELECT t.x FROM information_schema.tables t", "SELECT t.x FROM information_schema_tables t"),
        (
            "SELECT information_schema.tables.table_name FROM information_schema.\"tables\"",
            "SELECT tables.table_name FROM information_schema_tables AS tables",
        ),
        (
            "SELECT a OPERATOR(pg_catalog.~~) 'x' COLLATE pg_catalog.default AND NOT b OPERATOR(=) 1 FROM t",
            "SELECT a LIKE 'x' AND NOT b = 1 FROM t",
        ),
        (
            "SELECT a FROM t ORDER BY a COLLATE \"C\" DESC, b COLLATE NOCASE",
            "SELECT a FROM t ORDER BY a DESC NULLS FIRST, b COLLATE NOCASE NULLS LAST",
        ),
        ("SELECT pg_catalog.lower(a), a::pg_catalog.text FROM t", "SELECT lower(a), cast_text(a) FROM t"),
        ("SELECT a IS DISTINCT FROM s.b FROM main.t s", "SELECT a IS DISTINCT FROM s.b FROM main.t s"),
        (
            "SELECT extract(year FROM s.a), trim(BOTH 'x' FROM \"s\".\"b\") FROM public.t s",
            "SELECT date_part('year', s.a), trim(\"s\".\"b\", 'x') FROM t s",
        ),
    ] {
        let found = dialect::translate(&catalog, sql, &[], None).expect(sql).sql;
        assert!(dialect::same_expression(&found, expected), "{sql} became {found}");
    }
    for (sql, state, place) in [
        ("SELECT 1 FROM information_schema.frob", "42P01", 15),
        ("DELETE FROM other.t", "42P01", 13),
        ("SELECT extract(year FROM (SELECT at FROM other.t))", "42P01", 42),
        ("INSERT INTO other.t VALUES (1)", "42P01", 13),
        ("SELECT 1 FROM t, other.f(1)", "3F000", 18),
    ] {
        let error = dialect::translate(&catalog, sql, &[], None).expect_err(sql);
        assert_eq!((error.state, error.position), (state, Some(place)), "{sql}");
    }
}

//! Indexes over the elements of arrays and of JSON: `value = ANY (array)`, `@>`, `&&` and `?` answer with them as
//! without.

use crate::common::Db;

fn tables(db: &mut Db) {
    for name in ["t", "plain"] {
        db.run(&format!("CREATE TABLE {name} (k INT PRIMARY KEY, tags TEXT[], numbers INT[])"));
    }
    db.run("CREATE INDEX t_tags ON t USING gin (tags);\nCREATE INDEX t_numbers ON t USING gin (numbers)");
}

fn plan(db: &mut Db, sql: &str) -> String {
    db.query(&format!("EXPLAIN {sql}"))
}

#[test]
fn elements_are_found_by_their_index() {
    let mut db = Db::new();
    tables(&mut db);
    for key in 0..200 {
        db.run(&format!(
            "INSERT INTO t VALUES ({key}, ARRAY['all', 'tag:{}', 'own:{key}'], ARRAY[{}])",
            key % 10,
            key % 7
        ));
    }
    for (condition, rows, index) in [
        ("'own:17' = ANY (tags)", "17", "t_tags"),
        ("tags @> ARRAY['tag:3', 'own:13']", "13", "t_tags"),
        ("tags && ARRAY['own:5', 'own:6', 'none']", "5;6", "t_tags"),
        ("t.tags && '{own:5,own:6}'", "5;6", "t_tags"),
        ("tags @> '{own:5,own:6}'", "", "t_tags"),
        ("5 = ANY (numbers) AND k < 20", "5;12;19", "t_"),
        ("numbers @> '{6}' AND k < 10", "6", "t_"),
    ] {
        let sql = format!("SELECT k FROM t WHERE {condition} ORDER BY k");
        assert!(plan(&mut db, &sql).contains(index), "{sql}: {}", plan(&mut db, &sql));
        assert_eq!(db.query(&sql), rows, "{sql}");
    }
    let values = [store::value::Value::from("own:9")];
    let (_, rows) = db.execute("SELECT k FROM t WHERE $1 = ANY (tags)", &values).unwrap();
    assert_eq!(crate::common::shown(&rows.rows), "9");
    assert_eq!(db.affected("DELETE FROM t WHERE tags && '{tag:1,tag:2}'"), 40);
    assert_eq!(db.affected("UPDATE t SET tags = array_append(tags, 'new') WHERE 'tag:3' = ANY (tags)"), 20);
    assert_eq!(db.query("SELECT count(*) FROM t WHERE 'new' = ANY (tags)"), "20");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE tags @> '{all}'"), "160");
}

#[test]
fn such_an_index_is_shown_as_what_it_is() {
    let mut db = Db::new();
    tables(&mut db);
    let shown = "SELECT indexdef FROM pg_indexes WHERE indexname = 't_tags'";
    assert_eq!(db.query(shown), "CREATE INDEX t_tags ON public.t USING gin (tags)");
    // An order is nothing that it gives.
    for sql in [
        "SELECT k FROM t ORDER BY tags",
        "SELECT k FROM t WHERE tags = '{a}'",
        "SELECT count(*) FROM t WHERE tags > '{a}'",
    ] {
        assert!(!plan(&mut db, sql).contains("t_tags"), "{sql}: {}", plan(&mut db, sql));
    }
    assert_eq!(db.state("CREATE UNIQUE INDEX u ON t USING gin (tags)"), "0A000");
    db.run("CREATE TABLE copy (LIKE t INCLUDING ALL)");
    assert!(plan(&mut db, "SELECT k FROM copy WHERE tags && '{a}'").contains("copy_tags_idx"));
    db.run("ALTER TABLE t DROP COLUMN numbers");
    assert!(plan(&mut db, "SELECT k FROM t WHERE tags && '{a}'").contains("t_tags"));
    db.run("DROP INDEX t_tags");
    assert!(!plan(&mut db, "SELECT k FROM t WHERE tags && '{a}'").contains("t_tags"));
}

const TAGS: [&str; 8] = ["'a'", "'b'", "'it''s'", "'\"q\"'", "'\\'", "'\u{e9}'", "'5'", "NULL"];

/// Random arrays, with NULLs, quotes and numbers that are written in several ways, and random questions.
#[test]
fn an_index_changes_no_answer() {
    let mut db = Db::new();
    tables(&mut db);
    let seed = crate::common::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let list = |random: &mut fastrand::Rng, of: &dyn Fn(usize) -> String| -> String {
        if random.u8(..12) == 0 {
            return "NULL".to_owned();
        }
        let parts: Vec<String> = (0..random.usize(..4)).map(|_| of(random.usize(..8))).collect();
        parts.join(", ")
    };
    let tag = |at: usize| TAGS[at].to_owned();
    let number = |at: usize| if at == 7 { "NULL".to_owned() } else { (at * 5).to_string() };
    let array = |list: String, ty: &str| match list.as_str() {
        "NULL" => "NULL".to_owned(),
        _ => format!("ARRAY[{list}]::{ty}[]"),
    };
    for step in 0..600 {
        let key = random.u8(..60);
        let tags = array(list(&mut random, &tag), "text");
        let numbers = array(list(&mut random, &number), "int");
        let write = match random.u8(..6) {
            0 => format!("DELETE FROM # WHERE k = {key}"),
            1 => format!("UPDATE # SET tags = {tags} WHERE k BETWEEN {key} AND {key} + 3"),
            2 => format!("DELETE FROM # WHERE tags && {tags} AND k < {key} / 2"),
            _ => format!("INSERT OR REPLACE INTO # VALUES ({key}, {tags}, {numbers})"),
        };
        for name in ["t", "plain"] {
            db.run(&write.replace('#', name));
        }
        let (tags, numbers) =
            (array(list(&mut random, &tag), "text"), array(list(&mut random, &number), "int"));
        let (one, other) = (tag(random.usize(..8)), number(random.usize(..8)));
        for condition in [
            format!("tags && {tags}"),
            format!("tags @> {tags}"),
            format!("{one} = ANY (tags)"),
            format!("NOT ({one} = ANY (tags))"),
            format!("({one} = ANY (tags)) IS NULL"),
            format!("numbers && {numbers} OR {one} = ANY (tags)"),
            format!("numbers @> {numbers} AND tags && {tags}"),
            format!("{other} = ANY (numbers) AND k > {key}"),
            format!("{one} = ANY (tags) OR {other} = ANY (numbers)"),
        ] {
            let answer = |name: &str, db: &mut Db| {
                db.query(&format!("SELECT k FROM {name} WHERE {condition} ORDER BY k"))
            };
            let (with, without) = (answer("t", &mut db), answer("plain", &mut db));
            assert_eq!(with, without, "seed {seed}, step {step}: {condition}");
            // In any order, which may need no SQLite.
            let any = db.query(&format!("SELECT k FROM t WHERE {condition}"));
            let count = db.query(&format!("SELECT count(*) FROM t WHERE {condition}"));
            let mut keys: Vec<u8> = any.split_terminator(';').map(|key| key.parse().unwrap()).collect();
            keys.sort_unstable();
            let keys: Vec<String> = keys.iter().map(u8::to_string).collect();
            assert_eq!(keys.join(";"), without, "seed {seed}, step {step}: {condition}");
            assert_eq!(count, keys.len().to_string(), "seed {seed}, step {step}: {condition}");
        }
        // What is deleted by elements, in a transaction with rows of its own and outside.
        let within = random.bool();
        if within {
            db.run("BEGIN");
            for name in ["t", "plain"] {
                db.run(&format!("INSERT OR REPLACE INTO {name} VALUES ({key}, {tags}, {numbers})"));
            }
        }
        let condition = [
            format!("tags && {tags}"),
            format!("{one} = ANY (tags)"),
            format!("tags @> {tags}"),
            format!("{one} = ANY (tags) OR k = {key}"),
        ];
        let condition = &condition[random.usize(..4)];
        let [with, without] =
            ["t", "plain"].map(|name| db.affected(&format!("DELETE FROM {name} WHERE {condition}")));
        assert_eq!(with, without, "seed {seed}, step {step}: DELETE {condition}");
        if within {
            db.run(if random.bool() { "COMMIT" } else { "ROLLBACK" });
        }
    }
}

/// An array that no column holds.
#[test]
fn an_expression_may_make_the_array() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE h (k TEXT PRIMARY KEY, list TEXT, n INT);
         CREATE INDEX h_tags ON h USING gin (string_to_array(list, ','));
         INSERT INTO h VALUES ('1', 'a,b', 1), ('2', 'b', 2), ('3', '', 3), ('4', NULL, NULL)",
    );
    for (condition, index, keys) in [
        ("'b' = ANY (string_to_array(list, ','))", "h_tags", "1;2"),
        ("string_to_array(list, ',') && '{a,x}'", "h_tags", "1"),
        ("string_to_array(h.list, ',') @> ARRAY['b']", "h_tags", "1;2"),
    ] {
        let sql = format!("SELECT k FROM h WHERE {condition} ORDER BY k");
        assert_eq!(db.query(&sql), keys, "{sql}");
        let plan = plan(&mut db, &sql);
        assert!(plan.contains(index), "{sql}: {plan}");
    }
    let shown = "SELECT indexdef FROM pg_indexes WHERE indexname = 'h_tags'";
    let definition = db.query(shown);
    assert_eq!(definition, "CREATE INDEX h_tags ON public.h USING gin (string_to_array(list, ','))");
    db.run("DROP INDEX h_tags");
    db.run(&definition);
    assert_eq!(db.query(shown), definition);
    assert_eq!(db.affected("DELETE FROM h WHERE 'b' = ANY (string_to_array(list, ','))"), 2);
    assert_eq!(db.query("SELECT count(*) FROM h"), "2");
}

/// To drop what has a tag is what tags are for: it needs no SQLite.
#[test]
fn tags_need_no_sqlite() {
    let mut db = Db::new();
    tables(&mut db);
    db.run("INSERT INTO t VALUES (1, '{a,b}', '{1}'), (2, '{b}', '{2}'), (3, NULL, NULL), (4, '{}', '{}')");
    for sql in [
        "SELECT count(*) FROM t WHERE 'b' = ANY (tags)",
        "SELECT k, tags FROM t WHERE 'b' = ANY (tags)",
        "SELECT k FROM t WHERE (tags && ARRAY['a', 'b'])",
        "SELECT k FROM t WHERE '{a}' && t.tags",
        "SELECT k FROM t WHERE tags @> '{a,b}'",
        "SELECT k FROM t WHERE 2 = ANY (numbers)",
        "SELECT k FROM t WHERE tags && '{}'",
        "DELETE FROM t WHERE tags && '{x,y}'",
        "DELETE FROM t WHERE 'x' = ANY (tags)",
        "DELETE FROM t WHERE tags @> '{x}'",
        "DELETE FROM t WHERE 'x' = ANY (tags) OR k = 9 OR numbers && '{8,9}'",
    ] {
        assert!(db.is_native(sql), "{sql}");
    }
    for sql in [
        "SELECT k FROM plain WHERE 'b' = ANY (tags)",
        "SELECT k FROM t WHERE tags @> '{}'",
        "SELECT k FROM t WHERE tags <@ '{a}'",
        "SELECT k FROM t WHERE NOT (tags && '{a}')",
        "SELECT k FROM t WHERE 'b' = ANY (tags) ORDER BY k",
    ] {
        assert!(!db.is_native(sql), "{sql}");
    }
}

/// What memcached's clients write has tags by its key.
#[test]
fn tags_are_taken_out_of_keys() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE h (id INT, list TEXT, body TEXT, tags TEXT[] AS (string_to_array(list, ',')), PRIMARY KEY (id, list))
         WITH (prefix = 'h:', value = 'body');\nCREATE INDEX h_tags ON h USING gin (tags)",
    );
    let table = db.store.catalog().table("h").cloned().unwrap();
    for (id, list) in [(1, "a,b"), (2, "b"), (3, "")] {
        let item = store::Item {
            value: b"x",
            client_flags: 0,
            expiry: store::Expiry::Table,
            cas: None,
            lease: None,
            tags: None,
        };
        let mut key = Vec::new();
        table.keys().from_text(format!("{id}:{list}").as_bytes(), &mut key).unwrap();
        db.store.put_item(&table, &key, &item, store::Expect::Anything, db.store.now()).unwrap();
    }
    let sql = "SELECT id FROM h WHERE 'b' = ANY (tags) ORDER BY id";
    assert!(plan(&mut db, "DELETE FROM h WHERE tags && '{a}'").contains("h_tags"));
    assert_eq!(db.query(sql), "1;2");
    assert_eq!(db.affected("DELETE FROM h WHERE tags && '{a,none}'"), 1);
    assert_eq!(db.query(sql), "2");
}

#[test]
fn an_index_follows_its_column() {
    let mut db = Db::new();
    tables(&mut db);
    db.run("INSERT INTO t VALUES (1, '{a,b}', '{1}')");
    db.run("ALTER TABLE t RENAME COLUMN tags TO labels");
    assert_eq!(db.query("SELECT k FROM t WHERE 'b' = ANY (labels)"), "1");
    assert!(plan(&mut db, "SELECT k FROM t WHERE 'b' = ANY (labels)").contains("t_tags"));
    db.run("BEGIN;\nINSERT INTO t VALUES (2, '{b}', NULL)");
    assert_eq!(db.query("SELECT k FROM t WHERE labels && '{b}' ORDER BY k"), "1;2");
    db.run("ROLLBACK");
    assert_eq!(db.query("SELECT k FROM t WHERE labels && '{b}'"), "1");
    let many: Vec<String> = (0..70_000).map(|number| number.to_string()).collect();
    let values = [store::value::Value::from(format!("{{{}}}", many.join(",")).as_str())];
    let state = |db: &mut Db, sql: &str| db.execute(sql, &values).map_err(|error| error.state).unwrap_err();
    assert_eq!(state(&mut db, "INSERT INTO t VALUES (3, $1, NULL)"), "54000");
    assert_eq!(state(&mut db, "UPDATE t SET labels = $1"), "54000");
    assert_eq!(db.query("SELECT labels FROM t"), "[\"a\",\"b\"]");
    db.execute("INSERT INTO plain VALUES (3, $1, NULL)", &values).unwrap();
    assert_eq!(db.state("CREATE INDEX plain_tags ON plain USING gin (tags)"), "54000");
    assert_eq!(db.query("SELECT count(*) FROM pg_indexes WHERE indexname = 'plain_tags'"), "0");
    db.run("DELETE FROM plain");
    db.run("CREATE INDEX plain_tags ON plain USING gin (tags)");
    db.run("ALTER TABLE t DROP COLUMN labels");
    assert_eq!(db.query("SELECT count(*) FROM pg_indexes WHERE indexname = 't_tags'"), "0");
}

const DOCUMENTS: [&str; 12] = [
    r#"["a", "b"]"#,
    r#"["b", ["a"], {"c": 1}]"#,
    r#"["c", 1, null, true]"#,
    "[1, 2]",
    r#"{"a": 1, "b": ["c"]}"#,
    r#"{"b": {"a": 2}}"#,
    r#"{"c": "a"}"#,
    r#""a""#,
    "1",
    "null",
    "[]",
    "{}",
];

/// Random documents, and all that may be asked of their keys and texts.
#[test]
fn an_index_over_json_changes_no_answer() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, doc JSONB);\nCREATE TABLE plain (k INT PRIMARY KEY, doc JSONB)",
    );
    db.run("CREATE INDEX t_doc ON t USING gin (doc)");
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    let document = |random: &mut fastrand::Rng| match random.usize(..=DOCUMENTS.len()) {
        at if at < DOCUMENTS.len() => format!("'{}'", DOCUMENTS[at]),
        _ => "NULL".to_owned(),
    };
    let keys = ["{a}", "{b,c}", "{a,NULL}", "{}", "{none}"];
    for _ in 0..600 {
        let (key, doc) = (random.u8(..40), document(&mut random));
        let wanted = keys[random.usize(..keys.len())];
        let asked = match random.u8(..4) {
            0 => format!("doc ? '{}'", ["a", "b", "c", "1"][random.usize(..4)]),
            1 => format!("doc ?| '{wanted}'::text[]"),
            2 => format!("doc ?& '{wanted}'::text[]"),
            _ => format!("doc @> {}::jsonb", document(&mut random)),
        };
        let write = match random.u8(..6) {
            0 => format!("DELETE FROM # WHERE {asked} AND k < {key} / 2"),
            1 => format!("UPDATE # SET doc = {doc} WHERE k BETWEEN {key} AND {key} + 3"),
            _ => format!("INSERT OR REPLACE INTO # VALUES ({key}, {doc})"),
        };
        for name in ["t", "plain"] {
            db.run(&write.replace('#', name));
        }
        let ask =
            |db: &mut Db, name: &str| db.query(&format!("SELECT k FROM {name} WHERE {asked} ORDER BY k"));
        assert_eq!(ask(&mut db, "t"), ask(&mut db, "plain"), "{asked}");
        if asked.contains("? ") || asked.contains("?|") {
            let plan = plan(&mut db, &format!("SELECT k FROM t WHERE {asked}"));
            assert!(plan.contains("t_doc"), "{asked}: {plan}");
        }
    }
    assert_eq!(
        db.query("SELECT indexdef FROM pg_indexes WHERE indexname = 't_doc'"),
        "CREATE INDEX t_doc ON public.t USING gin (doc)"
    );
    // Nothing else is asked by it, and a function of arrays is none of JSON.
    for sql in ["SELECT k FROM t WHERE doc = '[1]'", "SELECT k FROM t WHERE array_has(doc, 'a')"] {
        assert!(!plan(&mut db, sql).contains("t_doc"), "{sql}");
    }
}

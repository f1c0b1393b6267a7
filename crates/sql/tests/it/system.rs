//! The system's tables answer what PostgreSQL's clients ask, in the clients' own words.

use crate::common::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE frag (key TEXT PRIMARY KEY, page_id INT NOT NULL, user_id INT, body TEXT NOT NULL DEFAULT '')
           WITH (prefix = 'frag:', value = 'body', ttl = '5 min', max_rows = 1000);
         CREATE INDEX frag_page ON frag (page_id);
         CREATE INDEX frag_user ON frag (user_id, page_id);
         CREATE TABLE visits (day DATE, page INT, hits INT NOT NULL DEFAULT 0, note VARCHAR(20) UNIQUE,
           PRIMARY KEY (day, page))",
    );
    db
}

/// Flyway refused to begin in a schema with the built-in table, and Alembic wanted to drop it: all of the catalogue
/// says that it is elsewhere.
#[test]
fn the_built_in_table_is_in_a_schema_of_its_own() {
    let mut db = db();
    for (sql, expected) in [
        (
            "SELECT nspname, pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
          WHERE relname = 'memcached'",
            "sqlcached,0",
        ),
        ("SELECT table_schema FROM information_schema.tables WHERE table_name = 'memcached'", "sqlcached"),
        (
            "SELECT table_schema FROM information_schema.columns WHERE table_name = 'memcached' LIMIT 1",
            "sqlcached",
        ),
        (
            "SELECT constraint_schema FROM information_schema.table_constraints WHERE table_name = 'memcached'",
            "sqlcached",
        ),
        ("SELECT schemaname FROM pg_tables WHERE tablename = 'memcached'", "sqlcached"),
        ("SELECT schemaname FROM pg_indexes WHERE tablename = 'memcached'", "sqlcached"),
        (
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'memcached%' AND relnamespace = 'public'::regnamespace",
            "0",
        ),
        ("SELECT 'memcached'::regclass::text, 'frag'::regclass::text", "sqlcached.memcached,frag"),
        ("SELECT 'sqlcached.memcached'::regclass = 'public.memcached'::regclass", "1"),
        ("SELECT to_regclass('sqlcached.frag') IS NULL, to_regclass('sqlcached.public.frag') IS NULL", "1,0"),
        (
            "SELECT to_regclass('other.public.frag') IS NULL, to_regclass('\"sqlcached\".\"public\".\"frag\"') IS NULL",
            "1,0",
        ),
        (
            "SELECT current_schemas(true), current_schemas(false)",
            "[\"pg_catalog\",\"public\",\"sqlcached\"],[\"public\"]",
        ),
        ("SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'sqlcached'", "1"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    for name in ["memcached", "public.memcached", "sqlcached.memcached", "\"sqlcached\".\"memcached\""] {
        assert_eq!(db.affected(&format!("INSERT INTO {name} (key, value) VALUES ('k', 'v')")), 1);
        assert_eq!(db.query(&format!("SELECT value FROM {name}")), "v");
        assert_eq!(db.affected(&format!("DELETE FROM {name}")), 1);
    }
    assert_eq!(db.state("SELECT * FROM sqlcached.frag"), "42P01");
}

#[test]
fn tables_are_found_with_and_without_schema() {
    let mut db = db();
    for from in ["pg_class", "pg_catalog.pg_class", "\"pg_catalog\".\"pg_class\"", "PG_CATALOG.PG_CLASS"] {
        let sql =
            format!("SELECT relname FROM {from} WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1");
        assert_eq!(db.query(&sql), "frag;visits", "{sql}");
    }
    assert_eq!(
        db.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"
        ),
        "frag;visits"
    );
    assert_eq!(db.query("SELECT count(*) FROM public.frag"), "0");
    assert_eq!(db.affected("INSERT INTO public.frag (key, page_id) VALUES ('a', 1)"), 1);
    for (sql, state) in [
        ("SELECT * FROM other.frag", "42P01"),
        ("SELECT * FROM information_schema.frag", "42P01"),
        ("SELECT * FROM pg_catalog.pg_frob", "42P01"),
        ("INSERT INTO pg_catalog.pg_class (oid) VALUES (1)", "42501"),
        ("UPDATE pg_class SET oid = 1", "42501"),
        ("DELETE FROM information_schema.tables", "42501"),
        ("DROP TABLE pg_class", "42501"),
        ("TRUNCATE sqlcached_tables", "42501"),
        ("ALTER TABLE pg_class SET (ttl = 1)", "42501"),
        ("CREATE INDEX i ON pg_class (oid)", "42501"),
        ("CREATE TABLE pg_mine (a INT)", "42939"),
        ("CREATE TABLE sqlcached_mine (a INT)", "42939"),
        ("CREATE TABLE information_schema_tables (a INT)", "42939"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
}

#[test]
fn columns_and_keys_are_described() {
    let mut db = db();
    let describe = "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull \
                    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
                    WHERE c.relname = 'visits' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    assert_eq!(db.query(describe), "day,date,1;page,integer,1;hits,integer,1;note,character varying(20),0");
    assert_eq!(
        db.query(
            "SELECT conname, contype, pg_get_constraintdef(oid), conkey FROM pg_constraint \
             WHERE conrelid = to_regclass('public.visits') ORDER BY contype"
        ),
        "visits_pkey,p,PRIMARY KEY (day, page),[1,2];visits_note_key,u,UNIQUE (note),[4]"
    );
    assert_eq!(
        db.query(
            "SELECT c.relname, i.indkey, pg_get_indexdef(i.indexrelid), pg_get_indexdef(i.indexrelid, 1, true) \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE i.indrelid = to_regclass('frag') ORDER BY 1"
        ),
        "frag_page,2,CREATE INDEX frag_page ON public.frag USING btree (page_id),page_id;\
         frag_pkey,1,CREATE UNIQUE INDEX frag_pkey ON public.frag USING hash (key),key;\
         frag_user,3 2,CREATE INDEX frag_user ON public.frag USING btree (user_id, page_id),user_id"
    );
    assert_eq!(
        db.query("SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE relname = 'frag'"),
        "ttl=5 min, max_rows=1000, prefix=frag:, value=body, key=key"
    );
    assert_eq!(
        db.query(
            "SELECT column_name, column_default, is_nullable, data_type, character_maximum_length \
             FROM information_schema.columns WHERE table_name = 'visits' ORDER BY ordinal_position"
        ),
        "day,NULL,NO,date,NULL;page,NULL,NO,integer,NULL;hits,0,NO,integer,NULL;note,NULL,YES,character varying,20"
    );
}

#[test]
fn numbers_stay_when_other_tables_come_and_go() {
    let mut db = db();
    let oids = "SELECT relname, oid FROM pg_class WHERE relname LIKE 'frag%' ORDER BY 1";
    let before = db.query(oids);
    db.run(
        "DROP TABLE visits; CREATE TABLE aaa (a INT PRIMARY KEY); CREATE INDEX frag_aaa ON aaa (a)"
            .replace("; ", ";\n")
            .as_str(),
    );
    db.run("DROP INDEX frag_aaa");
    assert_eq!(db.query(oids), before);
    assert_eq!(db.query("SELECT min(oid) >= 16384 FROM pg_class WHERE relnamespace = 2200"), "1");
}

#[test]
fn every_table_of_the_system_can_be_read() {
    let mut db = db();
    let tables = db.query(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_schema <> 'public'",
    );
    let mut count = 0;
    for table in tables.split(';') {
        db.query(&format!("SELECT * FROM {table}"));
        db.query(&format!("SELECT count(*) FROM {table}"));
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_lookup_finds_what_a_walk_finds() {
    let mut db = db();
    for (by_value, by_walk) in [
        ("oid = 1259", "oid + 0 = 1259"),
        ("oid = '1259'", "oid + 0 = 1259"),
        ("relname = 'frag'", "relname || '' = 'frag'"),
        ("oid = 1259.0", "oid + 0 = 1259"),
        ("relname = 5", "0"),
        ("oid = NULL", "0"),
        ("oid IN (1259, 1249)", "oid + 0 IN (1259, 1249)"),
    ] {
        let found = db.query(&format!("SELECT relname FROM pg_class WHERE {by_value} ORDER BY 1"));
        let walked = db.query(&format!("SELECT relname FROM pg_class WHERE {by_walk} ORDER BY 1"));
        assert_eq!(found, walked, "{by_value}");
    }
}

#[test]
fn calls_return_rows() {
    let mut db = db();
    for (sql, answer) in [
        ("SELECT unnest('{a,b}')", "a;b"),
        ("SELECT unnest('[1,2]') AS n, generate_subscripts('[1,2]', 1) AS i", "1,1;2,2"),
        ("SELECT unnest('{a,b,c}') a, unnest('{x}') b", "a,x;b,NULL;c,NULL"),
        ("SELECT x FROM unnest('{a,b}') AS t(x) WHERE x <> 'a'", "b"),
        ("SELECT t.x, t.n FROM unnest('{a,b}') WITH ORDINALITY AS t(x, n) ORDER BY n DESC", "b,2;a,1"),
        (
            "SELECT CASE WHEN t.oid != 0 THEN (SELECT u.oid::pg_catalog.regclass FROM pg_catalog.pg_class AS u, \
             pg_catalog.pg_partition_ancestors(t.oid) WITH ORDINALITY AS a(relid, depth) WHERE u.oid = a.relid \
             ORDER BY a.depth LIMIT 1) END AS parent FROM pg_catalog.pg_class t LIMIT 1",
            "NULL",
        ),
        ("SELECT s FROM generate_series(3, 1, -1) s", "3;2;1"),
        ("SELECT * FROM generate_series(1, 0)", ""),
        ("SELECT count(*) FROM pg_catalog.generate_series(1, 100000)", "100000"),
        ("SELECT option_name, option_value FROM pg_options_to_table('{a=1,b=x=y}')", "a,1;b,x=y"),
        (
            "SELECT (information_schema._pg_expandarray('5 7')).n, (information_schema._pg_expandarray('5 7')).x",
            "1,5;2,7",
        ),
        (
            "SELECT k.x, k.n FROM pg_index i, _pg_expandarray(i.indkey) k WHERE i.indrelid = to_regclass('visits') AND i.indisprimary",
            "1,1;2,2",
        ),
        (
            "SELECT a.attname, k.n FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, n) \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
             WHERE i.indexrelid = to_regclass('frag_user') ORDER BY k.n",
            "user_id,1;page_id,2",
        ),
        (
            "SELECT c.relname, unnest(i.indkey) AS attnum, generate_subscripts(i.indkey, 1) AS ord \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass('visits') ORDER BY 1, 3",
            "visits_note_key,4,0;visits_pkey,1,0;visits_pkey,2,1",
        ),
        (
            "SELECT array_upper('{a,b}', 1), array_lower('1 2', 1), array_length('[]', 1), cardinality('[]')",
            "2,0,NULL,0",
        ),
        (
            "SELECT array_to_string('{a,NULL,c}', '-', '?'), array_position('{a,b}', 'b'), array_remove('{a,b,a}', 'a')",
            "a-?-c,2,[\"b\"]",
        ),
    ] {
        assert_eq!(db.query(sql), answer, "{sql}");
    }
    assert_eq!(db.state("SELECT * FROM unnest()"), "42601");
    // The place is one of the text as it was written.
    let error = db.execute("SELECT unnest('{a}') AS a, nosuch FROM frag", &[]).unwrap_err();
    assert_eq!((error.state, error.position), ("42703", Some(28)));
}

#[test]
fn types_are_known_through_several_subqueries() {
    let mut db = db();
    let sql = "SELECT i.indisunique, x.flags FROM pg_catalog.pg_index i LEFT OUTER JOIN (\
               SELECT q.id, array_agg(q.flag ORDER BY q.ord) AS flags FROM (\
               SELECT k.id, k.attnum = 0 AS flag, k.ord FROM (\
               SELECT indexrelid AS id, unnest(indkey) AS attnum, generate_subscripts(indkey, 1) AS ord FROM pg_index\
               ) AS k) AS q GROUP BY q.id) AS x ON x.id = i.indexrelid \
               WHERE i.indexrelid = 'frag_user'::regclass";
    assert_eq!(db.query(sql), "0,[false,false]");
    let described = db.executor.describe(&sql::Session::new(), sql, &[]).expect("a description");
    let types: Vec<String> =
        described.columns.expect("columns").iter().map(|column| column.ty.sql_name()).collect();
    assert_eq!(types, ["boolean", "boolean[]"]);
}

#[test]
fn conditions_expressions_and_views_are_described() {
    let mut db = db();
    db.run(
        "CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price INT CHECK (price >= 0),
           upper_name TEXT GENERATED ALWAYS AS (upper(name)) STORED);
         CREATE INDEX item_lower ON item (lower(name), id);
         ALTER TABLE item ADD COLUMN note TEXT;
         CREATE INDEX item_note ON item (note);
         CREATE VIEW cheap AS SELECT id FROM item WHERE price < 10",
    );
    for (sql, answer) in [
        (
            "SELECT attname, attnum, attgenerated FROM pg_attribute WHERE attrelid = 'item'::regclass ORDER BY attnum",
            "id,1,;name,2,;price,3,;upper_name,4,s;note,5,",
        ),
        (
            "SELECT c.relname, i.indkey FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE i.indrelid = 'item'::regclass ORDER BY 1",
            "item_lower,0 1;item_note,5;item_pkey,1",
        ),
        (
            "SELECT pg_get_indexdef('item_lower'::regclass, 1, true), pg_get_indexdef('item_note'::regclass, 1, true)",
            "lower(name),note",
        ),
        (
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'item'::regclass AND contype = 'c'",
            "CHECK (price >= 0)",
        ),
        (
            "SELECT is_generated, generation_expression, column_default FROM information_schema.columns \
             WHERE table_name = 'item' AND column_name = 'upper_name'",
            "ALWAYS,upper(name),NULL",
        ),
        ("SELECT relkind, pg_table_is_visible(oid) FROM pg_class WHERE relname = 'cheap'", "v,1"),
        ("SELECT pg_get_viewdef('cheap'::regclass) = definition FROM pg_views", "1"),
        ("SELECT table_name FROM information_schema.views", "cheap"),
    ] {
        assert_eq!(db.query(sql), answer, "{sql}");
    }
}

#[test]
fn numbered_columns_tell_that_they_are() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE one (id SERIAL PRIMARY KEY, a TEXT);\n\
         CREATE TABLE two (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a TEXT)",
    );
    let reflected = "SELECT a.attname, a.attidentity, CASE WHEN a.attidentity <> '' THEN (SELECT s.seqmax FROM pg_sequence s
        WHERE s.seqrelid = pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass::oid) END
        FROM pg_attribute a WHERE a.attrelid = '{}'::regclass AND a.attnum > 0 ORDER BY a.attnum";
    assert_eq!(db.query(&reflected.replace("{}", "one")), "id,,NULL;a,,NULL");
    assert_eq!(db.query(&reflected.replace("{}", "two")), format!("id,a,{};a,,NULL", i64::MAX));
    assert_eq!(
        db.query(
            "SELECT table_name, column_name, is_identity, identity_generation FROM information_schema.columns \
             WHERE table_schema = 'public' AND table_name IN ('one', 'two') ORDER BY 1, ordinal_position"
        ),
        "one,id,NO,NULL;one,a,NO,NULL;two,id,YES,ALWAYS;two,a,NO,NULL"
    );
    assert_eq!(
        db.query("SELECT column_default FROM information_schema.columns WHERE column_name = 'id' AND table_name = 'one'"),
        "nextval('one_id_seq'::regclass)"
    );
    db.run("CREATE INDEX one_a ON one (a DESC, id)");
    assert_eq!(db.query("SELECT indoption FROM pg_index WHERE indexrelid = 'one_a'::regclass"), "3 0");
    assert_eq!(
        db.query(
            "SELECT string_agg(attname, ',') FROM pg_attribute a JOIN pg_index i ON a.attrelid = i.indrelid \
             AND a.attnum = ANY (i.indkey) WHERE i.indexrelid = 'one_a'::regclass"
        ),
        "id,a"
    );
    assert_eq!(
        db.query("SELECT pg_get_serial_sequence('one', 'id'), pg_get_serial_sequence('one', 'a')"),
        "public.one_id_seq,NULL"
    );
}

#[test]
fn settings_that_never_change_are_in_pg_settings() {
    let mut db = Db::new();
    assert_eq!(
        db.query(
            "SELECT name, setting, vartype, context FROM pg_settings \
             WHERE name IN ('max_index_keys', 'max_identifier_length', 'server_encoding') ORDER BY name"
        ),
        "max_identifier_length,63,integer,internal;max_index_keys,32,integer,internal;server_encoding,UTF8,string,internal"
    );
    assert_eq!(db.query("SELECT current_setting('max_index_keys')"), "32");
}

/// An index of some rows shows its condition, by which tools make it again. SQLAlchemy found none, and ActiveRecord
/// found parentheses around a column.
#[test]
fn indexes_show_their_conditions() {
    let mut db = db();
    db.run(
        "CREATE TABLE part (id INT PRIMARY KEY, due DATE, shown BOOLEAN);
CREATE INDEX part_due ON part (due DESC) WHERE due IS NOT NULL;
CREATE INDEX part_shown ON part (due) WHERE shown",
    );
    let sql = "SELECT i.indexrelid::regclass::text, pg_get_expr(i.indpred, i.indrelid) FROM pg_index i
               WHERE i.indrelid = 'part'::regclass ORDER BY 1";
    assert_eq!(db.query(sql), "part_due,(due IS NOT NULL);part_pkey,NULL;part_shown,shown");
    let sql = "SELECT pg_get_indexdef('part_due'::regclass), pg_get_indexdef('part_shown'::regclass)";
    assert_eq!(
        db.query(sql),
        "CREATE INDEX part_due ON public.part USING btree (due DESC) WHERE (due IS NOT NULL),\
         CREATE INDEX part_shown ON public.part USING btree (due) WHERE shown"
    );
}

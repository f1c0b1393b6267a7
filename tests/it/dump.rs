//! `pg_dump`, unchanged: what it writes, psql makes again in an empty daemon, and the next dump is the same text.

use crate::daemon::{Folder, run};
use crate::drivers::place::{Place, SqlDaemon};

/// Of everything that a dump has: types, schemas, sequences, tables, indexes, constraints, views, comments, grants.
const SCHEMA: &str = r#"
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s');
    CREATE SCHEMA shop;
    CREATE SEQUENCE numbers INCREMENT BY 5 START WITH 10;
    CREATE TABLE customer (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(120) NOT NULL, email text UNIQUE,
        m mood DEFAULT 'ok', price numeric(10,2) CHECK (price > 0), tags text[], d jsonb,
        at timestamptz(3) DEFAULT now(), low text GENERATED ALWAYS AS (lower(name)) STORED);
    CREATE TABLE orders (
        id serial PRIMARY KEY, customer_id bigint REFERENCES customer (id) ON DELETE CASCADE,
        n int DEFAULT nextval('numbers'), note text DEFAULT 'x''y', b bytea, dt date, tm time, ts timestamp,
        iv interval, u uuid, f double precision, s smallint, ok boolean DEFAULT true NOT NULL);
    CREATE TABLE shop.item (a int, b int, "order" text, PRIMARY KEY (b, a)) WITH (ttl = '1 day');
    CREATE TABLE frag (page int, "the Part" text, body text, who text DEFAULT current_user, PRIMARY KEY (page, "the Part"))
        WITH (prefix = 'frag:', value = 'body', ttl = '10 min');
    CREATE TABLE "Odd Name" ("Key" int, "order" text, UNIQUE ("order", "Key"));
    CREATE INDEX orders_customer ON orders (customer_id);
    CREATE INDEX orders_low ON orders (lower(note), dt DESC);
    CREATE UNIQUE INDEX orders_part ON orders (n) WHERE ok;
    CREATE INDEX item_order ON shop.item ("order" COLLATE "C");
    CREATE VIEW big AS SELECT o.id, c.name, c.m = 'ok'::mood AS fine
        FROM orders o JOIN customer c ON c.id = o.customer_id WHERE o.n > 3;
    CREATE VIEW a_view_of_a_view (x, "Y") AS SELECT id, name FROM big;
    CREATE VIEW shop.v AS SELECT a, "order" FROM shop.item;
    CREATE MATERIALIZED VIEW counted WITH (key = 'customer_id', refresh = '1 h', refresh_on = 'orders, customer') AS
        SELECT customer_id, count(*) AS bought, max(n) AS most FROM orders GROUP BY customer_id;
    CREATE INDEX counted_most ON counted (most);
    CREATE MATERIALIZED VIEW shop.a_copy (x) AS SELECT x FROM a_view_of_a_view;
    COMMENT ON MATERIALIZED VIEW counted IS 'who buys';
    GRANT SELECT ON counted TO reader;
    COMMENT ON TABLE customer IS 'people';
    COMMENT ON COLUMN customer.name IS 'what they are called';
    COMMENT ON INDEX orders_low IS 'for search';
    COMMENT ON VIEW big IS 'it''s the big one';
    GRANT SELECT ON customer, big TO reader;
    GRANT SELECT (id, n), UPDATE (n) ON orders TO reader;
    GRANT INSERT ON shop.item TO reader WITH GRANT OPTION;
"#;

const ROWS: &str = r#"
    INSERT INTO customer (name, email, m, price, tags, d, at)
        VALUES ('Ann', 'a@x', 'sad', 1.50, '{a,"b c"}', '{"a": [1, 2]}', '2026-01-02 03:04:05.123+00');
    INSERT INTO orders (customer_id, n, note, b, dt, tm, ts, iv, u, f, s)
        VALUES (1, 2, E'multi\nline\t\\', '\x00ff', '2026-01-01', '12:34:56', '2026-01-01 00:00:00.5', '1 day 02:00',
                'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1.5, 3);
    INSERT INTO shop.item VALUES (1, 2, NULL);
    INSERT INTO frag (page, "the Part", body) VALUES (17, 'head', 'x');
    SELECT nextval('numbers'), nextval('numbers');
"#;

/// A daemon with roles. Its superuser is called like the user who runs it.
fn start(folder: &Folder, name: &str) -> (SqlDaemon, String) {
    let roles = folder.0.join(name).display().to_string();
    let server = SqlDaemon::start(&["--roles-file", &roles]);
    let (code, user, _) = run(std::process::Command::new("id").arg("-un"));
    assert_eq!(code, Some(0));
    (server, user.trim().to_owned())
}

fn psql(place: &Place, user: &str, script: &str) {
    let mut psql = place.program("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", user, "-c", "SET client_min_messages = warning"]);
    let (code, out, error) = run(psql.args(["-f", script]));
    assert_eq!((code, error.as_str()), (Some(0), ""), "{script}: {out}");
}

/// What `pg_dump` writes, but for the word that it makes up each time.
fn dump(place: &Place, user: &str, flags: &[&str]) -> String {
    let (code, out, error) = run(place.program("pg_dump").args(["-U", user]).args(flags));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let made_up = |line: &&str| line.starts_with("\\restrict") || line.starts_with("\\unrestrict");
    out.lines().filter(|line| !made_up(line)).collect::<Vec<_>>().join("\n")
}

/// `pg_dump` stopped at its first `LOCK TABLE`, and what it read of views and defaults could not be run again.
#[test]
fn what_is_dumped_is_made_again() {
    let folder = Folder::new();
    let script = |name: &str, text: &str| folder.write(name, text).display().to_string();
    let (first, user) = start(&folder, "roles-1");
    psql(&first.place, &user, &script("role.sql", "CREATE ROLE reader"));
    psql(&first.place, &user, &script("schema.sql", SCHEMA));
    psql(&first.place, &user, &script("rows.sql", ROWS));
    for (at, flags) in [&["--schema-only"][..], &[]].into_iter().enumerate() {
        let dumped = dump(&first.place, &user, flags);
        for part in [
            "CREATE TYPE public.mood",
            "prefix='frag:'",
            "CREATE VIEW public.big",
            "CREATE MATERIALIZED VIEW public.counted",
            "COMMENT ON MATERIALIZED VIEW",
            "GRANT SELECT(id)",
            "COMMENT ON INDEX",
        ] {
            assert!(dumped.contains(part), "{part}: {dumped}");
        }
        let (second, _) = start(&folder, &format!("roles-2-{at}"));
        psql(&second.place, &user, &script("role.sql", "CREATE ROLE reader"));
        psql(&second.place, &user, &script("dump.sql", &dumped));
        assert_eq!(dump(&second.place, &user, flags), dumped, "{flags:?}");
        if flags.is_empty() {
            let more = "DO 'BEGIN CREATE TABLE t (a INT); END';\n\
                INSERT INTO orders (customer_id) VALUES (1);\n\
                SELECT 1 / (id = 2 AND n = 20)::int FROM orders WHERE note = 'x''y';";
            psql(&second.place, &user, &script("more.sql", more));
        }
    }
}

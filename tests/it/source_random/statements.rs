//! What happens at the sources, and what users do here meanwhile.

/// A statement with random numbers: `{id}` and `{other}` are keys from 1 to `{keys}`, `{y}` and `{z}` partitions, `{n}`
/// is any.
pub(super) type Statement = &'static str;

/// The tables of the source that are followed, with their keys and other columns.
pub(super) const TABLES: &[(&str, &[&str])] =
    &[("plain", &["id"]), ("part", &["id", "y"]), ("chars", &["k"])];

/// A source, its statements, and what tables here may do with it.
pub(super) struct Kind {
    pub(super) changes: &'static [Statement],
    pub(super) definitions: &'static [Statement],
    pub(super) modes: &'static [Mode],
}

/// How a table here gets its rows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    /// Clients store them, and changes remove them.
    Page,
    /// Clients store them, and changes write them.
    Updated,
    /// A miss asks for them.
    Through,
    /// All of them are copied.
    Mirror,
}

pub(super) const POSTGRES: Kind = Kind {
    changes: &[
        "INSERT INTO plain VALUES ({id}, 'i{n}', 'w{n}', {n}, 'sad') ON CONFLICT (id) DO UPDATE SET v = 'c{n}'",
        "UPDATE plain SET v = 'u{n}', n = {n} WHERE id = {id}",
        "UPDATE plain SET id = {other} WHERE id = {id} AND NOT EXISTS (SELECT FROM plain WHERE id = {other})",
        "DELETE FROM plain WHERE id = {id}",
        "UPDATE plain SET mood = 'ok', n = n + 1 WHERE id BETWEEN {id} AND {id} + {y}",
        "INSERT INTO part VALUES ({id}, {y}, 'i{n}', {n}) ON CONFLICT (id, y) DO UPDATE SET v = 'c{n}'",
        "UPDATE part SET v = 'u{n}' WHERE id = {id}",
        "UPDATE part SET y = {z} WHERE id = {id} AND y = {y} AND NOT EXISTS (SELECT FROM part WHERE id = {id} AND y = {z})",
        "DELETE FROM part WHERE id = {id}",
        "INSERT INTO chars VALUES ('{id}', 'i{n}', {n}) ON CONFLICT (k) DO UPDATE SET v = 'c{n}'",
        "UPDATE chars SET v = 'u{n}' WHERE k = '{id}'",
        "UPDATE chars SET k = '{other}' WHERE k = '{id}' AND NOT EXISTS (SELECT FROM chars WHERE k = '{other}')",
        "BEGIN; UPDATE plain SET v = 'never'; UPDATE part SET v = 'never'; ROLLBACK",
        "BEGIN; UPDATE plain SET v = 'a{n}' WHERE id = {id}; SAVEPOINT s; DELETE FROM part; ROLLBACK TO s; COMMIT",
        "BEGIN; UPDATE plain SET v = 'p{n}' WHERE id = {id}; PREPARE TRANSACTION 'p'; UPDATE part SET v = 'q{n}' WHERE id = {id}; COMMIT PREPARED 'p'",
        "BEGIN; DELETE FROM plain WHERE id = {id}; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'",
    ],
    definitions: &[
        "TRUNCATE part_{y}",
        "TRUNCATE plain; INSERT INTO plain SELECT g, 'x{n}', 'w', g, 'sad' FROM generate_series(1, {keys}) g",
        "ALTER TABLE part DETACH PARTITION part_{y}",
        "ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "ALTER TABLE part DETACH PARTITION part_{y}; UPDATE part_{y} SET v = 'd{n}'; ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "DROP TABLE part_{y}",
        "CREATE TABLE part_{y} (id INT NOT NULL, y INT NOT NULL, v TEXT, n INT, PRIMARY KEY (id, y)); INSERT INTO part_{y} VALUES ({id}, {y}, 'n{n}', {n}); ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "ALTER TABLE part_{y} SET UNLOGGED; UPDATE part SET v = 'l{n}'; ALTER TABLE part_{y} SET LOGGED",
        "ALTER TABLE part_{y} REPLICA IDENTITY FULL",
        "ALTER TABLE part_{y} REPLICA IDENTITY DEFAULT",
        "ALTER TABLE plain REPLICA IDENTITY FULL",
        "ALTER TABLE plain REPLICA IDENTITY DEFAULT",
        "CREATE TABLE child () INHERITS (plain); INSERT INTO child VALUES ({id} + 100, 'c', 'w', 1, 'sad'); DROP TABLE child",
        "ALTER TABLE plain ALTER n TYPE INT USING n + 1",
        "ALTER TABLE part ALTER v TYPE TEXT USING v || '!'",
        "ALTER TABLE chars ALTER v TYPE TEXT USING upper(v)",
        "ALTER TABLE plain DROP n; ALTER TABLE plain ADD n INT DEFAULT {n}",
        "ALTER TABLE plain RENAME v TO t; ALTER TABLE plain RENAME w TO v; ALTER TABLE plain RENAME t TO w",
        "BEGIN; ALTER TABLE plain RENAME TO t; ALTER TABLE twin RENAME TO plain; ALTER TABLE t RENAME TO twin; COMMIT",
        "ALTER TABLE plain RENAME TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; ALTER TABLE t RENAME TO plain",
        "BEGIN; ALTER TABLE plain RENAME TO t; DELETE FROM t WHERE id = {id}; ALTER TABLE t RENAME TO plain; COMMIT",
        "ALTER TABLE chars SET SCHEMA aside; UPDATE aside.chars SET v = 's{n}' WHERE k = '{id}'; ALTER TABLE aside.chars SET SCHEMA public",
        "ALTER TABLE part RENAME TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; ALTER TABLE t RENAME TO part",
        "BEGIN; ALTER TABLE plain RENAME TO t; ALTER TABLE twin RENAME TO plain; UPDATE plain SET v = 'w{n}'; ALTER TABLE plain RENAME TO twin; ALTER TABLE t RENAME TO plain; COMMIT",
        "ALTER SCHEMA public RENAME TO p; UPDATE p.plain SET v = 'p{n}' WHERE id = {id}; UPDATE p.part SET v = 'p{n}' WHERE id = {id}; ALTER SCHEMA p RENAME TO public",
        "ALTER TABLE plain RENAME v TO t; UPDATE plain SET t = 't{n}' WHERE id = {id}; ALTER TABLE plain RENAME t TO v",
        "ALTER TABLE part RENAME id TO i; UPDATE part SET v = 'k{n}' WHERE i = {id}; ALTER TABLE part RENAME i TO id",
        "CREATE TABLE part_rest PARTITION OF part DEFAULT; INSERT INTO part VALUES ({id}, 9, 'o{n}', {n}); UPDATE part SET y = {y} WHERE y = 9 AND NOT EXISTS (SELECT FROM part WHERE id = {id} AND y = {y}); DROP TABLE part_rest",
        "ALTER TABLE part DETACH PARTITION part_{y}; ALTER TABLE part_{y} RENAME TO part_old; CREATE TABLE part_{y} PARTITION OF part FOR VALUES IN ({y}) PARTITION BY RANGE (id); CREATE TABLE part_{y}_low PARTITION OF part_{y} FOR VALUES FROM (MINVALUE) TO (20); CREATE TABLE part_{y}_high PARTITION OF part_{y} DEFAULT; INSERT INTO part SELECT * FROM part_old; DROP TABLE part_old",
        "TRUNCATE part_{y}_low",
        "ALTER PUBLICATION cache SET TABLE plain WHERE (n > 1000), twin, part, chars; UPDATE plain SET v = 'f{n}'; ALTER PUBLICATION cache SET TABLE plain, twin, part, chars",
        "ALTER PUBLICATION cache SET TABLE plain (id, n), twin, part, chars; UPDATE plain SET v = 'l{n}'; ALTER PUBLICATION cache SET TABLE plain, twin, part, chars",
        "ALTER PUBLICATION cache SET (publish = 'insert'); DELETE FROM plain WHERE id = {id}; ALTER PUBLICATION cache SET (publish = 'insert, update, delete, truncate')",
        "ALTER PUBLICATION cache SET (publish_via_partition_root = false); UPDATE part SET v = 'b{n}'; ALTER PUBLICATION cache SET (publish_via_partition_root = true)",
        "ALTER PUBLICATION cache RENAME TO hidden; DELETE FROM plain WHERE id = {id}; ALTER PUBLICATION hidden RENAME TO cache",
        "ALTER TABLE plain ALTER id TYPE BIGINT",
        "ALTER TABLE plain ALTER id TYPE INT",
        "ALTER TABLE chars ALTER k TYPE TEXT",
        "ALTER TABLE chars ALTER k TYPE CHAR(6)",
        "ALTER PUBLICATION cache DROP TABLE plain; UPDATE plain SET v = 'h{n}'; ALTER PUBLICATION cache ADD TABLE plain",
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'; ALTER TYPE mood RENAME VALUE 'ok' TO 'sad'; ALTER TYPE mood RENAME VALUE 'low' TO 'ok'",
        "VACUUM FULL plain",
    ],
    modes: &[Mode::Page, Mode::Updated, Mode::Through, Mode::Mirror],
};

pub(super) const MARIADB: Kind = Kind {
    changes: &[
        "INSERT INTO plain VALUES ({id}, 'i{n}', 'w{n}', {n}, 'sad') ON DUPLICATE KEY UPDATE v = 'c{n}'",
        "UPDATE plain SET v = 'u{n}', n = {n} WHERE id = {id}",
        "UPDATE IGNORE plain SET id = {other} WHERE id = {id}",
        "DELETE FROM plain WHERE id = {id}",
        "REPLACE INTO part VALUES ({id}, {y}, 'r{n}', {n})",
        "UPDATE part SET v = 'u{n}' WHERE id = {id}",
        "UPDATE IGNORE part SET y = {z} WHERE id = {id} AND y = {y}",
        "DELETE FROM part WHERE id = {id}",
        "INSERT INTO chars VALUES ('{id}', 'i{n}', {n}) ON DUPLICATE KEY UPDATE v = 'c{n}'",
        "UPDATE chars SET v = 'u{n}' WHERE k = '{id}'",
        "UPDATE IGNORE chars SET k = '{other}' WHERE k = '{id}'",
        "BEGIN; UPDATE plain SET v = 'never'; UPDATE part SET v = 'never'; ROLLBACK",
        "BEGIN; UPDATE plain SET v = 'a{n}' WHERE id = {id}; SAVEPOINT s; DELETE FROM part; ROLLBACK TO s; COMMIT",
        "XA START 'x'; UPDATE plain SET v = 'p{n}' WHERE id = {id}; XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'",
    ],
    definitions: &[
        "TRUNCATE plain",
        "ALTER TABLE part TRUNCATE PARTITION part_{y}",
        "ALTER TABLE part DROP PARTITION part_{y}",
        "ALTER TABLE part ADD PARTITION (PARTITION part_{y} VALUES IN ({y}))",
        "CREATE TABLE spare LIKE part; ALTER TABLE spare REMOVE PARTITIONING; INSERT INTO spare VALUES ({id}, {y}, 'e{n}', {n}); ALTER TABLE part EXCHANGE PARTITION part_{y} WITH TABLE spare; DROP TABLE spare",
        "ALTER TABLE plain DROP COLUMN n; ALTER TABLE plain ADD COLUMN n INT DEFAULT {n}",
        "ALTER TABLE plain RENAME COLUMN v TO t; ALTER TABLE plain RENAME COLUMN w TO v; ALTER TABLE plain RENAME COLUMN t TO w",
        "RENAME TABLE plain TO t, twin TO plain, t TO twin",
        "RENAME TABLE plain TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; RENAME TABLE t TO plain",
        "RENAME TABLE plain TO t, twin TO plain; UPDATE plain SET v = 'w{n}'; RENAME TABLE plain TO twin, t TO plain",
        "CREATE DATABASE IF NOT EXISTS aside; RENAME TABLE chars TO aside.chars; UPDATE aside.chars SET v = 's{n}' WHERE k = '{id}'; RENAME TABLE aside.chars TO chars",
        "ALTER TABLE plain RENAME COLUMN v TO t; UPDATE plain SET t = 't{n}' WHERE id = {id}; ALTER TABLE plain RENAME COLUMN t TO v",
        "ALTER TABLE part REORGANIZE PARTITION part_{y} INTO (PARTITION part_{y} VALUES IN ({y}))",
        "ALTER TABLE plain MODIFY id BIGINT",
        "ALTER TABLE plain MODIFY id INT",
        "ALTER TABLE chars MODIFY k VARCHAR(9)",
        "ALTER TABLE chars MODIFY k CHAR(6)",
        "ALTER TABLE plain MODIFY mood ENUM('ok', 'sad')",
        "OPTIMIZE TABLE plain",
        "FLUSH BINARY LOGS",
    ],
    modes: &[Mode::Page, Mode::Through],
};

/// What users do here meanwhile. Each stream learns what follows it from definitions.
pub(super) const HERE: &[Statement] = &[
    "CREATE TABLE other (id INT PRIMARY KEY, v TEXT) WITH (source = 'src', depends = 'plain(id)')",
    "DROP TABLE other",
    "ALTER TABLE page_plain RENAME TO moved; SELECT pg_sleep(0.05); ALTER TABLE moved RENAME TO page_plain",
    "ALTER TABLE through_plain RESET (query); SELECT pg_sleep(0.1); ALTER TABLE through_plain SET (query = '{query}')",
];

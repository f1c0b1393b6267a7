//! What the checker's sessions read and write.

/// Keys run from 1 to this: few, so that they are met again.
pub(super) const KEYS: i32 = 6;

/// A team's tables. `item` has the usual identity, the others tell all columns.
pub(super) const TABLES: &str = "
    CREATE TABLE item (id INT PRIMARY KEY, grp INT, name TEXT, ver BIGINT);
    CREATE TABLE note (id INT PRIMARY KEY, item_id INT, ver BIGINT);
    ALTER TABLE note REPLICA IDENTITY FULL;
    CREATE TABLE part (id INT, y INT, ver BIGINT, PRIMARY KEY (id, y)) PARTITION BY LIST (y);
    CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
    CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
    CREATE TABLE part_3 PARTITION OF part FOR VALUES IN (3, 4, 5, 6);
    ALTER TABLE part_2 REPLICA IDENTITY FULL;
    CREATE TABLE other (id INT PRIMARY KEY, grp INT, ver BIGINT);
    CREATE TABLE parent (id INT, grp INT, ver BIGINT);
    CREATE TABLE child () INHERITS (parent);
    ALTER TABLE parent REPLICA IDENTITY FULL;
    ALTER TABLE child REPLICA IDENTITY FULL;
    CREATE VIEW seen AS SELECT i.id, i.grp, i.ver, n.ver AS note FROM item i LEFT JOIN note n ON n.item_id = i.id;
    CREATE VIEW turned AS SELECT id, grp, ver FROM item;
    INSERT INTO item SELECT n, n % 3 + 1, 'item ' || n, 1 FROM generate_series(1, 6) n;
    INSERT INTO other SELECT n, n % 3 + 1, 1000 FROM generate_series(1, 6) n;
    INSERT INTO note SELECT n, nullif(n % 4, 0), 1 FROM generate_series(1, 6) n;
    INSERT INTO part SELECT n, n, 1 FROM generate_series(1, 6) n;
    INSERT INTO child SELECT n, n, 1 FROM generate_series(1, 6) n";

/// What is read, with `$1` for a key.
pub(super) const READS: &[&str] = &[
    "SELECT id, grp, name, ver FROM item WHERE id = $1::int",
    "SELECT id, ver FROM item WHERE id = $1::bigint ORDER BY id",
    "SELECT id, ver FROM item WHERE id = ANY($1::int[]) ORDER BY id",
    "SELECT id, ver FROM item WHERE id IN ($1::int, 2, 5) ORDER BY id",
    "SELECT id, ver FROM item WHERE id = $1::int OR id = 3 ORDER BY id",
    "SELECT count(*), max(ver) FROM item WHERE grp = $1::int",
    "SELECT grp, count(*), max(ver) FROM item GROUP BY grp ORDER BY grp",
    "SELECT id, item_id, ver FROM note WHERE item_id = $1::int ORDER BY id",
    "SELECT id, item_id, ver FROM note WHERE item_id IS NULL ORDER BY id",
    "SELECT id, ver FROM note WHERE item_id IS NULL OR item_id = $1::int ORDER BY id",
    "SELECT i.id, i.ver, n.id, n.ver FROM item i JOIN note n ON n.item_id = i.id WHERE i.id = $1::int ORDER BY n.id",
    "SELECT i.id, i.ver, n.id, n.ver FROM item i LEFT JOIN note n ON n.item_id = i.id AND n.id = $1::int ORDER BY i.id, n.id",
    "SELECT i.id, n.id, n.ver FROM item i LEFT JOIN note n ON n.item_id = i.id WHERE i.id = $1::int ORDER BY n.id",
    "SELECT i.id, n.id FROM note n LEFT JOIN item i ON n.item_id = i.id AND i.id = $1::int ORDER BY n.id",
    "SELECT id, (SELECT max(n.ver) FROM note n WHERE n.item_id = i.id) FROM item i WHERE i.id = $1::int",
    "SELECT id, ver FROM item i WHERE NOT EXISTS (SELECT FROM note n WHERE n.item_id = i.id AND n.item_id = $1::int) ORDER BY id",
    "SELECT id, y, ver FROM part WHERE id = $1::int ORDER BY y",
    "SELECT id, y, ver FROM part WHERE y = $1::int ORDER BY id",
    "SELECT id, y, ver FROM part WHERE id = $1::int AND y = 2 ORDER BY id",
    "SELECT count(*), max(ver) FROM part",
    "SELECT id, ver FROM part_2 WHERE id = $1::int",
    "SELECT id, grp, ver FROM parent WHERE id = $1::int ORDER BY id, ver",
    "SELECT id, ver FROM ONLY parent ORDER BY id, ver",
    "SELECT id, grp, ver, note FROM seen WHERE id = $1::int ORDER BY note",
    "SELECT id, grp, ver FROM turned WHERE id = $1::int",
    "SELECT count(*), max(ver) FROM turned",
    "WITH w AS (SELECT id, ver FROM item WHERE id = $1::int) SELECT w.id, w.ver, o.ver FROM w JOIN other o USING (id)",
    "SELECT id, ver FROM item WHERE id = $1::int UNION ALL SELECT id, ver FROM other WHERE id = $1::int ORDER BY 1, 2",
    "SELECT id, ver FROM other ORDER BY ver DESC, id LIMIT 2",
    "SELECT id, rank() OVER (ORDER BY ver DESC, id) FROM item WHERE grp = $1::int ORDER BY id",
    // Long enough that who misses it waits for another session's answer.
    "SELECT i.id, i.ver, count(*) FROM item i, generate_series(1, 20000) n WHERE i.id = $1::int GROUP BY i.id, i.ver",
    "SELECT i.id, i.ver, count(*) FROM item i, generate_series(1, 20000) n WHERE i.grp = $1::int GROUP BY i.id, i.ver ORDER BY i.id",
];

/// What is written: `{id}`, `{to}` and `{y}` are keys.
pub(super) const WRITES: &[&str] = &[
    "UPDATE item SET ver = ver + 1 WHERE id = {id}",
    "UPDATE item SET ver = ver + 1 WHERE id = {id}",
    "UPDATE item SET grp = {to}, ver = ver + 1 WHERE id = {id}",
    "UPDATE item SET grp = NULL, ver = ver + 1 WHERE id = {id}",
    "UPDATE item SET id = {to} WHERE id = {id} AND NOT EXISTS (SELECT FROM item WHERE id = {to})",
    "DELETE FROM item WHERE id = {id}",
    "INSERT INTO item VALUES ({id}, {to}, 'new', 1) ON CONFLICT (id) DO UPDATE SET ver = item.ver + 1",
    "INSERT INTO note VALUES ({id}, {to}, 1) ON CONFLICT (id) DO UPDATE SET item_id = {y}, ver = note.ver + 1",
    "UPDATE note SET item_id = {to}, ver = ver + 1 WHERE item_id = {id}",
    "UPDATE note SET item_id = NULL WHERE item_id = {id}",
    "UPDATE note SET item_id = {to} WHERE item_id IS NULL",
    "DELETE FROM note WHERE id = {id}",
    "UPDATE part SET ver = ver + 1 WHERE id = {id}",
    "UPDATE part SET y = {y} WHERE id = {id} AND NOT EXISTS (SELECT FROM part WHERE id = {id} AND y = {y})",
    "INSERT INTO part VALUES ({id}, {y}, 1) ON CONFLICT DO NOTHING",
    "DELETE FROM part WHERE id = {id}",
    "UPDATE part_2 SET ver = ver + 1",
    "UPDATE parent SET ver = ver + 1 WHERE id = {id}",
    "INSERT INTO parent VALUES ({id}, {to}, 1)",
    "UPDATE child SET id = {to}, ver = ver + 1 WHERE id = {id}",
    "DELETE FROM ONLY parent",
    "UPDATE other SET ver = ver + 1 WHERE id = {id}",
    "UPDATE item SET ver = ver + 1",
    "BEGIN; UPDATE item SET ver = ver + 100 WHERE id = {id}; ROLLBACK",
    "BEGIN; UPDATE item SET ver = ver + 1 WHERE id = {id}; SAVEPOINT s; DELETE FROM note; ROLLBACK TO s; UPDATE note SET ver = ver + 1 WHERE id = {to}; COMMIT",
    "BEGIN; SAVEPOINT s; UPDATE item SET ver = ver + 1 WHERE id = {id}; RELEASE s; UPDATE other SET ver = ver + 1 WHERE id = {to}; COMMIT",
    "BEGIN; UPDATE part SET ver = ver + 1 WHERE id = {id}; PREPARE TRANSACTION '{team}'; COMMIT PREPARED '{team}'",
    "BEGIN; DELETE FROM item WHERE id = {id}; PREPARE TRANSACTION '{team}'; ROLLBACK PREPARED '{team}'",
    "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE item SET ver = ver + 1 WHERE id = {id}; COMMIT",
    "DO $$ BEGIN UPDATE item SET ver = ver + 1 WHERE id = {id}; UPDATE note SET ver = ver + 1 WHERE item_id = {id}; END $$",
    "WITH w AS (DELETE FROM note WHERE id = {id} RETURNING item_id) UPDATE item SET ver = ver + 1 WHERE id IN (SELECT item_id FROM w)",
];

/// What empties tables. It changes definitions, too, so that all that was kept is dropped soon after.
pub(super) const EMPTYING: &[&str] = &[
    "TRUNCATE note",
    "TRUNCATE part_3",
    "TRUNCATE part; INSERT INTO part SELECT n, n, 1 FROM generate_series(1, 6) n",
    "TRUNCATE parent",
];

/// What changes answers without a change of a row.
pub(super) const DEFINITIONS: &[&str] = &[
    "CREATE OR REPLACE VIEW turned AS SELECT id, grp, ver FROM other",
    "CREATE OR REPLACE VIEW turned AS SELECT id, grp, ver FROM item",
    "ALTER TABLE part DETACH PARTITION part_2",
    "ALTER TABLE part ATTACH PARTITION part_2 FOR VALUES IN (2)",
    "ALTER TABLE part ALTER ver TYPE BIGINT USING ver + 1",
    "ALTER TABLE item REPLICA IDENTITY FULL",
    "ALTER TABLE item REPLICA IDENTITY DEFAULT",
    "ALTER TABLE child NO INHERIT parent",
    "ALTER TABLE child INHERIT parent",
    "BEGIN; ALTER TABLE other RENAME TO t; CREATE TABLE other (id INT PRIMARY KEY, grp INT, ver BIGINT); INSERT INTO other SELECT id, grp, ver + 1 FROM t; DROP TABLE t CASCADE; CREATE OR REPLACE VIEW turned AS SELECT id, grp, ver FROM other; COMMIT",
];

<?php
// PHP's PDO and pgsql extension, unchanged: what their users do with a server. See tests/drivers/README.md.

declare(strict_types=1);

const ENDLESS = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
                 SELECT count(*) FROM n';

function dsn(string $host): string
{
    return sprintf('pgsql:host=%s;port=%s;dbname=%s', $host, getenv('PGPORT'), getenv('PGDATABASE'));
}

function connect(array $options = [], ?string $host = null): PDO
{
    $defaults = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC];
    return new PDO(dsn($host ?? getenv('PGHOST')), getenv('PGUSER'), null, $options + $defaults);
}

function fresh(PDO $db, string $name, string $columns): void
{
    $db->exec("DROP TABLE IF EXISTS $name");
    $db->exec("CREATE TABLE $name ($columns)");
}

function same(mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new Exception('found ' . json_encode($found) . ', expected ' . json_encode($expected));
    }
}

function fails_with(string $state, callable $action): void
{
    try {
        $action();
    } catch (PDOException $error) {
        same($error->errorInfo[0], $state);
        return;
    }
    throw new Exception("no error $state");
}

function memcached(string $request): string
{
    $socket = stream_socket_client('tcp://127.0.0.1:' . getenv('MEMCACHED_PORT'));
    fwrite($socket, $request . "quit\r\n");
    return stream_get_contents($socket);
}

$checks = [];

$checks['connects over TCP and over a Unix socket'] = function () {
    foreach ([getenv('PGHOST'), getenv('SOCKET_DIR')] as $host) {
        $db = connect([], $host);
        same($db->query('SELECT 1')->fetchColumn(), 1);
        same(version_compare($db->getAttribute(PDO::ATTR_SERVER_VERSION), '15', '>='), true);
        same($db->getAttribute(PDO::ATTR_DRIVER_NAME), 'pgsql');
    }
};

$checks['server-side and emulated prepares give the same rows'] = function () {
    foreach ([false, true] as $emulate) {
        $db = connect([PDO::ATTR_EMULATE_PREPARES => $emulate]);
        fresh($db, 'pdo_plain', 'id INTEGER PRIMARY KEY, name TEXT');
        $insert = $db->prepare('INSERT INTO pdo_plain VALUES (:id, :name)');
        foreach (range(1, 20) as $id) {
            $insert->execute(['id' => $id, 'name' => "it's $id"]);
            same($insert->rowCount(), 1);
        }
        $select = $db->prepare('SELECT name FROM pdo_plain WHERE id = ?');
        foreach ([3, 4] as $id) {
            $select->execute([$id]);
            same($select->fetchAll(), [['name' => "it's $id"]]);
        }
        same($db->query('SELECT id FROM pdo_plain ORDER BY id LIMIT 3')->fetchAll(PDO::FETCH_COLUMN), [1, 2, 3]);
        same($db->query("SELECT id, name FROM pdo_plain WHERE id = 1")->fetchObject()->name, "it's 1");
    }
};

$checks['types go in and come out, and NULLs'] = function () {
    $db = connect();
    fresh($db, 'pdo_types', 'id INTEGER PRIMARY KEY, flag BOOLEAN, big BIGINT, real8 DOUBLE PRECISION,
        price NUMERIC(12, 2), name TEXT, raw BYTEA, at TIMESTAMPTZ, day DATE, doc JSON, uid UUID');
    $raw = implode('', array_map('chr', range(0, 255)));
    $insert = $db->prepare('INSERT INTO pdo_types VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    $row = [1, true, PHP_INT_MAX, 0.1, '12.50', "Gr\u{fc}\u{df}e \\", $raw, '2026-02-03 04:05:06.789+00', '2026-02-28',
        '{"a":[1,null]}', '12345678-1234-5678-1234-567812345678'];
    foreach ($row as $index => $value) {
        $kind = match (true) {
            is_bool($value) => PDO::PARAM_BOOL,
            is_int($value) => PDO::PARAM_INT,
            $value === $raw => PDO::PARAM_LOB,
            default => PDO::PARAM_STR,
        };
        $insert->bindValue($index + 1, $value, $kind);
    }
    $insert->execute();
    $insert->execute([2, ...array_fill(0, 10, null)]);
    $db->exec("SET TIME ZONE 'UTC'");
    [$full, $empty] = $db->query('SELECT * FROM pdo_types ORDER BY id')->fetchAll(PDO::FETCH_NUM);
    same(stream_get_contents($full[6]), $raw);
    same([$full[0], $full[1], $full[2], (float) $full[3], (float) $full[4], $full[5]],
        [1, true, PHP_INT_MAX, 0.1, 12.5, $row[5]]);
    same(array_slice($full, 7), ['2026-02-03 04:05:06.789+00', '2026-02-28', '{"a":[1,null]}', $row[10]]);
    same(array_slice($empty, 1), array_fill(0, 10, null));
    $meta = $db->query('SELECT id, flag, raw FROM pdo_types');
    same(array_map(fn ($column) => $meta->getColumnMeta($column)['native_type'], [0, 1, 2]), ['int4', 'bool', 'bytea']);
    same($meta->getColumnMeta(0)['table'] ?? null, 'pdo_types');
};

$checks['errors have a SQLSTATE, and leave the connection usable'] = function () {
    $db = connect();
    fresh($db, 'pdo_plain', 'id INTEGER PRIMARY KEY, name TEXT');
    $db->exec("INSERT INTO pdo_plain VALUES (1, 'a')");
    fails_with('42601', fn () => $db->query('SELEC 1'));
    fails_with('42P01', fn () => $db->query('SELECT * FROM pdo_none'));
    fails_with('23505', fn () => $db->prepare('INSERT INTO pdo_plain VALUES (?, ?)')->execute([1, 'b']));
    fails_with('22P02', fn () => $db->prepare('SELECT * FROM pdo_plain WHERE id = ?')->execute(['one']));
    same($db->query('SELECT count(*) FROM pdo_plain')->fetchColumn(), 1);
};

$checks['transactions, savepoints, and a lost race'] = function () {
    $one = connect();
    $two = connect();
    fresh($two, 'pdo_plain', 'id INTEGER PRIMARY KEY, n INTEGER');
    $count = fn () => $two->query('SELECT count(*) FROM pdo_plain')->fetchColumn();
    $one->beginTransaction();
    $one->exec('INSERT INTO pdo_plain VALUES (1, 0)');
    same([$one->inTransaction(), $count()], [true, 0]);
    $one->exec('SAVEPOINT a');
    fails_with('23505', fn () => $one->exec('INSERT INTO pdo_plain VALUES (1, 0)'));
    fails_with('25P02', fn () => $one->query('SELECT 1'));
    $one->exec('ROLLBACK TO SAVEPOINT a');
    $one->commit();
    same([$one->inTransaction(), $count()], [false, 1]);
    $one->beginTransaction();
    $one->exec('DELETE FROM pdo_plain');
    $one->rollBack();
    same($count(), 1);
    $one->exec('BEGIN ISOLATION LEVEL REPEATABLE READ');
    same($one->query('SELECT n FROM pdo_plain')->fetchColumn(), 0);
    $change = fn () => $one->exec('UPDATE pdo_plain SET n = n + 1');
    if (getenv('MEMCACHED_PORT')) {
        // No write waits for another here; the one who commits late is refused.
        $change();
    }
    $two->exec('UPDATE pdo_plain SET n = 10');
    fails_with('40001', getenv('MEMCACHED_PORT') ? fn () => $one->exec('COMMIT') : $change);
    $one->exec('ROLLBACK');
    same($two->query('SELECT n FROM pdo_plain')->fetchColumn(), 10);
};

$checks['lastInsertId tells an identity, and RETURNING too'] = function () {
    $db = connect();
    fresh($db, 'pdo_ids', 'id SERIAL PRIMARY KEY, name TEXT');
    $db->exec("INSERT INTO pdo_ids (name) VALUES ('a')");
    $first = (int) $db->lastInsertId();
    same($first >= 1, true);
    $made = $db->query("INSERT INTO pdo_ids (name) VALUES ('b') RETURNING id")->fetchColumn();
    same($made > $first, true);
};

$checks['a scrollable cursor'] = function () {
    $db = connect();
    $db->beginTransaction();
    $cursor = $db->prepare('VALUES (1), (2), (3)', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $cursor->execute();
    same($cursor->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST), [3]);
    same($cursor->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR), [2]);
    same($cursor->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 1), [1]);
    $cursor->closeCursor();
    $db->commit();
};

$checks['COPY by pgsqlCopyFromArray and pgsqlCopyToArray'] = function () {
    $db = connect();
    fresh($db, 'pdo_copy', 'id INTEGER PRIMARY KEY, name TEXT');
    same($db->pgsqlCopyFromArray('pdo_copy', ["1\tone\n", "2\t\\N\n"]), true);
    $lines = $db->pgsqlCopyToArray('pdo_copy');
    sort($lines);
    same($lines, ["1\tone\n", "2\t\\N\n"]);
};

$checks['LISTEN gets what NOTIFY sends'] = function () {
    $one = connect();
    $two = connect();
    $one->exec('LISTEN pdo_channel');
    $two->exec("NOTIFY pdo_channel, 'hello'");
    $note = $one->pgsqlGetNotify(PDO::FETCH_ASSOC, 10000);
    same([$note['message'], $note['payload']], ['pdo_channel', 'hello']);
};

$checks['statement_timeout ends a statement'] = function () {
    $db = connect();
    $db->exec('SET statement_timeout = 100');
    fails_with('57014', fn () => $db->query(ENDLESS));
    same($db->query('SELECT 1')->fetchColumn(), 1);
};

$checks['persistent connections are handed out again'] = function () {
    $pids = [];
    foreach ([1, 2] as $ignored) {
        $db = connect([PDO::ATTR_PERSISTENT => true]);
        $pids[] = $db->pgsqlGetPid();
        same($db->query('SELECT 1')->fetchColumn(), 1);
        $db = null;
    }
    same($pids[0], $pids[1]);
};

$checks['the pgsql extension with pg_query_params, pg_insert, pg_meta_data'] = function () {
    $db = pg_connect(sprintf('host=%s port=%s', getenv('PGHOST'), getenv('PGPORT')));
    pg_query($db, 'DROP TABLE IF EXISTS pdo_ext');
    pg_query($db, 'CREATE TABLE pdo_ext (id INTEGER PRIMARY KEY, name TEXT)');
    $result = pg_query_params($db, 'INSERT INTO pdo_ext VALUES ($1, $2)', [1, 'a']);
    same(pg_affected_rows($result), 1);
    $meta = pg_meta_data($db, 'pdo_ext');
    same([$meta['id']['type'], $meta['name']['type']], ['int4', 'text']);
    pg_insert($db, 'pdo_ext', ['id' => 2, 'name' => "it's"]);
    same(pg_fetch_all_columns(pg_query($db, 'SELECT name FROM pdo_ext ORDER BY id')), ['a', "it's"]);
    pg_close($db);
};

if (getenv('MEMCACHED_PORT')) {
    $checks["a row written by SQL is read by memcached's get"] = function () {
        $db = connect();
        $db->exec('DROP TABLE IF EXISTS pdo_frag');
        $db->exec("CREATE TABLE pdo_frag (key TEXT PRIMARY KEY, page INT, body TEXT) WITH (prefix = 'pdo:', value = 'body')");
        $db->prepare('INSERT INTO pdo_frag VALUES (?, ?, ?)')->execute(['a', 17, 'hello']);
        same(memcached("get pdo:a\r\n"), "VALUE pdo:a 0 5\r\nhello\r\nEND\r\n");
        same($db->exec('DELETE FROM pdo_frag WHERE page = 17'), 1);
        same(memcached("get pdo:a\r\n"), "END\r\n");
    };
}

$failed = 0;
foreach ($checks as $name => $check) {
    try {
        $check();
        echo "ok - $name\n";
    } catch (Throwable $error) {
        $failed = 1;
        $said = preg_replace('/\s+/', ' ', $error->getMessage());
        echo "not ok - $name: $said (line {$error->getLine()})\n";
    }
}
exit($failed);

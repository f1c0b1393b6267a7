"""psycopg 3, unchanged: what its users do with a server. See tests/drivers/README.md."""

import datetime
import decimal
import mmap
import os
import socket
import sys
import threading
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row
from psycopg.types.json import Json, Jsonb
from psycopg_pool import ConnectionPool

from checks import MEMCACHED_PORT, TCP, UNIX, check, memcached, ours, run, same

ENDLESS = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
             SELECT count(*) FROM n"""
MOMENT = datetime.datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=datetime.timezone.utc)
ROW = {
    "flag": True,
    "small": -7,
    "num": 2_000_000_000,
    "big": 9_000_000_000_000_000_000,
    "real4": 1.5,
    "real8": 0.1,
    "price": decimal.Decimal("12.50"),
    "name": "Gr\u00fc\u00dfe, 'quoted' \\ \U0001f600",
    "code": "x-1",
    "raw": bytes(range(256)),
    "at": MOMENT,
    "local": MOMENT.replace(tzinfo=None),
    "day": datetime.date(2026, 2, 28),
    "clock": datetime.time(23, 59, 58, 123456),
    "doc": {"a": [1, 2.5, None, "x"]},
    "docb": {"b": {"c": True}},
    "uid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
}
COLUMNS = """id INTEGER PRIMARY KEY, flag BOOLEAN, small SMALLINT, num INTEGER, big BIGINT, real4 FLOAT4,
    real8 DOUBLE PRECISION, price NUMERIC(12, 2), name TEXT, code VARCHAR(20), raw BYTEA, at TIMESTAMPTZ,
    local TIMESTAMP, day DATE, clock TIME, doc JSON, docb JSONB, uid UUID"""


def connect(**options):
    return psycopg.connect(TCP, **options)


def fresh(connection, name, columns):
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({columns})")


def fails(kind, action):
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")


@check
def tcp_and_unix():
    """connects over TCP and over a Unix socket"""
    for place in (TCP, UNIX):
        with psycopg.connect(place, application_name="suite") as connection:
            same(connection.execute("SELECT 1").fetchone(), (1,))
            same(connection.info.parameter_status("client_encoding"), "UTF8")
            assert connection.info.server_version >= 150000, connection.info.server_version
            assert connection.info.backend_pid > 0
            same(connection.execute("SHOW application_name").fetchone(), ("suite",))


@check
def simple_and_prepared():
    """simple, unnamed and named prepared statements give the same rows"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")
        insert = "INSERT INTO psy_plain VALUES (%s, %s)"
        with connection.cursor() as cursor:
            cursor.executemany(insert, [(number, f"n{number}") for number in range(1, 21)])
            same(cursor.rowcount, 20)
        same(connection.execute("SELECT name FROM psy_plain WHERE id = 3").fetchall(), [("n3",)])
        for _ in range(7):
            query = "SELECT name FROM psy_plain WHERE id = %s"
            same(connection.execute(query, (3,), prepare=True).fetchall(), [("n3",)])
            same(connection.execute(query, (4,), prepare=False).fetchall(), [("n4",)])
        with psycopg.ClientCursor(connection) as cursor:
            same(cursor.execute("SELECT id FROM psy_plain WHERE name = %s", ("n5",)).fetchone(), (5,))


@check
def several_statements():
    """a string of several statements gives several results"""
    with connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT 'two' AS b")
        same(cursor.fetchall(), [(1,)])
        same(cursor.nextset(), True)
        same(cursor.fetchall(), [("two",)])
        same(cursor.nextset(), None)


def round_trip(binary):
    names = ", ".join(ROW)
    places = ", ".join("%b" if binary else "%t" for _ in ROW)
    values = dict(ROW, doc=Json(ROW["doc"]), docb=Jsonb(ROW["docb"]))
    with connect(autocommit=True, row_factory=dict_row) as connection:
        fresh(connection, "psy_types", COLUMNS)
        connection.execute(f"INSERT INTO psy_types (id, {names}) VALUES (1, {places})", list(values.values()))
        connection.execute(f"INSERT INTO psy_types (id, {names}) VALUES (2, {places})", [None] * len(ROW))
        with connection.cursor(binary=binary) as cursor:
            rows = cursor.execute(f"SELECT {names} FROM psy_types ORDER BY id").fetchall()
    for name, expected in ROW.items():
        same((name, rows[0][name]), (name, expected))
        same(type(rows[0][name]), type(expected))
    same(set(rows[1].values()), {None})


@check
def types_text():
    """every type goes in and comes out as text"""
    round_trip(False)


@check
def types_binary():
    """every type goes in and comes out as binary"""
    round_trip(True)


@check
def type_oids():
    """a result tells the types of its columns"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_types", COLUMNS)
        cursor = connection.execute("SELECT * FROM psy_types")
        found = [column.type_code for column in cursor.description]
        same(found, [23, 16, 21, 23, 20, 700, 701, 1700, 25, 1043, 17, 1184, 1114, 1082, 1083, 114, 3802, 2950])
        cursor = connection.execute("SELECT count(*), sum(real8), max(name), now(), 1 < 2, 7::int8 FROM psy_types")
        same([column.type_code for column in cursor.description], [20, 701, 25, 1184, 16, 20])


@check
def any_of_a_list():
    """= ANY of a list finds the rows of the list"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")
        connection.execute("INSERT INTO psy_plain VALUES (1, 'a'), (2, 'b'), (3, 'c'), (70000, 'd')")
        query = "SELECT id FROM psy_plain WHERE id = ANY(%s) ORDER BY id"
        same(connection.execute(query, ([1, 3, 9],)).fetchall(), [(1,), (3,)])
        same(connection.execute(query, ([70000],)).fetchall(), [(70000,)])
        same(connection.execute(query, ([],)).fetchall(), [])
        query = "SELECT id FROM psy_plain WHERE name = ANY(%b) ORDER BY id"
        same(connection.execute(query, (["b", "c, \"d\""],)).fetchall(), [(2,)])


@check
def errors_have_states():
    """errors are the driver's classes, with position and constraint, and leave the connection usable"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT NOT NULL")
        connection.execute("INSERT INTO psy_plain VALUES (1, 'a')")
        for kind, statement in [
            (errors.SyntaxError, "SELEC 1"),
            (errors.UndefinedTable, "SELECT * FROM psy_none"),
            (errors.UndefinedColumn, "SELECT missing FROM psy_plain"),
            (errors.UndefinedFunction, "SELECT no_such_function(1)"),
            (errors.UniqueViolation, "INSERT INTO psy_plain VALUES (1, 'b')"),
            (errors.NotNullViolation, "INSERT INTO psy_plain VALUES (2, NULL)"),
            (errors.InvalidTextRepresentation, "INSERT INTO psy_plain VALUES ('two', 'b')"),
            (errors.DuplicateTable, "CREATE TABLE psy_plain (id INTEGER)"),
        ]:
            error = fails(kind, lambda: connection.execute(statement))
            assert error.diag.message_primary and error.diag.severity == "ERROR", statement
            same(connection.execute("SELECT 1").fetchone(), (1,))
        error = fails(errors.UndefinedTable, lambda: connection.execute("SELECT * FROM psy_none"))
        same(error.diag.statement_position, "15")
        error = fails(errors.UniqueViolation, lambda: connection.execute("INSERT INTO psy_plain VALUES (1, 'b')"))
        same(error.diag.constraint_name, "psy_plain_pkey")
        fails(errors.InvalidTextRepresentation, lambda: connection.execute("SELECT %s::int", ("x",)))


@check
def transactions():
    """a block commits, rolls back, and refuses statements after an error"""
    with connect() as one, connect(autocommit=True) as two:
        fresh(two, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")
        count = lambda: two.execute("SELECT count(*) FROM psy_plain").fetchone()[0]
        one.execute("INSERT INTO psy_plain VALUES (1, 'a')")
        same(one.info.transaction_status.name, "INTRANS")
        same(one.execute("SELECT name FROM psy_plain WHERE id = 1").fetchone(), ("a",))
        same(count(), 0)
        one.commit()
        same((count(), one.info.transaction_status.name), (1, "IDLE"))
        one.execute("DELETE FROM psy_plain")
        one.rollback()
        same(count(), 1)
        fails(errors.UniqueViolation, lambda: one.execute("INSERT INTO psy_plain VALUES (1, 'b')"))
        same(one.info.transaction_status.name, "INERROR")
        fails(errors.InFailedSqlTransaction, lambda: one.execute("SELECT 1"))
        one.rollback()
        same(one.execute("SELECT 1").fetchone(), (1,))


@check
def savepoints():
    """nested transaction() blocks are savepoints"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")
        with connection.transaction():
            connection.execute("INSERT INTO psy_plain VALUES (1, 'a')")
            with connection.transaction(force_rollback=True):
                connection.execute("INSERT INTO psy_plain VALUES (2, 'b')")
            try:
                with connection.transaction("named"):
                    connection.execute("INSERT INTO psy_plain VALUES (3, 'c')")
                    connection.execute("INSERT INTO psy_plain VALUES (1, 'again')")
            except errors.UniqueViolation:
                pass
            connection.execute("INSERT INTO psy_plain VALUES (4, 'd')")
        same(connection.execute("SELECT id FROM psy_plain ORDER BY id").fetchall(), [(1,), (4,)])


@check
def lost_race():
    """a transaction that lost a race is refused with a serialization failure"""
    with connect() as one, connect(autocommit=True) as two:
        fresh(two, "psy_plain", "id INTEGER PRIMARY KEY, n INTEGER")
        two.execute("INSERT INTO psy_plain VALUES (1, 0)")
        one.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        change = "UPDATE psy_plain SET n = n + 1 WHERE id = 1"
        same(one.execute("SELECT n FROM psy_plain WHERE id = 1").fetchone(), (0,))
        if MEMCACHED_PORT:
            # No write waits for another here; the one who commits late is refused.
            one.execute(change)
        two.execute("UPDATE psy_plain SET n = 10")
        fails(errors.SerializationFailure, one.commit if MEMCACHED_PORT else lambda: one.execute(change))
        one.rollback()
        same(two.execute("SELECT n FROM psy_plain").fetchone(), (10,))


@check
def pipeline():
    """a pipeline sends many statements at once, and recovers behind an error"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")
        with connection.pipeline():
            for number in range(50):
                connection.execute("INSERT INTO psy_plain VALUES (%s, %s)", (number, "x"))
            found = connection.execute("SELECT count(*) FROM psy_plain")
            same(found.fetchone(), (50,))

        def broken():
            with connection.pipeline() as pipeline:
                connection.execute("SELECT 1")
                connection.execute("SELECT * FROM psy_none")
                connection.execute("INSERT INTO psy_plain VALUES (99, 'never')")
                pipeline.sync()

        fails((errors.UndefinedTable, psycopg.errors.PipelineAborted), broken)
        same(connection.execute("SELECT count(*) FROM psy_plain WHERE id = 99").fetchone(), (0,))


@check
def server_cursor():
    """a named cursor fetches a large result in pieces, and scrolls"""
    with connect() as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO psy_plain VALUES (%s)", [(number,) for number in range(1000)])
        connection.commit()
        with connection.cursor("psy_cursor", scrollable=True) as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT id FROM psy_plain ORDER BY id")
            same(cursor.fetchmany(3), [(0,), (1,), (2,)])
            cursor.scroll(10, mode="absolute")
            same(cursor.fetchone(), (10,))
            cursor.scroll(-5)
            same(cursor.fetchone()[0] < 10, True)
        with connection.cursor("psy_cursor") as cursor:
            cursor.itersize = 64
            cursor.execute("SELECT id FROM psy_plain WHERE id < %s ORDER BY id", (777,))
            same(sum(1 for _ in cursor), 777)


@check
def stream():
    """rows can be streamed one by one"""
    with connect() as connection, connection.cursor() as cursor:
        query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n"
        same(sum(row[0] for row in cursor.stream(query)), 125250)


@check
def cancel_and_timeout():
    """a running statement is cancelled, and statement_timeout ends one"""
    with connect(autocommit=True) as connection:
        timer = threading.Timer(0.2, connection.cancel_safe)
        timer.start()
        fails(errors.QueryCanceled, lambda: connection.execute(ENDLESS))
        timer.join()
        same(connection.execute("SELECT 1").fetchone(), (1,))
        connection.execute("SET statement_timeout = '100ms'")
        same(connection.execute("SHOW statement_timeout").fetchone(), ("100ms",))
        fails(errors.QueryCanceled, lambda: connection.execute(ENDLESS))
        connection.execute("RESET statement_timeout")
        same(connection.execute("SELECT 1").fetchone(), (1,))


@check
def copy():
    """COPY moves rows in and out as text, csv and binary"""
    with connect(autocommit=True) as connection, connection.cursor() as cursor:
        fresh(connection, "psy_copy", "id INTEGER PRIMARY KEY, name TEXT, raw BYTEA")
        rows = [(number, f"n\t{number}\n" if number % 7 else None, bytes([number % 256])) for number in range(500)]
        with cursor.copy("COPY psy_copy (id, name, raw) FROM STDIN") as copying:
            for row in rows:
                copying.write_row(row)
        same(cursor.rowcount, 500)
        with cursor.copy("COPY psy_copy TO STDOUT") as copying:
            copying.set_types(["int4", "text", "bytea"])
            same(sorted(copying.rows()), sorted(rows, key=lambda row: row[0]))
        with cursor.copy("COPY (SELECT id, name FROM psy_copy WHERE id < 3 ORDER BY id) TO STDOUT (FORMAT csv)") as out:
            same(b"".join(bytes(part) for part in out), b'0,\n1,"n\t1\n"\n2,"n\t2\n"\n')
        connection.execute("DELETE FROM psy_copy")
        with cursor.copy("COPY psy_copy FROM STDIN (FORMAT binary)") as copying:
            copying.set_types(["int4", "text", "bytea"])
            for row in rows:
                copying.write_row(row)
        with cursor.copy("COPY psy_copy TO STDOUT (FORMAT binary)") as copying:
            copying.set_types(["int4", "text", "bytea"])
            same(sorted(copying.rows(), key=lambda row: row[0]), rows)

        def broken():
            with cursor.copy("COPY psy_copy FROM STDIN") as copying:
                copying.write("one\tx\t\\\\x00\n")

        fails(errors.InvalidTextRepresentation, broken)

        def given_up():
            with cursor.copy("COPY psy_copy (id) FROM STDIN") as copying:
                copying.write("100000\n")
                raise ValueError("given up")

        fails(ValueError, given_up)
        same(connection.execute("SELECT count(*) FROM psy_copy").fetchone(), (500,))


@check
def listen_notify():
    """LISTEN gets what NOTIFY sends"""
    with connect(autocommit=True) as one, connect(autocommit=True) as two:
        one.execute("LISTEN psy_channel")
        two.execute("NOTIFY psy_channel, 'first'")
        two.execute("SELECT pg_notify('psy_channel', 'second')")
        found = [(note.channel, note.payload) for note in one.notifies(timeout=10, stop_after=2)]
        same(found, [("psy_channel", "first"), ("psy_channel", "second")])
        one.execute("UNLISTEN *")


@check
def settings():
    """SET, SHOW, RESET and set_config keep a session's settings"""
    with connect(autocommit=True) as connection:
        connection.execute("SET application_name TO 'other'")
        same(connection.execute("SHOW application_name").fetchone(), ("other",))
        same(connection.info.parameter_status("application_name"), "other")
        connection.execute("SELECT set_config('application_name', 'third', false)")
        same(connection.execute("SELECT current_setting('application_name')").fetchone(), ("third",))
        connection.execute("RESET ALL")
        connection.execute("DISCARD ALL")
        fails(errors.UndefinedObject, lambda: connection.execute("SET no_such_setting = 1"))


@check
def pool():
    """a pool serves many threads and replaces a broken connection"""
    with ConnectionPool(TCP, min_size=2, max_size=4, kwargs={"autocommit": True}, open=True) as connections:
        with connections.connection() as connection:
            fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, name TEXT")

        def work(number):
            with connections.connection() as connection:
                connection.execute("INSERT INTO psy_plain VALUES (%s, 'x')", (number,))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        def broken():
            with connections.connection() as connection:
                with socket.socket(fileno=os.dup(connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)
                connection.execute("SELECT 1")

        fails(psycopg.OperationalError, broken)
        with connections.connection() as connection:
            same(connection.execute("SELECT count(*) FROM psy_plain").fetchone(), (40,))


@check
def composed():
    """composed statements quote names and values"""
    with connect(autocommit=True) as connection:
        name = sql.Identifier('psy "odd" name')
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
        connection.execute(sql.SQL("CREATE TABLE {} (id INTEGER PRIMARY KEY, {} TEXT)").format(name, sql.Identifier("a b")))
        connection.execute(sql.SQL("INSERT INTO {} VALUES ({}, {})").format(name, sql.Literal(1), sql.Literal("it's")))
        same(connection.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall(), [(1, "it's")])
        connection.execute(sql.SQL("DROP TABLE {}").format(name))


@check
def returning_and_upsert():
    """RETURNING and ON CONFLICT work with parameters"""
    with connect(autocommit=True) as connection:
        fresh(connection, "psy_plain", "id INTEGER PRIMARY KEY, n INTEGER NOT NULL")
        upsert = """INSERT INTO psy_plain (id, n) VALUES (%s, %s)
                    ON CONFLICT (id) DO UPDATE SET n = psy_plain.n + excluded.n RETURNING id, n"""
        same(connection.execute(upsert, (1, 5)).fetchall(), [(1, 5)])
        same(connection.execute(upsert, (1, 6)).fetchall(), [(1, 11)])
        cursor = connection.execute("UPDATE psy_plain SET n = n * 2 WHERE id = %s", (1,))
        same((cursor.rowcount, cursor.statusmessage), (1, "UPDATE 1"))
        same(connection.execute("DELETE FROM psy_plain WHERE id = %s", (7,)).statusmessage, "DELETE 0")


@ours
def memcached_sees():
    """a row written by SQL is read by memcached's get, and the other way round"""
    with connect(autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS psy_frag")
        connection.execute(
            "CREATE TABLE psy_frag (key TEXT PRIMARY KEY, page INTEGER, body BYTEA)"
            " WITH (prefix = 'psy:', value = 'body', ttl = '10 min')"
        )
        connection.execute("INSERT INTO psy_frag VALUES (%s, %s, %b)", ("a", 17, b"\x00\xff\r\n"))
        same(memcached(b"get psy:a\r\n"), b"VALUE psy:a 0 4\r\n\x00\xff\r\n\r\nEND\r\n")
        same(memcached(b"set psy:b 0 0 2\r\nhi\r\n"), b"STORED\r\n")
        same(connection.execute("SELECT body FROM psy_frag WHERE key = %s", ("b",)).fetchone(), (b"hi",))
        same(connection.execute("DELETE FROM psy_frag WHERE page = 17").rowcount, 1)
        same(memcached(b"get psy:a\r\n"), b"END\r\n")


@check
def functions_and_procedures():
    """CALL with outputs, functions as values and as tables, and an error in the last write"""
    with connect() as connection:
        connection.execute("DROP TABLE IF EXISTS psy_account CASCADE")
        connection.execute("CREATE TABLE psy_account (id INTEGER PRIMARY KEY, units INTEGER NOT NULL CHECK (units >= 0))")
        connection.execute("INSERT INTO psy_account VALUES (1, 100), (2, 0)")
        for name in ("PROCEDURE IF EXISTS psy_pay", "FUNCTION IF EXISTS psy_rich"):
            connection.execute(f"DROP {name}")
        connection.execute(
            """CREATE PROCEDURE psy_pay(payer INTEGER, payee INTEGER, amount INTEGER, INOUT rest INTEGER) LANGUAGE sql AS $$
               UPDATE psy_account SET units = units + amount WHERE id = payee;
               UPDATE psy_account SET units = units - amount WHERE id = payer;
               SELECT units FROM psy_account WHERE id = payer $$"""
        )
        connection.execute(
            """CREATE FUNCTION psy_rich(low INTEGER) RETURNS TABLE (who INTEGER, units INTEGER) LANGUAGE sql AS
               $$ SELECT id, units FROM psy_account WHERE units >= low ORDER BY id $$"""
        )
        connection.commit()
        cursor = connection.execute("CALL psy_pay(%s, %s, %s, NULL)", (1, 2, 30))
        same([column.name for column in cursor.description], ["rest"])
        same((cursor.fetchall(), cursor.statusmessage), ([(70,)], "CALL"))
        cursor = connection.execute("CALL psy_pay(payee => %s, payer => %s, amount => %s, rest => NULL)", (2, 1, 5))
        same(cursor.fetchone(), (65,))
        connection.commit()
        fails(errors.CheckViolation, lambda: connection.execute("CALL psy_pay(%s, %s, %s, NULL)", (1, 2, 1000)))
        connection.rollback()
        # What psycopg2's callproc sends.
        for prepare in (True, False):
            rows = connection.execute("SELECT * FROM psy_rich(%s)", (40,), prepare=prepare).fetchall()
            same(rows, [(1, 65)])
        same(connection.execute("SELECT r.units, a.id FROM psy_account a, psy_rich(a.units) r ORDER BY 1, 2").fetchall(),
             [(35, 2), (65, 1), (65, 2)])
        fails(errors.WrongObjectType, lambda: connection.execute("SELECT psy_pay(1, 2, 3, 4)"))
        connection.rollback()
        fails(errors.UndefinedFunction, lambda: connection.execute("SELECT * FROM psy_rich(1, 2)"))
        connection.rollback()


@ours
def invalidations_beside_fills():
    """Django's QuerySet.delete() of a page that two processes fill: no error, and no row from before COMMIT"""
    # What Django 5.2 sends inside of atomic(): BEGIN; DELETE FROM "page" WHERE "page"."page_id" = 17; COMMIT.
    rows = 20
    with connect(autocommit=True) as one:
        fresh(one, "page", "key INTEGER PRIMARY KEY, page_id INTEGER, body BIGINT")
        one.execute("CREATE INDEX page_page_id ON page (page_id)")
    # Shared by all: the number that the newest acknowledged row of each key bears, and at last the word to stop.
    shared = memoryview(mmap.mmap(-1, 8 * (rows + 1))).cast("Q")
    fillers = [fill_in_a_process(shared, rows, number) for number in range(2)]
    try:
        with connect() as one:
            for _ in range(int(os.environ.get("INVALIDATIONS", "300"))):
                one.execute('DELETE FROM "page" WHERE "page"."page_id" = 17')
                before = list(shared)
                one.commit()
                stale = [row for row in one.execute("SELECT key, body FROM page") if row[1] <= before[row[0]]]
                one.commit()
                same(stale, [])
    finally:
        shared[rows] = 1
        ended = [os.waitpid(pid, 0)[1] for pid in fillers]
    same(ended, [0, 0])
    assert min(list(shared)[:rows]) > 0, "nothing was filled"


def fill_in_a_process(shared, rows, own):
    """Fills every other row of the page, again and again."""
    pid = os.fork()
    if pid:
        return pid
    ended = 1
    try:
        with connect(autocommit=True) as one:
            number = 0
            while not shared[rows]:
                number += 1
                for key in range(own, rows, 2):
                    one.execute(
                        "INSERT INTO page VALUES (%s, 17, %s) ON CONFLICT (key) DO UPDATE SET body = excluded.body",
                        (key, number),
                    )
                    shared[key] = number
        ended = 0
    finally:
        os._exit(ended)


run()

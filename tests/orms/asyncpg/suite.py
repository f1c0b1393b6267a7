"""asyncpg, unchanged: connection, pool, types in binary, COPY, cursors, LISTEN. See tests/orms/README.md."""

import asyncio
import datetime
import decimal
import ipaddress
import json
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../drivers"))

import asyncpg

from checks import check, run, same

UTC = datetime.timezone.utc
PLACE = {
    "host": os.environ["PGHOST"],
    "port": int(os.environ["PGPORT"]),
    "user": os.environ["PGUSER"],
    "database": os.environ["PGDATABASE"],
}


def connected(function):
    """Registers a check that gets a connection of its own."""

    async def whole():
        connection = await asyncpg.connect(**PLACE, timeout=20, command_timeout=20)
        try:
            await function(connection)
        finally:
            await connection.close(timeout=5)

    def runs():
        asyncio.run(whole())

    runs.__doc__ = function.__doc__
    return check(runs)


@connected
async def connects(db):
    """connects"""
    assert db.get_server_version().major >= 12
    assert db.get_server_pid() > 0
    same(db.get_settings().client_encoding.lower().replace("-", ""), "utf8")


@connected
async def defines(db):
    """several statements at once make the tables"""
    await db.execute(
        """
        CREATE TABLE page (
            id BIGSERIAL PRIMARY KEY, path VARCHAR(100) NOT NULL UNIQUE, hits INT NOT NULL DEFAULT 0, price NUMERIC(12, 4),
            seen TIMESTAMPTZ, local TIMESTAMP, day DATE, hour TIME, lasts INTERVAL, key UUID, raw BYTEA, doc JSONB,
            flag BOOL, score FLOAT8, small REAL, tiny SMALLINT, words TEXT[], numbers INT[]);
        CREATE INDEX page_seen ON page (seen);
        """
    )


@connected
async def round_trip(db):
    """every type goes in and comes back in binary"""
    given = {
        "path": "/own",
        "hits": 7,
        "price": decimal.Decimal("12345.6789"),
        "seen": datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC),
        "local": datetime.datetime(2024, 2, 29, 12, 30, 15, 1),
        "day": datetime.date(1999, 12, 31),
        "hour": datetime.time(23, 59, 58, 7),
        "lasts": datetime.timedelta(days=40, hours=30, microseconds=5),
        "key": uuid.UUID(int=17),
        "raw": b"\x00\xffa",
        "doc": '{"a": [1, 2]}',
        "flag": True,
        "score": 1.25,
        "small": 0.5,
        "tiny": -3,
        "words": ["a", "b,c", None],
        "numbers": [1, -2],
    }
    names = ", ".join(given)
    places = ", ".join(f"${n + 1}" for n in range(len(given)))
    row = await db.fetchrow(f"INSERT INTO page ({names}) VALUES ({places}) RETURNING *", *given.values())
    for name, value in given.items():
        same((name, row[name]), (name, value))


@connected
async def null(db):
    """NULL of every type"""
    row = await db.fetchrow("INSERT INTO page (path, seen, lasts, words) VALUES ('/null', $1, $2, $3) RETURNING *", None, None, None)
    same((row["seen"], row["lasts"], row["words"], row["hits"]), (None, None, None, 0))


@connected
async def fetches(db):
    """fetch, fetchrow, fetchval, execute with their results"""
    same(await db.fetchval("SELECT hits FROM page WHERE path = $1", "/own"), 7)
    same(await db.fetchrow("SELECT 1 WHERE false"), None)
    rows = await db.fetch("SELECT path, hits FROM page ORDER BY path")
    same([dict(row) for row in rows], [{"path": "/null", "hits": 0}, {"path": "/own", "hits": 7}])
    same(await db.execute("UPDATE page SET hits = hits + 1 WHERE hits > $1", 0), "UPDATE 1")


@connected
async def bare_parameters(db):
    """parameters with a type and no more in the select list"""
    same(await db.fetchval("SELECT $1::int", 3), 3)
    same(await db.fetchval("SELECT $1::text || $2", "a", "b"), "ab")
    same(await db.fetchval("SELECT $1::int[]", [1, 2]), [1, 2])
    same(await db.fetchval("SELECT $1::interval", datetime.timedelta(hours=3)), datetime.timedelta(hours=3))
    same(await db.fetchval("SELECT $1::numeric", decimal.Decimal("1.10")), decimal.Decimal("1.10"))


@connected
async def prepares(db):
    """prepared statements know their parameters and columns"""
    statement = await db.prepare("SELECT id, path, seen FROM page WHERE hits >= $1 AND path = ANY($2)")
    same([(each.name, each.type.name) for each in statement.get_attributes()], [("id", "int8"), ("path", "varchar"), ("seen", "timestamptz")])
    same(len(await statement.fetch(0, ["/own", "/null"])), 2)
    same(len(await statement.fetch(5, ["/own", "/null"])), 1)


@connected
async def many(db):
    """executemany, with a result of nothing, and all or none"""
    await db.executemany("INSERT INTO page (path, hits) VALUES ($1, $2)", [(f"/m{n}", n) for n in range(500)])
    same(await db.fetchval("SELECT count(*) FROM page WHERE path LIKE '/m%'"), 500)
    try:
        await db.executemany("INSERT INTO page (path) VALUES ($1)", [("/new",), ("/m1",)])
        raise AssertionError("it was taken")
    except asyncpg.UniqueViolationError as error:
        same((error.sqlstate, error.constraint_name, error.table_name), ("23505", "page_path_key", "page"))
    same(await db.fetchval("SELECT count(*) FROM page WHERE path = '/new'"), 0)


@connected
async def arrays(db):
    """arrays as sets of rows: unnest of several, ANY, array_agg"""
    await db.execute(
        "INSERT INTO page (path, hits) SELECT * FROM unnest($1::text[], $2::int[])", ["/u1", "/u2"], [41, 42]
    )
    rows = await db.fetch("SELECT path, hits FROM page WHERE path = ANY($1::text[]) ORDER BY 1", ["/u1", "/u2"])
    same([tuple(row) for row in rows], [("/u1", 41), ("/u2", 42)])
    same(await db.fetchval("SELECT array_agg(hits ORDER BY hits) FROM page WHERE path LIKE '/u%'"), [41, 42])


@connected
async def transactions(db):
    """transactions, rollback, savepoints, isolation levels, read only"""
    try:
        async with db.transaction():
            await db.execute("INSERT INTO page (path) VALUES ('/t1')")
            raise KeyError
    except KeyError:
        pass
    async with db.transaction(isolation="serializable"):
        same(await db.fetchval("SHOW transaction_isolation"), "serializable")
        await db.execute("INSERT INTO page (path) VALUES ('/t2')")
        try:
            async with db.transaction():
                await db.execute("INSERT INTO page (path) VALUES ('/t2')")
        except asyncpg.UniqueViolationError:
            pass
    same(await db.fetch("SELECT path FROM page WHERE path LIKE '/t%'"), [("/t2",)])
    async with db.transaction(readonly=True, deferrable=True, isolation="repeatable_read"):
        same(await db.fetchval("SELECT count(*) FROM page WHERE path = '/t2'"), 1)


@connected
async def cursors(db):
    """cursors and iteration"""
    async with db.transaction():
        found = [row["hits"] async for row in db.cursor("SELECT hits FROM page WHERE path LIKE '/m%' ORDER BY hits", prefetch=100)]
        same((len(found), found[-1]), (500, 499))
        cursor = await db.cursor("SELECT hits FROM page WHERE path LIKE $1 ORDER BY hits", "/m%")
        await cursor.forward(10)
        same((await cursor.fetchrow())["hits"], 10)
        same(len(await cursor.fetch(5)), 5)


@connected
async def copies_in(db):
    """copy_records_to_table in binary, copy_to_table from CSV"""
    done = await db.copy_records_to_table(
        "page", records=[(f"/c{n}", n, datetime.datetime(2024, 1, 1, tzinfo=UTC)) for n in range(50)],
        columns=["path", "hits", "seen"],
    )
    same(done, "COPY 50")

    async def source():
        yield b"path,hits\n/csv1,1\n"
        yield b"/csv2,2\n"

    same(await db.copy_to_table("page", source=source(), columns=["path", "hits"], format="csv", header=True), "COPY 2")
    same(await db.fetchval("SELECT count(*) FROM page WHERE path LIKE '/c%'"), 52)


@connected
async def copies_out(db):
    """copy_from_query, copy_from_table"""
    parts = []

    async def sink(data):
        parts.append(data)

    done = await db.copy_from_query("SELECT path, hits FROM page WHERE path LIKE $1 ORDER BY 1", "/csv%", output=sink, format="csv")
    same((done, b"".join(parts)), ("COPY 2", b"/csv1,1\n/csv2,2\n"))
    parts.clear()
    await db.copy_from_table("page", columns=["path"], output=sink)
    assert b"/csv1\n" in b"".join(parts)


@connected
async def listens(db):
    """LISTEN and NOTIFY"""
    heard = asyncio.get_running_loop().create_future()
    await db.add_listener("news", lambda _db, _pid, channel, payload: heard.set_result((channel, payload)))
    other = await asyncpg.connect(**PLACE)
    await other.execute("SELECT pg_notify('news', 'hello')")
    same(await asyncio.wait_for(heard, 10), ("news", "hello"))
    await other.close()


@connected
async def cancels(db):
    """a timeout cancels the statement, and the connection goes on"""
    try:
        await db.fetchval("SELECT pg_sleep(30)", timeout=0.3)
        raise AssertionError("it slept")
    except asyncio.TimeoutError:
        pass
    same(await db.fetchval("SELECT 1"), 1)


@connected
async def types(db):
    """set_type_codec for jsonb, by introspection"""
    await db.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    same(await db.fetchval("SELECT doc FROM page WHERE path = '/own'"), {"a": [1, 2]})
    same(await db.fetchval("SELECT $1::jsonb", {"b": None}), {"b": None})


@connected
async def enums(db):
    """an enum type and an array of it"""
    await db.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    await db.execute("CREATE TABLE person (name TEXT PRIMARY KEY, mood mood NOT NULL, past mood[])")
    await db.execute("INSERT INTO person VALUES ($1, $2, $3)", "ann", "happy", ["sad", "happy"])
    same(tuple(await db.fetchrow("SELECT mood, past FROM person")), ("happy", ["sad", "happy"]))


@connected
async def other_types(db):
    """inet, name, oid"""
    same(await db.fetchval("SELECT $1::inet", ipaddress.ip_address("10.0.0.1")), ipaddress.ip_address("10.0.0.1"))
    same(await db.fetchval("SELECT 'abc'::name"), "abc")
    same(await db.fetchval("SELECT 7::oid"), 7)


@connected
async def altered(db):
    """a cached statement survives ALTER TABLE"""
    same(len(await db.fetchrow("SELECT * FROM page WHERE path = $1", "/own")), 18)
    other = await asyncpg.connect(**PLACE)
    await other.execute("ALTER TABLE page ADD COLUMN added INT DEFAULT 5")
    await other.close()
    same((await db.fetchrow("SELECT * FROM page WHERE path = $1", "/own"))["added"], 5)


@connected
async def resets(db):
    """reset"""
    await db.execute("SET application_name = 'x'")
    await db.reset()
    same(await db.fetchval("SHOW application_name"), "")


@check
def pools():
    """a pool, acquire, release with its reset, forty statements at once"""

    async def uses():
        async with asyncpg.create_pool(**PLACE, min_size=2, max_size=5, timeout=20) as pool:
            found = await asyncio.gather(*[pool.fetchval("SELECT $1::int + hits FROM page WHERE path = '/m1'", n) for n in range(40)])
            same(found, [n + 1 for n in range(40)])
            async with pool.acquire() as db, db.transaction():
                await db.execute("UPDATE page SET hits = hits + 1 WHERE path = '/m1'")
            await pool.executemany("UPDATE page SET hits = $2 WHERE path = $1", [("/m2", 9), ("/m3", 9)])
            same(await pool.fetchval("SELECT count(*) FROM page WHERE hits = 9 AND path LIKE '/m%'"), 3)

    asyncio.run(uses())


@check
def settings():
    """server_settings"""

    async def asks():
        db = await asyncpg.connect(**PLACE, server_settings={"application_name": "suite", "timezone": "UTC", "jit": "off"})
        same(await db.fetchval("SELECT current_setting('application_name')"), "suite")
        same(db.get_settings().TimeZone, "UTC")
        await db.close()

    asyncio.run(asks())


@connected
async def logs(db):
    """notices reach the listener of the log"""
    heard = []
    db.add_log_listener(lambda _db, message: heard.append(message.message))
    await db.execute("DROP TABLE IF EXISTS no_such_table")
    await asyncio.sleep(0)
    same(heard, ['table "no_such_table" does not exist, skipping'])


@connected
async def errors(db):
    """errors are classes with their fields"""
    for sql, kind in [
        ("SELECT * FROM nothing", asyncpg.UndefinedTableError),
        ("SELECT nothing FROM page", asyncpg.UndefinedColumnError),
        ("SELEC", asyncpg.PostgresSyntaxError),
        ("INSERT INTO page (path) VALUES (NULL)", asyncpg.NotNullViolationError),
        ("SELECT 1/0", asyncpg.DivisionByZeroError),
        ("SELECT no_such_function(1)", asyncpg.UndefinedFunctionError),
        ("SELECT 'x'::int", asyncpg.InvalidTextRepresentationError),
    ]:
        try:
            await db.fetch(sql)
            raise AssertionError(f"{sql} was taken")
        except kind:
            pass


run()

"""psycopg and asyncpg, unchanged, in a session whose every answer is printed. It runs at a database and through a cache
in front of it: what it prints is the same. Reads come several times, so that some are answered from what is kept."""

import asyncio
import os
import threading
import time

import asyncpg
import psycopg
from psycopg import ClientCursor, RawCursor

TCP = " ".join(
    f"{word}={os.environ[name]}"
    for word, name in [("host", "PGHOST"), ("port", "PGPORT"), ("user", "PGUSER"), ("dbname", "PGDATABASE")]
)
# It needs no memory, however long it runs.
ENDLESS = "SELECT count(*) FROM ware a, ware b, ware c, ware d, ware e, ware f, ware g"
READ = "SELECT id, name, price, at FROM ware WHERE id = %s"
# A statement is inspected when it has come some times.
TIMES = 12


def say(*what):
    print(*what, flush=True)


def tried(action):
    """What an action gives, or the error that it ends with."""
    try:
        return action()
    except psycopg.Error as error:
        return type(error).__name__, error.sqlstate, error.diag.message_primary, error.diag.statement_position


def connect(**options):
    return psycopg.connect(TCP, autocommit=True, **options)


def tables(own):
    own.execute("DROP TABLE IF EXISTS ware")
    own.execute("CREATE TABLE ware (id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2), at TIMESTAMPTZ)")
    with own.cursor().copy("COPY ware FROM STDIN") as copy:
        for number in range(1, 101):
            copy.write_row((number, f"ware {number} \u00e9\\", number / 4, "2026-02-03 04:05:06+00"))


def until_kept(own):
    # Behind a cache that keeps answers, the dialogue goes on when it has begun to: how soon depends on the machine. The
    # table is new, and what is prepared before the cache has noticed that is only forwarded.
    end = time.monotonic() + 60
    while ClientCursor(own).execute("SHOW sqlcached.last_answer").fetchone() != ("cache",):
        assert time.monotonic() < end, "nothing is kept"
        own.execute(READ, (1,), prepare=False)
        time.sleep(0.01)


def reads(own):
    if "KEPT" in os.environ:
        until_kept(own)
    for turn in range(TIMES):
        for number in (1, 2, 100, 101, None):
            say("read", own.execute(READ, (number,)).fetchall())
        say("binary", own.execute(READ, (7,), binary=True, prepare=True).fetchall())
        say("text", ClientCursor(own).execute(READ, (7,)).fetchall())
        say("columns", [(each.name, each.type_code) for each in own.execute(READ, (7,)).description])
        say("raw", RawCursor(own).execute("SELECT count(*), sum(price) FROM ware WHERE id < $1", (turn % 2 * 50,)).fetchall())
        say("simple", own.execute("SELECT name FROM ware WHERE id = 3").fetchall())
        time.sleep(0.02)


def writes(own):
    for number in range(TIMES):
        own.execute("UPDATE ware SET name = %s WHERE id = 1", (f"changed {number}",))
        say("own write", own.execute(READ, (1,)).fetchall())
        with own.transaction(force_rollback=number % 3 == 0):
            own.execute("DELETE FROM ware WHERE id = 2")
            say("in it", own.execute(READ, (2,)).fetchall())
            own.execute("INSERT INTO ware VALUES (2, 'again', 1, NULL)")
        say("after it", own.execute(READ, (2,)).fetchall())


def copies(own):
    with own.cursor().copy("COPY (SELECT * FROM ware WHERE id < 4 ORDER BY id) TO STDOUT") as copy:
        say("copy", list(copy.rows()))
    with own.cursor().copy("COPY ware (id, name) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "text"])
        copy.write_row((200, "by binary copy"))
    say("copied", own.execute(READ, (200,)).fetchall())

    def broken():
        with own.cursor().copy("COPY ware FROM STDIN") as copy:
            copy.write("no number\n")

    def stopped():
        with own.cursor().copy("COPY ware (id) FROM STDIN") as copy:
            copy.write("300\n")
            raise psycopg.DataError("the client stops")

    say("broken copy", tried(broken))
    say("stopped copy", tried(stopped), own.execute(READ, (300,)).fetchall())


def pipelines(own):
    with own.pipeline():
        several = [own.execute(READ, (number,)) for number in (1, 2, 3)]
    say("pipeline", [each.fetchall() for each in several])

    def failing():
        with own.pipeline() as pipeline:
            first = own.execute(READ, (1,))
            own.execute("SELECT 1 / (id - 1) FROM ware WHERE id = %s", (1,))
            never = own.execute("UPDATE ware SET name = 'never' WHERE id = 3")
            pipeline.sync()
            return first.fetchall(), never

    say("failing pipeline", tried(failing))
    say("not done", own.execute(READ, (3,)).fetchall())


def cursors(own):
    with own.transaction():
        with own.cursor("c", scrollable=True) as cursor:
            cursor.execute("SELECT id FROM ware ORDER BY id")
            say("cursor", cursor.fetchmany(3), cursor.fetchone())
            cursor.scroll(-2)
            say("scrolled", cursor.fetchmany(2))
    say("no transaction", tried(lambda: own.execute("DECLARE d CURSOR FOR SELECT 1")))
    say("stream", [row for row in own.cursor().stream("SELECT id FROM ware WHERE id < 5 ORDER BY id")])


def names(own):
    own.execute("PREPARE mine (int) AS SELECT name FROM ware WHERE id = $1")
    for _ in range(TIMES):
        say("execute", own.execute("EXECUTE mine (3)").fetchall())
    say("names", own.execute("SELECT name, statement FROM pg_prepared_statements WHERE from_sql").fetchall())
    own.execute("DEALLOCATE mine")
    say("gone", tried(lambda: own.execute("EXECUTE mine (3)")))
    say("again", own.execute(READ, (5,), prepare=True).fetchall())
    own.execute("DISCARD ALL")
    say("discarded", tried(lambda: own.execute(READ, (5,), prepare=True).fetchall()))


def errors(own):
    for text in ("SELEC 1", "SELECT * FROM nothing", "SELECT 1 / 0", "SELECT name FROM ware WHERE id = 'x'", ""):
        say("error", tried(lambda: own.execute(text).statusmessage))
        say("error", tried(lambda: ClientCursor(own).execute(text).statusmessage))
    own.execute("BEGIN")
    say("fails", tried(lambda: own.execute("SELECT 1 / 0")))
    say("failed", tried(lambda: own.execute(READ, (1,))))
    say("status", own.info.transaction_status.name)
    own.execute("ROLLBACK")
    say("usable", own.execute(READ, (1,)).fetchall(), own.info.transaction_status.name)
    own.execute("DO $$ BEGIN RAISE NOTICE 'told'; END $$")


def settings(own):
    for zone, style in (("UTC", "ISO, MDY"), ("Asia/Tokyo", "German"), ("America/New_York", "SQL, DMY")):
        own.execute("SELECT set_config('TimeZone', %s, false), set_config('DateStyle', %s, false)", (zone, style))
        for _ in range(TIMES):
            say("zone", own.execute("SELECT at::date, extract(hour FROM at) FROM ware WHERE id = 4").fetchall())
            say("style", ClientCursor(own).execute("SELECT at FROM ware WHERE id = 4").pgresult.get_value(0, 0))
    say("parameters", own.info.parameter_status("TimeZone"), own.info.parameter_status("DateStyle"))
    own.execute("RESET ALL")


def cancel_when_it_runs(own):
    # A database that has not begun a statement when it is asked to cancel it cancels nothing.
    with connect() as other:
        running = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query = %s"
        while other.execute(running, (own.info.backend_pid, ENDLESS)).fetchone() != (1,):
            time.sleep(0.05)
    own.cancel()


def cancels(own):
    canceller = threading.Thread(target=cancel_when_it_runs, args=(own,))
    canceller.start()
    say("cancelled", tried(lambda: own.execute(ENDLESS)))
    canceller.join()
    own.execute("SET statement_timeout = 100")
    say("timed out", tried(lambda: own.execute(ENDLESS)))
    own.execute("RESET statement_timeout")
    say("usable", own.execute(READ, (4,)).fetchall())


def notifications(own):
    own.execute("LISTEN shop")
    with connect() as other:
        other.execute("NOTIFY shop, 'hello'")
    say("notified", [(note.channel, note.payload) for note in own.notifies(timeout=10, stop_after=1)])


async def by_asyncpg():
    own = await asyncpg.connect(
        host=os.environ["PGHOST"], port=os.environ["PGPORT"], user=os.environ["PGUSER"], database=os.environ["PGDATABASE"]
    )
    read = "SELECT id, name, price, at FROM ware WHERE id = $1"
    statement = await own.prepare(read)
    for _ in range(TIMES):
        say("asyncpg", await own.fetch(read, 3), await statement.fetch(4), await own.fetchval("SELECT count(*) FROM ware"))
        say("types", statement.get_parameters(), [each.name for each in statement.get_attributes()])
        await asyncio.sleep(0.02)
    async with own.transaction(isolation="repeatable_read"):
        say("in it", await own.fetch(read, 3))
        say("portal", [row["id"] async for row in own.cursor("SELECT id FROM ware WHERE id < 9 ORDER BY id", prefetch=3)])
    say("many", await own.executemany("UPDATE ware SET name = $1 WHERE id = $2", [("a", 1), ("b", 2), ("c", 3)]))
    say("seen", await own.fetch("SELECT id, name FROM ware WHERE id = ANY($1) ORDER BY id", [1, 2, 3]))
    # Where the request to cancel comes before the statement runs, the statement ends by itself, and comes again.
    await own.execute("SET statement_timeout = '5s'")
    while True:
        try:
            await own.fetch(ENDLESS, timeout=0.3)
        except asyncpg.QueryCanceledError:
            continue
        except asyncio.TimeoutError:
            break
    say("timed out", await own.fetchval("SELECT 1"))
    await own.reset()
    say("reset", await own.fetch(read, 3))
    await own.close()


with connect() as session:
    session.add_notice_handler(lambda notice: say("notice", notice.severity, notice.message_primary))
    for part in (tables, reads, writes, copies, pipelines, cursors, names, errors, settings, cancels, notifications):
        say("---", part.__name__)
        part(session)
say("--- asyncpg")
asyncio.run(by_asyncpg())
with connect() as session:
    session.execute("DROP TABLE ware")

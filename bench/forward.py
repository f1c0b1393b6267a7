"""Measures forwarded sessions beside a direct connection and PgBouncer: python3 bench/forward.py [--seconds 5]

It needs psql, PostgreSQL 15 with pgbench, PgBouncer, and a release build of the daemon (`make bench-forward` builds
it). Each line is pgbench with prepared point reads: through the daemon with answers kept (hit), with cache = 'off'
(forwarded), through PgBouncer, and directly. Then follow a slow query, what a change drops and costs, and commits that
wait for the cache beside those that wait for a physical standby. All share the machine's cores, so what counts are the
ratios within one run.
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List

from bus import cpu_seconds, free_port, listens, until

ROOT = Path(__file__).parent.parent
DAEMON = ROOT / "target/release/sqlcached"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")

#: Rows that are read: all of their answers fit, and all were read before it is measured.
ROWS = 1_000

#: Texts whose answers a change of a row touches.
TEXTS = 10


def user() -> List[str]:
    """What runs a program of PostgreSQL's server, which does not run as root."""
    as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    return as_postgres if os.getuid() == 0 else []


class Place:
    """The processes, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, []
        self.postgres, self.sql, self.memcached, self.bouncer = (free_port() for _ in range(4))
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = str(folder / "data")
        make = [*user(), str(PROGRAMS / "initdb"), "-A", "trust", "-U", "postgres", "-D", data]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        serve = [*user(), str(PROGRAMS / "postgres"), "-D", data, "-p", str(self.postgres), "-k", str(folder)]
        self.database = self.start([*serve, "-c", "wal_level=logical", "-c", "max_connections=300"], self.postgres)
        self.psql(self.postgres, "postgres", "CREATE DATABASE shop")
        rows = f"SELECT i, 'item ' || i FROM generate_series(1, {ROWS}) i"
        made = "CREATE TABLE item (id INT PRIMARY KEY, name TEXT)"
        self.psql(self.postgres, "shop", made, f"INSERT INTO item {rows}", "ANALYZE item")
        self.psql(self.postgres, "shop", "CREATE PUBLICATION cache FOR ALL TABLES")
        command = [str(DAEMON), "-p", str(self.memcached), "--sql-port", str(self.sql), "--http-port", "0"]
        self.daemon = self.start([*command, "-m", "2048", "--arena", "none"], self.sql)
        options = f"host '127.0.0.1', port '{self.postgres}', dbname 'shop', publication 'cache'"
        for name, cache in (("kept", "auto"), ("passed", "off")):
            self.psql(
                self.sql,
                "x",
                f"CREATE SERVER {name} FOREIGN DATA WRAPPER postgres OPTIONS ({options}, cache '{cache}')",
                f"CREATE USER MAPPING FOR PUBLIC SERVER {name} OPTIONS (user 'postgres')",
            )
        settings = folder / "bouncer.ini"
        settings.write_text(
            f"[databases]\nshop = host=127.0.0.1 port={self.postgres} dbname=shop user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.bouncer}\nauth_type = any\n"
            "pool_mode = session\ndefault_pool_size = 100\nunix_socket_dir =\n"
        )
        self.pooler = self.start([*user(), shutil.which("pgbouncer") or "pgbouncer", "-q", str(settings)], self.bouncer)

    def start(self, command: List[str], port: int) -> subprocess.Popen:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.processes.append(process)
        until(f"{Path(command[-1]).name} listens", lambda: listens(port))
        return process

    def psql(self, port: int, database: str, *statements: str) -> str:
        command = ["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database]
        command += ["-v", "ON_ERROR_STOP=1"]
        for statement in statements:
            command += ["-c", statement]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


READ = f"\\set id random(1, {ROWS})\nSELECT name FROM item WHERE id = :id;\n"


def pgbench(place: Place, port: int, database: str, text: str, *flags: str) -> Dict[str, float]:
    """Transactions, how many of them a second, and the microseconds of one in the middle and of one in a hundred."""
    script = place.folder / "script.sql"
    script.write_text(text)
    command = [str(PROGRAMS / "pgbench"), "-n", "-M", "prepared", "-f", str(script), "-j", "1", *flags]
    command += ["-l", "--log-prefix", str(place.folder / "log")]
    command += ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", database]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = []
    for log in place.folder.glob("log.*"):
        with log.open() as lines:
            took += [int(line.split()[2]) for line in lines]
        log.unlink()
    took.sort()
    tps = float(re.search(r"tps = ([\d.]+)", said)[1])
    return {"count": len(took), "tps": tps, "p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100]}


def measure(place: Place, clients: int, seconds: int) -> None:
    lines = [
        ("hit", place.sql, "kept", place.daemon),
        ("forwarded", place.sql, "passed", place.daemon),
        ("PgBouncer", place.bouncer, "shop", place.pooler),
        ("direct", place.postgres, "shop", None),
    ]
    print(f"{clients} clients: statements a second, p50 and p99, processor time between for each")
    for name, port, database, process in lines:
        pgbench(place, port, database, READ, "-c", str(clients), "-T", "2")
        before = cpu_seconds(process.pid) if process else 0.0
        done = pgbench(place, port, database, READ, "-c", str(clients), "-T", str(seconds))
        cpu = (cpu_seconds(process.pid) - before) / done["count"] * 1e6 if process else 0.0
        times = f"{done['p50']:>7} us {done['p99']:>7} us"
        print(f"  {name:<10} {done['tps']:>9.0f}/s {times} {cpu:>6.1f} us", flush=True)


def slow_query(place: Place, seconds: int) -> None:
    """A query that takes the database some 20 ms, there and from the cache."""
    rows = "SELECT i, i % 50, i / 7.0 FROM generate_series(1, 60000) i"
    place.psql(place.postgres, "shop", "CREATE TABLE sale (id INT PRIMARY KEY, kind INT, price NUMERIC)",
               f"INSERT INTO sale {rows}", "ANALYZE sale")
    # Definitions are looked at every two seconds.
    time.sleep(3)
    text = "SELECT kind, count(*), sum(price) FROM sale GROUP BY kind ORDER BY kind;\n"
    direct = pgbench(place, place.postgres, "shop", text, "-c", "1", "-T", str(seconds))
    pgbench(place, place.sql, "kept", text, "-c", "1", "-T", "3")
    kept = pgbench(place, place.sql, "kept", text, "-c", "1", "-T", str(seconds))
    print(f"a slow query: p50 {direct['p50'] / 1e3:.1f} ms at the database, {kept['p50'] / 1e3:.3f} ms as a hit", flush=True)


def settle(place: Place) -> None:
    """Waits until the cache has applied all that the database has written."""
    at = place.psql(place.postgres, "shop", "SELECT pg_current_wal_insert_lsn()").strip()
    assert place.psql(place.sql, "x", f"SELECT wait_for_source('kept', '{at}', '60 s')").strip() == "t"


def answers(place: Place) -> int:
    return int(place.psql(place.sql, "x", "SELECT count(*) FROM kept_answers"))


def read_each(place: Place, texts: List[str], rows: int) -> None:
    """Reads every row by each of these texts, once their answers are kept."""
    clients = 20
    script = f"\\set n :n + 1\n\\set id :client_id * {rows // clients} + :n\n" + "".join(f"{text};\n" for text in texts)
    flags = ["-D", "n=0", "-c", str(clients)]
    before = answers(place)
    for _ in range(30):
        pgbench(place, place.sql, "kept", script, "-t", "20", *flags)
        time.sleep(1)
        if answers(place) >= before + 20 * clients * len(texts):
            break
    pgbench(place, place.sql, "kept", script, "-t", str(rows // clients), *flags)


def changes(place: Place, rows: int) -> None:
    """What changes of some rows drop among the answers of all, and the processor time of a change that touches ten."""
    place.psql(place.postgres, "shop", "CREATE TABLE wide (id INT PRIMARY KEY, name TEXT)",
               f"INSERT INTO wide SELECT i, 'wide ' || i FROM generate_series(1, {rows}) i", "ANALYZE wide")
    # Definitions are looked at every two seconds.
    time.sleep(3)
    read_each(place, ["SELECT name FROM wide WHERE id = :id"], rows)
    settle(place)
    before, changed = answers(place), rows // 1_000
    concerned = "SELECT count(*) FROM kept_answers WHERE array_to_string(tags, ' ') ~ '=[0-9]*000( |$)'"
    concerned = int(place.psql(place.sql, "x", "SET statement_timeout = 0", concerned))
    place.psql(place.postgres, "shop", "UPDATE wide SET name = name || 'x' WHERE id % 1000 = 0")
    settle(place)
    dropped = before - answers(place)
    needless = dropped - concerned
    print(f"{before} answers kept, {changed} rows changed: {dropped} answers dropped, {needless} needlessly", flush=True)
    # A transaction of more than 10,000 keys drops all answers instead of looking for each.
    touched = min(rows, 5_000)
    cpu, gone = {}, {}
    texts = [f"SELECT name, {number} FROM wide WHERE id = :id" for number in range(TEXTS)]
    before = answers(place)
    read_each(place, texts, touched)
    kept = (answers(place) - before) / touched
    for name, place_of in (("none", f"id > {rows}"), (f"{kept + 1:.1f} answers", f"id <= {touched}")):
        if name == "none":
            more = f"INSERT INTO wide SELECT i, 'more' FROM generate_series({rows + 1}, {rows + touched}) i"
            place.psql(place.postgres, "shop", more)
            settle(place)
        began = cpu_seconds(place.daemon.pid)
        before = answers(place)
        place.psql(place.postgres, "shop", f"UPDATE wide SET name = name || 'y' WHERE {place_of}")
        settle(place)
        gone[name] = before - answers(place)
        cpu[name] = (cpu_seconds(place.daemon.pid) - began) / touched * 1e6
    told = (f"{cpu[name]:.1f} us if it touches {name} ({gone[name]} gone of {touched})" for name in cpu)
    print("processor time of a change: " + ", ".join(told), flush=True)


def commits(place: Place, seconds: int) -> None:
    """Commits that wait for a physical standby, and those that wait for the cache."""
    port, data = free_port(), place.folder / "standby"
    source = f"host=127.0.0.1 port={place.postgres} user=postgres application_name=physical"
    copy = [*user(), str(PROGRAMS / "pg_basebackup"), "-R", "-c", "fast", "-d", source, "-D", str(data)]
    subprocess.run(copy, check=True, stdout=subprocess.DEVNULL, cwd=place.folder)
    serve = [*user(), str(PROGRAMS / "postgres"), "-D", str(data), "-p", str(port), "-k", str(place.folder)]
    place.start([*serve, "-c", "wal_level=logical", "-c", "max_connections=300"], port)
    place.psql(place.sql, "x", "ALTER SERVER kept OPTIONS (ADD freshness 'commit')")
    text = f"\\set id random(1, {ROWS})\nUPDATE item SET name = name WHERE id = :id;\n"
    took = {}
    for name, standbys in (("nobody", ""), ("a standby", "ANY 1 (physical)"), ("the cache", "ANY 1 (sqlcached)")):
        place.psql(place.postgres, "shop", f"ALTER SYSTEM SET synchronous_standby_names = '{standbys}'",
                   "SELECT pg_reload_conf()")
        if standbys:
            waits = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'"
            until(f"{name} is waited for", lambda: place.psql(place.postgres, "shop", waits).strip() == "1")
        took[name] = pgbench(place, place.postgres, "shop", text, "-c", "1", "-T", str(seconds))
    times = ", ".join(f"for {name} p50 {done['p50']} us, p99 {done['p99']} us" for name, done in took.items())
    print(f"commits that wait {times}", flush=True)
    place.psql(place.postgres, "shop", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


def freshness(place: Place) -> None:
    """Milliseconds from the end of a commit at the database until a kept answer shows it."""
    reader = subprocess.Popen(
        ["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(place.sql), "-U", "postgres", "-d", "kept"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )

    def read() -> str:
        reader.stdin.write("SELECT name FROM item WHERE id = 1;\n")
        reader.stdin.flush()
        return reader.stdout.readline().strip()

    took = []
    for number in range(50):
        for _ in range(10):
            read()
        place.psql(place.postgres, "shop", f"UPDATE item SET name = 'name {number}' WHERE id = 1")
        began = time.perf_counter()
        while read() != f"name {number}":
            pass
        took.append(1e3 * (time.perf_counter() - began))
    took.sort()
    print(f"a commit shows behind its answer after: p50 {took[25]:.2f} ms, longest {took[-1]:.2f} ms")
    reader.stdin.close()
    reader.wait()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=int, default=5, help="of each line")
    arguments.add_argument("--answers", type=int, default=100_000, help="of which changes drop some")
    given = arguments.parse_args()
    seconds = given.seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        place = Place(Path(folder))
        try:
            for clients in (1, 50):
                measure(place, clients, seconds)
            freshness(place)
            slow_query(place, seconds)
            changes(place, given.answers)
            commits(place, seconds)
            columns = "statement, hits, forwarded, kept, late"
            print(place.psql(place.sql, "x", f"SELECT {columns} FROM sqlcached_forwarded WHERE state = 'kept'"), end="")
        finally:
            place.end()


if __name__ == "__main__":
    main()

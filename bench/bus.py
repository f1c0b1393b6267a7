"""Measures two caches on a bus: python3 bench/bus.py [--bus one|three|postgresql ...] [--only NAME ...]

It needs psql, a release build of the daemon (`make bench-bus` builds it), and the NATS server that `cargo xtask ci
tools` installs. A bus is one server of NATS, three of them that keep each message (`replicas '3'`), or PostgreSQL 15.
NAME is a function below: propagation, cost, cut_off, rejoin, removed; the last one is for NATS only. Caches, bus and
this program share the machine's cores, so times hold for a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from multiprocessing import Process
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Union

ROOT = Path(__file__).parent.parent
DAEMON = ROOT / "target/release/sqlcached"
NATS = ROOT / "target/drivers/nats/bin/nats-server"
POSTGRESQL = Path("/usr/lib/postgresql/15/bin")

#: Rows of the tables, and of the one that a cache finds again when it starts.
ROWS, MANY_ROWS = 200_000, 1_000_000

#: Deletions a second while single ones are watched, and how many of those there are.
RATE, SAMPLES = 1_000, 3_000

#: Commands that a client sends at once, where it does not wait for each.
BATCH = 1_000

#: Seconds: what has not come by then does not come.
PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what: str, is_so: Callable[[], bool]) -> float:
    """Waits until something is so, and returns how many seconds that took."""
    began = time.perf_counter()
    while not is_so():
        if time.perf_counter() - began > PATIENCE:
            raise TimeoutError(f"it never came to this: {what}")
        time.sleep(0.002)
    return time.perf_counter() - began


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, with all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Nats:
    """Servers of NATS that keep streams in files, each message in all of them."""

    def __init__(self, disk: Path, count: int) -> None:
        self.ports, self.monitors, routes = ([free_port() for _ in range(count)] for _ in range(3))
        self.commands = []
        for at, (port, monitor) in enumerate(zip(self.ports, self.monitors)):
            command = [str(NATS), "-js", "-sd", str(disk / f"nats{at}"), "-a", "127.0.0.1", "-p", str(port)]
            command += ["-m", str(monitor)]
            if count > 1:
                all_routes = ",".join(f"nats://127.0.0.1:{route}" for route in routes)
                command += ["-n", f"n{at}", "--cluster_name", "bench", "--cluster", f"nats://127.0.0.1:{routes[at]}"]
                command += ["--routes", all_routes, "--no_advertise"]
            self.commands.append(command)
        self.start()

    def definition(self) -> str:
        servers = ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)
        return f"""CREATE SERVER bus FOREIGN DATA WRAPPER nats
            OPTIONS (servers '{servers}', stream 'bench', replicas '{len(self.ports)}')"""

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes = [subprocess.Popen(command, **quiet) for command in self.commands]
        until("NATS answers", lambda: all(listens(port) for port in self.ports))

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(process.pid) for process in self.processes)

    def traffic(self) -> Dict[str, int]:
        """Bytes and messages that came in and went out of all servers so far."""
        names = ("bytes in", "messages in", "bytes out", "messages out")
        total = dict.fromkeys(names, 0)
        for monitor in self.monitors:
            with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/varz") as answer:
                figures = json.load(answer)
            for name, own in zip(names, ("in_bytes", "in_msgs", "out_bytes", "out_msgs")):
                total[name] += figures[own]
        return total

    def remove_stream(self) -> None:
        with socket.create_connection(("127.0.0.1", self.ports[0])) as link:
            ask = b"PUB $JS.API.STREAM.DELETE.bench _INBOX.b 0\r\n\r\n"
            link.sendall(b"CONNECT {\"verbose\":false}\r\nSUB _INBOX.b 1\r\n" + ask)
            answer = b""
            while b"success" not in answer:
                answer += link.recv(4096)


class PostgreSql:
    """A PostgreSQL of its own, with a log that is flushed to the disk."""

    def __init__(self, disk: Path) -> None:
        self.port, self.folder = free_port(), disk / "postgresql"
        self.folder.mkdir()
        disk.chmod(0o755)
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres", str(self.folder)], check=True)
        made = [*self.program("initdb"), "-A", "trust", "-U", "postgres", "-D", str(self.folder / "data")]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        self.start()
        self.sql("CREATE ROLE cache SUPERUSER LOGIN REPLICATION")

    @staticmethod
    def program(name: str) -> List[str]:
        """One of its programs, which refuse to run as root."""
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        return [*(as_user if os.getuid() == 0 else []), str(POSTGRESQL / name)]

    def definition(self) -> str:
        return f"""CREATE SERVER bus FOREIGN DATA WRAPPER postgres
                OPTIONS (bus 'on', host '127.0.0.1', port '{self.port}', dbname 'postgres');
            CREATE USER MAPPING FOR PUBLIC SERVER bus OPTIONS (user 'cache')"""

    def sql(self, text: str) -> str:
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres"]
        asked = subprocess.run(["psql", *place, "-qAt", "-c", text], check=True, capture_output=True, text=True)
        return asked.stdout.strip()

    def start(self) -> None:
        command = [*self.program("postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        command += ["-p", str(self.port), "-c", "wal_level=logical", "-c", "listen_addresses=127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready = ["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until("PostgreSQL answers", lambda: subprocess.run(ready).returncode == 0)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def cpu_seconds(self) -> float:
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return sum(cpu_seconds(int(pid)) for pid in [own, *children])

    def traffic(self) -> Dict[str, int]:
        return {"bytes of log": int(self.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))}


Bus = Union[Nats, PostgreSql]

BUSES: Dict[str, Callable[[Path], Bus]] = {
    "one": lambda disk: Nats(disk, 1),
    "three": lambda disk: Nats(disk, 3),
    "postgresql": PostgreSql,
}


class Link:
    """A connection of a memcached client."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("rb")

    def ask(self, command: str) -> bytes:
        self.socket.sendall(command.encode() + b"\r\n")
        return self.lines.readline().rstrip()

    def ask_all(self, commands: List[str]) -> None:
        """Sends them at once, and reads a line for each."""
        self.socket.sendall("".join(f"{command}\r\n" for command in commands).encode())
        for _ in commands:
            self.lines.readline()

    def has(self, key: str) -> bool:
        found = self.ask(f"get {key}") != b"END"
        if found:
            self.lines.readline()
            self.lines.readline()
        return found


class Cache:
    """A daemon with a table on the bus, and one that is its own."""

    def __init__(self, folder: Path, name: str, bus: Bus) -> None:
        self.port, self.sql_port = free_port(), free_port()
        self.command = [str(DAEMON), "-p", str(self.port), "--sql-port", str(self.sql_port), "--sql-socket-dir", "none"]
        self.command += ["--http-port", "0", "-s", "none", "-m", "1024", "--arena", str(folder / f"{name}.arena")]
        self.start()
        self.sql(f"""
            {bus.definition()};
            CREATE TABLE page (id INT PRIMARY KEY, body TEXT)
                WITH (prefix = 'page:', value = 'body', bus = 'bus', replicated = 'invalidate');
            CREATE TABLE alone (id INT PRIMARY KEY, body TEXT) WITH (prefix = 'alone:', value = 'body')""")
        self.until_streaming()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("the cache answers", lambda: listens(self.sql_port) and listens(self.port))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def sql(self, text: str) -> str:
        place = ["-h", "127.0.0.1", "-p", str(self.sql_port), "-U", "app", "-d", "sqlcached"]
        command = ["psql", *place, "-qAt", "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def until_streaming(self) -> float:
        return until("it is fresh", lambda: self.sql("SELECT state FROM sqlcached_buses") == "streaming")

    def fill(self, table: str, rows: int) -> None:
        step = 100_000
        for first in range(0, rows, step):
            self.sql(f"""INSERT INTO {table} SELECT n, 'a body of some forty bytes, as they are said'
                FROM generate_series({first}, {min(first + step, rows) - 1}) n ON CONFLICT (id) DO NOTHING""")

    def hear(self, other: Cache) -> None:
        """Waits until what another one has told is applied."""
        sequence = other.sql("SELECT bus_sequence('bus')")
        until("it is applied", lambda: self.sql(f"SELECT wait_for_bus('bus', {sequence}, '1 s')") == "t")

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Bench:
    """Two caches on a bus."""

    def __init__(self, kind: str, disk: Path, folder: Path) -> None:
        self.bus = BUSES[kind](disk)
        self.a, self.b = (Cache(folder, name, self.bus) for name in "ab")

    def cpu_seconds(self) -> List[float]:
        return [cpu_seconds(self.a.process.pid), cpu_seconds(self.b.process.pid), self.bus.cpu_seconds()]

    def end(self) -> None:
        for one in (self.a, self.b, self.bus):
            one.kill()


def percentiles(name: str, seconds: List[float]) -> None:
    ordered = sorted(seconds)
    p50, p99 = (1000 * ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
    worst = 1000 * ordered[-1]
    print(f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {worst:.2f} ms, {len(ordered)} times", flush=True)


def delete_steadily(port: int, rate: int) -> None:
    """Deletes keys that are nowhere, so many a second, as a client that does not wait."""
    link, began, sent = Link(port), time.perf_counter(), 0
    while True:
        due = int((time.perf_counter() - began) * rate)
        if due > sent:
            link.socket.sendall("".join(f"delete page:{10**8 + n} noreply\r\n" for n in range(sent, due)).encode())
            sent = due
        time.sleep(0.0005)


def watched(bench: Bench, name: str) -> None:
    """How long a deletion takes until it is answered, and until another cache does not have the row any more."""
    a, b = Link(bench.a.port), Link(bench.b.port)
    answered, gone = [], []
    for number in range(SAMPLES):
        key = f"page:{10**7 + number}"
        b.socket.sendall(f"set {key} 0 0 1 noreply\r\nx\r\n".encode())
        assert b.has(key)
        began = time.perf_counter()
        if number % 2:
            a.ask(f"delete {key}")
            answered.append(time.perf_counter() - began)
        else:
            a.socket.sendall(f"delete {key}\r\n".encode())
            while b.has(key):
                pass
            gone.append(time.perf_counter() - began)
            a.lines.readline()
    percentiles(f"a deletion is answered, {name}", answered)
    percentiles(f"the row is gone in the other cache, {name}", gone)


def propagation(bench: Bench) -> None:
    watched(bench, "nothing else is told")
    load = Process(target=delete_steadily, args=(bench.a.port, RATE), daemon=True)
    load.start()
    try:
        watched(bench, f"{RATE} others a second")
    finally:
        load.kill()
        load.join()


def used(bench: Bench, work: Callable[[], None]) -> List[float]:
    """Processor seconds of both caches and of the bus for something, beyond what they take while they do nothing."""
    before, began = bench.cpu_seconds(), time.perf_counter()
    time.sleep(2.0)
    rested = time.perf_counter() - began
    idle = [(now - first) / rested for now, first in zip(bench.cpu_seconds(), before)]
    before, began = bench.cpu_seconds(), time.perf_counter()
    work()
    took = time.perf_counter() - began
    return [now - first - rest * took for now, first, rest in zip(bench.cpu_seconds(), before, idle)]


def batches(prefix: str, rows: int) -> Iterator[List[str]]:
    for first in range(0, rows, BATCH):
        yield [f"delete {prefix}{n}" for n in range(first, min(first + BATCH, rows))]


def cost(bench: Bench) -> None:
    """Processor time and bytes of a deletion that another cache applies, and of one that stays here."""
    link = Link(bench.a.port)
    bench.a.fill("alone", ROWS)
    alone = used(bench, lambda: [link.ask_all(batch) for batch in batches("alone:", ROWS)])[0]
    print(f"a deletion without a bus: {1e6 * alone / ROWS:.2f} us of the cache", flush=True)

    def told(name: str, count: int, work: Callable[[], object]) -> None:
        bench.a.fill("page", ROWS)
        bench.b.fill("page", ROWS)

        def both() -> None:
            nonlocal took
            began = time.perf_counter()
            work()
            bench.b.hear(bench.a)
            took = time.perf_counter() - began

        took, before = 0.0, bench.bus.traffic()
        sender, receiver, bus = (1e6 * seconds / count for seconds in used(bench, both))
        grown = {key: value - before[key] for key, value in bench.bus.traffic().items()}
        each = ", ".join(f"{value / count:.2f} {key}" for key, value in grown.items())
        print(f"a deletion, {name}: sender {sender:.2f} us, receiver {receiver:.2f} us, bus {bus:.2f} us;", end=" ")
        print(f"{each}; {count / took:,.0f} a second", flush=True)

    told(f"{BATCH} at once", ROWS, lambda: [link.ask_all(batch) for batch in batches("page:", ROWS)])
    single = ROWS // 20
    told("one after another", single, lambda: [link.ask(f"delete page:{n}") for n in range(single)])
    told("by a condition", ROWS, lambda: bench.a.sql(f"DELETE FROM page WHERE id < {ROWS}"))


def cut_off(bench: Bench) -> None:
    """Memory of a cache that cannot tell what its clients delete."""
    link, before = Link(bench.a.port), bench.a.resident_bytes()
    bench.bus.kill()
    for _ in range(5):
        link.socket.sendall("".join(f"{one} noreply\r\n" for some in batches("page:", ROWS) for one in some).encode())
        link.ask("mn")
    grown = bench.a.resident_bytes() - before
    outbox = bench.a.sql("SELECT outbox FROM sqlcached_buses")
    print(f"{5 * ROWS} deletions while the bus is away: {grown / 2**20:.1f} MiB more memory, outbox {outbox}", flush=True)
    bench.bus.start()
    for cache in (bench.a, bench.b):
        cache.until_streaming()
    took = until("it is told", lambda: bench.a.sql("SELECT outbox FROM sqlcached_buses") == "0")
    print(f"when the bus was back all was told after {took:.2f} s more", flush=True)


def rejoin(bench: Bench) -> None:
    """From the start of a cache that was killed until it serves, with its rows and without those that were deleted."""
    bench.b.fill("page", MANY_ROWS)
    heard = "SELECT count(*) FROM sqlcached_nodes WHERE own AND applied > 0"
    until("what was heard is written down", lambda: bench.b.sql(heard) == "1")
    before = int(bench.b.sql("SELECT applied FROM sqlcached_buses"))
    until("it hears more", lambda: int(bench.b.sql("SELECT applied FROM sqlcached_buses")) > before + 3)
    bench.b.kill()
    Link(bench.a.port).ask_all([f"delete page:{n}" for n in range(BATCH)])
    began = time.perf_counter()
    bench.b.start()
    link = Link(bench.b.port)
    assert not link.has("page:1") and link.has(f"page:{BATCH}")
    print(f"rejoin with {MANY_ROWS} rows, after {BATCH} deletions: {time.perf_counter() - began:.2f} s", flush=True)
    assert bench.b.sql("SELECT count(*) FROM page") == str(MANY_ROWS - BATCH)


def removed(bench: Bench) -> None:
    """How long rows are believed after the stream was removed."""

    def figures() -> List[str]:
        return [cache.sql("SELECT emptied FROM sqlcached_buses") for cache in (bench.a, bench.b)]

    if not isinstance(bench.bus, Nats):
        print("a removed stream: a database has none", flush=True)
        return
    worst = 0.0
    for _ in range(5):
        for cache in (bench.a, bench.b):
            cache.until_streaming()
        emptied = figures()
        bench.bus.remove_stream()
        worst = max(worst, until("both have noticed it", lambda: all(map(str.__ne__, emptied, figures()))))
    print(f"a removed stream: rows were believed for {worst:.2f} s at most, of 5 times", flush=True)


FIGURES = {figure.__name__: figure for figure in (propagation, cost, cut_off, rejoin, removed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bus", nargs="+", choices=BUSES, default=list(BUSES))
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES))
    # `kill` ends what was started, too.
    signal.signal(signal.SIGTERM, lambda *_: exit(1))
    asked = parser.parse_args()
    for program in (DAEMON, NATS):
        if not program.exists():
            raise SystemExit(f"{program} is missing; see --help")
    for kind in asked.bus:
        print(f"bus: {kind}", flush=True)
        for name in asked.only:
            # The stream lies on a disk, and caches in memory, as they do elsewhere.
            with tempfile.TemporaryDirectory() as disk, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                bench = Bench(kind, Path(disk), Path(folder))
                try:
                    FIGURES[name](bench)
                finally:
                    bench.end()


if __name__ == "__main__":
    main()

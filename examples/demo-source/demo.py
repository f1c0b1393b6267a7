"""A shop's database changes, and the cached pages follow.

    make demo-source                              # builds sqlcached first
    python3 examples/demo-source/demo.py          # with the sqlcached that is installed
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import sys
import threading
import time

from servers import Servers, find

#: Products in the shop.
PRODUCTS = 20

#: Seconds between two looks at a page that is about to change, and the longest wait for it.
LOOK, PATIENCE = 0.0002, 5.0


class Client:
    """An unmodified client of memcached: it knows nothing of tables and sources."""

    def __init__(self, port: int):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def get(self, key: str) -> str | None:
        self.stream.write(f"get {key}\r\n".encode())
        self.stream.flush()
        head = self.stream.readline()
        if head == b"END\r\n":
            return None
        value = self.stream.read(int(head.split()[-1]) + 2)[:-2].decode()
        self.stream.readline()
        return value


class Visitors(threading.Thread):
    """Clients who read pages all the time."""

    def __init__(self, port: int, rate: float):
        super().__init__(daemon=True)
        self.client, self.rate, self.reads, self.missing = Client(port), rate, 0, 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(1 / self.rate):
            self.missing += self.client.get(f"product:{random.randint(1, PRODUCTS)}") is None
            self.reads += 1


class Edits:
    """Somebody changes the shop's database by psql, and a client looks how long the old page is served then."""

    def __init__(self, servers: Servers):
        self.servers, self.client = servers, Client(servers.ports["memcached"])
        self.took: list[float] = []

    def one(self) -> None:
        product, price = random.randint(1, PRODUCTS), random.randint(10, 99)
        key, before = f"product:{product}", self.client.get(f"product:{product}")
        sql = f"UPDATE product SET price = {price} + 0.01 * {random.randint(1, 99)} WHERE id = {product} RETURNING name || ': ' || price"
        wanted = self.servers.source.ask(sql)
        done = time.monotonic()
        print(f"psql> UPDATE product SET price = {wanted.split(': ')[1]} WHERE id = {product};", flush=True)
        while (page := self.client.get(key)) != wanted:
            if time.monotonic() - done > PATIENCE:
                sys.exit(f"{key} is still {page!r}")
            time.sleep(LOOK)
        self.took.append(time.monotonic() - done)
        print(f"      get {key}   {before!r} -> {page!r}", flush=True)


def status(servers: Servers, visitors: Visitors) -> str:
    facts = servers.cache.ask("SELECT round(lag_ms, 1), invalidated, fetches, fills FROM sqlcached_sources")
    lag, invalidated, fetches, fills = facts.split("|")
    return (f"{visitors.reads} reads by clients of memcached, {visitors.missing} misses; {fetches} queries of the database for "
            f"{fills} rows; {invalidated} rows invalidated; lag {lag or '?'} ms")


def show(servers: Servers, rate: float, every: float, rounds: int) -> None:
    ports = servers.ports
    print(f"Change the shop yourself:  {' '.join(servers.source.command)}")
    print("    UPDATE product SET price = 1 WHERE id = 7;")
    print(f"Read a page as a client:   printf 'get product:7\\r\\n' | nc -N 127.0.0.1 {ports['memcached']}")
    print(f"The console:               http://127.0.0.1:{ports['http']}/")
    print("Ctrl-C ends it.\n", flush=True)
    visitors, edits = Visitors(ports["memcached"], rate), Edits(servers)
    visitors.start()
    while rounds == 0 or len(edits.took) < rounds:
        edits.one()
        print(f"      {status(servers, visitors)}", flush=True)
        time.sleep(every)
    visitors.over.set()
    longest = max(edits.took) * 1000
    print(f"\n{rounds} changes; each new page was there {longest:.1f} ms after psql was done, or earlier")


def be_quiet() -> None:
    """Nobody wants to read what threads say whose servers end, and a second Ctrl-C would leave these behind."""
    if sys.exc_info()[0] in (None, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr = open(os.devnull, "w")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only look whether all that is needed is installed")
    parser.add_argument("--program", help="the sqlcached to use; without it the one that is installed")
    parser.add_argument("--rate", type=float, default=200, help="pages that visitors read each second; 200")
    parser.add_argument("--every", type=float, default=3, help="seconds between two changes of the shop; 3")
    parser.add_argument("--rounds", type=int, default=0, help="end after so many changes; 0: Ctrl-C ends it")
    given = parser.parse_args()
    for name in ("initdb", "postgres"):
        find(name, "apt-get install postgresql")
    find("psql", "apt-get install postgresql-client")
    if given.check:
        return
    ours = find("sqlcached", "make demo-source builds it", given.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    servers = Servers(ours, PRODUCTS)
    try:
        show(servers, given.rate, given.every, given.rounds)
    finally:
        be_quiet()
        servers.end()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)

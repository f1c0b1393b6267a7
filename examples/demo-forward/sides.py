"""The same shop twice: directly at its database, and with the port of the cache. And who compares them."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import deque
from http.client import HTTPConnection
from typing import Callable

from behind import HERE, PRODUCTS, Behind
from caches import Connection
from servers import OWN, free_port, wait_for
from web import Actions

#: One visit of so many is to the dashboard.
DASHBOARD = 5

#: Seconds between two looks at the figures, and how many of them a rate is made of.
LOOK, LOOKS = 0.5, 6

#: Seconds between two edits, how many of them the page lists, and how long both sides may take to show the same.
EDIT_EVERY, EDITS_SHOWN, PATIENCE = 2.0, 8, 10.0

#: Seconds that a page may take.
PAGE_SECONDS = 30.0

#: What is counted of each.
COUNTS = ("hits", "forwarded", "forwarded_ms")

STATEMENTS = """SELECT statement, state, reason, cure, array_to_string(depends, ', ') AS depends, forwarded, forwarded_ms, hits
    FROM sqlcached_forwarded"""


class Side:
    """A process with the shop, and a visitor who opens one page after the other."""

    def __init__(self, name: str, python: str, database: int) -> None:
        self.name, self.port, self.visits, self.figures = name, free_port(), 0, {"queries": 0, "dashboard_ms": None}
        command = [python, "-B", str(HERE / "shop.py"), "--listen", str(self.port), "--database", str(database)]
        self.process = subprocess.Popen(command, **OWN)
        self.open = threading.Event()
        self._queries: deque[tuple[float, int]] = deque(maxlen=LOOKS)

    def begin(self) -> None:
        wait_for(self.process, self.port)
        for work in (self._visit_for_ever, self._look_for_ever):
            threading.Thread(target=work, daemon=True).start()

    def get(self, path: str) -> str:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PAGE_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{self.name}: {path} answers {answer.status}")
        return body

    def _visit_for_ever(self) -> None:
        while self.open.wait():
            number = random.randint(1, PRODUCTS)
            self.get("/dashboard" if self.visits % DASHBOARD == 0 else f"/product/{number}")
            self.visits += 1

    def _look_for_ever(self) -> None:
        while True:
            self.figures = json.loads(self.get("/figures"))
            self._queries.append((time.monotonic(), self.figures["queries"]))
            time.sleep(LOOK)

    def state(self) -> dict:
        (begin, first), (end, last) = (self._queries[0], self._queries[-1]) if self._queries else ((0, 0), (0, 0))
        rate = (last - first) / (end - begin) if end > begin else 0
        return {"name": self.name, "visits": self.visits, "rate": rate, **self.figures}

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


class Sides:
    """Both, and edits by psql directly at the database."""

    def __init__(self, servers: Behind, python: str) -> None:
        self.servers = servers
        self.direct = Side("directly at PostgreSQL", python, servers.ports["postgres"])
        self.cached = Side("with the port of sqlcached", python, servers.ports["sql"])
        self.edits: list[dict] = []
        self.same, self.differing, self._count = 0, 0, 0
        self._lock, self._editing = threading.Lock(), threading.Event()

    def begin(self) -> None:
        for side in (self.direct, self.cached):
            side.begin()
        threading.Thread(target=self._edit_for_ever, daemon=True).start()

    def edit(self, product: int) -> dict:
        """Changes a price by psql, and looks until the cached side shows it, and both sides the same."""
        with self._lock:
            self._count += 1
            price = f"{random.randint(10, 99)}.{self._count % 100:02}"
            sql = f"UPDATE product SET price = {price} WHERE id = {product}"
            self.servers.source.ask(sql)
            done = time.monotonic()
            self._until(done, lambda: f": {price}\n" in self.cached.get(f"/product/{product}"))
            took = 1000 * (time.monotonic() - done)
            same = self._until(done, lambda: self._same(product))
            self.same += same
            self.differing += not same
            edit = {"number": self._count, "sql": sql, "same": same, "ms": took}
            self.edits = [edit, *self.edits][:EDITS_SHOWN]
        return edit

    def _until(self, since: float, check: Callable[[], bool]) -> bool:
        while not (done := check()) and time.monotonic() - since < PATIENCE:
            pass
        return done

    def _same(self, product: int) -> bool:
        """Both pages that show the price are the same on both sides."""
        return all(self.direct.get(path) == self.cached.get(path) for path in (f"/product/{product}", "/dashboard"))

    def _edit_for_ever(self) -> None:
        while self._editing.wait():
            self.edit(random.randint(1, PRODUCTS))
            time.sleep(EDIT_EVERY)

    def set_editing(self, on: bool) -> None:
        (self._editing.set if on else self._editing.clear)()

    def set_load(self, on: bool) -> None:
        for side in (self.direct, self.cached):
            (side.open.set if on else side.open.clear)()

    def statements(self) -> list[dict]:
        """What became of each kind of statement, those first that the database spent most time with. Django writes
        values into its texts, so those that differ in numbers alone are one."""
        connection = Connection(self.servers.ports["memcached"])
        kinds: dict[tuple, dict] = {}
        for row in connection.sql(STATEMENTS):
            text = "".join("#" if letter.isdigit() else letter for letter in row["statement"])
            while "##" in text:
                text = text.replace("##", "#")
            fresh = {**row, "statement": text, **dict.fromkeys(COUNTS, 0)}
            known = kinds.setdefault((text, row["state"], row["reason"]), fresh)
            for name in COUNTS:
                known[name] += row[name] or 0
        return sorted(kinds.values(), key=lambda kind: -kind["forwarded_ms"])

    def actions(self) -> Actions:
        return {
            "/edit": lambda body: self.edit(_product(int(body["product"]))),
            "/load": lambda body: self.set_load(bool(body["on"])),
            "/editing": lambda body: self.set_editing(bool(body["on"])),
        }

    def state(self) -> dict:
        return {
            "sides": [self.direct.state(), self.cached.state()],
            "statements": self.statements(),
            "edits": self.edits,
            "same": self.same,
            "differing": self.differing,
            "load": self.direct.open.is_set(),
            "editing": self._editing.is_set(),
            "products": PRODUCTS,
            "psql": " ".join(self.servers.source.command),
            "console": f"http://127.0.0.1:{self.servers.ports['http']}/",
        }

    def end(self) -> None:
        for side in (self.direct, self.cached):
            side.end()


def _product(number: int) -> int:
    if not 1 <= number <= PRODUCTS:
        raise ValueError(number)
    return number

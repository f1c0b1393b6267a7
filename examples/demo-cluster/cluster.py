"""The shop on three caches: who sees which price, and what each cache says of itself."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

# Behind this folder, which has files of the same names.
sys.path.append(str(Path(__file__).resolve().parents[1] / "demo"))

from caches import INDEX, TABLE, Connection, Tables  # noqa: E402
from halves import Half, Piece  # noqa: E402
from load import Load  # noqa: E402
from servers import CutOff, Machine  # noqa: E402
from shop import PRODUCTS, Shop  # noqa: E402
from web import Actions  # noqa: E402

#: Seconds after which a cache that does not hear the bus believes nothing.
MAX_LAG = 6

#: How often a cache is asked how it does, in seconds, and how long it may take to answer.
LOOK, ANSWER = 0.1, 2.0

#: Seconds between two edits, and how many of them the page lists.
EDIT_EVERY, EDITS_SHOWN = 2.0, 8

BUS = """CREATE SERVER bus FOREIGN DATA WRAPPER nats
    OPTIONS (servers '{servers}', replicas '3', max_lag '{max_lag} s')"""
SHARED = TABLE.replace("value = 'body')", "value = 'body', bus = 'bus', replicated = 'invalidate')")
FACTS = """SELECT state, lag_ms, outbox, breaks, (SELECT count(*) FROM sqlcached_nodes WHERE heard_ms < 5000) AS heard,
    (SELECT rows FROM sqlcached_tables WHERE table_name = 'frag') AS rows FROM sqlcached_buses"""


class Shared(Tables):
    """sqlcached, with a table of which the other caches hear."""

    def __init__(self, machine: CutOff) -> None:
        self._local, self.port = threading.local(), machine.port
        servers = ",".join(f"nats://127.0.0.1:{way.port}" for way in machine.ways)
        self.connection.sql(BUS.format(servers=servers, max_lag=MAX_LAG))
        self.connection.sql(SHARED)
        self.connection.sql(INDEX)

    def forget(self) -> None:
        """The connection is of no use any more."""
        vars(self._local).pop("connection", None)


class Node(Half):
    """A cache with its visitors. It is judged by what it says of itself: what was edited before it was fresh, nobody
    may see as it was before."""

    def __init__(self, machine: CutOff, shop: Shop, edits: list[tuple[float, int, int]]) -> None:
        self.machine, self.away, self.facts = machine, 0, {}
        super().__init__(machine.name, Shared(machine), shop)
        self._edits, self._judged = edits, 0
        threading.Thread(target=self._look_for_ever, daemon=True).start()

    def visit(self, kind: str, number: int, user: int, due: float | None = None) -> list[Piece]:
        try:
            return super().visit(kind, number, user, due)
        except (OSError, ValueError, IndexError):
            self.cache.forget()
            self.away += 1
            # Nobody else is kept waiting.
            time.sleep(LOOK)
            return []

    def _look_for_ever(self) -> None:
        connection = None
        while True:
            began = time.monotonic()
            try:
                connection = connection or Connection(self.machine.port, ANSWER)
                self.facts = connection.sql(FACTS)[0]
                self._judge(began)
            except (OSError, RuntimeError, ValueError, IndexError):
                connection, self.facts = None, {}
            time.sleep(LOOK)

    def _judge(self, began: float) -> None:
        if self.facts["state"] != "streaming" or self.facts["lag_ms"] is None:
            return
        fresh = began - self.facts["lag_ms"] / 1000
        while self._judged < len(self._edits) and self._edits[self._judged][0] < fresh:
            _, product, edits = self._edits[self._judged]
            self.note_told(product, edits)
            self._judged += 1

    def says(self) -> str:
        """What it says of itself, in a word."""
        if not self.facts:
            return "does not answer"
        if self.facts["state"] == "streaming":
            return "fresh"
        return f"hears nothing: {self.facts['state']}"


class Cluster:
    """All of it, and what the buttons do."""

    def __init__(self, bus: list[Machine], machines: list[CutOff], shop: Shop, rate: float, seed: int) -> None:
        self.bus, self.shop, self.rate, self.seed = bus, shop, rate, seed
        self._acknowledged: list[tuple[float, int, int]] = []
        self.nodes = [Node(machine, shop, self._acknowledged) for machine in machines]
        self.edits: list[dict] = []
        self._count, self._lock, self._loads = 0, threading.Lock(), []
        self._editing = threading.Event()
        threading.Thread(target=self._edit_for_ever, daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Until all hear the bus."""
        end = time.monotonic() + seconds
        while any(node.says() != "fresh" for node in self.nodes):
            if time.monotonic() > end:
                sys.exit("the caches do not hear the bus: " + ", ".join(f"{node.name} {node.says()}" for node in self.nodes))
            time.sleep(LOOK)

    def machine(self, name: str) -> Machine:
        return {machine.name: machine for machine in [*self.bus, *(node.machine for node in self.nodes)]}[name]

    def edit(self, product: int) -> dict:
        """Changes a price, commits, and tells the first cache that acknowledges it."""
        with self._lock:
            price, edits = self.shop.edit(product)
            self._count += 1
            told = next((node.name for node in self._in_turn() if self._tell(node, product, edits)), None)
            edit = {"number": self._count, "product": product, "price": price, "acknowledged": told}
            self.edits = [edit, *self.edits][:EDITS_SHOWN]
        return edit

    def _in_turn(self) -> list[Node]:
        first = self._count % len(self.nodes)
        return self.nodes[first:] + self.nodes[:first]

    def _tell(self, node: Node, product: int, edits: int) -> bool:
        if node.machine.state in ("killed", "paused"):
            return False
        try:
            node.cache.remove(product, self.shop.names)
        except (OSError, RuntimeError):
            node.cache.forget()
            return False
        self._acknowledged.append((time.monotonic(), product, edits))
        return True

    def _edit_for_ever(self) -> None:
        number = 0
        while True:
            self._editing.wait()
            number += 1
            self.edit(1 + (number * 37) % PRODUCTS)
            time.sleep(EDIT_EVERY)

    def set_editing(self, on: bool) -> None:
        (self._editing.set if on else self._editing.clear)()

    def set_load(self, on: bool) -> None:
        with self._lock:
            if on and not self._loads:
                self._loads = [Load(node, self.rate, self.seed) for node in self.nodes]
            elif not on:
                for load in self._loads:
                    load.stop()
                self._loads = []

    def fail(self, name: str, how: str) -> None:
        machine = self.machine(name)
        if how not in ("kill", "pause", "cut", "heal") or not hasattr(machine, how):
            raise ValueError(how)
        getattr(machine, how)()

    def actions(self) -> Actions:
        return {
            "/edit": lambda body: self.edit(_product(int(body["product"]))),
            "/load": lambda body: self.set_load(bool(body["on"])),
            "/editing": lambda body: self.set_editing(bool(body["on"])),
            "/fail": lambda body: self.fail(str(body["name"]), str(body["how"])),
        }

    def state(self) -> dict:
        return {
            "nodes": [self._strip(node) for node in self.nodes],
            "bus": [{"name": server.name, "state": server.state} for server in self.bus],
            "edits": self.edits,
            "acknowledged": len(self._acknowledged),
            "load": bool(self._loads),
            "editing": self._editing.is_set(),
            "products": PRODUCTS,
            "max_lag": MAX_LAG,
        }

    def _strip(self, node: Node) -> dict:
        figures = node.figures()
        return {
            "name": node.name,
            "machine": node.machine.state,
            "says": node.says(),
            "console": f"http://127.0.0.1:{node.machine.http}/",
            "hit_ratio": figures["hit_ratio"],
            "visits": node.visits,
            "old": node.old,
            "away": node.away,
            **{name: node.facts.get(name) for name in ("lag_ms", "outbox", "breaks", "heard", "rows")},
        }


def _product(number: int) -> int:
    if not 1 <= number <= PRODUCTS:
        raise ValueError(number)
    return number

"""One half of the demo: a cache, the pages that it serves, and the figures that the browser shows."""

from __future__ import annotations

import re
import statistics
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Callable

from caches import Cache
from shop import Shop

#: Seconds that the charts show, and seconds over which ratios and rates are taken.
SHOWN, RECENT = 60, 10

#: A fragment counts as just made for so many seconds.
FRESH = 1.5

#: How long somebody waits for a fragment that another one makes, in seconds, and how often he looks.
WAIT, PAUSE = 1.0, 0.002

PRICE = re.compile(r'data-product="(\d+)" data-edits="(\d+)"')


@dataclass
class Second:
    """What happened within a second."""

    visits: int = 0
    hits: int = 0
    made: int = 0
    queries: int = 0
    requests: int = 0
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """A fragment of a served page, and whether it was made for it."""

    name: str
    html: str
    made: bool
    queries: int


class Half:
    """A cache with its figures. Any thread may use it."""

    def __init__(self, name: str, cache: Cache, shop: Shop, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.cache, self.shop, self._clock = name, cache, shop, clock
        self._lock = threading.Lock()
        self._seconds: deque[tuple[int, Second]] = deque(maxlen=SHOWN + 1)
        self._made_at: dict[str, float] = {}
        self._present: set[str] = set()
        #: How often each product was edited when this half had removed what shows it.
        self._told: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        """Counts from here on."""
        with self._lock:
            self._seconds.clear()
            self.visits = self.hits = self.made = self.queries = self.old = self.refused = 0

    def visit(self, kind: str, number: int, user: int, due: float | None = None) -> list[Piece]:
        """Serves a page. ``due`` is when its visitor came, if he had to wait before."""
        begin = self._clock() if due is None else due
        known = dict(self._told)
        names = self.shop.fragments(kind, number, user)
        keys, requests = self.cache.keys(names)
        found = self.cache.lookup(keys)
        pieces = [self._piece(name, key, answer) for name, key, answer in zip(names, keys, found)]
        self._count(pieces, requests + 1, self._clock() - begin, known)
        return pieces

    def _piece(self, name: str, key: str, answer: tuple[bytes, bytes | None, int]) -> Piece:
        flags, body, cas = answer
        if body:
            return Piece(name, body.decode(), False, 0)
        if b"W" not in flags.split():
            body, cas = self._wait(key)
            if body:
                return Piece(name, body.decode(), False, 0)
        made = self.shop.make(name)
        if cas:
            self._stored(name, self.cache.fill(key, made.html.encode(), cas))
        return Piece(name, made.html, True, made.queries)

    def _wait(self, key: str) -> tuple[bytes | None, int]:
        """Another thread makes the fragment. It, or the lease if the other one lost it, or neither."""
        end = self._clock() + WAIT
        while self._clock() < end:
            time.sleep(PAUSE)
            flags, body, cas = self.cache.lookup([key])[0]
            if body or b"W" in flags.split():
                return body or None, cas
        return None, 0

    def _stored(self, name: str, stored: bool) -> None:
        with self._lock:
            self.refused += not stored
            if stored:
                self._made_at[name] = self._clock()
                self._present.add(name)

    def _count(self, pieces: list[Piece], requests: int, seconds: float, known: dict[int, int]) -> None:
        prices = [match for piece in pieces for match in PRICE.findall(piece.html)]
        old = any(int(edits) < known.get(int(product), 0) for product, edits in prices)
        made, queries = sum(piece.made for piece in pieces), sum(piece.queries for piece in pieces)
        with self._lock:
            second = self._second()
            second.visits += 1
            second.hits += len(pieces) - made
            second.made += made
            second.queries += queries
            second.requests += requests
            second.times.append(seconds)
            self.visits += 1
            self.hits += len(pieces) - made
            self.made += made
            self.queries += queries
            self.old += old

    def _second(self) -> Second:
        now = int(self._clock())
        if not self._seconds or self._seconds[-1][0] != now:
            self._seconds.append((now, Second()))
        return self._seconds[-1][1]

    def edited(self, product: int, edits: int) -> int:
        """Removes what shows a product, after its so many-eth edit. How many fragments that were in the cache."""
        gone = self.cache.remove(product, self.shop.names)
        with self._lock:
            count = len(gone & self._present)
            self._present -= gone
        self.note_told(product, edits)
        return count

    def note_told(self, product: int, edits: int) -> None:
        """From now on nobody may see the product as it was before its so many-eth edit."""
        with self._lock:
            self._told = {**self._told, product: edits}

    def forget(self) -> None:
        """Begins again: nothing is known to be in the cache."""
        with self._lock:
            self._present.clear()
            self._made_at.clear()

    def figures(self) -> dict:
        """What the browser shows."""
        with self._lock:
            now = self._clock()
            seconds = dict(self._seconds)
            last = [seconds.get(int(now) - back, Second()) for back in range(1, RECENT + 1)]
            hits, made, visits = (sum(getattr(each, name) for each in last) for name in ("hits", "made", "visits"))
            times = [one for each in last for one in each.times]
            chart = [seconds.get(int(now) - back, Second()).made for back in range(SHOWN, 0, -1)]
            states = "".join(self._state(name, now) for name in self.shop.names)
            return {
                "name": self.name,
                "hit_ratio": hits / (hits + made) if hits + made else None,
                "made_a_second": made / RECENT,
                "queries_a_second": sum(each.queries for each in last) / RECENT,
                "requests_a_visit": sum(each.requests for each in last) / visits if visits else None,
                "page_ms": 1000 * statistics.median(times) if times else None,
                "slow_ms": 1000 * statistics.quantiles(times, n=20)[-1] if len(times) > 1 else None,
                "totals": {name: getattr(self, name) for name in ("visits", "hits", "made", "queries", "old", "refused")},
                "chart": chart,
                "map": states,
            }

    def _state(self, name: str, now: float) -> str:
        """A letter of the map: missing, just made, cached."""
        if name not in self._present:
            return "-"
        return "+" if now - self._made_at[name] < FRESH else "o"

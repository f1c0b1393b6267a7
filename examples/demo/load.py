"""The load generator: the same visitors come to both halves at the same moments."""

from __future__ import annotations

import itertools
import random
import threading
import time

from halves import Half
from shop import CATEGORIES, PRODUCTS, SEARCHES, USERS

#: Threads that serve visitors, for each half: as many as a small application server has.
WORKERS = 6

#: A half that is further behind than so many seconds sends the visitors away who wait.
BEHIND_MAX = 2.0


def visitor(number: int, seed: int) -> tuple[str, int, int]:
    """Where the visitor goes: kind and number of the page, and his own number. Some products are popular."""
    chance = random.Random(seed * 1_000_003 + number)
    user, kind = chance.randrange(USERS) + 1, chance.random()
    if kind < 0.7:
        return "product", min(PRODUCTS, int(chance.paretovariate(0.5))), user
    if kind < 0.85:
        return "category", chance.randrange(CATEGORIES), user
    if kind < 0.95:
        return "search", chance.randrange(SEARCHES), user
    return "best", 0, user


class Load:
    """Visitors at a rate, until it is stopped."""

    def __init__(self, half: Half, rate: float, seed: int) -> None:
        self._half, self._rate, self._seed = half, rate, seed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._next, self._begin = itertools.count(), time.monotonic()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _due(self) -> tuple[int, float]:
        """The next visitor, and when he comes."""
        with self._lock:
            number = next(self._next)
            due = self._begin + number / self._rate
            if time.monotonic() - due > BEHIND_MAX:
                self._begin += BEHIND_MAX
            return number, due

    def _serve(self) -> None:
        while not self._stop.is_set():
            number, due = self._due()
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return
            self._half.visit(*visitor(number, self._seed), due=due)

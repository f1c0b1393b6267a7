"""One computes: of all who miss a value at once, one is asked to compute it, and a value that was computed before an
invalidation is refused (docs/stampedes.md)."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, Callable, Optional

from asgiref.sync import sync_to_async

from .errors import SqlcachedError, warnings
from .table import Table
from .values import Values

#: Seconds for which a missing value is reserved for the one who computes it.
LEASE = 30

#: Seconds that others wait for it before they compute it for themselves.
LEASE_WAIT = 10.0

#: Pauses between two looks at a value that another computes: short at first, because most values take little time.
PAUSE_MIN, PAUSE_MAX = 0.005, 0.1


class Store:
    """A table with the form of its values, and what happens to errors."""

    def __init__(
        self, table: Table, values: Values, *, lease: int = LEASE, wait: float = LEASE_WAIT, ignore: bool = False
    ) -> None:
        self.table = table
        self.values = values
        self.lease = max(1, lease)
        self.wait = wait
        self.ignore = ignore

    def failed(self, why: SqlcachedError, answer: Any) -> Any:
        """What a failed call returns, if errors are to be ignored; one warning a minute is logged."""
        if not self.ignore:
            raise why
        warnings.warn(f"table {self.table.name}", why)
        return answer


class Found:
    """An answer to a claim: a value, or the order to compute it."""

    __slots__ = ("known", "value")

    def __init__(self, known: bool, value: Any = None) -> None:
        self.known = known
        self.value = value


COMPUTE = Found(False)


class Claim:
    """The right to compute a missing or stale value. It is bound to a version (CAS) of the row, so that the daemon
    refuses a value that was computed before an invalidation.

    ``fill`` stores the value's bytes and flags under this CAS. ``refresh_before`` seconds before the deadline one caller
    is asked to compute the value again. ``reserve`` takes the place of a missing value of which more is known than its
    key: its tags.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        fill: Callable[[tuple[bytes, int], int], object],
        refresh_before: int = 0,
        reserve: Optional[Callable[[int], bool]] = None,
    ) -> None:
        self._store, self._key, self._fill, self._refresh = store, key, fill, refresh_before
        self._reserve = reserve
        self._cas = 0
        #: The claim was for a missing value, so that nothing is left if it is given up.
        self._empty = False
        self._end = time.monotonic() + store.wait
        self._pause = PAUSE_MIN

    def begin(self) -> Optional[Found]:
        """Looks for the value in shared memory, which has fresh ones only, and then asks the daemon."""
        found = None if self._refresh else self._store.table.peek(self._key)
        return self.look() if found is None else Found(True, self._store.values.load(*found))

    def look(self) -> Optional[Found]:
        """Asks for the value or the claim. None: another client computes it."""
        store = self._store
        try:
            if not store.table.believes((self._key,)):
                return COMPUTE
            return self._asked(store.table, store.lease)
        except SqlcachedError as why:
            found: Found = store.failed(why, COMPUTE)
            return found

    def _asked(self, table: Table, lease: int) -> Optional[Found]:
        reserve = 0 if self._reserve else lease
        item = table.item(self._key, reserve=reserve, refresh=self._refresh)
        if item is None and self._reserve is not None:
            if not self._reserve(lease):
                return self._waited()
            # What was removed since then, or reserved by another, is no matter: nothing was computed yet.
            item = table.item(self._key)
            self._cas, self._empty = (item.cas, True) if item is not None and item.reserved else (0, False)
            return COMPUTE
        assert item is not None
        if item.won:
            self._cas, self._empty = item.cas, item.reserved
            return COMPUTE
        return self._waited() if item.reserved else Found(True, self._store.values.load(item.value, item.flags))

    def _waited(self) -> Optional[Found]:
        """Whoever waited long enough computes the value for itself, and does not store it."""
        return None if time.monotonic() < self._end else COMPUTE

    def pause(self) -> float:
        """Seconds until the next look."""
        pause, self._pause = self._pause, min(self._pause * 1.5, PAUSE_MAX)
        return pause

    def fill(self, value: Any) -> None:
        """Stores the value, unless the row was invalidated or written since the claim."""
        if not self._cas:
            return
        data = self._store.values.dump(value)
        try:
            self._fill(data, self._cas)
        except SqlcachedError as why:
            self._store.failed(why, None)

    def give_up(self) -> None:
        """Leaves the place to the next who asks. A stale value stays, and its lease ends by itself."""
        if self._cas and self._empty:
            try:
                self._store.table.delete(self._key, cas=self._cas)
            except SqlcachedError as why:
                warnings.warn(f"table {self._store.table.name}", why)


def computed(claim: Claim, default: Any) -> Any:
    """The value of a claim, or what ``default`` is or returns."""
    found = claim.begin()
    while found is None:
        time.sleep(claim.pause())
        found = claim.look()
    if found.known:
        return found.value
    try:
        value = default() if callable(default) else default
        claim.fill(value)
    except BaseException:
        claim.give_up()
        raise
    return value


async def acomputed(claim: Claim, default: Any) -> Any:
    """As ``computed``; ``default`` may be a coroutine function."""
    found = await in_thread(claim.begin)
    while found is None:
        await asyncio.sleep(claim.pause())
        found = await in_thread(claim.look)
    if found.known:
        return found.value
    try:
        value = default() if callable(default) else default
        if inspect.isawaitable(value):
            value = await value
        await in_thread(claim.fill, value)
    except BaseException:
        await asyncio.shield(in_thread(claim.give_up))
        raise
    return value


async def in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Connections belong to no thread, so that requests need not queue for the main one."""
    return await sync_to_async(function, thread_sensitive=False)(*arguments, **named)

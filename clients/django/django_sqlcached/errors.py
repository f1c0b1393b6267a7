"""What can go wrong between Django and the daemon."""

from __future__ import annotations

import errno
import threading
import time
from logging import getLogger

logger = getLogger("django_sqlcached")

#: Seconds between two warnings of the same kind. A daemon that is away fails thousands of times a second.
WARN_EVERY = 60.0


class SqlcachedError(Exception):
    """Every error of this package."""


class UnavailableError(SqlcachedError, ConnectionError):
    """The daemon cannot be reached, or did not answer in time. It is a ``ConnectionError``, as other backends raise."""

    def __init__(self, place: str, why: OSError) -> None:
        super().__init__(f"{place}: {_reason(why)}")


class RefusedError(SqlcachedError):
    """The daemon refused a command: a value that is too large, a row that a constraint forbids."""


class StatementError(SqlcachedError):
    """A statement failed. ``sqlstate`` is PostgreSQL's code of five characters."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{message} ({sqlstate})")
        self.sqlstate = sqlstate


def _reason(why: OSError) -> str:
    """A socket with a timeout of the kernel's reports EAGAIN, which tells a user nothing."""
    if isinstance(why, TimeoutError) or why.errno in (errno.EAGAIN, errno.ETIMEDOUT):
        return "no answer in time"
    return why.strerror or str(why) or type(why).__name__


class Warnings:
    """Logs each kind of warning once a minute, with the number of those that were left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[str, tuple[float, int]] = {}

    def warn(self, kind: str, why: BaseException) -> None:
        """Logs it, or counts it."""
        now = time.monotonic()
        with self._lock:
            due, left_out = self._next.get(kind, (0.0, 0))
            if now < due:
                self._next[kind] = (due, left_out + 1)
                return
            self._next[kind] = (now + WARN_EVERY, 0)
        more = f" ({left_out} more since the last warning)" if left_out else ""
        logger.warning("%s: %s%s", kind, why, more)


warnings = Warnings()

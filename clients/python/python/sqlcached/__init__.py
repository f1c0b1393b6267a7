"""Reads sqlcached from shared memory.

::

    import sqlcached

    with sqlcached.Client("/run/sqlcached/sock") as cache:
        cache.set("frag:17:head", b"hello", expire=600)
        cache.get("frag:17:head")
        cache.sql("DELETE FROM frag WHERE page = ?1", 17)

Values of tables that are ``WITH (shared_memory = on)`` are copied out of shared memory, without a system call. All else
goes over the daemon's Unix socket by itself. A client may be used by all threads at once, and after a fork by the child.
``sqlcached.pymemcache`` has the same under pymemcache's interface.
"""

from __future__ import annotations

import typing

from . import _native
from ._native import (
    Error,
    NoTableError,
    RefusedError,
    ServerError,
    StatementError,
    UnavailableError,
    __version__,
)

__all__ = [
    "Client",
    "Error",
    "Key",
    "Lookup",
    "NoTableError",
    "Parameter",
    "RefusedError",
    "ServerError",
    "StatementError",
    "Table",
    "UnavailableError",
    "Value",
    "__version__",
]

Key = typing.Union[bytes, str]
#: What a column holds.
Value = typing.Union[None, int, float, str, bytes]
#: What a statement takes.
Parameter = typing.Union[None, bool, int, float, str, bytes, bytearray]


class Lookup(typing.NamedTuple):
    """All that there is to say of a read."""

    #: ``hit``; ``stale``: invalidated, and not refreshed yet; ``due``: it expires soon; ``miss``.
    state: str
    value: bytes | None
    #: What the memcached client stored with it.
    flags: int
    #: The number that changes whenever the value does.
    cas: int
    #: The client that is asked to refresh it: ``you``, ``another`` client, or ``nobody``.
    renewal: str


class Table(_native.Table):
    """A table, for reads by its own primary key; :meth:`Client.table` makes one.

    Keys are the primary key's text; the parts of a composite key are joined with ``:``.
    """

    def lookup(self, key: Key) -> Lookup:
        """Reads the value column, and says in what state the row is."""
        return Lookup._make(self._lookup(key))


class Client(_native.Client):
    """A client of one daemon, by its Unix socket; without one, where a daemon of this user has it by default.

    Keys are memcached's: the table with the longest prefix answers. A ``str`` is its UTF-8.
    """

    def lookup(self, key: Key) -> Lookup:
        """Reads a value, and says in what state its row is."""
        return Lookup._make(self._lookup(key))

    def claim(self, key: Key, seconds: int) -> Lookup:
        """Reads a value, and where there is none takes its place for so many seconds: of all who ask, one makes it."""
        return Lookup._make(self._claim(key, seconds))

    def table(self, name: str) -> Table:
        """Finds a table. It follows its name: one that is dropped and made again is found again."""
        return Table(self, name)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

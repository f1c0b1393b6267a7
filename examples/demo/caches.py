"""The two caches, spoken to by the same code: memcached's meta commands, with a lease for each fill.

The halves differ in one method only: what an edit of a product removes.
"""

from __future__ import annotations

import json
import socket
import threading
from typing import Iterable, Optional

#: Seconds until an answer is given up.
PATIENCE = 10.0

#: Seconds for which a missing fragment is reserved for the one who makes it, and for which a fragment lives.
LEASE, LIFE = 30, 3600

#: The products that a fragment shows are taken out of its text. A fragment that is being made has no text yet: it may
#: show any product, and its '?' lets an edit end its lease.
TABLE = """CREATE TABLE frag (
    key TEXT PRIMARY KEY,
    body TEXT,
    shows TEXT[] AS (CASE body WHEN '' THEN '{?}' ELSE string_to_array(substring(body from '<!--shows:([0-9,]+)-->'), ',') END)
) WITH (prefix = 'f:', value = 'body')"""
INDEX = "CREATE INDEX frag_shows ON frag USING gin (shows)"
REMOVE = "DELETE FROM frag WHERE shows && ARRAY[?1, '?'] RETURNING key"


class Connection:
    """A connection of one thread's."""

    def __init__(self, port: int, patience: float = PATIENCE) -> None:
        self._stream = socket.create_connection(("127.0.0.1", port), patience).makefile("rwb")

    def ask(self, *requests: bytes) -> None:
        self._stream.write(b"".join(requests))
        self._stream.flush()

    def line(self) -> bytes:
        line = self._stream.readline()
        if not line:
            raise ConnectionError("the cache has closed the connection")
        return line.rstrip()

    def found(self) -> tuple[bytes, Optional[bytes], int]:
        """An answer to ``mg`` or ``ma``: its flags, the value, the CAS. No value: it is missing."""
        words = self.line().split()
        if words[0] != b"VA":
            return b"", None, 0
        value = self._stream.read(int(words[1]) + 2)[:-2]
        cas = next((int(word[1:]) for word in words[2:] if word.startswith(b"c")), 0)
        return b" ".join(words[2:]), value, cas

    def sql(self, statement: str, *values: object) -> list[dict]:
        text, array = statement.encode(), json.dumps(values).encode()
        self.ask(b"sqlp %d %d\r\n%s\r\n%s\r\n" % (len(text), len(array), text, array))
        rows = []
        while (line := self.line()).startswith(b"{"):
            rows.append(json.loads(line))
        if not line.startswith((b"OK", b"END")):
            raise RuntimeError(line.decode())
        return rows


class Cache:
    """One half's cache. Each thread has a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._local = threading.local()

    @property
    def connection(self) -> Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = Connection(self.port)
        return self._local.connection

    def keys(self, fragments: list[str]) -> tuple[list[str], int]:
        """The keys of fragments, and how many requests it took to find them out."""
        return [f"f:{fragment}" for fragment in fragments], 0

    def lookup(self, keys: Iterable[str]) -> list[tuple[bytes, Optional[bytes], int]]:
        """All of them in one request. Who misses first gets a lease (the flag ``W``)."""
        keys = list(keys)
        self.connection.ask(*(f"mg {key} v c N{LEASE}\r\n".encode() for key in keys))
        return [self.connection.found() for _ in keys]

    def fill(self, key: str, body: bytes, cas: int) -> bool:
        """Stores what was made, unless it was removed meanwhile."""
        self.connection.ask(b"ms %s %d T%d C%d\r\n%s\r\n" % (key.encode(), len(body), LIFE, cas, body))
        return self.connection.line() == b"HD"

    def remove(self, product: int, names: list[str]) -> set[str]:
        """Called after an edit of a product. Returns the names of the fragments that are gone."""
        raise NotImplementedError


class Tables(Cache):
    """sqlcached: one statement removes what shows the product."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.connection.sql(TABLE)
        self.connection.sql(INDEX)

    def remove(self, product: int, names: list[str]) -> set[str]:
        return {row["key"] for row in self.connection.sql(REMOVE, str(product))}


class Memcached(Cache):
    """memcached, used as people use it who must not show old prices. ``way`` is one of `WAYS`."""

    WAYS = {
        "flush": "flush_all after each edit",
        "version": "one version in all keys",
        "versions": "a version for each product, one for all lists",
    }

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.way = "flush"

    def _versions(self, names: list[str]) -> dict[str, int]:
        """Numbers that are kept in memcached, too. One that is missing begins at 1."""
        self.connection.ask(*(f"ma {name} N0 J1 D0 v\r\n".encode() for name in names))
        return {name: int(self.connection.found()[1] or 0) for name in names}

    def keys(self, fragments: list[str]) -> tuple[list[str], int]:
        way = self.way
        if way == "flush":
            return super().keys(fragments)
        owners = [_owner(fragment) if way == "versions" else "v:all" for fragment in fragments]
        versions = self._versions(sorted(set(owners)))
        return [f"f:{versions[owner]}:{fragment}" for owner, fragment in zip(owners, fragments)], 1

    def remove(self, product: int, names: list[str]) -> set[str]:
        if self.way == "flush":
            self.connection.ask(b"flush_all\r\n")
            self.connection.line()
            return set(names)
        raised = {"v:all"} if self.way == "version" else {"v:lists", f"v:{product}"}
        self.connection.ask(*(f"ma {name} N0 J1 D1\r\n".encode() for name in sorted(raised)))
        for _ in raised:
            self.connection.line()
        return {name for name in names if self.way == "version" or _owner(name) in raised}


def _owner(fragment: str) -> str:
    """The version that a fragment's key has: a product's own, or that of all lists.

    Which products a list shows is not known before it is made, so its key cannot have theirs.
    """
    kind, _, number = fragment.partition(":")
    return f"v:{number}" if kind in ("product", "reviews") else "v:lists"

"""A backend of dogpile.cache in sqlcached.

::

    from dogpile.cache import make_region

    region = make_region().configure(
        "sqlcached",
        expiration_time=600,
        arguments={"socket": "/run/sqlcached/sock", "table": "pages", "tags": lambda key: [key.split("|")[0]]},
    )
    region.actual_backend.invalidate_tags("product:17")

A region is a table. Where dogpile.cache takes a mutex, this backend takes the server's lease of the row, so that of all
processes one computes a value. The lease belongs to a version of the row: a value that was computed before an
invalidation is not stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
import time
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

import sqlcached
from dogpile.cache.api import NO_VALUE, BytesBackend, CacheMutex, KeyType, SerializedReturnType

__version__ = "0.1.0"

__all__ = ["SqlcachedBackend", "tagged"]

#: Seconds for which the one who computes a value has the lease; then another may compute it.
LEASE = 30

#: Keys that are longer get a digest in the place of their end. memcached's limit is 250, with the table's prefix.
KEY_MAX = 180

#: Pauses between two attempts to take a lease.
PAUSE_MIN, PAUSE_MAX = 0.002, 0.05

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")

_tags = threading.local()


@contextlib.contextmanager
def tagged(*tags: str) -> Iterator[None]:
    """What this thread stores within the block has these tags, besides those of the argument ``tags``."""
    before = getattr(_tags, "names", ())
    _tags.names = (*before, *tags)
    try:
        yield
    finally:
        _tags.names = before


class SqlcachedBackend(BytesBackend):
    """The backend ``sqlcached``.

    Arguments: ``socket``, the daemon's Unix socket; ``table`` (``dogpile``); ``tags``, a function of the key that
    returns names; ``lease``, seconds; ``expire``, seconds after which the server drops a row (never);
    ``options``, options of the table such as ``{"shared_memory": True}``; ``timeout``, seconds.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.table = arguments.get("table", "dogpile")
        if not _NAME.fullmatch(self.table):
            raise ValueError(f"{self.table!r} is no name of a table: use a-z, 0-9 and _")
        self.client = sqlcached.Client(arguments.get("socket"), timeout=arguments.get("timeout"))
        self.lease = max(1, int(arguments.get("lease", LEASE)))
        self._expire = int(arguments.get("expire", 0))
        self._tags_of: Callable[[str], Iterable[str]] = arguments.get("tags") or (lambda key: ())
        self._options: Mapping[str, Any] = arguments.get("options") or {}
        self._prefix = f"{self.table}:"
        self._made = False
        self._held = threading.local()

    def key_mangler(self, key: KeyType) -> KeyType:
        """A key that fits, with as much of it as possible: rows can be read."""
        if len(key.encode()) <= KEY_MAX:
            return key
        digest = hashlib.sha256(key.encode()).hexdigest()
        return key.encode()[: KEY_MAX - len(digest) - 1].decode("utf-8", "ignore") + "#" + digest

    # The table.

    def _ready(self) -> None:
        if self._made:
            return
        options = {"prefix": self._prefix, "value": "value", "lease": f"{self.lease} s", **self._options}
        settings = ", ".join(f"{name} = {_literal(value)}" for name, value in options.items())
        self.client.sql(
            f"CREATE TABLE IF NOT EXISTS {self.table} (key TEXT PRIMARY KEY, value ANY, tags TEXT[]) WITH ({settings})"
        )
        self.client.sql(f"CREATE INDEX IF NOT EXISTS {self.table}_tags ON {self.table} USING gin (tags)")
        self._made = True

    def sql(self, text: str, *parameters: Any) -> Union[list[dict[str, Any]], int]:
        """Runs a statement. A table that is gone, because the machine was rebooted, is made again."""
        self._ready()
        try:
            return self.client.sql(text, *parameters)
        except sqlcached.StatementError as why:
            if why.sqlstate != "42P01":
                raise
            self._made = False
            self._ready()
            return self.client.sql(text, *parameters)

    # dogpile.cache's interface.

    def get_serialized(self, key: KeyType) -> SerializedReturnType:
        self._ready()
        # An empty value is the place of one that is being computed.
        return self.client.get(self._prefix + key) or NO_VALUE

    def get_serialized_multi(self, keys: Iterable[KeyType]) -> Sequence[SerializedReturnType]:
        self._ready()
        names = [self._prefix + key for key in keys]
        found = self.client.get_many(names)
        return [found.get(name) or NO_VALUE for name in names]

    def set_serialized(self, key: KeyType, value: bytes) -> None:
        self._ready()
        tags = self.tags(key)
        cas = self._leases().get(key, 0)
        if tags:
            self._set_tagged(key, value, tags, cas)
        elif cas:
            # Refused if the row was invalidated since the lease was taken: the value may be out of date.
            self.client.cas(self._prefix + key, value, cas, self._expire)
        else:
            self.client.set(self._prefix + key, value, self._expire)

    def tags(self, key: str) -> list[str]:
        """The tags of what this thread stores under a key."""
        return sorted({*self._tags_of(key), *getattr(_tags, "names", ())})

    def _set_tagged(self, key: str, value: bytes, tags: list[str], cas: int) -> None:
        seconds = self._expire or None
        if cas:
            text = f"UPDATE {self.table} SET value = ?1, tags = ?2, _ttl = ?3 WHERE key = ?4 AND _cas = ?5"
            self.sql(text, value, json.dumps(tags), seconds, key, cas)
            return
        text = (
            f"INSERT INTO {self.table} (key, value, tags, _ttl) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value, tags = excluded.tags, _ttl = excluded._ttl"
        )
        self.sql(text, key, value, json.dumps(tags), seconds)

    def set_serialized_multi(self, mapping: Mapping[KeyType, bytes]) -> None:
        for key, value in mapping.items():
            self.set_serialized(key, value)

    def delete(self, key: KeyType) -> None:
        self._ready()
        self.client.delete(self._prefix + key)

    def delete_multi(self, keys: Iterable[KeyType]) -> None:
        for key in keys:
            self.delete(key)

    def get_mutex(self, key: KeyType) -> CacheMutex:
        return Lease(self, key)

    # Beyond it.

    def invalidate_tags(self, *tags: str) -> int:
        """Removes all values that have one of these tags; how many."""
        return self._changed(f"DELETE FROM {self.table} WHERE tags && ?1", json.dumps(tags)) if tags else 0

    def clear(self) -> None:
        """Empties the table."""
        self.sql(f"TRUNCATE {self.table}")

    def _changed(self, text: str, *parameters: Any) -> int:
        result = self.sql(text, *parameters)
        return result if isinstance(result, int) else len(result)

    def _leases(self) -> dict[str, int]:
        """The leases of this thread: the version of each row."""
        found: Optional[dict[str, int]] = getattr(self._held, "leases", None)
        if found is None:
            found = self._held.leases = {}
        return found


class Lease(CacheMutex):
    """The server's lease of a row, in the shape of a mutex.

    It ends by itself after ``lease`` seconds, so a process that dies blocks nobody for longer.
    """

    def __init__(self, backend: SqlcachedBackend, key: str) -> None:
        self._backend = backend
        self._key = key

    def acquire(self, wait: bool = True) -> bool:
        self._backend._ready()
        pause = PAUSE_MIN
        while not self._take():
            if not wait:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, PAUSE_MAX)
        return True

    def _take(self) -> bool:
        """Reserves the place of a missing value, or takes the lease of the row that is there."""
        backend = self._backend
        tags = backend.tags(self._key)
        if tags and self._reserve(tags):
            return True
        found = backend.client.claim(backend._prefix + self._key, backend.lease)
        if found.renewal == "another":
            return False
        if found.renewal == "nobody":
            text = f"UPDATE {backend.table} SET _leased = TRUE WHERE key = ?1 AND _cas = ?2 AND NOT _leased"
            if not backend._changed(text, self._key, found.cas):
                return False
        backend._leases()[self._key] = found.cas
        return True

    def _reserve(self, tags: list[str]) -> bool:
        """Takes the place of a missing value together with its tags, so that an invalidation of a tag finds it while
        its value is computed."""
        backend = self._backend
        text = f"INSERT INTO {backend.table} (key, value, tags, _leased, _ttl) VALUES (?1, '', ?2, TRUE, ?3)"
        text += " ON CONFLICT DO NOTHING RETURNING _cas AS cas"
        rows = backend.sql(text, self._key, json.dumps(tags), backend.lease)
        if not isinstance(rows, list) or not rows:
            return False
        backend._leases()[self._key] = int(str(rows[0]["cas"]))
        return True

    def release(self) -> None:
        backend = self._backend
        cas = backend._leases().pop(self._key, 0)
        if cas:
            # Of a row that was written since then the lease has ended already.
            same = "WHERE key = ?1 AND _cas = ?2"
            if not backend._changed(f"DELETE FROM {backend.table} {same} AND length(value) = 0", self._key, cas):
                backend._changed(f"UPDATE {backend.table} SET _leased = FALSE {same}", self._key, cas)

    def locked(self) -> bool:
        rows = self._backend.sql(f"SELECT 1 AS one FROM {self._backend.table} WHERE key = ?1 AND _leased", self._key)
        return bool(rows)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"

"""The cache backend.

::

    CACHES = {
        "default": {
            "BACKEND": "django_sqlcached.cache.SqlcachedCache",
            "LOCATION": "127.0.0.1:11211",
            "OPTIONS": {"TABLE": "dj_default", "shared_memory": True, "max_memory": "64 MB"},
        }
    }

A cache is a table of its own: ``SELECT * FROM dj_default`` in psql shows it, and ``clear()`` empties it and nothing else.
"""

from __future__ import annotations

import json
import re
import warnings as python_warnings
from typing import Any, Iterable, Mapping, Optional, Union

from django.core.cache.backends.base import (
    DEFAULT_TIMEOUT,
    BaseCache,
    CacheKeyWarning,
    default_key_func,
    memcache_key_warnings,
)

from . import conf
from .errors import RefusedError, SqlcachedError
from .leases import LEASE, LEASE_WAIT, Claim, Store, acomputed, computed, in_thread
from .protocol import KEY_MAX, fitting, wire
from .schema import Definition, Index, seconds
from .table import Table, exptime, row_deadline, shared
from .values import Values

#: Keys that need nothing: printable ASCII, short enough for every prefix and version.
_PLAIN = re.compile(r"[!-~]{0,160}")

#: Attempts of an arithmetic that the daemon cannot do. Each fails only because another client succeeded.
ATTEMPTS = 1000

#: Entries of OPTIONS that are not options of the table.
_OWN = (
    "TABLE",
    "IGNORE_ERRORS",
    "LEASE_WAIT",
    "AUTO_SYNC",
    "USER",
    "PASSWORD",
    "TLS",
    "SOCKET_TIMEOUT",
    "CONNECT_TIMEOUT",
    "serializer",
    "near",
    # Django's own, which bound the rows.
    "MAX_ENTRIES",
    "CULL_FREQUENCY",
)


class SqlcachedCache(BaseCache):
    """Django's cache in a table of sqlcached."""

    def __init__(self, location: Any, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        options = dict(params.get("OPTIONS", {}))
        own = {name: options.pop(name) for name in _OWN if name in options}
        self._values = Values(own.get("serializer"))
        self._has_ttl = bool(options.get("ttl"))
        if "MAX_ENTRIES" in own:
            options.setdefault("max_rows", own["MAX_ENTRIES"])
        places = {name: own[name] for name in conf.DEFAULTS if name in own}
        if location:
            places["LOCATION"] = location
        self.table = shared(
            conf.server(places),
            definition(own.get("TABLE", "dj_default"), options),
            read_near=bool(own.get("near", options.get("shared_memory", False))),
            make=bool(own.get("AUTO_SYNC", conf.configuration()["AUTO_SYNC"])),
        )
        self.store = Store(
            self.table,
            self._values,
            lease=round(seconds(options.get("lease", LEASE))),
            wait=float(own.get("LEASE_WAIT", LEASE_WAIT)),
            ignore=bool(own.get("IGNORE_ERRORS", False)),
        )
        self._failed = self.store.failed
        self._head = self.table.definition.prefix

    # Keys.

    def _place(self, key: Any, version: Optional[int]) -> tuple[int, str]:
        """The columns ``version`` and ``key`` of a row."""
        if version is None:
            version = self.version
        if self.key_func is not default_key_func or type(version) is not int:
            # A key function decides what a version means.
            return 0, self.key_func(key, self.key_prefix, version)
        return version, f"{self.key_prefix}:{key}" if self.key_prefix else str(key)

    def _key(self, key: Any, version: Optional[int]) -> bytes:
        """The key as memcached's protocol has it."""
        if version is None:
            version = self.version
        if (
            type(key) is str
            and type(version) is int
            and self.key_func is default_key_func
            and not self.key_prefix
            and _PLAIN.fullmatch(key)
        ):
            return f"{self._head}{version}:{key}".encode()
        return self._unusual(key, version)

    def _unusual(self, key: Any, version: Optional[int]) -> bytes:
        """A key that is long, has other characters, or is made by a function."""
        for warning in memcache_key_warnings(self.make_key(key, version=version)):
            python_warnings.warn(warning, CacheKeyWarning, stacklevel=4)
        number, text = self._row(key, version)
        return wire(f"{self._head}{number}:{text}".encode())

    def _row(self, key: Any, version: Optional[int]) -> tuple[int, str]:
        """As ``_place``, with a digest in the place of what is too long."""
        number, text = self._place(key, version)
        return number, fitting(text, KEY_MAX - len(f"{self._head}{number}:"))

    def _columns(self, key: Any, version: Optional[int]) -> dict[str, Any]:
        return dict(zip(("version", "key"), self._row(key, version)))

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> int:
        """memcached's number for a timeout of Django's."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        return exptime(timeout, has_ttl=self._has_ttl)

    def _seconds(self, timeout: Any) -> Optional[float]:
        timeout = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return None if timeout is None else float(timeout)

    # Django's interface.

    def get(self, key: Any, default: Any = None, version: Optional[int] = None) -> Any:
        try:
            found = self.table.get(self._key(key, version))
        except SqlcachedError as why:
            return self._failed(why, default)
        return default if found is None else self._values.load(*found)

    def get_many(self, keys: Iterable[Any], version: Optional[int] = None) -> dict[Any, Any]:
        wanted = {self._key(key, version): key for key in keys}
        try:
            found = self.table.get_many(wanted)
        except SqlcachedError as why:
            return self._failed(why, {})
        load = self._values.load
        return {wanted[key]: load(*value) for key, value in found.items()}

    def has_key(self, key: Any, version: Optional[int] = None) -> bool:
        try:
            return self.table.get(self._key(key, version)) is not None
        except SqlcachedError as why:
            return self._failed(why, False)

    def set(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: Optional[int] = None,
        *,
        tags: Optional[Iterable[str]] = None,
    ) -> None:
        """Stores a value. ``tags`` are names by which ``invalidate_tags`` removes it."""
        name, data = self._key(key, version), self._values.dump(value)
        try:
            if tags is None:
                self.table.set(name, *data, self.get_backend_timeout(timeout))
            else:
                self.table.put(self._columns(key, version), data, self._seconds(timeout), tags, name)
        except SqlcachedError as why:
            self._failed(why, None)

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None
    ) -> bool:
        name, data = self._key(key, version), self._values.dump(value)
        expire = self.get_backend_timeout(timeout)
        try:
            if self.table.set(name, *data, expire, mode=b"E"):
                return True
            # The place of a value that is being computed is no value.
            item = self.table.item(name)
            return item is not None and item.reserved and self.table.set(name, *data, expire, cas=item.cas)
        except SqlcachedError as why:
            return self._failed(why, False)

    def set_many(
        self, data: Mapping[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None
    ) -> list[Any]:
        """Stores several values; the keys of those that were refused."""
        names = {self._key(key, version): key for key in data}
        rows = {name: self._values.dump(data[key]) for name, key in names.items()}
        try:
            return [names[name] for name in self.table.set_many(rows, self.get_backend_timeout(timeout))]
        except SqlcachedError as why:
            return self._failed(why, list(data))

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> bool:
        try:
            return self.table.touch(self._key(key, version), self.get_backend_timeout(timeout))
        except SqlcachedError as why:
            return self._failed(why, False)

    def delete(self, key: Any, version: Optional[int] = None) -> bool:
        try:
            return self.table.delete(self._key(key, version))
        except SqlcachedError as why:
            return self._failed(why, False)

    def delete_many(self, keys: Iterable[Any], version: Optional[int] = None) -> None:
        try:
            self.table.delete_many([self._key(key, version) for key in keys])
        except SqlcachedError as why:
            self._failed(why, None)

    def clear(self) -> None:
        """Empties this cache's table, and no other."""
        try:
            self.table.truncate()
        except SqlcachedError as why:
            self.table.suspend()
            self._failed(why, None)

    def incr(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        """Adds to a number, atomically. As in every backend a missing key is a ``ValueError``."""
        try:
            number = self._added(key, version, delta)
        except SqlcachedError as why:
            number = self._failed(why, None)
        if number is None:
            raise ValueError("Key '%s' not found" % key)
        return number

    def _added(self, key: Any, version: Optional[int], delta: int) -> Any:
        """The daemon adds to decimal numbers without a sign. The rest is read, computed and stored as long as another
        client comes first. Either way the row keeps its deadline and its tags."""
        name = self._key(key, version)
        if type(delta) is int and 0 < delta < 2**63:
            try:
                return self.table.add_to(name, delta)
            except RefusedError:
                pass
        for _ in range(ATTEMPTS):
            item = self.table.item(name)
            if item is None or item.reserved:
                return None
            number = self._values.load(item.value, item.flags) + delta
            if self.table.change(self._columns(key, version), self._values.dump(number), item.cas):
                return number
        raise RefusedError("other clients change the number all the time")

    def incr_version(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        """Gives a value another version. It keeps its deadline and its tags."""
        old = self.version if version is None else version
        before, after = self._row(key, old), self._row(key, old + delta)
        if self.key_func is not default_key_func or before[1] != after[1]:
            # The version is a part of the text.
            number: int = super().incr_version(key, delta, version)
            return number
        try:
            moved = self.table.move(dict(zip(("version", "key"), before)), dict(zip(("version", "key"), after)))
        except SqlcachedError as why:
            moved = self._failed(why, False)
        if not moved:
            raise ValueError("Key '%s' not found" % key)
        return old + delta

    def close(self, **_: Any) -> None:
        """Connections stay open from one request to the next: opening one costs more than most requests."""

    # One computes.

    def get_or_set(
        self,
        key: Any,
        default: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: Optional[int] = None,
        *,
        tags: Optional[Iterable[str]] = None,
        refresh_before: int = 0,
    ) -> Any:
        """The value, or else what ``default`` is or returns, which is stored.

        Of all processes that miss the value at once, one calls ``default``; the others wait for it, at most
        ``LEASE_WAIT`` seconds, or get the stale value if there is one. A value whose key or tag was invalidated while it
        was computed is returned and not stored. ``refresh_before`` seconds before the deadline one caller computes the
        value again.
        """
        return computed(self._claim(key, version, timeout, tags, refresh_before), default)

    async def aget_or_set(
        self,
        key: Any,
        default: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: Optional[int] = None,
        *,
        tags: Optional[Iterable[str]] = None,
        refresh_before: int = 0,
    ) -> Any:
        """As ``get_or_set``; ``default`` may be a coroutine function."""
        return await acomputed(self._claim(key, version, timeout, tags, refresh_before), default)

    def _claim(
        self, key: Any, version: Optional[int], timeout: Any, tags: Optional[Iterable[str]], refresh_before: int
    ) -> Claim:
        name = self._key(key, version)

        def fill(data: tuple[bytes, int], cas: int) -> object:
            if tags is None:
                return self.table.set(name, *data, self.get_backend_timeout(timeout), cas=cas)
            return self.table.fill(self._columns(key, version), data, self._seconds(timeout), tags, cas)

        def reserve(lease: int) -> bool:
            return self.table.reserve(self._columns(key, version), tags or (), lease)

        return Claim(self.store, name, fill, refresh_before, None if tags is None else reserve)

    # Beyond Django's interface.

    def invalidate_tags(self, *tags: str, soft: bool = False) -> int:
        """Removes every value that has one of these tags, in all versions; how many. With ``soft`` they become stale:
        ``get_or_set`` returns them to all but one caller, who computes the value again."""
        return self.delete_where(tags=list(tags), soft=soft) if tags else 0

    def delete_where(self, *, soft: bool = False, **columns: Any) -> int:
        """Removes the rows whose columns are equal to these values or in these lists; how many."""
        try:
            return self.table.delete_where(columns, soft=soft)
        except SqlcachedError as why:
            self.table.suspend()
            return self._failed(why, 0)

    def touch_where(self, timeout: Any = DEFAULT_TIMEOUT, **columns: Any) -> int:
        """Gives rows a new deadline; how many."""
        condition, values = self.table.where(columns)
        text = f"UPDATE {self.table.quoted} SET _ttl = ?" + (f" WHERE {condition}" if condition else "")
        return self.table.changed(text, row_deadline(self._seconds(timeout)), *values)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """The rows of a condition, with their values as they were stored."""
        condition, values = self.table.where(columns)
        text = f"SELECT version, key, value, tags, _flags, _ttl FROM {self.table.quoted}"
        found = self.table.sql(text + (f" WHERE {condition}" if condition else ""), *values)
        assert isinstance(found, list)
        return [self._shown(row) for row in found if row["value"] or row["_flags"]]

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        data = row["value"].encode() if isinstance(row["value"], str) else row["value"]
        value = self._values.load(data, row["_flags"])
        tags = json.loads(row["tags"]) if row["tags"] else []
        return {"version": row["version"], "key": row["key"], "value": value, "tags": tags, "ttl": row["_ttl"]}

    def sql(self, text: str, *parameters: Any) -> Union[list[dict[str, Any]], int]:
        """Runs a statement by itself: rows as dictionaries, or the number of rows that it changed. Parameters are ``?``."""
        return self.table.sql(text, *parameters)

    # Async. A read that shared memory answers needs no thread.

    async def aget(self, key: Any, default: Any = None, version: Optional[int] = None) -> Any:
        found = self.table.peek(self._key(key, version))
        if found is not None:
            return self._values.load(*found)
        return await in_thread(self.get, key, default, version)

    async def aget_many(self, keys: Iterable[Any], version: Optional[int] = None) -> dict[Any, Any]:
        return await in_thread(self.get_many, list(keys), version)

    async def ahas_key(self, key: Any, version: Optional[int] = None) -> bool:
        return await in_thread(self.has_key, key, version)

    async def aset(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: Optional[int] = None,
        *,
        tags: Optional[Iterable[str]] = None,
    ) -> None:
        await in_thread(self.set, key, value, timeout, version, tags=tags)

    async def aset_many(
        self, data: Mapping[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None
    ) -> list[Any]:
        return await in_thread(self.set_many, data, timeout, version)

    async def aadd(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None
    ) -> bool:
        return await in_thread(self.add, key, value, timeout, version)

    async def atouch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> bool:
        return await in_thread(self.touch, key, timeout, version)

    async def adelete(self, key: Any, version: Optional[int] = None) -> bool:
        return await in_thread(self.delete, key, version)

    async def adelete_many(self, keys: Iterable[Any], version: Optional[int] = None) -> None:
        await in_thread(self.delete_many, list(keys), version)

    async def aclear(self) -> None:
        await in_thread(self.clear)

    async def aincr(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        return await in_thread(self.incr, key, delta, version)

    async def adecr(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        return await self.aincr(key, -delta, version)

    async def aincr_version(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        return await in_thread(self.incr_version, key, delta, version)

    async def adecr_version(self, key: Any, delta: int = 1, version: Optional[int] = None) -> int:
        return await self.aincr_version(key, -delta, version)

    async def ainvalidate_tags(self, *tags: str, soft: bool = False) -> int:
        """As ``invalidate_tags``."""
        return await in_thread(self.invalidate_tags, *tags, soft=soft)

    async def adelete_where(self, *, soft: bool = False, **columns: Any) -> int:
        """As ``delete_where``."""
        return await in_thread(self.delete_where, soft=soft, **columns)


def definition(name: str, options: Mapping[str, Any]) -> Definition:
    """The table of a cache."""
    return Definition(
        name=name,
        columns={"version": "BIGINT", "key": "TEXT", "value": "ANY", "tags": "TEXT[]"},
        key=("version", "key"),
        value="value",
        prefix=f"{name}:",
        indexes=(Index(("tags",), elements=True),),
        options={option: value for option, value in options.items() if value is not None},
    )

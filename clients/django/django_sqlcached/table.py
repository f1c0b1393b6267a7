"""A table of the daemon as the cache, fragments and sessions use it: rows by key, rows by condition, leases."""

from __future__ import annotations

import threading
import time
from functools import cached_property, partial
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from . import near
from .errors import RefusedError, SqlcachedError, StatementError, UnavailableError, logger, warnings
from .protocol import KEYS_MAX, QUIET_MAX, Connection, Encoded, Item, Server, refused, token
from .schema import Definition, quoted, sync
from .values import INTEGER, TEXT

#: The last moment that memcached's protocol can name. A row with this deadline outlives the table's ``ttl``.
FOREVER = 2147483647

#: Above this number memcached takes an exptime for a Unix time.
MONTH = 2592000

#: Keys whose removal failed that a process remembers. Beyond these it reads nothing until the table was emptied.
DOUBTFUL_MAX = 10_000

#: Seconds between two attempts to empty a table that is not read any more.
RETRY = 1.0

NO_TABLE = "42P01"
TAKEN = "23505"
FORBIDDEN = "42501"


class Table:
    """Rows by memcached's keys, which begin with the table's prefix, and by SQL.

    The table is made when it is first used, and again when a lost connection may mean that the daemon was restarted.
    """

    def __init__(
        self,
        server: Server,
        definition: Definition,
        *,
        read_near: bool = False,
        make: bool = True,
        expendable: bool = True,
    ) -> None:
        self.server = server
        self.definition = definition
        self.name = definition.name
        self.quoted = quoted(definition.name)
        self.read_near = read_near
        self._make = make
        #: The table may be emptied when nothing in it can be believed. Sessions are not emptied.
        self._expendable = expendable
        self._lock = threading.Lock()
        self._epoch = 0
        self._near: Optional[near.Reader] = None
        #: Why reads do not come from shared memory, where they should.
        self.near_error: Optional[Exception] = None
        self._doubtful: set[bytes] = set()
        self._suspended = False
        self._next_attempt = 0.0

    # Being ready.

    def ready(self) -> None:
        """Makes sure of the table, and of its shared memory."""
        with self._lock:
            epoch = self.server.epoch
            if self._epoch == epoch:
                return
            if self._make:
                self._sync()
            if self.read_near and self._near is None:
                self._near, self.near_error = near.attach(self.server)
            self._epoch = self.server.epoch

    def _sync(self) -> None:
        try:
            made = sync(self.server, self.definition)
        except StatementError as why:
            if why.sqlstate != FORBIDDEN:
                raise
            warnings.warn(f"table {self.name} may not be made by this role", why)
            return
        for problem in made.problems:
            logger.error("%s", problem)

    def _run(self, work: Callable[[Connection], Any], *, again: bool = True) -> Any:
        if self._epoch != self.server.epoch:
            self.ready()
        return self.server.run(work, again=again, ready=self.ready)

    def sql(self, text: str, *parameters: Any, again: bool = True) -> Union[list[dict[str, Any]], int]:
        """Runs a statement. If the table is gone, it is made, and the statement runs again."""
        if self._epoch != self.server.epoch:
            self.ready()
        try:
            return self.server.sql(text, *parameters, again=again)
        except StatementError as why:
            if why.sqlstate != NO_TABLE or not self._make:
                raise
            self._epoch = 0
            self.ready()
            return self.server.sql(text, *parameters, again=again)

    def changed(self, text: str, *parameters: Any) -> int:
        """Runs a statement that writes; the number of rows."""
        result = self.sql(text, *parameters)
        return result if isinstance(result, int) else len(result)

    # What is not to be believed. A daemon that is away keeps its rows, and so does shared memory. What this process
    # could not remove must not be read by it afterwards.

    def doubt(self, keys: Iterable[bytes]) -> None:
        """These rows may be out of date: they are removed before they are read again."""
        if len(self._doubtful) < DOUBTFUL_MAX:
            self._doubtful.update(keys)
        else:
            self.suspend()

    def suspend(self) -> None:
        """Reads nothing until the table was emptied."""
        if self._expendable:
            self._suspended = True
            self._doubtful = set()

    @property
    def suspended(self) -> bool:
        """Whether reads are misses, because an invalidation failed."""
        return self._suspended

    def believes(self, keys: Iterable[bytes]) -> bool:
        """Whether these rows may be read. What could not be removed before is removed now."""
        if not (self._suspended or self._doubtful):
            return True
        if self._suspended and not self._resume():
            return False
        for key in self._doubtful.intersection(keys):
            self._run(partial(_simple, form=b"md %b%b\r\n", key=key))
            self._doubtful.discard(key)
        return True

    def _resume(self) -> bool:
        if time.monotonic() < self._next_attempt:
            return False
        self._next_attempt = time.monotonic() + RETRY
        try:
            self.truncate()
        except SqlcachedError as why:
            warnings.warn(f"table {self.name} is not read until it was emptied", why)
            return False
        return True

    def _removing(self, keys: Iterable[bytes], work: Callable[[Connection], Any], *, again: bool = True) -> Any:
        """A write that must not be lost in silence."""
        try:
            return self._run(work, again=again)
        except UnavailableError:
            self.doubt(keys)
            raise

    def _keeping(self, keys: Iterable[bytes], work: Callable[[Connection], Any], *, again: bool = True) -> Any:
        """A write after whose failure the old row is still good."""
        return self._run(work, again=again)

    # Rows by key.

    def get(self, key: bytes) -> Optional[tuple[bytes, int]]:
        """Value and flags, or None."""
        # Shared memory is up to date, also while the daemon is away: nobody can change a row then.
        found = self.peek(key)
        if found is not None:
            return found
        if self._epoch != self.server.epoch:
            self.ready()
        if (self._suspended or self._doubtful) and not self.believes((key,)):
            return None
        if type(key) is not bytes:
            item = self.item(key)
            return None if item is None or item.reserved else (item.value, item.flags)

        def work(connection: Connection) -> Optional[tuple[bytes, int]]:
            connection.send(b"get %b\r\n" % key)
            return connection.values().get(key)

        answer = self.server.run(work, ready=self.ready)
        # An empty value without flags is the place of a value that is being computed.
        return None if answer is None or (not answer[0] and not answer[1]) else answer

    def peek(self, key: bytes) -> Optional[tuple[bytes, int]]:
        """A fresh value of shared memory, without waiting for anything; None if only the daemon knows."""
        if self._near is None or self._suspended or self._doubtful:
            return None
        found = self._near.peek(key)
        return None if found is None or not (found[0] or found[1]) else (found[0], found[1])

    def _peek_many(self, keys: list[bytes]) -> dict[bytes, tuple[bytes, int]]:
        if self._near is None or self._suspended or self._doubtful:
            return {}
        hits = zip(keys, self._near.peek_many(keys))
        return {key: (hit[0], hit[1]) for key, hit in hits if hit is not None and (hit[0] or hit[1])}

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, tuple[bytes, int]]:
        """Those that exist."""
        wanted = list(keys)
        found = self._peek_many(wanted)
        if found:
            wanted = [key for key in wanted if key not in found]
            if not wanted:
                return found
        if self._epoch != self.server.epoch:
            self.ready()
        if (self._suspended or self._doubtful) and not self.believes(wanted):
            return {}
        plain = [key for key in wanted if type(key) is bytes]
        for start in range(0, len(plain), KEYS_MAX):
            request = b"get %b\r\n" % b" ".join(plain[start : start + KEYS_MAX])
            found.update(self.server.run(partial(_values, request=request), ready=self.ready))
        for key in wanted:
            if type(key) is Encoded and (item := self.item(key)) is not None:
                found[key] = item.value, item.flags
        return {key: hit for key, hit in found.items() if hit[0] or hit[1]}

    def item(self, key: bytes, *, reserve: int = 0, refresh: int = 0) -> Optional[Item]:
        """All that ``mg`` says. ``reserve`` takes the place of a missing value for so many seconds; ``refresh`` asks
        to be the one that computes a value with fewer seconds left."""
        options = (b" N%d" % reserve if reserve else b"") + (b" R%d" % refresh if refresh else b"")

        def work(connection: Connection) -> Optional[Item]:
            connection.send(b"mg %b%b v f c t%b\r\n" % (*token(key), options))
            return connection.item()

        found: Optional[Item] = self._run(work)
        return found

    def set(
        self,
        key: bytes,
        value: bytes,
        flags: int,
        expire: int,
        *,
        mode: bytes = b"S",
        cas: int = 0,
        removes: bool = True,
    ) -> bool:
        """Stores a value. Modes are ``S``, ``E`` (if it is missing), ``R`` (if it exists); with ``cas`` only that version
        is replaced. Whether it was stored. If it cannot be sent, the old value is not read any more, unless ``removes``
        is off."""
        request = _store(key, value, flags, expire, mode, cas)

        def work(connection: Connection) -> bool:
            connection.send(request)
            return _stored(connection.line())

        kept = self._removing if removes else self._keeping
        stored: bool = kept((key,), work, again=mode == b"S" and not cas)
        if stored and self._doubtful:
            self._doubtful.discard(key)
        return stored

    def set_many(self, rows: Mapping[bytes, tuple[bytes, int]], expire: int) -> list[bytes]:
        """Stores values in few round trips; the keys that were refused."""
        requests = [_store(key, *value, expire, b"S", 0, quiet=True) for key, value in rows.items()]
        failed: list[bytes] = []

        def work(connection: Connection, part: list[bytes]) -> None:
            # A refusal does not name its key, so that each command has a number.
            connection.send(b"".join(part) + b"mn\r\n")
            while (line := connection.line()) != b"MN":
                failed.append(line)

        if len(rows) == 1:
            return [key for key, value in rows.items() if not self.set(key, *value, expire)]
        for start in range(0, len(requests), QUIET_MAX):
            part = requests[start : start + QUIET_MAX]
            self._removing(rows, partial(work, part=part))
        if not failed:
            return []
        # Which of them? Those that are refused again.
        return [key for key, value in rows.items() if not self._stores(key, value, expire)]

    def _stores(self, key: bytes, value: tuple[bytes, int], expire: int) -> bool:
        try:
            return self.set(key, *value, expire)
        except RefusedError:
            return False

    def delete(self, key: bytes, *, cas: int = 0) -> bool:
        """Whether there was a row."""
        form = b"md %b%b" + (b" C%d" % cas if cas else b"") + b"\r\n"
        deleted: bool = self._removing((key,), lambda connection: _simple(connection, form, key))
        self._doubtful.discard(key)
        return deleted

    def delete_many(self, keys: Iterable[bytes]) -> None:
        wanted = list(keys)
        for start in range(0, len(wanted), QUIET_MAX):
            part = wanted[start : start + QUIET_MAX]
            request = b"".join(b"md %b%b q\r\n" % token(key) for key in part) + b"mn\r\n"
            self._removing(part, partial(_quiet, request=request))

    def touch(self, key: bytes, expire: int) -> bool:
        """Gives a row a new deadline; whether it exists."""
        form = b"mg %b%b T" + b"%d\r\n" % expire
        touched: bool = self._removing((key,), lambda connection: _simple(connection, form, key))
        return touched

    def add_to(self, key: bytes, delta: int) -> Optional[int]:
        """Adds to a decimal number in the daemon. The result, or None if there is no row."""

        def work(connection: Connection) -> Optional[int]:
            connection.send(b"ma %b%b D%d v\r\n" % (*token(key), delta))
            line = connection.line()
            if line == b"NF":
                return None
            if not line.startswith(b"VA "):
                raise refused(line)
            return int(connection.block(int(line.split(b" ")[1])))

        number: Optional[int] = self._removing((key,), work, again=False)
        return number

    # Rows with columns that keys do not have.

    @cached_property
    def _put_text(self) -> str:
        """The whole row is replaced, as by a ``set``: that costs the daemon less than an ``ON CONFLICT``."""
        columns = (*self.definition.key, self.definition.value, "tags", "_flags", "_ttl")
        return f"REPLACE INTO {self.quoted} ({', '.join(map(quoted, columns))}) VALUES ({', '.join('?' * len(columns))})"

    def put(
        self,
        key: Mapping[str, Any],
        data: tuple[bytes, int],
        seconds: Optional[float],
        tags: Iterable[str],
        name: bytes,
    ) -> None:
        """Stores a row with its tags."""
        if seconds is not None and seconds <= 0:
            self.delete(name)
            return
        try:
            self.sql(self._put_text, *key.values(), cell(*data), tag_list(tags), data[1], row_deadline(seconds))
        except UnavailableError:
            self.doubt((name,))
            raise
        self._doubtful.discard(name)

    def reserve(self, key: Mapping[str, Any], tags: Iterable[str], seconds: int) -> bool:
        """Takes the place of a missing row together with its tags, so that an invalidation of a tag finds it while its
        value is computed. Whether nobody was there before."""
        columns = (*key, self.definition.value, "tags", "_leased", "_ttl")
        text = (
            f"INSERT INTO {self.quoted} ({', '.join(map(quoted, columns))}) VALUES ({', '.join('?' * len(columns))}) "
            "ON CONFLICT DO NOTHING"
        )
        return self.changed(text, *key.values(), "", tag_list(tags), True, seconds) > 0

    def fill(
        self,
        key: Mapping[str, Any],
        data: tuple[bytes, int],
        seconds: Optional[float],
        tags: Iterable[str],
        cas: int,
    ) -> bool:
        """Stores the value of a claim with its tags; whether the row still was of that version."""
        condition = " AND ".join(f"{quoted(name)} = ?" for name in key)
        text = (
            f"UPDATE {self.quoted} SET {quoted(self.definition.value)} = ?, tags = ?, _flags = ?, _ttl = ? "
            f"WHERE {condition} AND _cas = ?"
        )
        values = (cell(*data), tag_list(tags), data[1], row_deadline(seconds))
        return self.changed(text, *values, *key.values(), cas) > 0

    def change(self, key: Mapping[str, Any], data: tuple[bytes, int], cas: int) -> bool:
        """Replaces the value of a row, which keeps its deadline and tags; whether it still was of that version."""
        condition, values = self.where(key)
        text = f"UPDATE {self.quoted} SET {quoted(self.definition.value)} = ?, _flags = ? WHERE {condition} AND _cas = ?"
        return self.changed(text, cell(*data), data[1], *values, cas) > 0

    def move(self, key: Mapping[str, Any], to: Mapping[str, Any]) -> bool:
        """Gives a row another key, in the place of a row that has it; whether there was one to move."""
        condition, values = self.where(key)
        value = quoted(self.definition.value)
        # The place of a value that is being computed is no row.
        changes = ", ".join(f"{quoted(name)} = ?" for name in to)
        text = f"UPDATE {self.quoted} SET {changes} WHERE {condition} AND NOT ({value} = '' AND _flags = 0)"
        try:
            return self.changed(text, *to.values(), *values) > 0
        except StatementError as why:
            if why.sqlstate != TAKEN:
                raise
        self.delete_where(to)
        return self.changed(text, *to.values(), *values) > 0

    # Rows by condition.

    def truncate(self) -> None:
        """Empties the table, and believes it again."""
        try:
            self.sql(f"TRUNCATE {self.quoted}")
        except StatementError as why:
            if why.sqlstate != FORBIDDEN:
                raise
            # A role that may delete rows need not have the privilege to empty a table.
            self.sql(f"DELETE FROM {self.quoted}")
        self._suspended = False
        self._doubtful = set()

    def where(self, columns: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """A condition of columns that are equal to values, or in lists of them. ``tags`` takes any of its tags."""
        terms: list[str] = []
        values: list[Any] = []
        for name, value in columns.items():
            if name not in self.definition.columns and not name.startswith("_"):
                raise TypeError(f"table {self.name} has no column {name!r}")
            term = f"{quoted(name)} = ?"
            if self.definition.columns.get(name, "").endswith("[]"):
                term, value = f"{quoted(name)} && ?", [value] if isinstance(value, str) else list(value)
            elif isinstance(value, (list, tuple, set, frozenset)):
                # Each value is a parameter, so that an index serves them.
                terms.append(f"{quoted(name)} IN ({', '.join('?' * len(value))})")
                values += value
                continue
            elif value is None:
                terms.append(f"{quoted(name)} IS NULL")
                continue
            terms.append(term)
            values.append(value)
        return " AND ".join(terms), values

    def delete_where(self, columns: Mapping[str, Any], *, soft: bool = False) -> int:
        """Removes the rows of a condition, or marks them as stale; how many."""
        return self.delete_any([columns], soft=soft)

    def delete_any(self, conditions: Iterable[Mapping[str, Any]], *, soft: bool = False) -> int:
        """Removes the rows of any of these conditions by one statement."""
        texts: list[str] = []
        values: list[Any] = []
        for columns in conditions:
            text, more = self.where(columns)
            texts.append(f"({text})" if text else "TRUE")
            values += more
        verb = f"UPDATE {self.quoted} SET _stale = TRUE" if soft else f"DELETE FROM {self.quoted}"
        return self.changed(f"{verb} WHERE {' OR '.join(texts)}", *values) if texts else 0


def _store(key: bytes, value: bytes, flags: int, expire: int, mode: bytes, cas: int, *, quiet: bool = False) -> bytes:
    name, form = token(key)
    options = form + (b" q" if quiet else b"") + (b" C%d" % cas if cas else b"")
    if mode != b"S":
        options += b" M" + mode
    return b"ms %b %d%b F%d T%d\r\n%b\r\n" % (name, len(value), options, flags, expire, value)


def _stored(line: bytes) -> bool:
    if line == b"HD":
        return True
    if line in (b"NS", b"EX", b"NF"):
        return False
    raise refused(line)


def _simple(connection: Connection, form: bytes, key: bytes) -> bool:
    """A command with a key that is answered by one line."""
    connection.send(form % token(key))
    line = connection.line()
    if line == b"EN":
        return False
    return _stored(line)


def _quiet(connection: Connection, request: bytes) -> None:
    """Commands whose success is not answered. A row that does not exist is no failure."""
    connection.send(request)
    failure = b""
    while (line := connection.line()) != b"MN":
        failure = failure or (b"" if line == b"NF" else line)
    if failure:
        raise refused(failure)


def _values(connection: Connection, request: bytes) -> dict[bytes, tuple[bytes, int]]:
    connection.send(request)
    return connection.values()


def exptime(timeout: Optional[float], *, has_ttl: bool) -> int:
    """memcached's number for a timeout in seconds. None is no deadline, also where the table has a ``ttl``."""
    if timeout is None:
        return FOREVER if has_ttl else 0
    if timeout <= 0:
        return -1
    # A part of a second is not rounded down to none.
    whole = max(1, int(timeout))
    return whole if whole <= MONTH else min(whole + int(time.time()), FOREVER)


def row_deadline(seconds: Optional[float]) -> Optional[int]:
    """A timeout as the hidden column ``_ttl`` takes it."""
    if seconds is None or seconds <= 0:
        return None if seconds is None else 0
    # As in ``exptime``: a part of a second is not rounded to none.
    return max(1, round(seconds))


def cell(data: bytes, flags: int) -> Union[str, bytes]:
    """A value as a statement's parameter: text stays legible."""
    return data.decode() if flags & TEXT or flags == INTEGER else data


def tag_list(tags: Iterable[str]) -> list[str]:
    """Tags as the array of a row."""
    if isinstance(tags, str):
        raise TypeError("tags is a list of names, not one name")
    return sorted({str(tag) for tag in tags})


#: Tables by daemon and definition: Django makes a backend for each thread, and a process has one knowledge of a table.
_tables: dict[Any, Table] = {}


def shared(
    server: Server, definition: Definition, *, read_near: bool, make: bool, expendable: bool = True
) -> Table:
    """The process's table of this definition."""
    identity = (id(server), definition.name, repr(definition), read_near, make)
    found = _tables.get(identity)
    # A server of the past may have had the same address in memory.
    if found is None or found.server is not server:
        found = _tables[identity] = Table(
            server, definition, read_near=read_near, make=make, expendable=expendable
        )
    return found

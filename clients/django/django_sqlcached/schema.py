"""Tables as the settings and fragments declare them, and what it takes to make the daemon's tables so."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from django.core.exceptions import ImproperlyConfigured

from .protocol import Server

#: Options of a table that sqlcached knows (docs/tables.md). ``prefix`` and ``value`` come from the declaration.
OPTIONS = (
    "ttl",
    "refresh_before",
    "stale_for",
    "lease",
    "max_rows",
    "max_ops",
    "max_memory",
    "min_memory",
    "weight",
    "notify",
    "shared_memory",
)

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*")

_UNITS = {
    "": 1,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "week", "weeks"), 604800),
    "ms": 0.001,
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **dict.fromkeys(("kb", "kib", "k"), 1 << 10),
    **dict.fromkeys(("mb", "mib"), 1 << 20),
    **dict.fromkeys(("gb", "gib", "g"), 1 << 30),
}


@dataclass(frozen=True)
class Index:
    """An index: of columns, or of the elements of one array."""

    columns: tuple[str, ...]
    elements: bool = False

    def name(self, table: str) -> str:
        return "_".join((table, *self.columns, "idx"))

    def sql(self, table: str) -> str:
        using = "USING gin " if self.elements else ""
        columns = ", ".join(map(quoted, self.columns))
        return f"CREATE INDEX IF NOT EXISTS {quoted(self.name(table))} ON {quoted(table)} {using}({columns})"


@dataclass(frozen=True)
class Definition:
    """A table: what ``CREATE TABLE`` says of it."""

    name: str
    #: Each column with its type and what else stands behind its name.
    columns: Mapping[str, str]
    key: tuple[str, ...]
    value: str
    prefix: str
    indexes: tuple[Index, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.name, *self.columns):
            if not _NAME.fullmatch(name):
                raise ImproperlyConfigured(f"{name!r} is no name of a table or column: use a-z, 0-9 and _")
        unknown = sorted(set(self.options) - set(OPTIONS))
        if unknown:
            raise ImproperlyConfigured(f"table {self.name}: unknown option {', '.join(unknown)}")

    def create(self) -> str:
        """The statement that makes the table."""
        columns = [f"{quoted(name)} {kind}" for name, kind in self.columns.items()]
        columns.append(f"PRIMARY KEY ({', '.join(map(quoted, self.key))})")
        options = {"prefix": self.prefix, "value": self.value, **self.options}
        settings = ", ".join(f"{name} = {literal(value)}" for name, value in options.items())
        return f"CREATE TABLE IF NOT EXISTS {quoted(self.name)} ({', '.join(columns)}) WITH ({settings})"


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """The value of an option."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def seconds(value: Any) -> float:
    """The seconds of an option such as ``"10 min"``."""
    found = quantity(value)
    if not isinstance(found, (int, float)):
        raise ImproperlyConfigured(f"{value!r} is no length of time; write 30 or '30 s'")
    return found


def quantity(value: Any) -> Any:
    """An option in a form that compares: ``'10 min'``, ``'600 s'`` and ``600`` are equal."""
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value).strip().lower()
    total, at = 0.0, 0
    while at < len(text):
        match = _QUANTITY.match(text, at)
        if not match or match[2] not in _UNITS:
            return text
        total, at = total + float(match[1]) * _UNITS[match[2]], match.end()
    return total if text else text


class Plan:
    """What separates the daemon's table from its definition."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        #: Statements that cure it, in their order.
        self.statements: list[str] = []
        #: What no statement cures without losing something.
        self.problems: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.statements or self.problems)

    def apply(self, server: Server) -> None:
        for text in self.statements:
            server.sql(text)


def plan(server: Server, definition: Definition) -> Plan:
    """Compares a definition with the daemon's table. Nothing is changed."""
    made = Plan(definition)
    found = _rows(server, "SELECT options FROM sqlcached_tables WHERE table_name = ?1", definition.name)
    if not found:
        made.statements = [definition.create(), *(each.sql(definition.name) for each in definition.indexes)]
        return made
    _options(made, _array(found[0]["options"]))
    _columns(made, server)
    names = {row["index_name"] for row in _rows(server, _INDEXES, definition.name)}
    made.statements += [
        each.sql(definition.name) for each in definition.indexes if each.name(definition.name) not in names
    ]
    return made


def sync(server: Server, definition: Definition) -> Plan:
    """Makes what is missing and alters options. It drops nothing."""
    made = plan(server, definition)
    made.apply(server)
    return made


_INDEXES = "SELECT index_name FROM sqlcached_indexes WHERE table_name = ?1"
_COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = ?1"
_KEY = "SELECT columns FROM sqlcached_indexes WHERE table_name = ?1 AND is_primary"


def _rows(server: Server, text: str, *parameters: Any) -> list[dict[str, Any]]:
    rows = server.sql(text, *parameters)
    assert isinstance(rows, list)
    return rows


def _array(text: Optional[str]) -> dict[str, str]:
    import json

    return dict(each.split("=", 1) for each in json.loads(text or "[]"))


def _options(made: Plan, have: dict[str, str]) -> None:
    definition = made.definition
    for name, value in {"prefix": definition.prefix, "value": definition.value}.items():
        if have.get(name) != value:
            made.problems.append(f"table {definition.name}: {name} is {have.get(name)!r}, not {value!r}")
    changed = [
        f"{name} = {literal(value)}"
        for name, value in definition.options.items()
        if quantity(have.get(name, "off")) != quantity(value) and not (name not in have and not value)
    ]
    if changed:
        made.statements.append(f"ALTER TABLE {quoted(definition.name)} SET ({', '.join(changed)})")


def _columns(made: Plan, server: Server) -> None:
    definition = made.definition
    names = {row["column_name"] for row in _rows(server, _COLUMNS, definition.name)}
    for name, kind in definition.columns.items():
        if name not in names:
            made.statements.append(f"ALTER TABLE {quoted(definition.name)} ADD COLUMN {quoted(name)} {kind}")
    keys = _rows(server, _KEY, definition.name)
    wanted = ", ".join(definition.key)
    have = keys[0]["columns"].replace('"', "") if keys else ""
    if have != wanted:
        made.problems.append(
            f"table {definition.name}: the primary key is ({have}), not ({wanted}); drop the table to change it"
        )

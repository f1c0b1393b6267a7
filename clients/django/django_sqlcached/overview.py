"""The figures of the declared tables, for the admin page and ``manage.py sqlcached_top``."""

from __future__ import annotations

from typing import Any

from .declared import declared
from .errors import SqlcachedError

#: Columns of ``sqlcached_tables`` that are shown.
COLUMNS = ("rows", "bytes", "written", "expired", "evicted", "invalidated", "flushed")

_QUERY = f"SELECT table_name, {', '.join(COLUMNS)}, options FROM sqlcached_tables"


def overview() -> list[dict[str, Any]]:
    """A row for each declared table: who declared it, where it is, its figures; or why there are none."""
    found: dict[str, Any] = {}
    rows = []
    for who, table in declared():
        place = str(table.server)
        if place not in found:
            try:
                answer = table.server.sql(_QUERY)
                found[place] = {row["table_name"]: row for row in answer} if isinstance(answer, list) else {}
            except SqlcachedError as why:
                found[place] = why
        tables = found[place]
        row: dict[str, Any] = {"who": who, "table": table.name, "server": place}
        if isinstance(tables, SqlcachedError):
            row["problem"] = str(tables)
        elif table.name not in tables:
            row["problem"] = "not made yet"
        else:
            row["figures"] = [(name, tables[table.name][name]) for name in COLUMNS]
        rows.append(row)
    return rows

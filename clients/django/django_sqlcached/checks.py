"""System checks: ``manage.py check``, and with ``--database default`` also whether the daemon answers."""

from __future__ import annotations

import importlib.util
from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from . import conf
from .declared import declared


@checks.register(checks.Tags.caches)
def settings_are_right(app_configs: Any, **_: Any) -> list[checks.CheckMessage]:
    """The settings have a meaning, and no two caches want different things of one table."""
    try:
        tables = declared()
        policy = conf.configuration()["ON_FAILURE"]
    except ImproperlyConfigured as why:
        return [checks.Error(str(why), id="sqlcached.E001")]
    found: list[checks.CheckMessage] = []
    seen: dict[Any, Any] = {}
    for who, table in tables:
        place = (str(table.server), table.name)
        other = seen.setdefault(place, (who, table.definition))
        if other[1] != table.definition:
            found.append(checks.Error(f"{who} and {other[0]} are the same table with different options", id="sqlcached.E002"))
    if policy not in ("suspend", "raise", "log"):
        found.append(checks.Error("SQLCACHED['ON_FAILURE'] is suspend, raise or log", id="sqlcached.E003"))
    wants_near = [who for who, table in tables if table.read_near]
    if wants_near and importlib.util.find_spec("sqlcached") is None:
        hint = "pip install django-sqlcached[near]"
        found.append(checks.Warning(f"{wants_near[0]} cannot read shared memory", hint=hint, id="sqlcached.W001"))
    return found


@checks.register(checks.Tags.database)
def daemon_answers(app_configs: Any, databases: Any = None, **_: Any) -> list[checks.CheckMessage]:
    """Every daemon answers. Only where databases are checked, so that a build needs none."""
    if not databases:
        return []
    found: list[checks.CheckMessage] = []
    servers = {str(table.server): table.server for _, table in declared()}
    for name, server in servers.items():
        try:
            server.stats()
        except Exception as why:
            hint = "start it, or correct LOCATION"
            found.append(checks.Warning(f"the daemon at {name} does not answer: {why}", hint=hint, id="sqlcached.W002"))
    return found

"""All tables that the settings and the apps declare."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import caches

from .cache import SqlcachedCache
from .fragments import registry
from .table import Table


def declared() -> list[tuple[str, Table]]:
    """Each table with a name for messages: caches, fragments, sessions."""
    found: list[tuple[str, Table]] = []
    for alias in settings.CACHES:
        cache = caches[alias]
        if isinstance(cache, SqlcachedCache):
            found.append((f"cache {alias!r}", cache.table))
    found += [(f"fragment {name}", kind.table()) for name, kind in sorted(registry.items())]
    if settings.SESSION_ENGINE == "django_sqlcached.sessions":
        from .sessions import table

        found.append(("sessions", table()))
    return found

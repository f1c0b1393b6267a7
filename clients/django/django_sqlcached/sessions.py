"""Sessions in a table of their own: ``SESSION_ENGINE = "django_sqlcached.sessions"``.

A row knows its user, so that all sessions of a user can be ended at once: ``logout_everywhere(user)``. The table has a
reserve of memory (``min_memory``): other tables cannot evict sessions below it. Its options are ``SESSIONS`` in the
setting ``SQLCACHED``.
"""

from __future__ import annotations

from typing import Any, Optional

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError

from . import conf
from .errors import SqlcachedError
from .protocol import KEY_MAX, wire
from .schema import Definition, Index
from .table import Table, exptime, shared
from .values import TEXT

#: What other tables leave to sessions when memory is short.
RESERVE = "8 MB"


class SessionStore(SessionBase):
    """One session. Its row is ``session_key``, ``data`` and, computed from ``data``, ``user_id``."""

    def _row(self, key: Optional[str]) -> Optional[bytes]:
        """The key of a row; None for a text that no session has."""
        name = (table().definition.prefix + (key or "")).encode("utf-8", "backslashreplace")
        return wire(name) if key and len(name) <= KEY_MAX else None

    def load(self) -> dict[str, Any]:
        name = self._row(self.session_key)
        found = None if name is None else table().get(name)
        if found is None:
            self._session_key = None
            return {}
        _, _, text = found[0].decode().partition(" ")
        loaded: dict[str, Any] = self.decode(text)
        return loaded

    def exists(self, session_key: str) -> bool:
        name = self._row(session_key)
        return name is not None and table().get(name) is not None

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        if self.session_key is None:
            return self.create()
        data = self._get_session(no_load=must_create)
        # The user stands before the rest, so that the daemon finds it without knowing the serializer.
        user = str(data.get(SESSION_KEY) or "").replace(" ", "%20")
        name = self._row(self.session_key)
        value = f"{user} {self.encode(data)}".encode()
        expire = exptime(self.get_expiry_age(), has_ttl=False)
        # A session that somebody ended meanwhile must not come back: only an existing row is replaced.
        mode = b"E" if must_create else b"R"
        if name is None or not table().set(name, value, TEXT, expire, mode=mode, removes=False):
            raise CreateError if must_create else UpdateError
        return None

    def delete(self, session_key: Optional[str] = None) -> None:
        name = self._row(session_key or self.session_key)
        if name is not None:
            table().delete(name)

    @classmethod
    def clear_expired(cls) -> None:
        """Rows expire by themselves."""


def definition() -> Definition:
    """The table of sessions."""
    configuration = conf.configuration()
    name = f"{configuration['TABLE_PREFIX']}sessions"
    return Definition(
        name=name,
        columns={
            "session_key": "TEXT",
            "data": "TEXT",
            "user_id": "TEXT AS (nullif(split_part(data, ' ', 1), ''))",
        },
        key=("session_key",),
        value="data",
        prefix=f"{name}:",
        indexes=(Index(("user_id",)),),
        options={"min_memory": RESERVE, **configuration["SESSIONS"]},
    )


def table() -> Table:
    """The table, in the daemon of the setting ``SQLCACHED``."""
    global _made
    if _made[1] is None or _made[0] != conf.generation():
        make = conf.configuration()["AUTO_SYNC"]
        _made = conf.generation(), shared(
            conf.server(), definition(), read_near=False, make=make, expendable=False
        )
    made = _made[1]
    assert made is not None
    return made


#: The table, and the generation of the settings that it was made of.
_made: tuple[int, Optional[Table]] = (0, None)


def _user(user: Any) -> str:
    """A user, or its primary key."""
    return str(getattr(user, "pk", user)).replace(" ", "%20")


def logout_everywhere(user: Any, *, keep: Optional[str] = None) -> int:
    """Ends all sessions of a user, but for the session key ``keep``; how many."""
    text = f"DELETE FROM {table().quoted} WHERE user_id = ?"
    if keep is not None:
        return table().changed(f"{text} AND session_key <> ?", _user(user), keep)
    return table().changed(text, _user(user))


def active_sessions(user: Any = None) -> list[dict[str, Any]]:
    """The sessions of a user, or of all users who have logged in: ``session_key``, ``user_id``, ``expires_in`` seconds."""
    text = f"SELECT session_key, user_id, _ttl AS expires_in FROM {table().quoted} WHERE "
    if user is None:
        rows = table().sql(f"{text} user_id IS NOT NULL")
    else:
        rows = table().sql(f"{text} user_id = ?", _user(user))
    if not isinstance(rows, list):
        raise SqlcachedError("a query returned no rows")
    return rows

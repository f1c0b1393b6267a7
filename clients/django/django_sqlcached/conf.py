"""The setting ``SQLCACHED``, and the daemons that it and ``CACHES`` name."""

from __future__ import annotations

import ssl
import threading
from typing import Any, Mapping, Optional, Union

from asgiref.local import Local
from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from .protocol import Address, Server

#: memcached's port.
PORT = 11211

#: What a daemon's entry may say, and what is meant where it says nothing.
DEFAULTS: dict[str, Any] = {
    "LOCATION": f"127.0.0.1:{PORT}",
    "USER": None,
    "PASSWORD": None,
    "TLS": None,
    "SOCKET_TIMEOUT": 5.0,
    "CONNECT_TIMEOUT": 1.0,
    # What happens when an invalidation cannot be sent: "suspend", "raise" or "log".
    "ON_FAILURE": "suspend",
    # The tables of fragments and sessions begin with this.
    "TABLE_PREFIX": "dj_",
    # Whether tables are made when they are first used.
    "AUTO_SYNC": True,
    # Options of the table of sessions.
    "SESSIONS": {},
    # The PostgreSQL port as libpq names it, for tools that want it.
    "SQL": "",
}

_lock = threading.Lock()
_generation = 1
_servers: dict[Any, Server] = {}


def generation() -> int:
    """Rises when the settings change, which only tests do. What was made of them is then made again."""
    return _generation


def configuration() -> dict[str, Any]:
    """The setting with its defaults."""
    given = getattr(settings, "SQLCACHED", {})
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise ImproperlyConfigured(f"SQLCACHED: unknown entry {', '.join(unknown)}")
    return {**DEFAULTS, **given}


def server(given: Optional[Mapping[str, Any]] = None) -> Server:
    """The daemon of the setting, or of a cache whose entries override the setting's. One pool for each daemon."""
    entries = {**configuration(), **(given or {})}
    names = ("USER", "PASSWORD", "SOCKET_TIMEOUT", "CONNECT_TIMEOUT")
    where = address(entries["LOCATION"])
    identity = (where, *(entries[name] for name in names), repr(entries["TLS"]))
    with _lock:
        found = _servers.get(identity)
        if found is None:
            found = _servers[identity] = Server(
                where,
                timeout=float(entries["SOCKET_TIMEOUT"]),
                connect_timeout=float(entries["CONNECT_TIMEOUT"]),
                user=entries["USER"],
                password=entries["PASSWORD"],
                tls=_tls(entries["TLS"]),
            )
        return found


def address(location: Union[str, "list[str]", "tuple[str, ...]"]) -> Address:
    """``host:port``, ``host``, ``[::1]:port``, or the path of a Unix socket, with ``unix:`` before it or without."""
    if isinstance(location, (list, tuple)):
        if len(location) != 1:
            raise ImproperlyConfigured("sqlcached is one server: LOCATION names one address")
        location = location[0]
    location = location or DEFAULTS["LOCATION"]
    if location.startswith("unix:"):
        return location[5:]
    if location.startswith("/"):
        return location
    host, _, port = location.rpartition(":") if location.count(":") == 1 or "]:" in location else (location, "", "")
    if port and not port.isdigit():
        raise ImproperlyConfigured(f"LOCATION {location!r}: the port is no number")
    return (host.strip("[]") or "127.0.0.1", int(port or PORT))


def _tls(given: Any) -> Optional[ssl.SSLContext]:
    """TLS with the machine's authorities (``True``), or with files: ``{"ca": ..., "certificate": ..., "key": ...}``."""
    if not given:
        return None
    if isinstance(given, ssl.SSLContext):
        return given
    files: Mapping[str, str] = {} if given is True else given
    context = ssl.create_default_context(cafile=files.get("ca"))
    if "certificate" in files:
        context.load_cert_chain(files["certificate"], files.get("key"))
    return context


def _forget(*, setting: str, **_: Any) -> None:
    """Tests override settings."""
    global _generation
    if setting in ("SQLCACHED", "CACHES"):
        with _lock:
            _generation += 1
            for each in _servers.values():
                each.close()
            _servers.clear()
    if setting == "SQLCACHED":
        # Caches are made again, as Django does after a change of CACHES.
        caches._connections = Local()  # type: ignore[attr-defined,unused-ignore]


setting_changed.connect(_forget)

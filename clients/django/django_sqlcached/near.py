"""Reads in shared memory by sqlcached's native client (``pip install django-sqlcached[near]``)."""

from __future__ import annotations

from typing import Iterable, Optional, Protocol

from .errors import SqlcachedError, logger
from .protocol import Server

#: Hosts that are this machine.
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Reader(Protocol):
    """What is used of ``sqlcached.Client``. A fresh row of shared memory, or None if only the daemon knows."""

    def peek(self, key: bytes) -> Optional[tuple[bytes, int, int]]: ...

    def peek_many(self, keys: Iterable[bytes]) -> list[Optional[tuple[bytes, int, int]]]: ...


#: One reader for each daemon, by its socket. All threads use it, and children after a fork.
_readers: dict[str, Reader] = {}


def attach(server: Server) -> tuple[Optional[Reader], Optional[Exception]]:
    """A reader of the daemon's shared memory, or why there is none. Reads then go over the socket."""
    try:
        import sqlcached

        path = _socket(server)
        reader = _readers.get(path)
        if reader is None:
            reader = _readers.setdefault(path, sqlcached.Client(path))
        return reader, None
    except ImportError as why:
        logger.warning("shared memory is not read: %s; install django-sqlcached[near]", why)
        return None, why
    except Exception as why:
        logger.warning("shared memory of %s is not read: %s", server, why)
        return None, why


def _socket(server: Server) -> str:
    """The Unix socket of the daemon."""
    if isinstance(server.address, str):
        return server.address
    if server.address[0] not in LOOPBACK:
        raise SqlcachedError(f"{server.address[0]} is not this machine")
    path = server.stats("settings").get("domain_socket", "NULL")
    if path == "NULL":
        raise SqlcachedError("the daemon has no Unix socket")
    # A port may be forwarded to a daemon in a container, whose paths mean other files here.
    local = Server(path, timeout=server.timeout, connect_timeout=server.connect_timeout)
    try:
        if local.stats().get("pid") != server.stats().get("pid"):
            raise SqlcachedError(f"{path} is another daemon's")
    finally:
        local.close()
    return path

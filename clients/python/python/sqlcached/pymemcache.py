"""pymemcache's clients with gets answered from shared memory.

An application that uses pymemcache changes one import::

    from sqlcached.pymemcache import Client

A hit is copied from shared memory, without a system call. These use the socket: a miss, a value that a client should
refresh, a table that is not in shared memory, and every other command. So the daemon decides which client refreshes a
value. If there is no readable shared memory (another machine, a memcached, no permission), everything uses the socket;
``Client.near_error`` has the reason.

Shared memory may not show a write yet that was sent with ``noreply``, pymemcache's default. So the next read of that
connection uses the socket, after the write, and later reads use shared memory again: a client reads its own writes, as
with pymemcache.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

from pymemcache.client import base, hash as hashed
from pymemcache.exceptions import MemcacheError

from . import Client as Reader
from . import Error as ReaderError

__all__ = ["Client", "HashClient", "PooledClient"]

#: Where a daemon may listen: its TCP port is on loopback only, so that another host is another machine.
LOOPBACK = ("localhost", "127.0.0.1", "::1")

#: Seconds before a server whose shared memory could not be read is asked for it again.
RETRY_SECONDS = 10.0

#: One reader for each daemon, by its socket; all threads may use it, and children after a fork.
_readers: Dict[str, Reader] = {}


def _reader(path: str) -> Reader:
    """The reader of a daemon. Of two threads that make one at the same moment, one sees its own forgotten."""
    return _readers.get(path) or _readers.setdefault(path, Reader(path))


class Client(base.Client):
    """pymemcache's ``Client``; see the module."""

    #: Why gets are not answered from shared memory; None when they are, or when nothing was asked yet.
    near_error: Optional[Exception] = None

    _near: Optional[Reader] = None
    _next_attempt = 0.0
    #: Something was sent whose answer did not come, or was not asked for.
    _unacknowledged = False

    def get(self, key: base.Key, default: Any = None) -> Any:
        near = None if self._unacknowledged else self._near or self._reader()
        if near is not None:
            found = near.peek(self.check_key(key, self.key_prefix))
            if found is not None:
                return self._deserialized(key, found[0], found[1], default)
        return super().get(key, default)

    def gets(self, key: base.Key, default: Any = None, cas_default: Any = None) -> Tuple[Any, Any]:
        near = self._reader()
        if near is not None:
            found = near.peek(self.check_key(key, self.key_prefix))
            if found is not None:
                return self._deserialized(key, found[0], found[1], default), b"%d" % found[2]
        return super().gets(key, default, cas_default)

    def get_many(self, keys: Iterable[base.Key]) -> Dict[base.Key, Any]:
        found, rest = self._split(keys)
        values = {key: self._deserialized(key, value, flags, None) for key, (value, flags, _) in found.items()}
        return {**values, **super().get_many(rest)} if rest else values

    get_multi = get_many

    def gets_many(self, keys: Iterable[base.Key]) -> Dict[base.Key, Tuple[Any, Any]]:
        found, rest = self._split(keys)
        values = {
            key: (self._deserialized(key, value, flags, None), b"%d" % cas)
            for key, (value, flags, cas) in found.items()
        }
        return {**values, **super().gets_many(rest)} if rest else values

    def _split(self, keys: Iterable[base.Key]) -> Tuple[Dict[base.Key, Tuple[bytes, int, int]], List[base.Key]]:
        """What shared memory has, and the keys that the socket is to be asked for."""
        wanted = list(keys)
        near = self._reader() if wanted else None
        if near is None:
            return {}, wanted
        found = near.peek_many([self.check_key(key, self.key_prefix) for key in wanted])
        hits = {key: hit for key, hit in zip(wanted, found) if hit is not None}
        return hits, [key for key in wanted if key not in hits]

    def _deserialized(self, key: base.Key, value: bytes, flags: int, default: Any) -> Any:
        try:
            return self.serde.deserialize(key, value, flags)
        except Exception:
            if self.ignore_exc:
                return default
            raise

    # When shared memory may be read.

    def _reader(self) -> Optional[Reader]:
        if self._unacknowledged:
            return None
        if self._near is None and time.monotonic() >= self._next_attempt:
            self._attach()
        return self._near

    def _attach(self) -> None:
        self._next_attempt = time.monotonic() + RETRY_SECONDS
        try:
            self._near = _reader(self._socket_path())
            self.near_error = None
        except (ReaderError, MemcacheError, OSError) as why:
            self.near_error = why

    def _socket_path(self) -> str:
        """The Unix socket of the daemon that answers at ``server``."""
        if isinstance(self.server, str):
            return self.server
        host, port = self.server[:2]
        if host not in LOOPBACK:
            raise ReaderError(f"{host} is not this machine; its memory cannot be shared")
        asked = base.Client((host, port), connect_timeout=self.connect_timeout, timeout=self.timeout)
        try:
            path = asked.stats("settings").get(b"domain_socket", b"NULL").decode()
            if path == "NULL":
                raise ReaderError(f"the server at {host}:{port} names no Unix socket")
            self._same_daemon(asked, path)
            return path
        finally:
            asked.close()

    def _same_daemon(self, asked: base.Client, path: str) -> None:
        """A port may be forwarded to a daemon in a container, whose paths mean other files here."""
        local = base.Client(path, connect_timeout=self.connect_timeout, timeout=self.timeout)
        try:
            ports = [client.stats("settings").get(b"tcpport") for client in (asked, local)]
            pids = [client.stats().get(b"pid") for client in (asked, local)]
        finally:
            local.close()
        if ports[0] != ports[1] or pids[0] != pids[1]:
            raise ReaderError(f"{path} is another daemon's")

    # What was sent and not acknowledged. A connection's answers come in the order of its requests, so any answer
    # acknowledges all that was sent before.

    def _fetch_cmd(self, *arguments: Any, **options: Any) -> Any:
        answer = super()._fetch_cmd(*arguments, **options)
        # With ignore_exc a failure is an empty answer, and closes the connection.
        if self.sock is not None:
            self._unacknowledged = False
        return answer

    def _store_cmd(self, name: bytes, values: Any, expire: int, noreply: bool, *rest: Any, **options: Any) -> Any:
        self._unacknowledged = True
        answer = super()._store_cmd(name, values, expire, noreply, *rest, **options)
        self._unacknowledged = noreply
        return answer

    def _misc_cmd(self, cmds: Iterable[bytes], cmd_name: bytes, noreply: Optional[bool], *rest: Any, **options: Any) -> Any:
        self._unacknowledged = True
        answer = super()._misc_cmd(cmds, cmd_name, noreply, *rest, **options)
        self._unacknowledged = bool(noreply)
        return answer


class PooledClient(base.PooledClient):
    """pymemcache's ``PooledClient`` of near clients."""

    client_class = Client


class HashClient(hashed.HashClient):
    """pymemcache's ``HashClient`` of near clients."""

    client_class = Client

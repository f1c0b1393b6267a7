"""memcached's protocol as Django needs it: gets, meta commands and statements over connections that stay open.

pymemcache has no meta commands (leases, keys in base64, the CAS of a fill) and cannot send statements, so this module
speaks to the socket itself. A daemon has one pool of connections for all threads of a process, whichever cache uses it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import socket
import ssl
import struct
import weakref
from collections import deque
from typing import Any, Callable, Iterable, NamedTuple, Optional, TypeVar, Union

from .errors import RefusedError, SqlcachedError, StatementError, UnavailableError

#: Bytes that one call receives. An answer to a hundred small keys fits.
RECEIVE = 65536

#: Idle connections that a process keeps for a daemon. Threads beyond these open and close their own.
IDLE_MAX = 64

#: Keys of one ``get`` line: far below the daemon's 1 MiB for a line with keys of at most 250 bytes.
KEYS_MAX = 1000

#: Quiet commands before their ``mn``. The daemon stops reading from a client with too much to read.
QUIET_MAX = 500

#: The longest key of the protocol.
KEY_MAX = 250

#: What a key cannot contain, unless it is sent in base64.
_UNSAFE = re.compile(rb"[\x00-\x20\x7f]")

Address = Union[str, "tuple[str, int]"]
Parameter = Union[None, bool, int, float, str, bytes]
Result = TypeVar("Result")


class Encoded(bytes):
    """A key that has spaces or control characters. Meta commands send it in base64, and the row has its true text."""


class Item(NamedTuple):
    """What ``mg`` answers."""

    value: bytes
    flags: int
    cas: int
    #: Seconds until the deadline; None without one.
    seconds: Optional[int]
    #: This client is asked to compute the value.
    won: bool
    #: Another client computes it.
    other: bool

    @property
    def reserved(self) -> bool:
        """Nothing but the place of a value that is being computed."""
        return not self.value and not self.flags


class Connection:
    """One connection; used by one thread at a time."""

    __slots__ = ("_sock", "_buffer", "used")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = b""
        #: It answered before, so that a failure may mean only that the daemon was restarted since.
        self.used = False

    def close(self) -> None:
        self._sock.close()

    def is_alive(self) -> bool:
        """Whether the peer has not closed it meanwhile. Between two requests there is nothing to read."""
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return False
        except BlockingIOError:
            return True
        except (OSError, ValueError):
            return False

    def send(self, request: bytes) -> None:
        self._sock.sendall(request)

    def _receive(self) -> bytes:
        data = self._sock.recv(RECEIVE)
        if not data:
            raise ConnectionResetError("the daemon closed the connection")
        return data

    def line(self) -> bytes:
        """One line without its end."""
        buffer = self._buffer
        end = buffer.find(b"\r\n")
        while end < 0:
            buffer += self._receive()
            end = buffer.find(b"\r\n")
        self._buffer = buffer[end + 2 :]
        return buffer[:end]

    def block(self, size: int) -> bytes:
        """A data block of this size, and its line end."""
        buffer, size = self._buffer, size + 2
        if len(buffer) < size:
            parts, have = [buffer], len(buffer)
            while have < size:
                parts.append(self._receive())
                have += len(parts[-1])
            buffer = b"".join(parts)
        self._buffer = buffer[size:]
        return buffer[: size - 2]

    def values(self) -> dict[bytes, tuple[bytes, int]]:
        """The answer of ``get``: value and flags of the keys that exist."""
        found: dict[bytes, tuple[bytes, int]] = {}
        while True:
            data, at = self._buffer, 0
            while (end := data.find(b"\r\n", at)) >= 0 and data.startswith(b"VALUE ", at):
                _, key, flags, size = data[at:end].split(b" ")
                start, stop = end + 2, end + 2 + int(size)
                if len(data) < stop + 2:
                    self._buffer = data[start:]
                    found[key] = self.block(stop - start), int(flags)
                    data, at = self._buffer, 0
                else:
                    found[key] = data[start:stop], int(flags)
                    at = stop + 2
            if end >= 0:
                self._buffer = data[end + 2 :]
                if data[at:end] == b"END":
                    return found
                raise refused(data[at:end])
            self._buffer = data[at:] + self._receive()

    def item(self) -> Optional[Item]:
        """The answer of ``mg`` with ``v f c t``."""
        line = self.line()
        if line == b"EN":
            return None
        words = line.split(b" ")
        if words[0] != b"VA":
            raise refused(line)
        value = self.block(int(words[1]))
        rest = {word[:1]: word[1:] for word in words[2:]}
        seconds = int(rest.get(b"t", b"-1"))
        return Item(
            value,
            int(rest.get(b"f", b"0")),
            int(rest.get(b"c", b"0")),
            None if seconds < 0 else seconds,
            b"W" in rest,
            b"Z" in rest,
        )

    def rows(self) -> Union[list[dict[str, Any]], int]:
        """The answer of a statement: rows, or how many were changed."""
        rows = []
        while True:
            line = self.line()
            if line.startswith(b"{"):
                rows.append(json.loads(line, object_hook=_blob))
            elif line.startswith(b"OK "):
                return int(line[3:])
            elif line == b"END":
                return rows
            else:
                raise refused(line)


def refused(line: bytes) -> SqlcachedError:
    """The error of an answer."""
    text = line.decode("utf-8", "replace")
    words = text.split(" ", 2)
    if words[0] == "ERROR" and len(words) == 3 and len(words[1]) == 5:
        return StatementError(words[1], words[2])
    return RefusedError(text or "an empty answer")


def _blob(found: dict[str, Any]) -> Any:
    """Bytes of a row are an object with one member."""
    if len(found) == 1 and isinstance(found.get("base64"), str):
        return base64.b64decode(found["base64"])
    return found


def _parameter(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return json.dumps(value)
    return str(value)


def statement(text: str, parameters: Iterable[Any]) -> bytes:
    """The request of a statement. A list is an array; what JSON does not know is sent as its text."""
    body = text.encode()
    values = [json.dumps(value) if isinstance(value, (list, tuple)) else value for value in parameters]
    array = json.dumps(values, default=_parameter).encode()
    return b"sqlp %d %d\r\n%b\r\n%b\r\n" % (len(body), len(array), body, array)


def wire(key: bytes) -> bytes:
    """A key in the form that commands send."""
    return Encoded(key) if _UNSAFE.search(key) else key


def fitting(text: str, room: int) -> str:
    """A text as it stands in a key, with a digest in the place of what is too long."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > room:
        digest = hashlib.sha256(data).hexdigest()
        data = data[: room - len(digest) - 1].decode("utf-8", "ignore").encode() + b"#" + digest.encode()
    return data.decode()


def token(key: bytes) -> tuple[bytes, bytes]:
    """A key as meta commands send it, and the flag that says how."""
    if type(key) is bytes:
        return key, b""
    return base64.b64encode(key), b" b"


def _kernel_timeout(seconds: float) -> bytes:
    """A timeout that the kernel keeps. Python's own asks ``poll`` before each call."""
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


class Server:
    """The connections of this process to one daemon."""

    def __init__(
        self,
        address: Address,
        *,
        timeout: float = 5.0,
        connect_timeout: float = 1.0,
        user: Optional[str] = None,
        password: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.address = address
        self.timeout = timeout
        self.connect_timeout = connect_timeout
        self._login = f"{user} {password or ''}".encode() if user else None
        self._tls = tls
        self._idle: deque[Connection] = deque()
        #: Rises when a connection was lost. Then the daemon may have been restarted, and its tables may be gone.
        self.epoch = 1
        _servers.add(self)

    def __str__(self) -> str:
        return self.address if isinstance(self.address, str) else "%s:%d" % self.address

    def run(
        self,
        work: Callable[[Connection], Result],
        *,
        again: bool = True,
        ready: Optional[Callable[[], None]] = None,
    ) -> Result:
        """Does something with a connection. A connection that had died is replaced; with ``again`` off only if that
        was seen before anything was sent, because the command must not be executed twice. ``ready`` is called before a
        daemon that may have been restarted is asked again."""
        epoch = self.epoch
        connection = self._take(check=not again)
        try:
            if ready is not None and self.epoch != epoch:
                ready()
            return self._on(connection, work)
        except OSError as why:
            self.lost()
            if not (again and connection.used):
                raise UnavailableError(str(self), why) from why
        if ready is not None:
            ready()
        try:
            return self._on(self._connect(), work)
        except OSError as why:
            raise why if isinstance(why, UnavailableError) else UnavailableError(str(self), why) from why

    def _on(self, connection: Connection, work: Callable[[Connection], Result]) -> Result:
        """The connection goes back to the pool only if its answers were read to their end."""
        try:
            result = work(connection)
        except (RefusedError, StatementError):
            self._give(connection)
            raise
        except (ValueError, IndexError) as why:
            connection.close()
            raise RefusedError(f"{self}: an answer that is not memcached's: {why}") from why
        except BaseException:
            connection.close()
            raise
        self._give(connection)
        return result

    def lost(self) -> None:
        """Forgets the idle connections: they are as dead as the one that failed."""
        self.epoch += 1
        self.close()

    def close(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                break

    def forget(self) -> None:
        """After a fork the sockets belong to the parent."""
        self._idle = deque()

    def _take(self, check: bool) -> Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if not check or connection.is_alive():
                return connection
            connection.close()
            self.lost()

    def _give(self, connection: Connection) -> None:
        connection.used = True
        if len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self) -> Connection:
        try:
            sock = self._open()
        except OSError as why:
            self.epoch += 1
            raise UnavailableError(str(self), why) from why
        connection = Connection(sock)
        if self._login is not None:
            connection.send(b"set login 0 0 %d\r\n%b\r\n" % (len(self._login), self._login))
            line = connection.line()
            if line != b"STORED":
                connection.close()
                raise refused(line)
        return connection

    def _open(self) -> socket.socket:
        if isinstance(self.address, str):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(self.connect_timeout)
            sock.connect(self.address)
        else:
            sock = socket.create_connection(self.address, self.connect_timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_hostname=self.address[0])
        sock.settimeout(None)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, _kernel_timeout(self.timeout))
        return sock

    # What the layers above ask for.

    def sql(self, text: str, *parameters: Any, again: bool = True) -> Union[list[dict[str, Any]], int]:
        """Runs one statement: rows as dictionaries, or the number of rows that it changed."""
        request = statement(text, parameters)

        def work(connection: Connection) -> Union[list[dict[str, Any]], int]:
            connection.send(request)
            return connection.rows()

        return self.run(work, again=again)

    def stats(self, what: str = "") -> dict[str, str]:
        """memcached's ``stats``."""

        def work(connection: Connection) -> dict[str, str]:
            connection.send(f"stats {what}".rstrip().encode() + b"\r\n")
            found = {}
            while (line := connection.line()) != b"END":
                if not line.startswith(b"STAT "):
                    raise refused(line)
                name, _, value = line[5:].decode().partition(" ")
                found[name] = value
            return found

        return self.run(work)


_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()


def _forget_all() -> None:
    for server in list(_servers):
        server.forget()


os.register_at_fork(after_in_child=_forget_all)

"""Helpers for the tests of a project.

::

    class ProductTests(SqlcachedTestMixin, TestCase):
        def test_a_price_is_seen(self):
            with self.assertInvalidates(ProductFragment, page=17):
                Product.objects.get(pk=17).save()

    with sqlcached_server() as server:
        ...  # server.location, server.socket
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, Iterator, Mapping, Optional

from django.db import DEFAULT_DB_ALIAS
from django.test import TestCase
from django.test.utils import override_settings

from .invalidation import located, observers
from .table import Table

#: Seconds that a daemon may take to start. It takes milliseconds; a loaded machine needs more.
PATIENCE = 20.0


class Daemon:
    """A daemon of a test's own, which can be stopped and started again."""

    def __init__(self, folder: str, program: str, flags: tuple[str, ...]) -> None:
        self.port, self.sql_port = _free_port(), _free_port()
        self.location = f"127.0.0.1:{self.port}"
        self.socket = os.path.join(folder, "sock")
        self._command = [program, "-p", str(self.port), "-s", self.socket, "--arena", os.path.join(folder, "arena")]
        self._command += ["--sql-port", str(self.sql_port), "--sql-socket-dir", "none", *flags]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.start()

    def start(self, *flags: str) -> None:
        """Starts it where it was, with more flags. Its rows are there again, unless ``--cold`` is among them."""
        self._process = subprocess.Popen(
            [*self._command, *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE
        while True:
            # The listener of SQL is the last that begins.
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket)
                socket.create_connection(("127.0.0.1", self.sql_port)).close()
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{' '.join(self._command)} does not serve")
            time.sleep(0.005)

    def stop(self) -> None:
        """Ends it, so that it is away."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def sqlcached_server(*flags: str, program: Optional[str] = None) -> Iterator[Daemon]:
    """A daemon of its own in a temporary folder; the setting ``SQLCACHED`` names it meanwhile. The program is
    ``sqlcached`` of the search path, or the environment variable ``SQLCACHED_PROGRAM``."""
    found = program or os.environ.get("SQLCACHED_PROGRAM") or shutil.which("sqlcached")
    if found is None:
        raise RuntimeError("sqlcached is not on the search path; set SQLCACHED_PROGRAM")
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="sqlcached-", dir=parent) as folder:
        daemon = Daemon(folder, found, flags)
        try:
            with override_settings(SQLCACHED={"LOCATION": daemon.location}):
                yield daemon
        finally:
            daemon.stop()


class SqlcachedTestMixin:
    """Assertions about invalidation, for a class of Django's tests. In a ``TestCase`` nothing is committed, so they run
    what waits for the commit."""

    @contextlib.contextmanager
    def assertInvalidates(self: Any, target: Any, *, using: str = DEFAULT_DB_ALIAS, **columns: Any) -> Iterator[None]:
        """The block invalidates these rows of a fragment or a cache."""
        table, wanted = located(target, columns)
        with self._sent(using) as sent:
            yield
        if not any(each is table and _covers(condition, wanted) for each, condition in sent):
            said = "; ".join(f"{each.name} {dict(condition)}" for each, condition in sent) or "nothing"
            self.fail(f"{table.name} {wanted} was not invalidated, but: {said}")

    @contextlib.contextmanager
    def assertInvalidatesNothing(self: Any, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
        """The block invalidates no row."""
        with self._sent(using) as sent:
            yield
        self.assertEqual([(table.name, dict(condition)) for table, condition in sent], [])

    @contextlib.contextmanager
    def _sent(self, using: str) -> Iterator[list[tuple[Table, Mapping[str, Any]]]]:
        sent: list[tuple[Table, Mapping[str, Any]]] = []

        def observe(table: Table, condition: Mapping[str, Any], soft: bool) -> None:
            sent.append((table, condition))

        observers.append(observe)
        try:
            capture = self.captureOnCommitCallbacks(using=using, execute=True) if isinstance(self, TestCase) else None
            with capture or contextlib.nullcontext():
                yield sent
        finally:
            observers.remove(observe)


def _covers(condition: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether all rows that are wanted fit a condition: the same columns or fewer, with these values among theirs."""
    return all(name in wanted and _values(wanted[name]) <= _values(values) for name, values in condition.items())


def _values(value: Any) -> set[Any]:
    return set(value) if isinstance(value, (list, tuple, set, frozenset)) else {value}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

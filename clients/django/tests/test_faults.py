"""A daemon that is away: at the start, in the middle, and back with its rows or without them."""

import logging
import os
import socket
import threading
import unittest

from django.core.cache import cache, caches
from django.db import transaction
from django.test import SimpleTestCase, TransactionTestCase, override_settings
from django_sqlcached import errors, sessions
from django_sqlcached.errors import SqlcachedError, UnavailableError
from django_sqlcached.fragments import Fragment, registry
from django_sqlcached.invalidation import invalidate
from django_sqlcached.testing import sqlcached_server

BACKEND = "django_sqlcached.cache.SqlcachedCache"


def a_cache(location, **options):
    return override_settings(CACHES={"default": {"BACKEND": BACKEND, "LOCATION": location, "OPTIONS": options}})


class Away(SimpleTestCase):
    def test_at_the_start(self):
        with a_cache("127.0.0.1:1"):
            for call in (
                lambda: cache.get("k"), lambda: cache.set("k", 1), lambda: cache.add("k", 1), lambda: cache.delete("k"),
                lambda: cache.get_many(["k"]), lambda: cache.set_many({"k": 1}), lambda: cache.incr("k"), lambda: cache.get_or_set("k", 1),
                lambda: cache.touch("k"), lambda: cache.sql("SELECT 1"),
            ):  # fmt: skip
                with self.assertRaisesMessage(UnavailableError, "127.0.0.1:1: Connection refused"):
                    call()
            for call in (cache.clear, lambda: cache.invalidate_tags("t")):
                with self.assertRaises(ConnectionError):
                    call()

    def test_ignored_errors_are_misses_with_one_warning_a_minute(self):
        errors.warnings.__init__()
        with a_cache("127.0.0.1:1", IGNORE_ERRORS=True), self.assertLogs("django_sqlcached", logging.WARNING) as logs:
            self.assertEqual(cache.get("k", "none"), "none")
            self.assertEqual((cache.get_many(["k"]), cache.set_many({"k": 1})), ({}, ["k"]))
            self.assertEqual(cache.get_or_set("k", lambda: 5), 5)
            self.assertFalse(cache.add("k", 1) or cache.touch("k") or cache.delete("k") or cache.has_key("k"))
            self.assertEqual(cache.invalidate_tags("t"), 0)
            cache.set("k", 1)
            cache.clear()
            with self.assertRaises(ValueError):
                cache.incr("k")
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertIn("Connection refused", logs.output[0])

    def test_one_that_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            with a_cache(f"127.0.0.1:{silent.getsockname()[1]}", SOCKET_TIMEOUT=0.1):
                with self.assertRaisesMessage(UnavailableError, "no answer in time"):
                    cache.get("k")


    def test_a_server_of_another_protocol(self):
        answers = [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"VALUE k x\r\n", b"VA nine\r\nEND\r\n", b"\x00\xff" * 40 + b"\r\n", b""]
        for answer in answers:
            with socket.create_server(("127.0.0.1", 0)) as other:
                threading.Thread(target=answers_once, args=(other, answer), daemon=True).start()
                options = {"AUTO_SYNC": False, "SOCKET_TIMEOUT": 5}
                with self.subTest(answer=answer), a_cache(f"127.0.0.1:{other.getsockname()[1]}", **options):
                    for call in (lambda: cache.get("k"), lambda: cache.get_or_set("k", 1)):
                        with self.assertRaises(SqlcachedError):
                            call()


def answers_once(server, answer):
    """Answers each connection's first request, and closes it."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(1000)
            connection.sendall(answer)


@unittest.skipUnless(os.environ.get("SQLCACHED_PROGRAM"), "needs a daemon of its own: SQLCACHED_PROGRAM")
class Back(TransactionTestCase):
    def test_with_its_rows(self):
        with sqlcached_server() as daemon, a_cache(daemon.location):
            cache.set("k", 1, tags=["t"])
            cache.set("n", 1)
            daemon.stop()
            with self.assertRaises(UnavailableError):
                cache.get("k")
            daemon.start()
            self.assertEqual((cache.get("k"), cache.incr("n"), cache.invalidate_tags("t")), (1, 2, 1))
            # The connections of the pool died while nobody used them.
            cache.set("k", 1)
            daemon.stop()
            daemon.start()
            self.assertEqual(cache.get("k"), 1)
            daemon.stop()
            daemon.start()
            self.assertEqual(cache.incr("n"), 3)

    def test_without_its_tables(self):
        with sqlcached_server("--cold") as daemon, a_cache(daemon.location):
            cache.set("k", 1, tags=["t"])
            daemon.stop()
            daemon.start()
            cache.set("k", 2)
            self.assertEqual(cache.sql("SELECT value FROM dj_default"), [{"value": "2"}])
            # A table that an operator drops is made again, too.
            cache.sql("DROP TABLE dj_default")
            cache.set("l", 1, tags=["t"])
            self.assertEqual(cache.invalidate_tags("t"), 1)

    def test_what_could_not_be_removed_is_not_read(self):
        for near in (False, True):
            with sqlcached_server() as daemon, a_cache(daemon.location, shared_memory=near, IGNORE_ERRORS=True):
                cache.set_many({"k": "old", "l": "old", "m": "old", "n": "kept"})
                cache.set("t", "old", tags=["t"])
                self.assertEqual(cache.get("k"), "old")
                if near:
                    self.assertIsNone(cache.table.near_error)
                daemon.stop()
                cache.delete("k")
                cache.set("l", "new")
                cache.delete_many(["m"])
                # Shared memory still has it, and it is not to be believed.
                self.assertIsNone(cache.get("k"))
                daemon.start()
                self.assertEqual(cache.get_many(["k", "l", "m", "n"]), {"n": "kept"})
                daemon.stop()
                self.assertEqual(cache.invalidate_tags("t"), 0)
                self.assertIsNone(cache.get("t"))
                daemon.start()
                cache.table._next_attempt = 0.0
                self.assertEqual(cache.get_many(["t", "n"]), {})
                cache.set("n", 1)
                self.assertEqual(cache.get("n"), 1)

    def test_shared_memory_is_read_while_the_daemon_is_away(self):
        with sqlcached_server() as daemon, a_cache(daemon.location, shared_memory=True):
            cache.set_many({"k": 1, "l": 2})
            self.assertEqual(cache.get("k"), 1)
            daemon.stop()
            with self.assertRaises(UnavailableError):
                cache.get("missing")
            self.assertEqual((cache.get("k"), cache.get_many(["k", "l"])), (1, {"k": 1, "l": 2}))
            self.assertEqual(cache.get_or_set("k", 5), 1)
            # Nobody may believe it any more once the daemon has another memory.
            daemon.start("--cold")
            self.assertIsNone(cache.get("k"))
            cache.set("k", 2)
            self.assertEqual((cache.get("k"), cache.table.near_error), (2, None))

    def test_an_invalidation_that_cannot_be_sent(self):
        class Lost(Fragment):
            page: int

        self.addCleanup(registry.pop, "Lost")
        for policy in ("suspend", "log", "raise"):
            with sqlcached_server() as daemon:
                with override_settings(SQLCACHED={"LOCATION": daemon.location, "ON_FAILURE": policy}):
                    Lost.set("old", page=1)
                    daemon.stop()
                    with self.assertLogs("django_sqlcached", logging.ERROR) as logs:
                        if policy == "raise":
                            with self.assertRaises(UnavailableError), transaction.atomic():
                                invalidate(Lost, page=1)
                        else:
                            with transaction.atomic():
                                invalidate(Lost, page=1)
                    self.assertIn("could not be invalidated", logs.output[0])
                    daemon.start()
                    self.assertEqual(Lost.get(page=1), None if policy == "suspend" else "old")

    def test_an_invalidation_waits_for_a_restart(self):
        class Waits(Fragment):
            page: int

        self.addCleanup(registry.pop, "Waits")
        with sqlcached_server() as daemon:
            Waits.set("old", page=1)
            daemon.stop()
            starter = threading.Timer(0.1, daemon.start)
            starter.start()
            invalidate(Waits, page=1)
            starter.join()
            self.assertIsNone(Waits.get(page=1))

    def test_sessions(self):
        with sqlcached_server() as daemon:
            session = sessions.SessionStore()
            session["a"] = 1
            session.save()
            daemon.stop()
            with self.assertRaises(UnavailableError):
                sessions.SessionStore(session.session_key).load()
            session["a"] = 2
            with self.assertRaises(UnavailableError):
                session.save()
            # What could not be saved ends no session; what could not be ended is not read again.
            daemon.start()
            self.assertEqual(sessions.SessionStore(session.session_key).load(), {"a": 1})
            daemon.stop()
            with self.assertRaises(UnavailableError):
                session.delete()
            daemon.start()
            self.assertEqual(sessions.SessionStore(session.session_key).load(), {})

    def test_a_child_after_a_fork_has_connections_of_its_own(self):
        with sqlcached_server() as daemon, a_cache(daemon.location):
            cache.set("k", 0)
            children = []
            for _ in range(4):
                child = os.fork()
                if not child:
                    for _ in range(100):
                        caches["default"].incr("k")
                    os._exit(0 if caches["default"].get("k") >= 100 else 1)
                children.append(child)
            self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0, 0, 0, 0])
            self.assertEqual(cache.get("k"), 400)

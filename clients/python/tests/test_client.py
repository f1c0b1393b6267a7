"""The package as its users call it, against the daemon at SQLCACHED_SOCKET."""

import gc
import importlib.metadata
import os
import signal
import sys
import threading
import time
import unittest

import sqlcached

SOCKET = os.environ["SQLCACHED_SOCKET"]

cache = sqlcached.Client(SOCKET)


def setUpModule():
    cache.sql(
        """CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
           WITH (prefix = 'frag:', value = 'body', shared_memory = on)"""
    )
    cache.sql("CREATE TABLE kinds (k TEXT PRIMARY KEY, i INT, r REAL, t TEXT, b BLOB) WITH (shared_memory = on)")
    cache.sql("CREATE TABLE private (k TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'private:', value = 'body')")


class Keys(unittest.TestCase):
    def test_values_come_back(self):
        cache.set("frag:1:a", "caf\u00e9", flags=7)
        self.assertEqual(cache.get("frag:1:a"), "caf\u00e9".encode())
        self.assertEqual(cache.get(b"frag:1:a"), "caf\u00e9".encode())
        self.assertIsNone(cache.get("frag:1:none"))

    def test_keys_of_text_are_utf8(self):
        cache.set("frag:1:k\u00e9y", b"x")
        self.assertEqual(cache.get("frag:1:k\u00e9y".encode()), b"x")

    def test_a_write_is_in_shared_memory_at_once(self):
        for number in range(200):
            value = b"%d" % number
            cache.set("frag:1:near", value, flags=3)
            self.assertEqual(cache.peek("frag:1:near")[:2], (value, 3))

    def test_lookup_tells_all(self):
        cache.set("frag:1:l", b"x", flags=9)
        found = cache.lookup("frag:1:l")
        self.assertEqual(found[:3], ("hit", b"x", 9))
        self.assertGreater(found.cas, 0)
        self.assertEqual(cache.lookup("frag:1:none"), ("miss", None, 0, 0, "nobody"))

    def test_add_and_cas(self):
        self.assertTrue(cache.add("frag:2:a", b"1"))
        self.assertFalse(cache.add("frag:2:a", b"2"))
        seen = cache.lookup("frag:2:a").cas
        self.assertTrue(cache.cas("frag:2:a", b"3", seen))
        self.assertFalse(cache.cas("frag:2:a", b"4", seen))
        self.assertEqual(cache.get("frag:2:a"), b"3")

    def test_numbers(self):
        cache.set("frag:2:n", b"40")
        self.assertEqual(cache.increment("frag:2:n", 2), 42)
        self.assertEqual(cache.increment("frag:2:n", -50), 0)
        self.assertIsNone(cache.increment("frag:2:none"))

    def test_delete(self):
        cache.set("frag:2:d", b"x")
        self.assertTrue(cache.delete("frag:2:d"))
        self.assertFalse(cache.delete("frag:2:d"))
        self.assertIsNone(cache.get("frag:2:d"))

    def test_many(self):
        wanted = {f"frag:3:{number}": b"%d" % number for number in range(150)}
        for key, value in wanted.items():
            cache.set(key, value)
        self.assertEqual(cache.get_many([*wanted, "frag:3:none"]), wanted)
        self.assertEqual(cache.get_many(key for key in wanted), wanted)
        self.assertEqual([found[0] for found in cache.peek_many(wanted)], list(wanted.values()))
        self.assertEqual(cache.get_many([]), {})

    def test_a_private_table_is_read_from_the_daemon(self):
        cache.set("private:a", b"secret")
        self.assertIsNone(cache.peek("private:a"))
        self.assertEqual(cache.get("private:a"), b"secret")
        cache.set("frag:3:p", b"open")
        self.assertEqual(cache.get_many(["private:a", "frag:3:p"]), {"private:a": b"secret", "frag:3:p": b"open"})

    def test_large_values(self):
        value = b"x" * 900_000
        cache.set("frag:4:large", value)
        self.assertEqual(cache.get("frag:4:large"), value)
        with self.assertRaisesRegex(sqlcached.ServerError, "too large"):
            cache.set("frag:4:large", bytes(2_000_000))

    def test_any_bytes_are_a_key(self):
        cache.set(b"frag:4:a\r\nflush_all", b"x")
        self.assertEqual(cache.get(b"frag:4:a\r\nflush_all"), b"x")

    def test_wrong_arguments(self):
        with self.assertRaises(TypeError):
            cache.get(17)
        with self.assertRaises(TypeError):
            cache.set("frag:4:a", 17)
        with self.assertRaises(ValueError):
            cache.set("k" * 251, b"x")
        with self.assertRaises(ValueError):
            cache.set("", b"x")
        with self.assertRaises(OverflowError):
            cache.set("frag:4:a", b"x", flags=-1)
        with self.assertRaises(ValueError):
            sqlcached.Client(SOCKET, timeout=-1)


class Tables(unittest.TestCase):
    def test_values_and_rows(self):
        cache.sql(
            "INSERT OR REPLACE INTO kinds VALUES ('a', -5, 0.5, 'caf\u00e9', ?1), ('n', NULL, NULL, NULL, NULL)",
            b"\0\xff",
        )
        kinds = cache.table("kinds")
        self.assertEqual(kinds.row("a"), {"k": "a", "i": -5, "r": 0.5, "t": "caf\u00e9", "b": b"\0\xff"})
        self.assertEqual(kinds.row("n"), {"k": "n", "i": None, "r": None, "t": None, "b": None})
        self.assertIsNone(kinds.row("none"))
        self.assertEqual(kinds.column("a", "t"), "caf\u00e9")
        with self.assertRaises(sqlcached.NoTableError):
            kinds.column("a", "nonsense")

    def test_composite_keys_and_many(self):
        frag = cache.table("frag")
        for part in "abc":
            cache.set(f"frag:5:{part}", part)
        self.assertEqual(frag.get("5:a"), b"a")
        self.assertEqual(frag.lookup("5:a").state, "hit")
        self.assertEqual(frag.get_many(["5:a", "5:c", "5:none"]), {"5:a": b"a", "5:c": b"c"})
        self.assertEqual(frag.name, "frag")

    def test_it_follows_its_name(self):
        options = "WITH (prefix = 'again:', value = 'v', shared_memory = on)"
        cache.sql(f"CREATE TABLE again (k TEXT PRIMARY KEY, v TEXT) {options}")
        again = cache.table("again")
        cache.set("again:a", b"1")
        self.assertEqual(again.get("a"), b"1")
        cache.sql("DROP TABLE again")
        cache.sql(f"CREATE TABLE again (k TEXT PRIMARY KEY, n INT, v TEXT) {options}")
        self.assertIsNone(again.get("a"))
        cache.set("again:a", b"2")
        self.assertEqual(again.get("a"), b"2")

    def test_no_such_table(self):
        with self.assertRaisesRegex(sqlcached.NoTableError, "no_such"):
            cache.table("no_such")

    def test_waiting_in_vain(self):
        frag = cache.table("frag")
        self.assertIsNone(frag.wait("6:never", 60.0))
        self.assertEqual(cache.claim("frag:6:v", 60).renewal, "you")
        self.assertEqual(cache.claim("frag:6:v", 60).renewal, "another")
        self.assertIsNone(frag.wait("6:v", 0.01))

    def test_waiting_leaves_other_threads_running(self):
        found = []
        cache.claim("frag:6:w", 60)
        waiter = threading.Thread(target=lambda: found.append(cache.table("frag").wait("6:w", 60.0)))
        waiter.start()
        # Were the interpreter's lock kept, this thread would come here after the wait.
        cache.set("frag:6:w", b"here")
        waiter.join()
        self.assertEqual(found, [b"here"])

    def test_a_signal_ends_a_wait(self):
        class Rung(Exception):
            pass

        def ring(*_):
            raise Rung

        cache.claim("frag:6:s", 600)
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with self.assertRaises(Rung):
                cache.table("frag").wait("6:s", 600.0)
        finally:
            signal.signal(signal.SIGALRM, before)


class Statements(unittest.TestCase):
    def test_rows_and_counts(self):
        self.assertEqual(cache.sql("DELETE FROM frag WHERE page = 7"), 0)
        self.assertEqual(cache.sql("INSERT INTO frag VALUES (7, 'a', 'x'), (7, 'b', 'y')"), 2)
        rows = cache.sql("SELECT part, body FROM frag WHERE page = ?1 ORDER BY part", 7)
        self.assertEqual(rows, [{"part": "a", "body": "x"}, {"part": "b", "body": "y"}])
        self.assertEqual(cache.get("frag:7:b"), b"y")
        self.assertEqual(cache.sql("SELECT 1 AS one WHERE 0"), [])

    def test_parameters_come_back(self):
        values = [None, True, -(2**63), 0.5, "a'\"\n\u20ac", b"\0\xff"]
        row = cache.sql("SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d, ?5 AS e, ?6 AS f", *values)[0]
        self.assertEqual(list(row.values()), [None, 1, -(2**63), 0.5, "a'\"\n\u20ac", b"\0\xff"])
        with self.assertRaises(TypeError):
            cache.sql("SELECT ?1", object())
        with self.assertRaises(OverflowError):
            cache.sql("SELECT ?1", 2**63)

    def test_errors_have_a_state(self):
        with self.assertRaises(sqlcached.StatementError) as caught:
            cache.sql("SELEKT")
        self.assertEqual(caught.exception.sqlstate, "42601")
        self.assertIsInstance(caught.exception, sqlcached.Error)


class Lives(unittest.TestCase):
    def test_no_daemon(self):
        # The error once named no path, and the wrong one is what most often is the matter.
        with self.assertRaisesRegex(sqlcached.UnavailableError, "/nowhere/sock: No such file or directory"):
            sqlcached.Client("/nowhere/sock")

    def test_version(self):
        self.assertRegex(sqlcached.__version__, r"^\d+\.\d+\.\d+")
        self.assertEqual(sqlcached.__version__, importlib.metadata.version("sqlcached"))

    def test_a_context_closes_and_may_go_on(self):
        with sqlcached.Client(SOCKET) as one:
            one.set("frag:8:a", b"x")
        self.assertEqual(one.get("frag:8:a"), b"x")
        one.set("frag:8:a", b"y")
        self.assertEqual(cache.get("frag:8:a"), b"y")

    def test_tables_outlive_their_client(self):
        table = sqlcached.Client(SOCKET).table("frag")
        gc.collect()
        cache.set("frag:8:o", b"x")
        self.assertEqual(table.get("8:o"), b"x")

    def test_threads_read_whole_values(self):
        letters = [bytes([letter]) * 100 * (letter - 96) for letter in range(97, 123)]
        cache.set("frag:9:torn", letters[0])
        wrong, stop = [], threading.Event()

        def read():
            while not stop.is_set():
                value = cache.get("frag:9:torn")
                if value not in letters:
                    wrong.append(value)

        readers = [threading.Thread(target=read) for _ in range(3)]
        # The writer gives the interpreter's lock up at each turn, and gets it back when a reader's time is over.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.00001)
        for reader in readers:
            reader.start()
        for number in range(500):
            cache.set("frag:9:torn", letters[number % 26])
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual(wrong, [])

    def test_children_go_on(self):
        cache.set("frag:10:parent", b"p")
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                good = cache.get("frag:10:parent") == b"p"
                for turn in range(50):
                    key, value = f"frag:10:{number}", b"%d" % turn
                    cache.set(key, value)
                    good = good and cache.get(key) == value and cache.sql("SELECT ?1 AS n", turn) == [{"n": turn}]
                os._exit(0 if good else 1)
            children.append(child)
        for turn in range(50):
            self.assertEqual(cache.sql("SELECT ?1 AS n", turn), [{"n": turn}])
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0] * 4)
        self.assertEqual(cache.get("frag:10:3"), b"49")

    def test_time_ends_rows(self):
        cache.set("frag:11:gone", b"x", expire=-1)
        self.assertIsNone(cache.get("frag:11:gone"))
        cache.set("frag:11:past", b"x", expire=int(time.time()) - 10)
        self.assertIsNone(cache.get("frag:11:past"))


if __name__ == "__main__":
    unittest.main()

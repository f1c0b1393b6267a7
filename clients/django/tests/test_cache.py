"""The backend beyond what Django's own suite asks: types, keys, tags, leases, atomic numbers, async."""

import asyncio
import datetime
import decimal
import threading
import time
import warnings

from django.core.cache import cache, caches
from django.core.cache.backends.base import CacheKeyWarning
from django.core.exceptions import ImproperlyConfigured
from django.test import SimpleTestCase, override_settings
from django.utils.safestring import SafeString, mark_safe
from django_sqlcached import conf
from django_sqlcached.cache import SqlcachedCache
from django_sqlcached.errors import RefusedError, StatementError

BACKEND = "django_sqlcached.cache.SqlcachedCache"


class JSON:
    """A serializer of somebody's own."""

    def dumps(self, value):
        import json

        return json.dumps(value).encode()

    def loads(self, data):
        import json

        return json.loads(data)


class Base(SimpleTestCase):
    def setUp(self):
        cache.clear()


class Values(Base):
    def test_every_type_comes_back_as_it_was(self):
        values = [
            "", "text", "n\u00e4h\u6e05", "a\0b", "half \ud800", mark_safe("<b>"), b"", b"bytes", b"\xff\x00", b"text", 0, 1, -1,
            2**63 - 1, -(2**63), 2**64, 10**30, True, False, None, 1.5, decimal.Decimal("1.10"), [1, "a"], {"a": (1, 2)},
            datetime.datetime(2026, 11, 23), {1, 2}, "x" * 100_000, b"\r\nEND\r\n",
        ]  # fmt: skip
        for value in values:
            for how in ("set", "tags", "many"):
                with self.subTest(value=value, how=how):
                    if how == "set":
                        cache.set("k", value)
                    elif how == "tags":
                        cache.set("k", value, tags=["t"])
                    else:
                        cache.set_many({"k": value, "l": 1})
                    for found in (cache.get("k", "none"), cache.get_many(["k"])["k"]):
                        self.assertEqual(found, value)
                        self.assertIs(type(found), type(value))

    def test_safe_strings_stay_safe(self):
        cache.set("k", mark_safe("<b>"))
        self.assertIsInstance(cache.get("k"), SafeString)

    def test_rows_are_legible(self):
        with self.assertWarns(CacheKeyWarning):
            cache.set("a:b c", "text", 60, tags=["x"])
        cache.set("n", 5, None)
        rows = {row["key"]: row for row in cache.rows()}
        self.assertEqual(rows["a:b c"], {"version": 1, "key": "a:b c", "value": "text", "tags": ["x"], "ttl": 60})
        self.assertIsNone(rows["n"]["ttl"])
        self.assertEqual(cache.sql("SELECT value FROM dj_default WHERE key = ?", "n"), [{"value": "5"}])

    def test_what_cannot_be_pickled_is_an_error(self):
        with self.assertRaises((AttributeError, TypeError)):
            cache.set("k", lambda: 1)
        with self.assertRaises((AttributeError, TypeError)):
            cache.get_or_set("k", lambda: (lambda: 1))
        # The place that was reserved for it is free again.
        self.assertEqual(cache.get_or_set("k", lambda: 2), 2)

    @override_settings(CACHES={"default": {"BACKEND": BACKEND, "OPTIONS": {"serializer": "test_cache.JSON"}}})
    def test_a_serializer_of_ones_own(self):
        cache.set("k", {"a": [1, None]})
        self.assertEqual(cache.get("k"), {"a": [1, None]})
        self.assertEqual(cache.sql("SELECT value FROM dj_default"), [{"value": '{"a": [1, null]}'}])

    def test_too_large_a_value_is_refused_and_the_old_one_gone(self):
        cache.set("k", "old")
        with self.assertRaisesMessage(RefusedError, "too large"):
            cache.set("k", "x" * (2 << 20))
        self.assertIsNone(cache.get("k"))
        self.assertEqual(cache.set_many({"k": "x" * (2 << 20), "l": "y"}), ["k"])
        self.assertEqual(cache.get("l"), "y")


class Keys(Base):
    def test_any_key_works_and_no_two_are_one(self):
        keys = ["", " ", "a b", "a%20b", "a\nb", "a:b", "n\u00e4h", "\u6e05" * 200, "x" * 400, "x" * 401, "half \ud800", 5, ("a", 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, key in enumerate(keys):
                cache.set(key, number)
            for number, key in enumerate(keys):
                self.assertEqual(cache.get(key), number, key)
                self.assertIn(key, cache)
            self.assertEqual(cache.get_many(keys), dict(zip(keys, range(len(keys)))))
            self.assertEqual(cache.incr("a b", 40), 42)
            self.assertTrue(cache.touch("a b", 60))
            cache.delete_many(keys[:3])
            self.assertEqual(len(cache.get_many(keys)), len(keys) - 3)
            self.assertEqual(cache.get_or_set("c d", lambda: 1), 1)
            self.assertTrue(cache.delete("c d"))
            self.assertTrue(cache.add("c d", 2))

    def test_versions_are_a_column(self):
        cache.set("k", 1)
        cache.set("k", 2, version=2)
        self.assertEqual(cache.delete_where(version=2), 1)
        self.assertEqual((cache.get("k"), cache.get("k", version=2)), (1, None))

    def test_a_version_that_is_no_number(self):
        cache.set("k", 1, version="blue")
        self.assertEqual((cache.get("k", version="blue"), cache.get("k")), (1, None))


class Time(Base):
    def test_timeouts(self):
        for timeout, left in ((10, 10), (None, None), (0.5, 1), (86400 * 60, 86400 * 60)):
            for tags in (None, ["t"]):
                cache.set("k", 1, timeout, tags=tags)
                found = cache.rows(key="k")[0]["ttl"]
                self.assertTrue(found == left or abs(found - left) <= 2, (timeout, tags, found))
        for timeout in (0, -1):
            cache.set("k", 1, timeout, tags=["t"])
            self.assertIsNone(cache.get("k"))

    @override_settings(CACHES={"default": {"BACKEND": BACKEND, "OPTIONS": {"TABLE": "dj_with_ttl", "ttl": "1 min"}}})
    def test_none_is_no_deadline_in_a_table_with_one(self):
        cache.set("k", 1, None)
        cache.set("l", 1, None, tags=["t"])
        left = {row["key"]: row["ttl"] for row in cache.rows()}
        self.assertGreater(left["k"], 10 * 365 * 86400)
        self.assertIsNone(left["l"])
        cache.clear()

    def test_numbers_keep_their_deadline(self):
        cache.set("k", 5, 100)
        cache.incr("k")
        cache.decr("k", 9)
        self.assertEqual(cache.get("k"), -3)
        self.assertTrue(95 <= cache.rows(key="k")[0]["ttl"] <= 100)


class Numbers(Base):
    def test_every_number(self):
        for start, delta, result in ((5, 3, 8), (5, -9, -4), (-4, 1, -3), (1.5, 1, 2.5), (2**70, 1, 2**70 + 1), (5, 0, 5)):
            cache.set("n", start)
            self.assertEqual(cache.incr("n", delta), result)
            self.assertEqual(cache.get("n"), result)
        with self.assertRaises(ValueError):
            cache.incr("missing")

    def test_numbers_and_versions_keep_their_tags(self):
        """A number that the daemon could not change itself once lost its tags, and outlived their invalidation."""
        for key in ("up", "down", "real", "moved"):
            cache.set(key, 1.5 if key == "real" else 5, 100, tags=["t"])
        cache.incr("up")
        cache.decr("down", 9)
        cache.incr("real")
        cache.touch("up", 200)
        cache.set("moved", "old", version=2, tags=["other"])
        self.assertEqual(cache.incr_version("moved"), 2)
        self.assertEqual((cache.get("moved"), cache.get("moved", version=2)), (None, 5))
        left = {row["key"]: (row["tags"], row["ttl"] > 100) for row in cache.rows()}
        kept = (["t"], False)
        self.assertEqual(left, {"up": (["t"], True), "down": kept, "real": kept, "moved": kept})
        self.assertEqual(cache.invalidate_tags("t"), 4)
        with self.assertRaises(ValueError):
            cache.incr_version("moved", version=2)
        cache.set("moved", "kept", version=3)
        with self.assertRaises(ValueError):
            cache.incr_version("moved", version=2)
        self.assertEqual(cache.get("moved", version=3), "kept")

    def test_threads_lose_no_step(self):
        cache.set("up", 0)
        cache.set("down", 0)

        def work():
            for _ in range(50):
                cache.incr("up")
                cache.decr("down")

        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((cache.get("up"), cache.get("down")), (200, -200))


class Tags(Base):
    def test_one_tag_removes_its_values_only(self):
        for number in range(20):
            cache.set(f"p{number}", number, tags=[f"shelf:{number % 4}", "all, of 'them'"])
        cache.set("plain", 1)
        self.assertEqual(cache.invalidate_tags("shelf:1", "shelf:2"), 10)
        self.assertEqual(len(cache.get_many([f"p{number}" for number in range(20)])), 10)
        self.assertEqual(cache.invalidate_tags("none"), 0)
        self.assertEqual(cache.invalidate_tags(), 0)
        self.assertEqual(cache.invalidate_tags("all, of 'them'"), 10)
        self.assertEqual(cache.get("plain"), 1)

    def test_a_later_value_has_its_own_tags(self):
        cache.set("k", 1, tags=["a"])
        cache.set("k", 2)
        self.assertEqual(cache.invalidate_tags("a"), 0)
        cache.set("k", 3, tags=["b"])
        self.assertEqual(cache.invalidate_tags("a", "b"), 1)

    def test_tags_are_a_list(self):
        with self.assertRaises(TypeError):
            cache.set("k", 1, tags="abc")

    def test_conditions(self):
        for number in range(4):
            cache.set(f"k{number}", number, 100)
        self.assertEqual(cache.touch_where(500, key=["k0", "k1"]), 2)
        self.assertEqual(sorted(row["ttl"] > 200 for row in cache.rows()), [False, False, True, True])
        self.assertEqual(cache.delete_where(key=["k0", "k9"]), 1)
        with self.assertRaises(TypeError):
            cache.delete_where(colour="red")
        with self.assertRaises(StatementError) as caught:
            cache.sql("SELEKT")
        self.assertEqual(caught.exception.sqlstate, "42601")


class Leases(Base):
    def test_ten_callers_and_one_computes(self):
        computed, answers = [], []

        def compute():
            computed.append(1)
            time.sleep(0.2)
            return "value"

        threads = [threading.Thread(target=lambda: answers.append(cache.get_or_set("k", compute))) for _ in range(10)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((len(computed), answers), (1, ["value"] * 10))

    def test_a_value_that_was_invalidated_meanwhile_is_not_stored(self):
        for tags in (None, ["t"]):

            def compute():
                cache.delete("k")
                return "old"

            self.assertEqual(cache.get_or_set("k", compute, tags=tags), "old")
            self.assertIsNone(cache.get("k"))

    def test_a_tag_is_invalidated_while_its_value_is_computed(self):
        """The place of a missing value once had no tags yet, so that old data was stored after the invalidation."""

        def compute():
            self.assertEqual(cache.invalidate_tags("t"), 1)
            return "old"

        self.assertEqual(cache.get_or_set("k", compute, tags=["t"]), "old")
        self.assertIsNone(cache.get("k"))
        self.assertEqual(cache.get_or_set("k", lambda: "new", tags=["t"]), "new")
        self.assertEqual(cache.get("k"), "new")

    def test_ten_callers_with_tags(self):
        computed, answers = [], []

        def compute():
            computed.append(1)
            time.sleep(0.2)
            return "value"

        def call():
            answers.append(cache.get_or_set("k", compute, tags=["t"]))

        threads = [threading.Thread(target=call) for _ in range(10)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((len(computed), answers), (1, ["value"] * 10))
        with self.assertRaises(ZeroDivisionError):
            cache.get_or_set("l", lambda: 1 / 0, tags=["t"])
        self.assertEqual(cache.get_or_set("l", 5, tags=["t"]), 5)

    def test_a_tagged_fill(self):
        self.assertEqual(cache.get_or_set("k", lambda: 1, 60, tags=["t"]), 1)
        self.assertEqual(cache.get("k"), 1)
        self.assertEqual(cache.invalidate_tags("t"), 1)

    def test_what_is_being_computed_is_missing_for_others(self):
        def compute():
            self.assertEqual(cache.get("k", "none"), "none")
            self.assertNotIn("k", cache)
            self.assertEqual(cache.get_many(["k"]), {})
            self.assertEqual(cache.rows(), [])
            with self.assertRaises(ValueError):
                cache.incr("k")
            self.assertTrue(cache.add("k", "added"))
            return "computed"

        self.assertEqual(cache.get_or_set("k", compute), "computed")
        self.assertEqual(cache.get("k"), "added")

    def test_an_error_leaves_the_place_to_the_next(self):
        def fails():
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            cache.get_or_set("k", fails)
        self.assertEqual(cache.get_or_set("k", 5), 5)

    def test_a_stale_value_is_computed_by_one(self):
        cache.set("k", "old", tags=["t"])
        self.assertEqual(cache.invalidate_tags("t", soft=True), 1)
        seen = []

        def compute():
            # Another caller gets the old value meanwhile.
            seen.append(cache.get_or_set("k", lambda: "other"))
            return "new"

        self.assertEqual(cache.get_or_set("k", compute), "new")
        self.assertEqual((seen, cache.get("k")), (["old"], "new"))

    def test_a_value_that_ends_soon_is_refreshed(self):
        cache.set("k", "old", 5)
        self.assertEqual(cache.get_or_set("k", lambda: "new"), "old")
        self.assertEqual(cache.get_or_set("k", lambda: "new", refresh_before=60), "new")
        self.assertEqual(cache.get("k"), "new")

    @override_settings(CACHES={"default": {"BACKEND": BACKEND, "OPTIONS": {"LEASE_WAIT": 0.05}}})
    def test_the_wait_for_another_is_bounded(self):
        def compute():
            began = time.monotonic()
            self.assertEqual(cache.get_or_set("k", lambda: "mine"), "mine")
            self.assertLess(time.monotonic() - began, 5)
            return "theirs"

        self.assertEqual(cache.get_or_set("k", compute), "theirs")
        self.assertEqual(cache.get("k"), "theirs")


class Async(Base):
    def test_everything(self):
        async def work():
            await cache.aset("a", 1, tags=["t"])
            self.assertEqual(await cache.aget("a"), 1)
            self.assertTrue(await cache.ahas_key("a"))
            self.assertEqual(await cache.aset_many({"b": 2, "c": 3}), [])
            self.assertEqual(await cache.aget_many(["a", "b", "x"]), {"a": 1, "b": 2})
            self.assertFalse(await cache.aadd("a", 5))
            self.assertEqual(await cache.aincr("a"), 2)
            self.assertEqual(await cache.adecr("a", 5), -3)
            self.assertTrue(await cache.atouch("a", 50))
            self.assertTrue(await cache.adelete("b"))
            await cache.adelete_many(["c"])
            self.assertEqual(await cache.ainvalidate_tags("t"), 1)
            await cache.aset("d", 1, tags=["t"])
            self.assertEqual(await cache.ainvalidate_tags("t"), 1)
            await cache.aset("e", 1)
            self.assertEqual(await cache.aincr_version("e"), 2)
            self.assertEqual(await cache.adelete_where(version=2), 1)
            await cache.aclear()

        asyncio.run(work())

    def test_one_coroutine_computes(self):
        computed = []

        async def compute():
            computed.append(1)
            await asyncio.sleep(0.1)
            return "value"

        async def work():
            return await asyncio.gather(*(cache.aget_or_set("k", compute, tags=["t"]) for _ in range(10)))

        self.assertEqual(asyncio.run(work()), ["value"] * 10)
        self.assertEqual(len(computed), 1)
        self.assertEqual(asyncio.run(cache.aget_or_set("l", lambda: 5)), 5)


class Places(SimpleTestCase):
    def test_addresses(self):
        for location, address in (
            ("127.0.0.1:11300", ("127.0.0.1", 11300)),
            ("cache", ("cache", 11211)),
            (["cache:5"], ("cache", 5)),
            ("[::1]:5", ("::1", 5)),
            ("::1", ("::1", 11211)),
            ("/run/sock", "/run/sock"),
            ("unix:/run/sock", "/run/sock"),
        ):
            self.assertEqual(conf.address(location), address)
        for wrong in (["a", "b"], "a:b"):
            with self.assertRaises(ImproperlyConfigured):
                conf.address(wrong)

    def test_two_caches_of_a_daemon_share_connections_and_nothing_else(self):
        entries = {name: {"BACKEND": BACKEND, "OPTIONS": {"TABLE": f"dj_{name}"}} for name in ("default", "pages")}
        with override_settings(CACHES=entries):
            cache.set("k", 1)
            caches["pages"].set("k", 2)
            caches["pages"].clear()
            self.assertEqual((cache.get("k"), caches["pages"].get("k")), (1, None))
            self.assertIs(cache.table.server, caches["pages"].table.server)

    def test_mistakes_are_named(self):
        for options, words in (({"TABLE": "a b"}, "no name"), ({"tll": "1 min"}, "unknown option tll")):
            with self.assertRaisesMessage(ImproperlyConfigured, words):
                SqlcachedCache("127.0.0.1:1", {"OPTIONS": options})

"""sqlcached.pymemcache beside pymemcache itself: the same answers, most of them from shared memory."""

import os
import random
import unittest

from pymemcache import serde
from pymemcache.client.base import Client as Plain
from pymemcache.exceptions import MemcacheIllegalInputError

import sqlcached
from sqlcached.pymemcache import Client, HashClient, PooledClient

SOCKET = os.environ["SQLCACHED_SOCKET"]
PORT = int(os.environ["SQLCACHED_PORT"])

#: What a random session chooses from: few keys, so that commands meet; some in a shared table, some in a private one.
KEYS = [f"near:{number}" for number in range(6)] + [f"far:{number}" for number in range(3)]


def setUpModule():
    with sqlcached.Client(SOCKET) as cache:
        cache.sql(
            """CREATE TABLE near (k TEXT PRIMARY KEY, v BLOB)
               WITH (prefix = 'near:', value = 'v', shared_memory = on)"""
        )


class NoSocket(Plain):
    """Refuses to ask the socket for values."""

    def _fetch_cmd(self, name, *arguments, **options):
        raise AssertionError(f"{name} went to the socket")


class Near(Client, NoSocket):
    pass


class NearCache(unittest.TestCase):
    def setUp(self):
        self.plain = Plain(SOCKET, default_noreply=False)
        self.plain.flush_all()

    def tearDown(self):
        self.plain.close()

    def test_hits_do_not_touch_the_socket(self):
        self.plain.set_many({"near:a": b"1", "near:b": b"2"})
        near = Near(SOCKET)
        self.assertEqual(near.get("near:a"), b"1")
        self.assertEqual(near.get_many(["near:a", "near:b"]), {"near:a": b"1", "near:b": b"2"})
        self.assertEqual(near.get_multi(["near:a"]), {"near:a": b"1"})
        self.assertEqual(near.gets("near:a"), self.plain.gets("near:a"))
        self.assertEqual(near.gets_many(["near:b"]), self.plain.gets_many(["near:b"]))
        self.assertIsNone(near.near_error)

    def test_by_tcp_too(self):
        self.plain.set("near:a", b"1")
        near = Near(("127.0.0.1", PORT))
        self.assertEqual(near.get("near:a"), b"1")

    def test_misses_and_private_tables_go_to_the_socket(self):
        near = Client(SOCKET)
        self.plain.set("far:a", b"1")
        self.assertEqual(near.get("far:a"), b"1")
        self.assertEqual(near.get("near:none", b"d"), b"d")
        self.assertEqual(near.gets("near:none", b"d", b"c"), (b"d", b"c"))
        self.assertEqual(near.get_many([]), {})
        self.assertEqual(near.gets_many([]), {})
        self.plain.set("near:a", b"2")
        self.assertEqual(near.get_many(["far:a", "near:a", "near:none"]), {"far:a": b"1", "near:a": b"2"})
        self.assertEqual(set(near.gets_many(["far:a", "near:a"])), {"far:a", "near:a"})

    def test_a_client_reads_its_own_writes_without_replies(self):
        near = Client(SOCKET)
        for number in range(300):
            value = b"%d" % number
            near.set("near:own", value)
            self.assertEqual(near.get("near:own"), value)
            near.delete("near:own")
            self.assertIsNone(near.get("near:own"))

    def test_only_the_read_behind_a_silent_write_is_far(self):
        near = Client(SOCKET)
        near.set("near:a", b"1")
        self.assertTrue(near._unacknowledged)
        near.get("near:a")
        self.assertFalse(near._unacknowledged)
        near.set("near:a", b"2", noreply=False)
        self.assertFalse(near._unacknowledged)
        near.incr("near:a", 1)
        self.assertFalse(near._unacknowledged)
        near.touch("near:a", noreply=True)
        self.assertTrue(near._unacknowledged)

    def test_prefixes_serializers_and_checks(self):
        near = Client(SOCKET, key_prefix=b"near:", serde=serde.pickle_serde, default_noreply=False)
        near.set("object", {"a": [1, 2]})
        self.assertEqual(near.get("object"), {"a": [1, 2]})
        self.assertEqual(near.get_many(["object"]), {"object": {"a": [1, 2]}})
        with self.assertRaises(MemcacheIllegalInputError):
            near.get("with space")

    def test_a_value_that_cannot_be_read_is_ignored_where_that_is_wanted(self):
        class Broken:
            def deserialize(self, key, value, flags):
                raise ValueError("broken")

        self.plain.set("near:a", b"1")
        self.assertEqual(Client(SOCKET, serde=Broken(), ignore_exc=True).get("near:a", b"d"), b"d")
        with self.assertRaises(ValueError):
            Client(SOCKET, serde=Broken()).get("near:a")

    def test_pools_and_hashing(self):
        self.plain.set("near:a", b"1")
        pool = PooledClient(SOCKET, max_pool_size=2)
        self.assertEqual(pool.get("near:a"), b"1")
        self.assertIsInstance(pool.client_pool.get(), Client)
        for pooling in (False, True):
            hashed = HashClient([SOCKET], use_pooling=pooling)
            self.assertEqual(hashed.get("near:a"), b"1")
            self.assertEqual(hashed.get_many(["near:a"]), {"near:a": b"1"})

    def test_another_machine_is_only_asked(self):
        elsewhere = Client(("cache.example", PORT))
        elsewhere._attach()
        self.assertIn("not this machine", str(elsewhere.near_error))

    def test_random_sessions_answer_as_plain_ones(self):
        seed = int(os.environ.get("SEED", random.randrange(2**32)))
        print(f"SEED={seed}")
        chance = random.Random(seed)
        near, model = Client(SOCKET), {}
        for turn in range(3000):
            key, value = chance.choice(KEYS), b"%d" % turn
            action = chance.randrange(6)
            if action == 0:
                near.set(key, value, noreply=chance.random() < 0.5)
                model[key] = value
            elif action == 1:
                near.delete(key, noreply=chance.random() < 0.5)
                model.pop(key, None)
            elif action == 2:
                # Another connection's write, acknowledged. What this one has in flight comes first.
                near.get(KEYS[0])
                self.plain.set(key, value)
                model[key] = value
            elif action == 3:
                wanted = chance.sample(KEYS, 4)
                expected = {name: model[name] for name in wanted if name in model}
                self.assertEqual(near.get_many(wanted), expected, f"turn {turn}")
            else:
                self.assertEqual(near.get(key), model.get(key), f"turn {turn}")


if __name__ == "__main__":
    unittest.main()

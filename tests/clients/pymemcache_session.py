"""pymemcache, unchanged, against a daemon: every command of its client. Usage: pymemcache_session.py SOCKET PORT"""

import sys

from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheError

socket_path, port = sys.argv[1], int(sys.argv[2])
checks = 0


def same(found, expected):
    global checks
    assert found == expected, f"found {found!r}, expected {expected!r}"
    checks += 1


def session(client):
    client.flush_all(noreply=False)
    same(client.set("a", b"1", noreply=False), True)
    same(client.get("a"), b"1")
    same(client.get("none"), None)
    same(client.get("none", default=b"d"), b"d")
    same(client.add("a", b"2", noreply=False), False)
    same(client.add("b", b"2", noreply=False), True)
    same(client.replace("b", b"3", noreply=False), True)
    same(client.replace("none", b"3", noreply=False), False)
    same(client.append("b", b"4", noreply=False), True)
    same(client.prepend("b", b"2", noreply=False), True)
    same(client.append("none", b"4", noreply=False), False)
    same(client.get("b"), b"234")
    same(client.get_many(["a", "b", "none"]), {"a": b"1", "b": b"234"})
    same(client.set_many({"m1": b"x", "m2": b"y"}, noreply=False), [])
    same(client.get_many(["m1", "m2"]), {"m1": b"x", "m2": b"y"})
    value, cas = client.gets("a")
    same(value, b"1")
    same(client.cas("a", b"5", cas, noreply=False), True)
    same(client.cas("a", b"6", cas, noreply=False), False)
    same(client.cas("none", b"6", cas, noreply=False), None)
    same(set(client.gets_many(["a", "b"])), {"a", "b"})
    same(client.set("n", b"10", noreply=False), True)
    same(client.incr("n", 5), 15)
    same(client.decr("n", 20), 0)
    same(client.incr("none", 1), None)
    same(client.touch("a", 100, noreply=False), True)
    same(client.touch("none", 100, noreply=False), False)
    same(client.delete("a", noreply=False), True)
    same(client.delete("a", noreply=False), False)
    same(client.delete_many(["m1", "m2"], noreply=False), True)
    same(client.set("late", b"x", expire=-1, noreply=False), True)
    same(client.get("late"), None)
    client.set("quiet", b"q", noreply=True)
    same(client.get("quiet"), b"q")
    same(client.set("flagged", b"f", flags=7, noreply=False), True)


plain = Client(socket_path, timeout=10)
session(plain)
session(Client(("127.0.0.1", port), timeout=10, no_delay=True))
session(PooledClient(("127.0.0.1", port), max_pool_size=3, timeout=10))

hashed = HashClient([("127.0.0.1", port)], timeout=10)
same(hashed.set("h", b"1"), True)
same(hashed.get_many(["h"]), {"h": b"1"})

pickled = Client(socket_path, serde=serde.pickle_serde, timeout=10)
thing = {"list": [1, 2.5, None], "text": "gr\u00fc\u00df"}
pickled.set("thing", thing, noreply=False)
same(pickled.get("thing"), thing)
pickled.set("number", 12345, noreply=False)
same(pickled.get("number"), 12345)

stats = plain.stats()
same(isinstance(stats[b"rusage_user"], float), True)
same(stats[b"hash_is_expanding"] in (True, False), True)
same(stats[b"curr_items"] > 0, True)
same(plain.stats("settings")[b"maxbytes"] > 0, True)
same(plain.version()[:2], b"1.")
same(plain.flush_all(delay=0, noreply=False), True)
same(plain.get("thing"), None)

for key, value in (("large", b"x" * ((1 << 20) + 1)), ("k" * 251, b"x")):
    try:
        plain.set(key, value, noreply=False)
        raise AssertionError("a value or key over the limit was stored")
    except MemcacheError:
        checks += 1
same(plain.get("large"), None)
plain.quit()
print(checks, "checks")

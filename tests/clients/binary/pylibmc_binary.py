"""pylibmc in binary mode. Argument: the port."""

import sys

import pylibmc

client = pylibmc.Client([f"127.0.0.1:{sys.argv[1]}"], binary=True)
values = {f"key-{number}": f"value-{number}" * number for number in range(500)}
assert client.set_multi(values) == []
assert client.get_multi(list(values) + ["none"]) == values
assert client.delete_multi(list(values)) and client.get("key-1") is None
assert client.set("k", {"a": 1}, time=100) and client.get("k") == {"a": 1}
assert not client.add("k", 2) and client.replace("k", 2)
try:
    client.replace("none", 1)
    raise AssertionError("it was replaced")
except pylibmc.NotFound:
    pass
assert client.touch("k", 200) and client.get("k") == 2
assert client.add("counter", 41) and client.incr("counter") == 42 and client.decr("counter", 50) == 0
assert client.set("s", b"b") and client.append("s", b"c") and client.prepend("s", b"a") and client.get("s") == b"abc"
assert client.set("large", b"x" * (256 << 10)) and len(client.get("large")) == 256 << 10
try:
    client.set("too large", b"x" * (2 << 20))
    raise AssertionError("it was stored")
except pylibmc.TooBig:
    pass
versions = pylibmc.Client([f"127.0.0.1:{sys.argv[1]}"], binary=True, behaviors={"cas": True})
value, cas = versions.gets("k")
assert value == 2 and versions.cas("k", "changed", cas) and not versions.cas("k", "again", cas)
assert client.get_stats()[0][1]["version"] == b"1.6.45"
assert client.delete("k") and not client.delete("k")
assert client.flush_all() and client.get("s") is None
print("held")

"""python-binary-memcached with its defaults. Argument: the port."""

import sys

import bmemcached

client = bmemcached.Client((f"127.0.0.1:{sys.argv[1]}",))
values = {f"key-{number}": f"value-{number}" * number for number in range(200)}
assert client.set_multi(values, time=100) == []
assert client.get_multi(list(values) + ["none"]) == values
assert client.delete_multi(list(values)) and client.get("key-1") is None
assert client.set("k", {"a": 1}, 100) and client.get("k") == {"a": 1}
assert not client.add("k", 2) and client.replace("k", 2) and not client.replace("none", 1)
assert client.incr("counter", 3, default=10) == 10 and client.incr("counter", 3) == 13
assert client.decr("counter", 20) == 0
value, cas = client.gets("k")
assert value == 2 and client.cas("k", 3, cas) and not client.cas("k", 4, cas)
assert client.set("large", "x" * (256 << 10), compress_level=0) and len(client.get("large")) == 256 << 10
assert client.delete("k") and client.get("k") is None
assert list(client.stats().values())[0]["version"] == b"1.6.45"
assert client.flush_all() and client.get("large") is None
client.disconnect_all()
print("held")

"""Shares keys among servers by ketama and reads them back. Arguments: the servers as host:port, then how many keys."""

import sys

import pylibmc

servers, count = sys.argv[1:-1], int(sys.argv[-1])
client = pylibmc.Client(servers, binary=False, behaviors={"ketama": True, "cas": True, "tcp_nodelay": True})
values = {f"key-{number}": f"value-{number}" for number in range(count)}
assert client.set_multi(values) == []
assert client.get_multi(list(values)) == values
value, cas = client.gets("key-1")
assert value == "value-1"
assert client.cas("key-1", "changed", cas)
assert not client.cas("key-1", "again", cas)
assert client.delete("key-0") and client.get("key-0") is None
assert client.add("counter", 41) and client.incr("counter") == 42
print("shared")

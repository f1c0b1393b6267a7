"""How long one value of 1 KiB takes in Python: from shared memory, and over Unix sockets with pymemcache and redis-py.

    python one_value.py --sqlcached SOCKET [--memcached SOCKET] [--redis SOCKET]

The readers take turns, round by round, so that a busy moment of the machine meets all of them. Printed are microseconds a
read: the median of the rounds and the best of them by the clock on the wall, and the median of this process's own processor
time, which other programs on the machine disturb less (and which leaves out what a server does).
"""

import argparse
import statistics
import time

import redis
from pymemcache.client.base import Client as Plain

import sqlcached
import sqlcached.pymemcache

ROUNDS = 15
#: A round of a reader takes about so many seconds.
SECONDS = 0.05
VALUE = b"v" * 1024
KEY = "bench:value"


def timed(read, count):
    """Microseconds a read, over so many: by the clock on the wall, and of this process."""
    begin, own = time.perf_counter(), time.process_time()
    for _ in range(count):
        read(KEY)
    wall, own = time.perf_counter() - begin, time.process_time() - own
    return wall / count * 1e6, own / count * 1e6


def readers(arguments):
    """Name and function of each reader; the value is there for all of them."""
    cache = sqlcached.Client(arguments.sqlcached)
    cache.sql(
        """CREATE TABLE IF NOT EXISTS bench (key TEXT PRIMARY KEY, body BLOB)
           WITH (prefix = 'bench:', value = 'body', shared_memory = on)"""
    )
    cache.set(KEY, VALUE)
    table = cache.table("bench")
    yield "sqlcached: Client.get", cache.get
    yield "sqlcached: Table.get", lambda key: table.get("value")
    yield "sqlcached.pymemcache: Client.get", sqlcached.pymemcache.Client(arguments.sqlcached).get
    yield "pymemcache at sqlcached", Plain(arguments.sqlcached).get
    if arguments.memcached:
        plain = Plain(arguments.memcached)
        plain.set(KEY, VALUE, noreply=False)
        yield "pymemcache at memcached", plain.get
    if arguments.redis:
        store = redis.Redis(unix_socket_path=arguments.redis)
        store.set(KEY, VALUE)
        yield "redis-py at Redis", store.get


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sqlcached", required=True)
    parser.add_argument("--memcached")
    parser.add_argument("--redis")
    runners = list(readers(parser.parse_args()))
    counts = {}
    for name, read in runners:
        assert read(KEY) == VALUE, name
        counts[name] = max(10, int(SECONDS * 1e6 / timed(read, 200)[0]))
    times = {name: [] for name, _ in runners}
    for _ in range(ROUNDS):
        for name, read in runners:
            times[name].append(timed(read, counts[name]))
    print(f"{'':34} {'median':>9} {'best':>9} {'own CPU':>9}")
    for name, found in times.items():
        walls, owns = zip(*found)
        print(f"{name:34} {statistics.median(walls):9.3f} {min(walls):9.3f} {statistics.median(owns):9.3f}")


main()

"""What Django's cache calls cost: CPU of client and server together, for each call, beside Django's PyMemcacheCache on a
real memcached. And the wall time of one tag's invalidation beside django-redis.

    python backends.py --sqlcached ./target/release/sqlcached [--rounds 15]

It needs Django, pymemcache and memcached; with redis-server and django-redis it measures the tag, too. The readers take
turns, and the figures are medians of the rounds.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

VALUE = "x" * 1024
OPERATIONS = ("get", "set", "get_many(100)", "get_or_set, hit")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(command, port):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except OSError:
            if time.monotonic() > end or process.poll() is not None:
                sys.exit(f"{command[0]} does not start")
            time.sleep(0.01)


def cpu(pid):
    """Seconds of CPU of a process."""
    total = 0.0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0]) / 1e9
    return total


def measured(call, pid, times):
    """Microseconds of a call: of the client, of the server."""
    server, own = cpu(pid), time.process_time()
    for number in range(times):
        call(number)
    return (time.process_time() - own) / times * 1e6, (cpu(pid) - server) / times * 1e6


def calls(cache):
    many = [f"page:{number}" for number in range(100)]
    cache.set_many({key: VALUE for key in many})
    return {
        "get": (lambda number: cache.get("page:5"), 4000),
        "set": (lambda number: cache.set("page:5", VALUE, 300), 4000),
        "get_many(100)": (lambda number: cache.get_many(many), 150),
        "get_or_set, hit": (lambda number: cache.get_or_set("page:6", VALUE), 4000),
    }


def table(rounds, caches, pids):
    work = {name: calls(cache) for name, cache in caches.items()}
    found = {}
    for _ in range(rounds):
        for operation in OPERATIONS:
            for name in caches:
                call, times = work[name][operation]
                found.setdefault((operation, name), []).append(measured(call, pids[name], times))
    print(f"{'call':<17}{'backend':<22}{'client us':>10}{'server us':>10}{'both':>8}{'ratio':>7}")
    for operation in OPERATIONS:
        base = None
        for name in caches:
            rows = found[operation, name]
            client, server = (statistics.median(each) for each in zip(*rows))
            both = statistics.median(map(sum, rows))
            base = base or both
            print(f"{operation:<17}{name:<22}{client:>10.1f}{server:>10.1f}{both:>8.1f}{both / base:>7.2f}")


def with_tags(rounds, cache, pid):
    """A value with three tags beside the same without."""
    found = {}
    for _ in range(rounds):
        for name, tags in (("set", None), ("set, three tags", ["a", "b", "c"])):
            call = lambda number, tags=tags: cache.set(f"t{number}", VALUE, 300, tags=tags)  # noqa: E731
            found.setdefault(name, []).append(measured(call, pid, 2000))
    for name, rows in found.items():
        client, server = (statistics.median(each) for each in zip(*rows))
        print(f"{name:<39}{client:>10.1f}{server:>10.1f}{client + server:>8.1f}")


def one_computes(cache):
    """Ten threads miss the same key."""
    computed = []

    def compute():
        computed.append(1)
        time.sleep(0.1)
        return 1

    threads = [threading.Thread(target=lambda: cache.get_or_set("rare", compute)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"ten callers of get_or_set on a missing key: {len(computed)} computed")


PAGES = 1000


def tags(rounds, cache, redis):
    """One tag of a thousand pages among ten thousand. Redis has no tags: its users keep the keys of a tag in a set, or
    search for a pattern."""
    found = {}
    for _ in range(rounds):
        for number in range(10 * PAGES):
            cache.set(f"p{number}", VALUE, 300, tags=[f"tag{number % 10}", "all"])
        clock("sqlcached invalidate_tags", lambda: cache.invalidate_tags("tag3"), found)
        if redis is None:
            continue
        client = redis.client.get_client()
        keys = {number: redis.client.make_key(f"t{number % 10}:p{number}") for number in range(10 * PAGES)}
        redis.set_many({f"t{number % 10}:p{number}": VALUE for number in keys}, 300)
        clock("django-redis delete_pattern", lambda: redis.delete_pattern("t3:*"), found)
        redis.set_many({f"t{number % 10}:p{number}": VALUE for number in keys}, 300)
        client.sadd("tag3", *(str(keys[number]) for number in keys if number % 10 == 3))
        members = lambda: [client.delete(*client.smembers("tag3")), client.delete("tag3")]  # noqa: E731
        clock("django-redis set of keys", members, found)
    base = found.get("django-redis set of keys") or found["sqlcached invalidate_tags"]
    for name, walls in found.items():
        wall = statistics.median(walls)
        print(f"{name:<30}{wall:>9.2f} ms{wall / statistics.median(base):>7.2f}")


def clock(name, work, found):
    began = time.perf_counter()
    work()
    found.setdefault(name, []).append((time.perf_counter() - began) * 1e3)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sqlcached", default="sqlcached")
    arguments.add_argument("--rounds", type=int, default=15)
    options = arguments.parse_args()
    ports = {name: free_port() for name in ("sqlcached", "sql", "memcached", "redis")}
    processes = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        try:
            daemon = started(
                [options.sqlcached, "-p", str(ports["sqlcached"]), "-s", f"{folder}/sock", "--arena", f"{folder}/arena",
                 "-m", "256", "--sql-port", str(ports["sql"]), "--sql-socket-dir", "none"], ports["sqlcached"])  # fmt: skip
            processes.append(daemon)
            memcached = started(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(ports["memcached"]), "-m", "256"],
                                ports["memcached"])  # fmt: skip
            processes.append(memcached)
            run(options.rounds, ports, daemon, memcached, processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def run(rounds, ports, daemon, memcached, processes):
    import django
    from django.conf import settings

    ours = {"BACKEND": "django_sqlcached.cache.SqlcachedCache", "LOCATION": f"127.0.0.1:{ports['sqlcached']}"}
    entries = {
        "default": ours,
        "near": {**ours, "OPTIONS": {"TABLE": "dj_near", "shared_memory": True}},
        "memcached": {
            "BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache",
            "LOCATION": f"127.0.0.1:{ports['memcached']}",
        },
    }
    redis = None
    try:
        import django_redis  # noqa: F401

        processes.append(started(["redis-server", "--port", str(ports["redis"]), "--save", "", "--dir", "/tmp"], ports["redis"]))
        entries["redis"] = {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{ports['redis']}/0",
        }
        redis = "redis"
    except ImportError:
        print("django-redis is missing; its tag is not measured")
    settings.configure(CACHES=entries)
    django.setup()
    from django.core.cache import caches

    names = {"PyMemcacheCache": "memcached", "SqlcachedCache": "default", "SqlcachedCache, near": "near"}
    pids = {"PyMemcacheCache": memcached.pid, "SqlcachedCache": daemon.pid, "SqlcachedCache, near": daemon.pid}
    table(rounds, {name: caches[alias] for name, alias in names.items()}, pids)
    with_tags(rounds, caches["default"], daemon.pid)
    one_computes(caches["default"])
    tags(max(3, rounds // 5), caches["default"], redis and caches[redis])


if __name__ == "__main__":
    main()

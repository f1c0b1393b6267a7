#!/usr/bin/env python3
"""Starts the servers that Java's clients are compared on, and runs Bench and EntityBench: make bench-java.

Each server is one of this run, on a port and in a folder of its own, and ends with it. What is not installed is left out,
and said. Settings: --quick for a short run, --java for a Java of 22 or later that reads shared memory."""

import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
POSTGRESQL = pathlib.Path("/usr/lib/postgresql/15/bin")
STARTED = []

# The peers' logs would be among the figures.
QUIET = {"java.util.logging.config.file": os.devnull, "hazelcast.logging.type": "none"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, port, **more):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    STARTED.append(process)
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command[0]} does not start")
            time.sleep(0.05)


def sqlcached(folder):
    port = free_port()
    sock = folder / "sock"
    command = [ROOT / "target/release/sqlcached", "-p", str(port), "-s", sock, "--arena", folder / "arena", "-m", "1024"]
    command += ["--sql-port", str(free_port()), "--http-port", "0", "--sql-socket-dir", "none"]
    return port, start([str(word) for word in command], port), sock


def memcached():
    port = free_port()
    return port, start(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-m", "1024"], port)


def redis(folder):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    return port, start(command, port)


def hazelcast(jars):
    port = free_port()
    command = ["java", f"-Dhz.network.port.port={port}", "-Dhz.network.port.autoincrement=false"]
    command += ["-Dhazelcast.local.localAddress=127.0.0.1", "-Dhz.network.join.autodetection.enabled=false"]
    command += ["-Dhazelcast.phone.home.enabled=false", "-cp", jars, "com.hazelcast.core.server.HazelcastMemberStarter"]
    return port, start(command, port)


def postgresql(folder):
    """As another user where this is root, which PostgreSQL refuses to be."""
    port = free_port()
    data = folder / "data"
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder.chmod(0o777)
    subprocess.run(
        [*as_user, POSTGRESQL / "initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-D", data],
        check=True, stdout=subprocess.DEVNULL, cwd=folder)
    options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -p {port}"
    start([*as_user, POSTGRESQL / "postgres", "-D", data, *options.split()], port, cwd=folder)
    return port


def cpu_of(process):
    """Microseconds of processor that a process has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def compiled(folder, jars):
    sources = [*HERE.glob("*.java")]
    for module in ("client", "map", "jcache", "hibernate"):
        main = HERE.parent / module / "src/main"
        sources += (main / "java").rglob("*.java")
        if (main / "resources").exists():
            shutil.copytree(main / "resources", folder, dirs_exist_ok=True)
    subprocess.run(["javac", "--release", "17", "-nowarn", "-proc:none", "-cp", jars, "-d", folder, *sources], check=True)
    return f"{folder}:{jars}"


def calls(java, path, settings, servers):
    flags = [f"-D{name}={value}" for name, value in {**settings, **servers, **QUIET}.items()]
    native = ["--enable-native-access=ALL-UNNAMED"] if "shared" in servers else []
    subprocess.run([java, *native, "-Djava.net.preferIPv4Stack=true", *flags, "-cp", path, "Bench"], check=True)


def entities(path, folder, loads, database, name, settings, server):
    """Two JVMs at once; a line of figures of both together."""
    psql = ["psql", "-h", "127.0.0.1", "-p", str(database), "-U", "postgres", "-q", "-c"]
    subprocess.run([*psql, "DROP TABLE IF EXISTS bench_entity"], check=True, stderr=subprocess.DEVNULL)
    make = "CREATE TABLE bench_entity (id INT PRIMARY KEY, name TEXT, version BIGINT NOT NULL)"
    fill = "INSERT INTO bench_entity SELECT n, 'product ' || n, 0 FROM generate_series(0, 999) n"
    subprocess.run([*psql, f"{make}; {fill}"], check=True)
    shared = folder / f"versions-{name}"
    shared.write_bytes(bytes(8 * 1000))
    url = f"jdbc:postgresql://127.0.0.1:{database}/postgres"
    settings = {"hibernate.connection.url": url, "hibernate.connection.username": "postgres", **settings}
    flags = [f"-D{key}={value}" for key, value in {**settings, **QUIET}.items()]
    both = []
    for seed in (1, 2):
        command = ["java", *flags, "-cp", path, "EntityBench", shared, str(seed), str(loads)]
        with open(folder / f"errors-{seed}", "w") as errors:
            both.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True))
    STARTED.extend(both)
    for seed, jvm in enumerate(both, start=1):
        if not any(line == "ready\n" for line in jvm.stdout):
            errors = (folder / f"errors-{seed}").read_text()
            raise SystemExit(f"{name}: a JVM ended:\n{errors[-4000:]}")
    before = cpu_of(server) if server else 0
    for jvm in both:
        jvm.stdin.write("go\n")
        jvm.stdin.flush()
    stale, cpu, wall, statements = (0, 0.0, 0, 0)
    for jvm in both:
        numbers = [line for line in jvm.stdout if re.fullmatch(r"\d+ \d+ \d+ \d+\n", line)]
        each = [int(word) for word in numbers[0].split()]
        stale, cpu, wall, statements = stale + each[0], cpu + each[1], max(wall, each[2]), statements + each[3]
    cpu += (cpu_of(server) if server else 0) - before
    print(f"{name:<28}{2 * loads / (wall / 1e9):>12,.0f}{cpu / (2 * loads):>12.1f}{statements:>12,}{stale:>8}", flush=True)


def second_level(path, folder, loads, own, redis_port, redis_process):
    database = postgresql(folder)
    print(f"\n{'1,000 entities, 2 JVMs':<28}{'loads/s':>12}{'CPU us':>12}{'statements':>12}{'stale':>8}")
    factory = "hibernate.cache.region.factory_class"
    jcache = {factory: "jcache", "hibernate.javax.cache.missing_cache_strategy": "create"}
    provider = "hibernate.javax.cache.provider"
    entities(path, folder, loads, database, "sqlcached",
             {factory: "sqlcached", "hibernate.cache.sqlcached.location": f"127.0.0.1:{own[0]}"}, own[1])
    entities(path, folder, loads, database, "sqlcached by hibernate-jcache",
             {**jcache, provider: "org.sqlcached.jcache.SqlcachedProvider", "sqlcached.classes": "org.hibernate.cache.**",
              "sqlcached.location": f"127.0.0.1:{own[0]}"}, own[1])
    entities(path, folder, loads, database, "Ehcache, local",
             {**jcache, provider: "org.ehcache.jsr107.EhcacheCachingProvider"}, None)
    config = folder / "redisson.yaml"
    config.write_text(f"singleServerConfig:\n  address: redis://127.0.0.1:{redis_port}\n")
    entities(path, folder, loads, database, "Redisson by hibernate-jcache",
             {**jcache, provider: "org.redisson.jcache.JCachingProvider", "hibernate.javax.cache.uri": config.as_uri()}, redis_process)


def load(when):
    print(f"load of the machine {when}: {' '.join(f'{each:.1f}' for each in os.getloadavg())}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jars", required=True, help="the folder with the peers' jars")
    options.add_argument("--java", help="a Java of 22 or later, which reads shared memory")
    options.add_argument("--library", help="the C library, for that Java")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", choices=["calls", "entities"])
    options.add_argument("--begin", default="", help="of calls only those whose names begin so, such as put")
    options.add_argument("--keys", type=int, default=10_000, help="values that calls choose among")
    given = options.parse_args()
    jars = f"{pathlib.Path(given.jars).resolve()}/*"
    settings = {"rounds": 1, "turn": 50_000, "tagged": 10_000} if given.quick else {}
    settings |= {"keys": 1000 if given.quick else given.keys, "begin": given.begin}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            path = compiled(folder / "classes", jars)
            own_port, own, sock = sqlcached(folder)
            redis_port, redis_process = redis(folder)
            load("before")
            if given.only != "entities":
                memcached_port, memcached_process = memcached()
                hazelcast_port, member = hazelcast(jars)
                servers = {"sqlcached": f"{own_port},{own.pid}", "memcached": f"{memcached_port},{memcached_process.pid}",
                           "redis": f"{redis_port},{redis_process.pid}", "hazelcast": f"{hazelcast_port},{member.pid}"}
                if given.java:
                    servers["shared"] = f"{sock},{given.library}"
                calls(given.java or "java", path, settings, servers)
            if given.only != "calls":
                second_level(path, folder, 2_000 if given.quick else 30_000, (own_port, own), redis_port, redis_process)
            load("after")
        finally:
            for process in reversed(STARTED):
                process.terminate()
            for process in STARTED:
                process.wait()


if __name__ == "__main__":
    main()

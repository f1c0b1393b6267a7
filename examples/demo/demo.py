"""A small shop in your browser, once on memcached and once on tables of sqlcached.

    make demo                                     # builds sqlcached first
    python3 examples/demo/demo.py                 # with the sqlcached that is installed
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from caches import Memcached, Tables
from halves import Half
from shop import Shop
from web import Demo, Server

#: Seconds that a server may take to start.
PATIENCE = 20.0

#: The page's port, if it is free.
PORT = 8080

#: MiB for each of the two caches: enough for both, so that the figures speak of edits and not of memory.
MEMORY = 64


def free_port() -> int:
    """A port below those that the system gives to clients, so that nobody has it before the server."""
    while True:
        port = random.randint(12_000, 32_000)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)):
                return port


def program(name: str, given: str | None, hint: str) -> str:
    """The path of a program, or the end of this one with what to do."""
    found = shutil.which(given or name) or shutil.which(f"/usr/sbin/{name}")
    if not found:
        sys.exit(f"{given or name} is not installed: {hint}")
    return str(Path(found).resolve())


def served(process: subprocess.Popen, port: int) -> None:
    """Waits until a server takes connections."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not start: {' '.join(map(str, process.args))}")


def start(*command: str) -> subprocess.Popen:
    # In a session of its own: Ctrl-C is for this program, which ends the servers.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


def memcached(path: str) -> tuple[subprocess.Popen, int]:
    port = free_port()
    user = ["-u", "nobody"] if Path("/proc/self").stat().st_uid == 0 else []
    process = start(path, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", str(MEMORY), *user)
    served(process, port)
    return process, port


def sqlcached(path: str) -> tuple[subprocess.Popen, int, int]:
    port, http = free_port(), free_port()
    own = ["-s", "none", "--arena", "none", "--sql-port", "0", "--http-port", str(http)]
    process = start(path, "-p", str(port), "-m", str(MEMORY), *own)
    served(process, port)
    return process, port, http


def listen(wanted: int | None, demo: Demo) -> Server:
    """At the port that was asked for; else at the usual one, or at any if that is taken."""
    try:
        return Server(PORT if wanted is None else wanted, demo)
    except OSError as why:
        if wanted is not None:
            sys.exit(f"port {wanted}: {why.strerror}; choose another one with --port")
        return Server(0, demo)


def be_quiet() -> None:
    """Nobody wants to read what threads say whose servers end, and a second Ctrl-C would leave these behind."""
    if sys.exc_info()[0] in (None, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr = open(os.devnull, "w")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only look whether all that is needed is installed")
    parser.add_argument("--port", type=int, help=f"the page's port on 127.0.0.1; {PORT} if it is free")
    parser.add_argument("--program", help="the sqlcached to use; without it the one that is installed")
    parser.add_argument("--rate", type=float, default=60, help="visitors a second of the load generator; 60")
    parser.add_argument("--make-ms", type=float, default=5, help="how long making a fragment takes, beside its queries; 5")
    parser.add_argument("--seed", type=int, default=1, help="another seed: other visitors")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    rival = program("memcached", None, "apt-get install memcached")
    if given.check:
        return
    ours = program("sqlcached", given.program, "make demo builds it")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    running: list[subprocess.Popen] = []
    try:
        process, left = memcached(rival)
        running.append(process)
        process, right, http = sqlcached(ours)
        running.append(process)
        shop = Shop(given.make_ms / 1000)
        halves = {"memcached": Half("memcached", Memcached(left), shop), "sqlcached": Half("sqlcached", Tables(right), shop)}
        demo = Demo(shop, halves, given.rate, given.seed)
        print("filling both caches ...", flush=True)
        demo.warm()
        server = listen(given.port, demo)
        print(f"the shop:     http://127.0.0.1:{server.server_port}/", flush=True)
        print(f"the console:  http://127.0.0.1:{http}/", flush=True)
        print("Ctrl-C ends it.", flush=True)
        server.serve_forever()
    finally:
        be_quiet()
        for process in running:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)

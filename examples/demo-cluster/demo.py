"""A shop on three caches that hear each other by three servers of NATS: kill, pause and cut them off in your browser.

    make demo-cluster                             # builds sqlcached first
    python3 examples/demo-cluster/demo.py         # with the sqlcached that is installed
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

import servers
from cluster import Cluster
from shop import Shop
from web import Server

HERE = Path(__file__).resolve().parent

#: The page's port, if it is free.
PORT = 8080

#: Seconds until all caches hear the bus.
PATIENCE = 60.0

NATS = "make tools installs it, and https://nats.io/download has it"


def listen(wanted: int | None, cluster: Cluster) -> Server:
    """At the port that was asked for; else at the usual one, or at any if that is taken."""
    try:
        return Server(PORT if wanted is None else wanted, HERE, cluster.state, cluster.actions())
    except OSError as why:
        if wanted is not None:
            sys.exit(f"port {wanted}: {why.strerror}; choose another one with --port")
        return Server(0, HERE, cluster.state, cluster.actions())


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
    parser.add_argument("--rate", type=float, default=20, help="visitors a second of each cache; 20")
    parser.add_argument("--make-ms", type=float, default=5, help="how long making a fragment takes, beside its queries; 5")
    parser.add_argument("--seed", type=int, default=1, help="another seed: other visitors")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    nats = servers.find("nats-server", NATS)
    if given.check:
        return
    ours = servers.find("sqlcached", "make demo-cluster builds it", given.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.TemporaryDirectory(prefix="sqlcached-demo-")
    running: list[servers.Machine] = []
    try:
        bus = servers.nats(nats, folder.name)
        running += bus
        caches = servers.caches(ours, folder.name, bus)
        running += caches
        print("waiting until the caches hear each other ...", flush=True)
        cluster = Cluster(bus, caches, Shop(given.make_ms / 1000), given.rate, given.seed)
        cluster.wait(PATIENCE)
        server = listen(given.port, cluster)
        print(f"the caches:   http://127.0.0.1:{server.server_port}/", flush=True)
        print("Ctrl-C ends it.", flush=True)
        server.serve_forever()
    finally:
        be_quiet()
        for machine in reversed(running):
            machine.end()
        folder.cleanup()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)

"""A shop in Django twice: directly at its PostgreSQL, and with the port of sqlcached. See both in your browser.

    make demo-forward                             # builds sqlcached first
    python3 examples/demo-forward/demo.py         # with the sqlcached that is installed
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from behind import HERE, Behind, python
from servers import find
from sides import Sides
from web import Server

#: The page's port, if it is free.
PORT = 8080


def listen(wanted: int | None, sides: Sides) -> Server:
    """At the port that was asked for; else at the usual one, or at any if that is taken."""
    try:
        return Server(PORT if wanted is None else wanted, HERE, sides.state, sides.actions())
    except OSError as why:
        if wanted is not None:
            sys.exit(f"port {wanted}: {why.strerror}; choose another one with --port")
        return Server(0, HERE, sides.state, sides.actions())


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
    parser.add_argument("--sales", type=int, default=20_000, help="rows that the dashboard adds up; 20000")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    for name in ("initdb", "postgres"):
        find(name, "apt-get install postgresql")
    find("psql", "apt-get install postgresql-client")
    with_django = python()
    if given.check:
        return
    ours = find("sqlcached", "make demo-forward builds it", given.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    servers = Behind(ours, given.sales)
    sides = None
    try:
        sides = Sides(servers, with_django)
        sides.begin()
        server = listen(given.port, sides)
        print(f"both shops:   http://127.0.0.1:{server.server_port}/", flush=True)
        print("Ctrl-C ends it.", flush=True)
        server.serve_forever()
    finally:
        be_quiet()
        if sides:
            sides.end()
        servers.end()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)

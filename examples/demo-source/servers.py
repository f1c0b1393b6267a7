"""The two servers of the demo: a PostgreSQL with a shop in it, and sqlcached in front of it."""

from __future__ import annotations

import glob
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Seconds that a server may take to start.
PATIENCE = 30.0

#: The account that runs PostgreSQL where this program runs as root: PostgreSQL refuses root.
ACCOUNT = "postgres"

SHOP = """
CREATE TABLE product (id INT PRIMARY KEY, name TEXT NOT NULL, price NUMERIC NOT NULL);
INSERT INTO product SELECT n, (ARRAY['kettle','teapot','cup','spoon'])[1 + n % 4] || ' ' || n, 10 + n FROM generate_series(1, {products}) n;
CREATE PUBLICATION cache FOR TABLE product;
"""

CACHE = """
CREATE SERVER shop FOREIGN DATA WRAPPER postgres
    OPTIONS (host '127.0.0.1', port '{port}', dbname 'postgres', publication 'cache');
CREATE USER MAPPING FOR PUBLIC SERVER shop OPTIONS (user 'postgres', password 'none is asked for');
CREATE TABLE page (id INT PRIMARY KEY, body TEXT)
    WITH (prefix = 'product:', value = 'body', source = 'shop', depends = 'product(id)', ttl = '1 h',
          query = 'SELECT id, name || '': '' || price AS body FROM product WHERE id = ANY($1)');
"""


def find(name: str, hint: str, given: str | None = None) -> str:
    """The path of a program, or the end of this one with what to do."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)])
    found = shutil.which(given or name, path=folders)
    if not found:
        sys.exit(f"{given or name} is not installed: {hint}")
    # Not where a link leads: Debian's psql is a program that looks at its own name.
    return str(Path(found).absolute())


def free_port() -> int:
    """A port below those that the system gives to clients, so that nobody has it before the server."""
    while True:
        port = random.randint(12_000, 32_000)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)):
                return port


#: In a session of its own: Ctrl-C is for the demo, which ends its servers.
OWN = {"stdin": subprocess.DEVNULL, "start_new_session": True}


def wait_for(process: subprocess.Popen, port: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not start")


class Psql:
    """psql's answers at a server."""

    def __init__(self, port: int):
        self.command = [find("psql", "apt-get install postgresql-client"), "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres"]

    def ask(self, sql: str) -> str:
        done = subprocess.run([*self.command, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout.strip()


class Servers:
    """Both servers, in a folder that goes with them."""

    def __init__(self, program: str, products: int):
        self.folder = tempfile.TemporaryDirectory(prefix="sqlcached-demo-")
        self.running: list[subprocess.Popen] = []
        self.ports = {name: free_port() for name in ("postgres", "memcached", "sql", "http")}
        try:
            self._start_postgres()
            self._start_sqlcached(program)
            self.source, self.cache = Psql(self.ports["postgres"]), Psql(self.ports["sql"])
            self._fill(products)
        except BaseException:
            self.end()
            raise

    def _start_postgres(self) -> None:
        # PostgreSQL's own account has to reach the folder.
        user = {"user": ACCOUNT} if os.geteuid() == 0 else {}
        if user:
            shutil.chown(self.folder.name, ACCOUNT)
        data = f"{self.folder.name}/data"
        hint = "apt-get install postgresql"
        made = [find("initdb", hint), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-D", data]
        subprocess.run(made, stdout=subprocess.DEVNULL, check=True, cwd="/", **user)
        settings = ["wal_level=logical", "fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories="]
        command = [find("postgres", hint), "-D", data, "-p", str(self.ports["postgres"])]
        command += [word for setting in settings for word in ("-c", setting)]
        log = open(f"{self.folder.name}/postgres.log", "w")
        self._keep(subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **OWN, **user), "postgres")

    def _start_sqlcached(self, program: str) -> None:
        own = ["-s", "none", "--arena", "none", "-m", "64"]
        own += ["-p", str(self.ports["memcached"]), "--sql-port", str(self.ports["sql"]), "--http-port", str(self.ports["http"])]
        self._keep(subprocess.Popen([program, *own], stdout=subprocess.DEVNULL, **OWN), "memcached")

    def _keep(self, process: subprocess.Popen, port: str) -> None:
        self.running.append(process)
        wait_for(process, self.ports[port])

    def _fill(self, products: int) -> None:
        end = time.monotonic() + PATIENCE
        # A server takes connections a moment before it takes statements.
        while True:
            try:
                self.source.ask(SHOP.format(products=products))
                break
            except RuntimeError as why:
                if "starting up" not in str(why) or time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.cache.ask(CACHE.format(port=self.ports["postgres"]))
        while self.cache.ask("SELECT state FROM sqlcached_sources") != "streaming":
            if time.monotonic() > end:
                sys.exit("the source is not followed: " + self.cache.ask("SELECT last_error FROM sqlcached_sources"))
            time.sleep(0.05)

    def end(self) -> None:
        for process in reversed(self.running):
            process.terminate()
            process.wait()
        self.folder.cleanup()

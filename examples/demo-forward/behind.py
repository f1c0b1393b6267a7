"""The servers of the demo: a PostgreSQL with a shop in it, sqlcached in front of it, and the Python that has Django."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# How a PostgreSQL is started, a page served, and the cache asked. Where two have a file of one name, the first counts.
sys.path += [str(HERE.parent / demo) for demo in ("demo-source", "demo-cluster", "demo")]

from servers import PATIENCE, Psql, Servers  # noqa: E402

#: Where `make tools` puts Django and psycopg.
TOOLS = HERE.parents[1] / "target/drivers/python/bin/python"

DJANGO = "pip install django 'psycopg[binary]', or make tools"

#: Products in the shop.
PRODUCTS = 20

SHOP = """
CREATE TABLE product (id INT PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(10, 2) NOT NULL);
INSERT INTO product SELECT n, (ARRAY['kettle','teapot','cup','spoon'])[1 + n % 4] || ' ' || n, 10 + n FROM generate_series(1, {products}) n;
CREATE TABLE sale (id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY, product_id INT NOT NULL, amount NUMERIC(10, 2) NOT NULL);
INSERT INTO sale (product_id, amount) SELECT 1 + n % {products}, 10 + n % 17 FROM generate_series(1, {sales}) n;
CREATE INDEX ON sale (product_id, id);
CREATE TABLE offer (id INT PRIMARY KEY, product_id INT NOT NULL, words TEXT NOT NULL, ends TIMESTAMPTZ NOT NULL);
INSERT INTO offer SELECT n, n, 'two for one', '2100-01-01' FROM generate_series(1, {products}) n;
VACUUM ANALYZE;
CREATE PUBLICATION cache FOR ALL TABLES;
CREATE ROLE shop LOGIN REPLICATION;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO shop;
"""

CACHE = """
CREATE SERVER shop FOREIGN DATA WRAPPER postgres
    OPTIONS (host '127.0.0.1', port '{port}', dbname 'shop', publication 'cache', cache 'auto');
CREATE USER MAPPING FOR PUBLIC SERVER shop OPTIONS (user 'shop', password 'none is asked for');
"""


def python() -> str:
    """A Python that has Django and psycopg, or the end of this one with what to do."""
    for found in (sys.executable, str(TOOLS)):
        try:
            if subprocess.run([found, "-c", "import django, psycopg"], capture_output=True).returncode == 0:
                return found
        except OSError:
            continue
    sys.exit(f"Django and psycopg are not installed: {DJANGO}")


class Behind(Servers):
    """Both servers. The shop is a database of its own, and sqlcached has a server of that name."""

    def __init__(self, program: str, sales: int) -> None:
        self.sales = sales
        super().__init__(program, PRODUCTS)

    def _fill(self, products: int) -> None:
        self._create_database()
        self.source = Psql(self.ports["postgres"])
        self.source.command[-1] = "shop"
        for statement in SHOP.format(products=products, sales=self.sales).split(";\n"):
            if statement.strip():
                self.source.ask(statement)
        self.cache.ask(CACHE.format(port=self.ports["postgres"]))

    def _create_database(self) -> None:
        end = time.monotonic() + PATIENCE
        # A server takes connections a moment before it takes statements.
        while True:
            try:
                self.source.ask("CREATE DATABASE shop")
                return
            except RuntimeError as why:
                if "starting up" not in str(why) or time.monotonic() > end:
                    raise
                time.sleep(0.1)

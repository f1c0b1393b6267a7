"""Daemons that ask for a password, and daemons that speak TLS."""

import getpass
import io
import os
import shutil
import subprocess
import tempfile

import psycopg
from django.core.cache import cache
from django.core.management import call_command
from django.test import SimpleTestCase, override_settings
from django_sqlcached import errors
from django_sqlcached.errors import RefusedError, StatementError, UnavailableError
from django_sqlcached.testing import sqlcached_server

BACKEND = "django_sqlcached.cache.SqlcachedCache"
RULES = """
host all {user} 127.0.0.1/32 trust
host all all all password protocol=memcached
"""


def a_cache(location, **options):
    """This is the only daemon that the project knows, so that ``sqlcached_sync`` makes all tables in it."""
    return override_settings(
        CACHES={"default": {"BACKEND": BACKEND}}, SQLCACHED={"LOCATION": location, "CONNECT_TIMEOUT": 1, **options}
    )


class Access(SimpleTestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def test_roles(self):
        rules = os.path.join(self.folder, "rules")
        with open(rules, "w") as file:
            file.write(RULES.format(user=getpass.getuser()))
        with sqlcached_server("--hba-file", rules, "--roles-file", os.path.join(self.folder, "roles")) as daemon:
            place = f"host=127.0.0.1 port={daemon.sql_port} user={getpass.getuser()}"
            with psycopg.connect(place, autocommit=True) as operator:
                operator.execute("CREATE USER app PASSWORD 'secret' IN ROLE pg_read_all_data, pg_write_all_data")
                operator.execute("CREATE USER report PASSWORD 'look' IN ROLE pg_read_all_data")
                operator.execute("CREATE USER boss PASSWORD 'secret' SUPERUSER")
            # A prefix is the superuser's to give, so that tables are made by one: manage.py sqlcached_sync.
            errors.warnings.__init__()
            with a_cache(daemon.location, USER="app", PASSWORD="secret"):
                with self.assertLogs("django_sqlcached") as logs, self.assertRaises(StatementError):
                    cache.set("k", 1, tags=["t"])
                self.assertIn("may not be made by this role", logs.output[0])
            with a_cache(daemon.location, USER="boss", PASSWORD="secret"):
                call_command("sqlcached_sync", stdout=io.StringIO())
            with a_cache(daemon.location, USER="app", PASSWORD="secret"):
                cache.set("k", 1, tags=["t"])
                cache.set("l", 1)
                self.assertEqual((cache.get("k"), cache.invalidate_tags("t"), cache.get("k")), (1, 1, None))
                cache.clear()
                self.assertIsNone(cache.get("l"))
                cache.set("l", 1)
            for options, kind in (({}, RefusedError), ({"USER": "app", "PASSWORD": "wrong"}, RefusedError)):
                with a_cache(daemon.location, **options), self.assertRaises(kind):
                    cache.get("l")
            # A role that may only read finds the table, and may not write.
            errors.warnings.__init__()
            with a_cache(daemon.location, USER="report", PASSWORD="look"):
                self.assertEqual(cache.get("l"), 1)
                with self.assertRaises((RefusedError, StatementError)):
                    cache.set("l", 2)
                with self.assertRaises(StatementError):
                    cache.delete_where(key="l")

    def test_tls(self):
        certificate, key = os.path.join(self.folder, "cert.pem"), os.path.join(self.folder, "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)  # fmt: skip
        with sqlcached_server("-Z", "-o", f"ssl_chain_cert={certificate},ssl_key={key}") as daemon:
            with a_cache(daemon.location, TLS={"ca": certificate}):
                cache.set_many({str(number): "x" * 20_000 for number in range(30)})
                self.assertEqual(len(cache.get_many(map(str, range(30)))), 30)
                self.assertEqual(cache.incr("n") if cache.add("n", 1) else None, 2)
            for tls in (True, None):
                with a_cache(daemon.location, TLS=tls), self.assertRaises(UnavailableError):
                    cache.get("k")

"""What goes through the PostgreSQL port: Django's ORM, and the worker that listens."""

import io
import json
import threading

import psycopg
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.models import Count, Max
from django.db.models.functions import Length
from django.test import TransactionTestCase
from django_sqlcached.testing import sqlcached_server
from shelf.fragments import BookFragment
from shelf.orm import BookRow


class Orm(TransactionTestCase):
    databases = {"cache"}

    def setUp(self):
        BookFragment.clear()

    def test_models_of_a_fragment(self):
        rows = BookRow.objects.using("cache")
        for page in (17, 18, 19):
            for part in ("head", "foot"):
                BookFragment.set(f"<p>{page}", page=page, part=part, tags=[f"page:{page}", "all"])
        self.assertEqual(rows.count(), 6)
        self.assertEqual(rows.get(page=17, part="head").body, "<p>17")
        self.assertEqual(rows.filter(tags__contains=["page:18"]).count(), 2)
        self.assertEqual(rows.filter(tags__overlap=["page:18", "page:19"]).count(), 4)
        found = rows.values("page").annotate(parts=Count("part"), longest=Max(Length("body"))).order_by("-page")
        self.assertEqual(found[0], {"page": 19, "parts": 2, "longest": 5})
        # Writes of one are reads of the other.
        rows.create(page=20, part="head", body="by the ORM", tags=["all"])
        self.assertEqual(BookFragment.get(page=20, part="head"), b"by the ORM")
        self.assertEqual(rows.filter(page=17).update(body="changed"), 2)
        self.assertEqual(BookFragment.get(page=17, part="head"), "changed")
        self.assertEqual(rows.filter(page=18, part="foot").delete()[0], 1)
        self.assertIsNone(BookFragment.get(page=18, part="foot"))
        self.assertEqual(rows.filter(tags__contains=["all"]).delete()[0], 4 + 2)

    def test_hidden_columns_by_sql(self):
        BookFragment.set("a", page=1, part="x", timeout=100)
        with connections["cache"].cursor() as cursor:
            cursor.execute("SELECT _ttl BETWEEN 90 AND 100 FROM dj_bookfragment WHERE page = %s", [1])
            self.assertEqual(cursor.fetchall(), [(True,)])
            cursor.execute("UPDATE dj_bookfragment SET _stale = TRUE WHERE page = %s", [1])
        self.assertEqual(BookFragment.get_or_set(lambda: "b", page=1, part="x"), "b")


class Listen(TransactionTestCase):
    databases = {"cache", "default"}

    def test_rows_that_the_database_names(self):
        BookFragment.set("a", page=1, part="x")
        BookFragment.set("a", page=2, part="x")
        cache.set("k", 1, tags=["t"])
        payloads = [
            "no JSON",
            json.dumps({"target": "nobody", "where": {"page": 1}}),
            json.dumps({"target": "BookFragment", "where": {"colour": 1}}),
            json.dumps({"target": "BookFragment", "where": {"page": 1}}),
            json.dumps({"target": "default", "where": {"tags": ["t"]}}),
        ]
        out, heard = io.StringIO(), threading.Event()
        out.write = lambda text: heard.set()

        def listen():
            call_command("sqlcached_listen", database="cache", notifications=len(payloads), stdout=out)
            connections["cache"].close()

        with self.assertLogs("django_sqlcached") as logs:
            worker = threading.Thread(target=listen, daemon=True)
            worker.start()
            self.assertTrue(heard.wait(20))
            with connections["cache"].cursor() as cursor:
                for payload in payloads:
                    cursor.execute("SELECT pg_notify('sqlcached', %s)", [payload])
            worker.join(20)
        self.assertFalse(worker.is_alive())
        self.assertEqual(len(logs.output), 3, logs.output)
        self.assertEqual([row["page"] for row in BookFragment.rows()], [2])
        self.assertIsNone(cache.get("k"))

    def test_after_a_lost_connection_nothing_is_believed(self):
        """What was announced while nobody listened is unknown."""
        heard = threading.Event()
        out = io.StringIO()
        out.write = lambda text: heard.set()
        entry = connections.settings["cache"]
        usual = entry["PORT"]
        self.addCleanup(entry.update, PORT=usual)

        def listen():
            call_command("sqlcached_listen", database="cache", notifications=1, stdout=out)
            connections["cache"].close()

        with sqlcached_server() as database:
            entry["PORT"] = database.sql_port
            worker = threading.Thread(target=listen, daemon=True)
            worker.start()
            self.assertTrue(heard.wait(20))
            cache.set("k", 1)
            heard.clear()
            with self.assertLogs("django_sqlcached") as logs:
                database.stop()
                database.start()
                self.assertTrue(heard.wait(20))
            self.assertIsNone(cache.get("k"), logs.output)
            self.assertIn("was lost", logs.output[0])
            place = f"host=127.0.0.1 port={database.sql_port} user=app"
            with psycopg.connect(place, autocommit=True) as other:
                other.execute("SELECT pg_notify('sqlcached', '{\"target\": \"default\", \"where\": {\"key\": \"k\"}}')")
            worker.join(20)
            self.assertFalse(worker.is_alive())

    def test_other_databases_have_no_notifications(self):
        with self.assertRaisesMessage(CommandError, "it is no PostgreSQL"):
            call_command("sqlcached_listen", database="default")

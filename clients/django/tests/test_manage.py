"""Commands, checks and the admin page."""

import io

from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.management import CommandError, call_command
from django.test import SimpleTestCase, TestCase, override_settings
from django_sqlcached.checks import daemon_answers, settings_are_right
from django_sqlcached.fragments import Fragment, registry

BACKEND = "django_sqlcached.cache.SqlcachedCache"


def said(*words, **options):
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO(), no_color=True, **options)
    return out.getvalue()


def entry(table, **options):
    return {"BACKEND": BACKEND, "OPTIONS": {"TABLE": table, **options}}


class Sync(SimpleTestCase):
    def tearDown(self):
        registry.pop("Growing", None)

    def test_it_makes_and_alters_and_drops_nothing(self):
        with override_settings(CACHES={"default": entry("dj_synced", ttl="10 min")}):
            caches["default"].sql("DROP TABLE IF EXISTS dj_synced")
            with self.assertRaisesMessage(CommandError, "differ"):
                said("sqlcached_sync", check=True)
            self.assertIn('CREATE TABLE IF NOT EXISTS "dj_synced"', said("sqlcached_sync"))
            self.assertEqual(said("sqlcached_sync", check=True), "The tables are as declared.\n")
        with override_settings(CACHES={"default": entry("dj_synced", ttl="600 s", max_memory="64 MB", shared_memory=False)}):
            self.assertEqual(said("sqlcached_sync"), "ALTER TABLE \"dj_synced\" SET (max_memory = '64 MB');\n")
            self.assertEqual(said("sqlcached_sync", check=True), "The tables are as declared.\n")
            caches["default"].sql("DROP INDEX dj_synced_tags_idx")
            self.assertIn("CREATE INDEX", said("sqlcached_sync"))
            caches["default"].sql("ALTER TABLE dj_synced ADD COLUMN of_somebody INT")
            self.assertEqual(said("sqlcached_sync", check=True), "The tables are as declared.\n")
            caches["default"].sql("DROP TABLE dj_synced")

    def test_a_key_that_changed_is_a_problem(self):
        def declare(fields):
            return type("Growing", (Fragment,), {"__annotations__": fields})

        with override_settings(CACHES={"default": entry("dj_default")}):
            declare({"page": int}).table().sql("DROP TABLE IF EXISTS dj_growing")
            said("sqlcached_sync")
            declare({"page": int, "part": str})
            with self.assertRaises(CommandError):
                said("sqlcached_sync")

    def test_top(self):
        caches["default"].set("k", 1)
        self.assertRegex(said("sqlcached_top"), r"(?m)^dj_default +\d+ +\d+")
        with override_settings(CACHES={"default": {**entry("dj_away"), "LOCATION": "127.0.0.1:1"}}):
            self.assertIn("Connection refused", said("sqlcached_top"))


class Checks(SimpleTestCase):
    def ids(self, **options):
        # Django's own checks of caches do not get past a cache that is declared wrongly.
        return [message.id for check in (settings_are_right, daemon_answers) for message in check(None, **options)]

    def test_settings(self):
        self.assertEqual(self.ids(), [])
        for settings, found in (
            ({"CACHES": {"default": entry("dj a")}}, "sqlcached.E001"),
            ({"CACHES": {"default": entry("dj_a"), "b": entry("dj_a", ttl="1 min")}}, "sqlcached.E002"),
            ({"SQLCACHED": {"ON_FAILURE": "pray"}}, "sqlcached.E003"),
            ({"SQLCACHED": {"LOCATOIN": "a"}}, "sqlcached.E001"),
        ):
            with override_settings(**settings):
                self.assertEqual(self.ids(), [found])
        with override_settings(CACHES={"default": entry("dj_a"), "b": entry("dj_a")}):
            self.assertEqual(self.ids(), [])

    def test_a_daemon_that_is_away(self):
        with override_settings(CACHES={"default": {**entry("dj_a"), "LOCATION": "127.0.0.1:1"}}):
            self.assertEqual(self.ids(databases=["default"]), ["sqlcached.W002"])
            self.assertEqual(self.ids(), [])


class Admin(TestCase):
    def test_the_page_shows_and_changes_nothing(self):
        caches["default"].set("k", 1)
        User.objects.create_superuser("root", password="secret")
        User.objects.create_user("clerk", password="secret", is_staff=True)
        for name, status in (("root", 200), ("clerk", 403)):
            self.client.login(username=name, password="secret")
            answer = self.client.get("/admin/django_sqlcached/cachetable/")
            self.assertEqual(answer.status_code, status)
            if status == 200:
                self.assertContains(answer, "dj_default")
                self.assertContains(answer, "fragment BookFragment")
                self.assertEqual(self.client.get("/admin/django_sqlcached/cachetable/add/").status_code, 403)

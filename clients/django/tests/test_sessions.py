"""Sessions: users, their reserve, the login of a real client."""

from django.contrib.auth.models import User
from django.test import Client, TestCase, override_settings
from django_sqlcached import sessions
from django_sqlcached.sessions import SessionStore, active_sessions, logout_everywhere


@override_settings(SESSION_ENGINE="django_sqlcached.sessions")
class Sessions(TestCase):
    def setUp(self):
        sessions.table().truncate()
        self.anna = User.objects.create_superuser("anna", password="secret")
        self.bert = User.objects.create_superuser("bert", password="secret")

    def logged_in(self, user):
        client = Client()
        self.assertTrue(client.login(username=user.username, password="secret"))
        self.assertEqual(client.get("/admin/").status_code, 200)
        return client

    def test_a_user_is_logged_out_everywhere(self):
        first, second, other = self.logged_in(self.anna), self.logged_in(self.anna), self.logged_in(self.bert)
        self.assertEqual(len(active_sessions(self.anna)), 2)
        self.assertEqual(len(active_sessions()), 3)
        self.assertGreater(active_sessions(self.bert)[0]["expires_in"], 86400)
        self.assertEqual(logout_everywhere(self.anna, keep=first.session.session_key), 1)
        self.assertEqual([client.get("/admin/").status_code for client in (first, second, other)], [200, 302, 200])
        self.assertEqual(logout_everywhere(self.anna.pk), 1)
        self.assertEqual([client.get("/admin/").status_code for client in (first, other)], [302, 200])

    def test_an_ended_session_does_not_come_back(self):
        session = SessionStore()
        session["a"] = 1
        session.save()
        running = SessionStore(session.session_key)
        running["a"] = 2
        logout_everywhere(None)
        SessionStore(session.session_key).delete()
        with self.assertRaises(sessions.UpdateError):
            running.save()

    def test_the_cache_is_emptied_without_them(self):
        from django.core.cache import cache

        client = self.logged_in(self.anna)
        cache.clear()
        self.assertEqual(client.get("/admin/").status_code, 200)

    def test_the_table_has_a_reserve_and_options(self):
        self.assertIn("min_memory", sessions.table().definition.options)
        with override_settings(SQLCACHED={"SESSIONS": {"min_memory": "1 MB", "max_rows": 5}}):
            self.assertEqual(sessions.definition().options, {"min_memory": "1 MB", "max_rows": 5})

"""``manage.py sessions``: who is logged in, and from how many places; ``--end USER`` logs a user out everywhere."""

from collections import Counter

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.test import Client
from django_sqlcached.sessions import active_sessions, logout_everywhere


class Command(BaseCommand):
    help = "Shows sessions, makes some, and ends those of a user."

    def add_arguments(self, parser):
        parser.add_argument("--login", action="append", default=[], help="log this user in from one more browser")
        parser.add_argument("--end", help="log this user out everywhere")

    def handle(self, login, end, **options):
        for name in login:
            Client().force_login(User.objects.get(username=name))
        if end:
            ended = logout_everywhere(User.objects.get(username=end))
            self.stdout.write(f"ended: {ended}")
        names = {str(user.pk): user.username for user in User.objects.all()}
        for user, count in sorted(Counter(row["user_id"] for row in active_sessions()).items()):
            self.stdout.write(f"{names[user]}: {count}")

"""``manage.py sqlcached_sync [--check]``"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ...declared import declared
from ...errors import SqlcachedError
from ...schema import plan


class Command(BaseCommand):
    """Makes the tables as the settings and fragments declare them."""

    help = "Makes missing tables, columns and indexes of caches, fragments and sessions, and alters options. Drops nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; fail if something would be changed")

    def handle(self, *arguments: Any, check: bool = False, **options: Any) -> None:
        differs = False
        problems = []
        for who, table in self._tables():
            try:
                made = plan(table.server, table.definition)
                for text in made.statements:
                    self.stdout.write(f"{text};")
                if not check:
                    made.apply(table.server)
            except SqlcachedError as why:
                raise CommandError(f"{who}: {why}") from why
            differs = differs or bool(made)
            problems += made.problems
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            raise CommandError("some tables cannot be altered so")
        if check and differs:
            raise CommandError("the tables differ from what is declared; run manage.py sqlcached_sync")
        if not differs:
            self.stdout.write("The tables are as declared.")

    def _tables(self) -> list[Any]:
        """Each table once."""
        found: dict[Any, Any] = {}
        for who, table in declared():
            found.setdefault((str(table.server), table.name), (who, table))
        return list(found.values())

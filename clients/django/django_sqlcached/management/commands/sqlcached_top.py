"""``manage.py sqlcached_top [--every SECONDS]``"""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand

from ...overview import COLUMNS, overview


class Command(BaseCommand):
    """Shows the figures of the declared tables."""

    help = "Shows rows, bytes and removals of the tables of caches, fragments and sessions."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--every", type=float, metavar="SECONDS", help="show them again after so many seconds")

    def handle(self, *arguments: Any, every: Any = None, **options: Any) -> None:
        self._show()
        while every:
            time.sleep(every)
            self.stdout.write("")
            self._show()

    def _show(self) -> None:
        self.stdout.write(f"{'table':<28}" + "".join(f"{name:>12}" for name in COLUMNS))
        for row in overview():
            figures = "".join(f"{figure:>12}" for _, figure in row.get("figures", []))
            self.stdout.write(f"{row['table']:<28}{figures or '  ' + row.get('problem', '')}")

"""``manage.py sqlcached_listen``: invalidations that the database announces.

Signals miss what other programs write, and raw SQL. A trigger of the database sees it all::

    CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_notify('sqlcached', json_build_object(
            'target', 'ProductFragment', 'where', json_build_object('page', coalesce(NEW.id, OLD.id)))::text);
        RETURN NULL;
    END $$;
    CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON product FOR EACH ROW EXECUTE FUNCTION announce();

PostgreSQL sends a notification at the commit. ``target`` is the name of a fragment or the alias of a cache; ``where``
are columns as in ``invalidate``; ``"soft": true`` marks the rows as stale.
"""

from __future__ import annotations

import json
import time
from typing import Any, Optional

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, Error, connections

from ...declared import declared
from ...errors import SqlcachedError, logger
from ...fragments import registry
from ...invalidation import located, send

#: Seconds before a lost connection is tried again.
PAUSE = 1.0

#: Seconds that a wait for notifications takes at most, so that a signal ends the command soon.
WAIT = 1.0


class Command(BaseCommand):
    """Waits for notifications and removes the rows that they name."""

    help = "Listens to notifications of the database (LISTEN) and removes the rows that they name."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--channel", default="sqlcached", help="the channel; the default is sqlcached")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="the alias of a PostgreSQL database")
        parser.add_argument("--notifications", type=int, help="end after so many; for tests")

    def handle(
        self, *arguments: Any, channel: str, database: str, notifications: Optional[int] = None, **options: Any
    ) -> None:
        connection = connections[database]
        if connection.vendor != "postgresql":
            raise CommandError(f"database {database!r} has no notifications: it is no PostgreSQL")
        self._left = notifications
        lost = False
        while self._left is None or self._left > 0:
            try:
                connection.ensure_connection()
                with connection.cursor() as cursor:
                    cursor.execute(f"LISTEN {connection.ops.quote_name(channel)}")
                if lost:
                    self._flush()
                    lost = False
                self.stdout.write(f"listening to {channel}")
                # The driver's own errors become Django's.
                with connection.wrap_database_errors:
                    self._listen(connection.connection)
            except Error as why:
                logger.warning("the connection to database %s was lost: %s", database, why)
                lost = True
                connection.close()
                time.sleep(PAUSE)

    def _listen(self, connection: Any) -> None:
        while self._left is None or self._left > 0:
            for notification in connection.notifies(timeout=WAIT, stop_after=1):
                self._handle(notification.payload)
                if self._left is not None:
                    self._left -= 1

    def _handle(self, payload: str) -> None:
        try:
            said = json.loads(payload)
            target = registry.get(said["target"], said["target"])
            table, condition = located(target, said["where"])
            send({(table, bool(said.get("soft"))): [condition]})
        except Exception as why:
            # One wrong notification must not end the worker.
            logger.error("notification %.200r: %s", payload, why)

    def _flush(self) -> None:
        """What was announced while nobody listened is unknown, so that nothing can be believed. Sessions stay."""
        for who, table in declared():
            if who == "sessions":
                continue
            try:
                table.truncate()
                logger.warning("%s was emptied, because notifications were lost", who)
            except SqlcachedError as why:
                logger.error("%s: %s", who, why)

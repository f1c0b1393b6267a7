"""Django's PostgreSQL engine, without what a cache does not have.

::

    DATABASES = {
        "default": {...},
        "cache": {
            "ENGINE": "django_sqlcached.database",
            "HOST": "127.0.0.1",
            "PORT": 5433,
            "NAME": "sqlcached",
            "USER": "app",
        },
    }

Unmanaged models then read, write, delete and count the rows of caches and fragments. The server has one database, so
that tests use it as it is: run them at a daemon of their own (``django_sqlcached.testing``).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base, creation, features


class DatabaseFeatures(features.DatabaseFeatures):
    """What Django may rely on."""

    # Foreign keys are kept and not enforced: rows of a cache are evicted.
    supports_foreign_keys = False
    can_rollback_ddl = True
    test_db_allows_multiple_connections = False


class DatabaseCreation(creation.DatabaseCreation):
    """Tests use the daemon's one database and migrate nothing in it."""

    def create_test_db(self, *arguments: Any, **named: Any) -> str:
        name: str = self.connection.settings_dict["NAME"]
        return name

    def destroy_test_db(self, *arguments: Any, **named: Any) -> None:
        """Nothing was made."""
        self.connection.close()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the daemon's PostgreSQL port."""

    display_name = "sqlcached"
    features_class = DatabaseFeatures
    creation_class = DatabaseCreation

"""A database engine for the tables of sqlcached: ``"ENGINE": "django_sqlcached.database"``."""

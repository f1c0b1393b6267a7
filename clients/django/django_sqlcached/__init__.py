"""Django's cache, sessions and fragments in sqlcached."""

__version__ = "0.1.0"

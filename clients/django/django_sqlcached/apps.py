"""The app ``django_sqlcached``: its checks, and the fragments of all apps."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class SqlcachedConfig(AppConfig):
    """Add ``"django_sqlcached"`` to ``INSTALLED_APPS``."""

    name = "django_sqlcached"
    verbose_name = "sqlcached"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: F401

        autodiscover_modules("fragments")

"""What the admin page shows. There is no table of this in the project's database."""

from __future__ import annotations

from django.db import models


class CacheTable(models.Model):
    """A table of the daemon."""

    name = models.CharField(max_length=63, primary_key=True)

    class Meta:
        managed = False
        verbose_name = "cache table"
        verbose_name_plural = "cache tables"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.name)

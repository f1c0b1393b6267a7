"""A model of a fragment's table; the tests import it where there is a PostgreSQL driver."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class BookRow(models.Model):
    # The first part of the key stands for all of it: rows are written by create() and deleted by conditions.
    page = models.BigIntegerField(primary_key=True)
    user = models.BigIntegerField(default=0)
    part = models.TextField()
    body = models.TextField()
    tags = ArrayField(models.TextField(), null=True)

    class Meta:
        app_label = "shelf"
        managed = False
        db_table = "dj_bookfragment"

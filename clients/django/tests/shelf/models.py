"""Something to invalidate."""

from django.db import models
from django_sqlcached.invalidation import invalidates

from .fragments import BookFragment


@invalidates(BookFragment, page="pk")
@invalidates("default", tags=lambda book: [f"shelf:{book.shelf}"])
class Book(models.Model):
    title = models.CharField(max_length=80)
    shelf = models.IntegerField(default=0)

"""Products and reviews, and the cached rows as a model."""

from django.db import models
from django_sqlcached.invalidation import invalidates

from .fragments import BrandPage, ProductFragment


class Brand(models.Model):
    name = models.CharField(max_length=80)


# A product is on its own page and on that of its brand. A tag names everything else that shows it.
@invalidates(ProductFragment, page="pk")
@invalidates(BrandPage, brand="brand_id")
@invalidates("default", tags=lambda product: [f"product:{product.pk}"])
class Product(models.Model):
    brand = models.ForeignKey(Brand, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    price = models.DecimalField(max_digits=8, decimal_places=2)


@invalidates(ProductFragment, page="product_id")
class Review(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE)
    author = models.CharField(max_length=80)
    stars = models.IntegerField()


class FragmentRow(models.Model):
    """The rows of ProductFragment. The first column of their key stands for the whole key."""

    page = models.BigIntegerField(primary_key=True)
    user = models.BigIntegerField()
    part = models.TextField()
    body = models.TextField()

    class Meta:
        managed = False
        db_table = "dj_productfragment"


class CacheRouter:
    """Unmanaged models of this app are rows of the cache."""

    def db_for_read(self, model, **hints):
        return "cache" if model._meta.app_label == "shop" and not model._meta.managed else None

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return False if db == "cache" else None

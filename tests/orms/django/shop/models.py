"""The models after the second migration."""

import uuid

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models


class Brand(models.Model):
    name = models.CharField(max_length=80, unique=True)
    country = models.CharField(max_length=2, default="de", db_index=True)

    class Meta:
        ordering = ["name"]


class Tag(models.Model):
    slug = models.SlugField(primary_key=True)


class Product(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    brand = models.ForeignKey(Brand, on_delete=models.CASCADE, related_name="products")
    title = models.CharField(max_length=300)
    description = models.TextField(blank=True, default="", db_comment="shown below the title")
    price = models.DecimalField(max_digits=10, decimal_places=2)
    stock = models.BigIntegerField(default=0)
    weight = models.FloatField(null=True)
    visible = models.BooleanField(default=True)
    released = models.DateField(null=True)
    opens = models.TimeField(null=True)
    delivery = models.DurationField(null=True)
    picture = models.BinaryField(null=True)
    properties = models.JSONField(default=dict)
    sizes = ArrayField(models.CharField(max_length=10), default=list)
    tags = models.ManyToManyField(Tag)
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["brand", "-price"], name="shop_product_price"),
            models.Index(fields=["stock"], name="shop_product_sold", condition=models.Q(stock__lt=5)),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(price__gte=0), name="shop_product_price_not_negative"),
            models.UniqueConstraint(fields=["brand", "title"], name="shop_product_title"),
        ]


class Review(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE)
    author = models.ForeignKey(User, null=True, on_delete=models.SET_NULL)
    stars = models.SmallIntegerField()
    text = models.TextField()

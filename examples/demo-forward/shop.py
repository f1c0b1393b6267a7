"""A shop in Django, as anybody writes one. It knows nothing of a cache: only the port of its database is given.

    python3 shop.py --listen 8001 --database 5432
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from statistics import median
from time import perf_counter
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.db.models import Count, Sum
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--listen", type=int, required=True, help="the port of its pages on 127.0.0.1")
parser.add_argument("--database", type=int, required=True, help="the port of its database on 127.0.0.1")
given = parser.parse_args()

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a demo",
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "shop",
            "USER": "shop",
            "HOST": "127.0.0.1",
            "PORT": given.database,
            "CONN_MAX_AGE": None,
        }
    },
)
django.setup()


class Product(models.Model):
    name = models.TextField()
    price = models.DecimalField(max_digits=10, decimal_places=2)

    class Meta:
        app_label, db_table = "shop", "product"


class Sale(models.Model):
    product = models.ForeignKey(Product, models.CASCADE)
    amount = models.DecimalField(max_digits=10, decimal_places=2)

    class Meta:
        app_label, db_table = "shop", "sale"


class Offer(models.Model):
    product = models.ForeignKey(Product, models.CASCADE)
    words = models.TextField()
    ends = models.DateTimeField()

    class Meta:
        app_label, db_table = "shop", "offer"


class Figures:
    """How many queries the database was asked, and how long the last ones of the dashboard took."""

    def __init__(self) -> None:
        self.queries, self.dashboard = 0, deque(maxlen=20)

    def count(self, execute, sql, params, many, context):
        began = perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.queries += 1
            if "SUM(" in sql:
                self.dashboard.append(1000 * (perf_counter() - began))


figures = Figures()


def product(_: HttpRequest, number: int) -> HttpResponse:
    item = Product.objects.get(id=number)
    sales = Sale.objects.filter(product_id=number).order_by("-id")[:3]
    offers = Offer.objects.filter(product_id=number, ends__gt=Now()).order_by("id")
    lines = [f"{item.name}: {item.price}", *(f"sold for {sale.amount}" for sale in sales), *(offer.words for offer in offers)]
    return HttpResponse("\n".join(lines), content_type="text/plain")


def dashboard(_: HttpRequest) -> HttpResponse:
    by_product = Sale.objects.values("product_id", "product__name", "product__price")
    best = by_product.annotate(sold=Count("id"), turnover=Sum("amount")).order_by("-turnover", "product_id")[:5]
    lines = [f"{it['product__name']} at {it['product__price']}: {it['sold']} sold for {it['turnover']}" for it in best]
    return HttpResponse("\n".join(lines), content_type="text/plain")


def show_figures(_: HttpRequest) -> HttpResponse:
    last = median(figures.dashboard) if figures.dashboard else None
    return HttpResponse(json.dumps({"queries": figures.queries, "dashboard_ms": last}))


urlpatterns = [path("product/<int:number>", product), path("dashboard", dashboard), path("figures", show_figures)]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the terminal is for people."""


if __name__ == "__main__":
    # One thread, so that one connection to the database serves all requests.
    with connection.execute_wrapper(figures.count):
        make_server("127.0.0.1", given.listen, get_wsgi_application(), handler_class=Quiet).serve_forever()

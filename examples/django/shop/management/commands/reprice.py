"""``manage.py reprice PRODUCT PRICE``: a change in a transaction."""

from django.core.management.base import BaseCommand
from django.db import transaction
from shop.models import Product


class Command(BaseCommand):
    help = "Changes a price. What shows it is removed from the cache after the commit."

    def add_arguments(self, parser):
        parser.add_argument("product", type=int)
        parser.add_argument("price")

    def handle(self, product, price, **options):
        with transaction.atomic():
            found = Product.objects.select_for_update().get(pk=product)
            found.price = price
            found.save()

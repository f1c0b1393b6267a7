"""``manage.py fill``: two brands, four products, some reviews, two users."""

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from shop.models import Brand, Product, Review


class Command(BaseCommand):
    help = "Fills the shop."

    def handle(self, **options):
        for brand in ("Acme", "Blue"):
            made = Brand.objects.create(name=brand)
            for name, price in (("lamp", "19.90"), ("chair", "79.00")):
                product = Product.objects.create(brand=made, name=name, price=price)
                for stars in (5, product.pk):
                    Review.objects.create(product=product, author=f"reader {stars}", stars=stars)
        for name in ("anna", "bert"):
            User.objects.create_superuser(name, password="secret")
        self.stdout.write(f"{Product.objects.count()} products, {Review.objects.count()} reviews")

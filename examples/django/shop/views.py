"""The pages of the shop."""

from decimal import Decimal

from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.db.models import Avg
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django_sqlcached.views import cache_page_by

from .fragments import BrandPage
from .models import Brand, Product


def product(request, pk):
    """Its pieces are fragments: see the template."""
    found = get_object_or_404(Product, pk=pk)
    return render(request, "shop/product.html", {"product": found, "reviews": found.review_set.order_by("pk")})


@cache_page_by(BrandPage, brand="pk", vary=("Accept-Language",))
def brand(request, pk):
    """A whole page."""
    found = get_object_or_404(Brand, pk=pk)
    return render(request, "shop/brand.html", {"brand": found, "products": found.product_set.order_by("pk")})


def best(request):
    """A value with tags: it is removed when one of the products in it changes."""
    names = cache.get("best")
    if names is None:
        rated = Product.objects.annotate(stars=Avg("review__stars")).order_by("-stars", "pk")[:2]
        products = list(rated)
        names = [each.name for each in products]
        cache.set("best", names, 3600, tags=[f"product:{each.pk}" for each in products])
    return HttpResponse(", ".join(names))


@login_required
def account(request):
    return HttpResponse(f"Hello {request.user.username}, you owe {Decimal(0):.2f}.")

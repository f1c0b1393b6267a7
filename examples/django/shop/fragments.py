"""What the shop caches: pieces of pages, and whole pages."""

from django_sqlcached.fragments import Fragment


class ProductFragment(Fragment):
    """A piece of a product's page. ``user`` is 0 if everybody sees the same."""

    page: int
    user: int = 0
    part: str

    class Meta:
        ttl = "10 min"


class BrandPage(Fragment):
    """The whole page of a brand, for each language."""

    brand: int
    vary: str = ""

    class Meta:
        ttl = "1 h"

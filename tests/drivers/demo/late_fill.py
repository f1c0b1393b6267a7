"""An edit in the middle of a fill: late_fill.py DEMO SQLCACHED. Each half refuses the late fill and shows
the new price; without the lease's mark ('?') the demo counts an old price, so the check can fail."""

import sys

sys.path.insert(0, sys.argv[1])

import caches
import demo
from halves import Half
from shop import Shop

PRODUCT, USER = 17, 5


class SlowShop(Shop):
    """Somebody edits the product after a fragment has read its price, and before it is stored."""

    meanwhile = None

    def make(self, fragment):
        made = super().make(fragment)
        if fragment == f"product:{PRODUCT}" and self.meanwhile:
            self.meanwhile, act = None, self.meanwhile
            act()
        return made


def shown(half):
    """The price on the product's own page."""
    return next(piece.html for piece in half.visit("product", PRODUCT, USER) if piece.name == f"product:{PRODUCT}")


def follow(cache):
    """A visit with an edit in its middle, and one after it: how many fills were refused, how many prices were old."""
    shop = SlowShop(wait=0)
    half = Half("trial", cache, shop)

    def edit():
        _, edits = shop.edit(PRODUCT)
        half.edited(PRODUCT, edits)

    shop.meanwhile = edit
    before, after = shown(half), shown(half)
    return half.refused, half.old, before != after


def emptied(cache):
    cache.connection.ask(b"flush_all\r\n")
    cache.connection.line()
    return cache


def check(tables, memcached):
    refused, old, changed = follow(tables)
    assert refused >= 1 and old == 0 and changed, (refused, old, changed)
    for memcached.way in caches.Memcached.WAYS:
        refused, old, changed = follow(emptied(memcached))
        assert old == 0 and changed and (refused >= 1 or memcached.way != "flush"), (memcached.way, refused, old, changed)
    caches.REMOVE = caches.REMOVE.replace(", '?'", "")
    refused, old, changed = follow(emptied(tables))
    assert refused == 0 and old == 1 and not changed, (refused, old, changed)


ours, port, _ = demo.sqlcached(sys.argv[2])
try:
    theirs, other = demo.memcached(demo.program("memcached", None, "make tools does it"))
    try:
        check(caches.Tables(port), caches.Memcached(other))
    finally:
        theirs.kill()
finally:
    ours.kill()
print("held")

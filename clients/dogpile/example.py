import os

from dogpile.cache import make_region

region = make_region().configure(
    "sqlcached",
    expiration_time=600,
    arguments={
        "socket": os.environ["SQLCACHED_SOCKET"],
        "table": "pages",
        "tags": lambda key: [key.split("|")[0]],
    },
)


def page():
    return "hello"


region.get_or_create("product:17|head", page)
print(region.get("product:17|head"))
region.actual_backend.invalidate_tags("product:17")

"""The fragments of the tests."""

import uuid

from django_sqlcached.fragments import Fragment


class BookFragment(Fragment):
    page: int
    user: int = 0
    part: str

    class Meta:
        ttl = "10 min"


class NearFragment(Fragment):
    page: int
    part: str = ""

    class Meta:
        shared_memory = True
        index = []


class TwoTexts(Fragment):
    lang: str
    path: str
    token: uuid.UUID


class BookPage(Fragment):
    page: int
    vary: str = ""

    class Meta:
        ttl = "1 min"
        stale_for = "1 min"

"""Readers, writers and invalidations at the same time. ``SEED`` replays the choices, ``RACE`` is the seconds of each."""

import os
import random
import threading
import time

from django.core.cache import cache
from django.test import SimpleTestCase, override_settings
from shelf.fragments import BookFragment, NearFragment

SEED = int(os.environ.get("SEED", random.randrange(2**32)))
SECONDS = float(os.environ.get("RACE", 0.7))
BACKEND = "django_sqlcached.cache.SqlcachedCache"


class Race:
    """A database with one number, which a writer raises and invalidates. A reader must never get a number that was
    invalidated before it began, unless the invalidation is soft: then only what stays in the end must be right."""

    def __init__(self, read, invalidate, soft=False):
        self.read, self.invalidate, self.soft = read, invalidate, soft
        self.number = self.invalidated = 0
        self.reads, self.failures = 0, []
        self.end = time.monotonic() + SECONDS

    def compute(self):
        number = self.number
        time.sleep(random.random() * 0.003)
        return number

    def reader(self, choices):
        while time.monotonic() < self.end:
            floor = self.invalidated
            found = self.read(self.compute, choices)
            if found < floor and not self.soft:
                self.failures.append((found, floor))
            self.reads += 1

    def writer(self, choices):
        while time.monotonic() < self.end:
            self.number += 1
            self.invalidate(choices)
            self.invalidated = self.number
            time.sleep(choices.random() * 0.004)

    def run(self):
        workers = [self.writer] + [self.reader] * 4
        threads = [threading.Thread(target=work, args=(random.Random(SEED + n),)) for n, work in enumerate(workers)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        # Nothing old stayed.
        self.end = time.monotonic()
        last = self.read(self.compute, random.Random(SEED))
        return self.failures[:3], last == self.number, self.reads > 20


class Races(SimpleTestCase):
    def check(self, read, invalidate, soft=False):
        with self.subTest(SEED=SEED):
            self.assertEqual(Race(read, invalidate, soft).run(), ([], True, True))

    def test_tags(self):
        cache.clear()
        self.check(
            lambda compute, choices: cache.get_or_set("k", compute, tags=["t"]),
            lambda choices: cache.invalidate_tags("t"),
        )

    def test_soft_invalidation(self):
        cache.clear()
        self.check(
            lambda compute, choices: cache.get_or_set("k", compute, tags=["t"]),
            lambda choices: cache.invalidate_tags("t", soft=choices.random() < 0.8),
            soft=True,
        )

    def test_keys(self):
        cache.clear()
        self.check(lambda compute, choices: cache.get_or_set("k", compute), lambda choices: cache.delete("k"))

    def test_clear(self):
        cache.clear()
        self.check(lambda compute, choices: cache.get_or_set("k", compute), lambda choices: cache.clear())

    @override_settings(
        CACHES={"default": {"BACKEND": BACKEND, "OPTIONS": {"TABLE": "dj_near_races", "shared_memory": True}}}
    )
    def test_shared_memory(self):
        cache.clear()
        self.check(
            lambda compute, choices: cache.get_or_set("k", compute, tags=["t"] if choices.random() < 0.5 else ["t", "u"]),
            lambda choices: cache.invalidate_tags("t"),
        )

    def test_fragments(self):
        for kind in (BookFragment, NearFragment):
            kind.clear()
            self.check(
                lambda compute, choices, kind=kind: kind.get_or_set(compute, page=1, part="x"),
                lambda choices, kind=kind: kind.delete_where(page=1),
            )

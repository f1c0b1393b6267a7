"""dogpile.cache's own suites for backends, and what this one has beyond: tags, leases, keys of any form."""

import os
import threading
import time

from dogpile.cache import make_region, register_backend
from dogpile.cache.api import NO_VALUE
from dogpile.testing.fixtures import _GenericBackendTestSuite, _GenericMutexTestSuite
from dogpile_sqlcached import tagged

register_backend("sqlcached", "dogpile_sqlcached", "SqlcachedBackend")
SOCKET = os.environ["SQLCACHED_SOCKET"]


class TestBackend(_GenericBackendTestSuite):
    backend = "sqlcached"
    config_args = {"arguments": {"socket": SOCKET}}


class TestMutex(_GenericMutexTestSuite):
    backend = "sqlcached"
    config_args = {"arguments": {"socket": SOCKET}}


class Quick(_GenericBackendTestSuite):
    """Without what takes seconds: it is the same code for every table."""

    test_threaded_dogpile = test_threaded_get_multi = test_region_expire = None


class TestNearBackend(Quick):
    backend = "sqlcached"
    config_args = {"arguments": {"socket": SOCKET, "table": "dogpile_near", "options": {"shared_memory": True}}}


class TestTaggedBackend(Quick):
    backend = "sqlcached"
    config_args = {"arguments": {"socket": SOCKET, "table": "dogpile_tagged", "tags": lambda key: ["all"]}}


def region(**arguments):
    made = make_region().configure("sqlcached", expiration_time=600, arguments={"socket": SOCKET, **arguments})
    made.actual_backend.clear()
    return made


def test_tags():
    pages = region(table="pages", tags=lambda key: [key.split(":")[0]])
    for shelf in ("a", "b"):
        for number in range(5):
            with tagged("all", f"number {number}"):
                pages.set(f"{shelf}:{number}", number)
    backend = pages.actual_backend
    assert backend.invalidate_tags("number 3", "none") == 2
    assert backend.invalidate_tags("a") == 4
    assert pages.get("a:1") is NO_VALUE and pages.get("b:1") == 1
    assert backend.invalidate_tags("all") == 4
    assert backend.invalidate_tags() == 0


def test_of_ten_processes_one_computes():
    """Regions of their own have no mutex of a process in common, as processes have none."""
    computed, answers = [], []

    def compute():
        computed.append(1)
        time.sleep(0.2)
        return "value"

    region(table="pages")
    regions = [make_region().configure("sqlcached", arguments={"socket": SOCKET, "table": "pages"}) for _ in range(10)]
    threads = [
        threading.Thread(target=lambda each=each: answers.append(each.get_or_create("rare", compute))) for each in regions
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert (len(computed), answers) == (1, ["value"] * 10)


def test_a_value_that_was_invalidated_meanwhile_is_not_stored():
    for tags in (None, lambda key: ["t"]):
        pages = region(table="pages", tags=tags)

        def compute():
            pages.delete("k")
            return "old"

        assert pages.get_or_create("k", compute) == "old"
        assert pages.get("k") is NO_VALUE


def test_a_tag_is_invalidated_while_its_value_is_computed():
    """The place of a missing value once had no tags yet, so that old data was stored after the invalidation."""
    pages = region(table="pages", tags=lambda key: ["t"])

    def compute():
        assert pages.actual_backend.invalidate_tags("t") == 1
        return "old"

    assert pages.get_or_create("k", compute) == "old"
    assert pages.get("k") is NO_VALUE
    assert pages.get_or_create("k", lambda: "new") == "new"
    assert pages.get("k") == "new"


def test_an_error_leaves_the_place_to_the_next():
    pages = region(table="pages")

    def fails():
        raise ZeroDivisionError

    try:
        pages.get_or_create("k", fails)
    except ZeroDivisionError:
        pass
    assert pages.get_or_create("k", lambda: 1) == 1


def test_an_expired_value_is_computed_by_one_and_the_others_get_it():
    pages = region(table="pages")
    pages.set("k", "old")
    time.sleep(0.01)
    seen = []

    def compute():
        thread = threading.Thread(target=lambda: seen.append(pages.get_or_create("k", lambda: "other", expiration_time=0.001)))
        thread.start()
        thread.join()
        return "new"

    assert pages.get_or_create("k", compute, expiration_time=0.001) == "new"
    assert (seen, pages.get("k")) == (["old"], "new")


def test_any_key():
    pages = region(table="pages")
    keys = ["a b", "a\nb", "n\u00e4h", "x" * 500, "x" * 501, "a:b|c"]
    for number, key in enumerate(keys):
        pages.set(key, number)
    assert pages.get_multi(keys) == list(range(len(keys)))


def test_a_table_that_is_gone_is_made_again():
    pages = region(table="pages", tags=lambda key: ["t"])
    pages.actual_backend.sql("DROP TABLE pages")
    pages.set("k", 1)
    assert pages.actual_backend.invalidate_tags("t") == 1

"""Django's own suites of caches and sessions, with this package in the place of the backends that they test.

They are not in Django's wheel: the folder ``tests`` of its source distribution is on the path.
"""



from cache import tests as cache_tests
from django.conf import settings
from django.test import SimpleTestCase, TestCase, override_settings
from django_sqlcached import sessions
from sessions_tests import tests as session_tests

OURS = {"BACKEND": settings.BACKEND}

#: Django leaves these out for memcached, too: which values a full cache drops is the server's to say.
EXCLUDED = {"cull", "zero_cull"}


@override_settings(CACHES=cache_tests.caches_setting_for_tests(base=OURS, exclude=EXCLUDED))
class Cache(cache_tests.BaseCacheTests, TestCase):
    """All that Django asks of a backend, with those tests of memcached's that are not about its client libraries."""

    test_default_never_expiring_timeout = cache_tests.BaseMemcachedTests.test_default_never_expiring_timeout
    test_default_far_future_timeout = cache_tests.BaseMemcachedTests.test_default_far_future_timeout
    test_memcached_deletes_key_on_failed_set = cache_tests.BaseMemcachedTests.test_memcached_deletes_key_on_failed_set
    base_params = OURS


NEAR = {**OURS, "OPTIONS": {"TABLE": "dj_near", "shared_memory": True}}


@override_settings(CACHES=cache_tests.caches_setting_for_tests(base=NEAR, exclude=EXCLUDED))
class NearCache(Cache):
    """The same with reads in shared memory."""

    base_params = NEAR


def ours(caches):
    """A test's caches, each in a table of its own."""
    return {
        alias: {**OURS, **{name: value for name, value in entry.items() if name == "TIMEOUT"}, "OPTIONS": {"TABLE": f"dj_{alias}"}}
        for alias, entry in caches.items()
    }


def takes_ours(theirs):
    """A class of tests with our backend."""
    overridden = theirs._overridden_settings
    return override_settings(CACHES=ours(overridden["CACHES"]))(type(theirs.__name__, (theirs,), {}))


for name in ("CacheUtils", "PrefixedCacheUtils", "CacheHEADTest", "CacheI18nTest", "PrefixedCacheI18nTest",
             "CacheMiddlewareTest", "TestWithTemplateResponse"):
    globals()[name] = takes_ours(getattr(cache_tests, name))


@override_settings(CACHES={"default": {**OURS, "OPTIONS": {"TABLE": "dj_sessions_cache"}}})
class CacheSession(session_tests.SessionTestsMixin, SimpleTestCase):
    """Django's sessions in a cache, in our cache."""

    backend = session_tests.CacheSession
    test_default_cache = session_tests.CacheSessionTests.test_default_cache
    test_create_and_save = session_tests.CacheSessionTests.test_create_and_save
    test_load_overlong_key = session_tests.CacheSessionTests.test_load_overlong_key


@override_settings(CACHES={"default": {**OURS, "OPTIONS": {"TABLE": "dj_sessions_cache"}}})
class CacheDBSession(session_tests.SessionTestsMixin, TestCase):
    """Django's sessions in a cache and a database."""

    backend = session_tests.CacheDBSession
    test_exists_searches_cache_first = session_tests.CacheDBSessionTests.test_exists_searches_cache_first


@override_settings(SESSION_ENGINE="django_sqlcached.sessions")
class Session(session_tests.SessionTestsMixin, SimpleTestCase):
    """Our sessions."""

    backend = sessions.SessionStore
    test_load_overlong_key = session_tests.CacheSessionTests.test_load_overlong_key


@override_settings(SESSION_ENGINE="django_sqlcached.sessions")
class SessionMiddlewareTests(session_tests.SessionMiddlewareTests):
    """Django's middleware over our sessions."""

    # It looks for the row in the database.
    test_empty_session_saved = None

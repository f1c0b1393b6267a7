"""The project of the tests. ``SQLCACHED_PORT`` and ``SQLCACHED_SOCKET`` say where the daemon is."""

import os

SECRET_KEY = "of a test"
USE_TZ = False
LANGUAGE_CODE = "en"
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SITE_ID = 1
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sites",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "django_sqlcached",
    "shelf",
    *os.environ.get("MORE_APPS", "").split(),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    # The daemon's PostgreSQL port. Only the tests that name it connect.
    "cache": {
        "ENGINE": "django_sqlcached.database",
        "HOST": "127.0.0.1",
        "PORT": os.environ["SQLCACHED_SQL_PORT"],
        "USER": "app",
        "NAME": "sqlcached",
    },
}
STATIC_URL = "/static/"
SQLCACHED = {"LOCATION": "127.0.0.1:" + os.environ["SQLCACHED_PORT"]}
BACKEND = "django_sqlcached.cache.SqlcachedCache"
CACHES = {"default": {"BACKEND": BACKEND}}

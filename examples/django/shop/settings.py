"""The settings of the shop. Everything about sqlcached is in the middle."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).parent.parent
SECRET_KEY = "of an example"
DEBUG = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
LOGIN_URL = "/admin/login/"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "django_sqlcached",
    "shop",
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

# Where the daemon is.
SQLCACHED = {"LOCATION": os.environ.get("SQLCACHED", "127.0.0.1:11211")}

# The cache is a table of the daemon, and sessions are another one.
CACHES = {
    "default": {
        "BACKEND": "django_sqlcached.cache.SqlcachedCache",
        "OPTIONS": {"TABLE": "dj_default", "max_memory": "32 MB"},
    }
}
SESSION_ENGINE = "django_sqlcached.sessions"

DATABASES = {
    # The shop's own data.
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "shop.sqlite3"},
    # The cached rows, for the ORM.
    "cache": {
        "ENGINE": "django_sqlcached.database",
        "HOST": "127.0.0.1",
        "PORT": os.environ.get("SQLCACHED_SQL_PORT", "5433"),
        "USER": "shop",
        "NAME": "sqlcached",
    },
}
DATABASE_ROUTERS = ["shop.models.CacheRouter"]

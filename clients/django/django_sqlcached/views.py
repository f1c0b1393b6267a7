"""Pages: a view's answers in a fragment, and the pages of Django's own cache middleware."""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Callable, Iterable, Optional, Union

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.cache import cc_delim_re, has_vary_header, patch_vary_headers
from django.utils.encoding import iri_to_uri

from .errors import SqlcachedError
from .fragments import MISSING, Fragment
from .table import Table

Argument = Union[str, Callable[..., Any]]


class _Uncached(Exception):
    """An answer that is not to be kept. It leaves the computation of a fragment, so that the lease is given up."""

    def __init__(self, response: Any) -> None:
        self.response = response


def cache_page_by(
    kind: "type[Fragment]",
    *,
    vary: Iterable[str] = (),
    tags: Optional[Callable[..., Iterable[str]]] = None,
    timeout: Any = MISSING,
    **fields: Argument,
) -> Callable[[Any], Any]:
    """Keeps a view's answers to GET and HEAD in a fragment, whose fields name them.

    ::

        @cache_page_by(ProductPage, page="pk", vary=("Accept-Language",))
        def product(request, pk): ...

    A field is the name of an argument of the view, or a function of the request and the view's arguments. ``vary``
    names headers that the answer depends on; the fragment then needs a field ``vary: str``. ``tags`` is a function of
    the same arguments. Answers other than 200, streams, answers that set a cookie and those with ``Cache-Control:
    private``, ``no-store`` or ``no-cache`` are not kept.
    """
    headers = tuple(vary)
    if headers and "vary" not in kind.fields:
        raise ImproperlyConfigured(f"{kind.__name__} needs a field vary: str")

    def options(request: HttpRequest, arguments: Any, named: Any) -> dict[str, Any]:
        found = {name: _argument(value, request, arguments, named) for name, value in fields.items()}
        if headers:
            found["vary"] = _varied(request, headers)
        return {"tags": tags(request, *arguments, **named) if tags else None, "timeout": timeout, **found}

    def decorate(view: Any) -> Any:
        if iscoroutinefunction(view):

            @functools.wraps(view)
            async def awaits(request: HttpRequest, *arguments: Any, **named: Any) -> Any:
                async def compute() -> Any:
                    return _kept(await view(request, *arguments, **named), headers)

                if request.method not in ("GET", "HEAD"):
                    return await view(request, *arguments, **named)
                try:
                    return _shown(await kind.aget_or_set(compute, **options(request, arguments, named)))
                except _Uncached as answer:
                    return answer.response

            return awaits

        @functools.wraps(view)
        def calls(request: HttpRequest, *arguments: Any, **named: Any) -> Any:
            if request.method not in ("GET", "HEAD"):
                return view(request, *arguments, **named)
            try:
                compute = lambda: _kept(view(request, *arguments, **named), headers)  # noqa: E731
                return _shown(kind.get_or_set(compute, **options(request, arguments, named)))
            except _Uncached as answer:
                return answer.response

        return calls

    return decorate


def _argument(value: Argument, request: HttpRequest, arguments: Any, named: dict[str, Any]) -> Any:
    if callable(value):
        return value(request, *arguments, **named)
    if value not in named:
        raise TypeError(f"the view has no argument {value!r} in its URL")
    return named[value]


def _varied(request: HttpRequest, headers: tuple[str, ...]) -> str:
    """A digest of the headers' values, which may be long."""
    values = "\0".join(request.headers.get(name, "") for name in headers)
    return hashlib.sha256(values.encode("utf-8", "replace")).hexdigest()[:32]


def _kept(response: Any, headers: tuple[str, ...]) -> dict[str, Any]:
    """An answer as it is stored: what is sent, without the objects that made it."""
    if headers:
        patch_vary_headers(response, headers)
    if callable(getattr(response, "render", None)) and not response.is_rendered:
        response.render()
    if not _may_be_kept(response):
        raise _Uncached(response)
    return {
        "content": response.content,
        "headers": [(name, value) for name, value in response.items() if name.lower() != "x-sqlcached"],
    }


def _may_be_kept(response: Any) -> bool:
    control = {each.split("=")[0].lower() for each in cc_delim_re.split(response.get("Cache-Control", ""))}
    return (
        response.status_code == 200
        and not response.streaming
        and not response.cookies
        and not control & {"private", "no-store", "no-cache"}
        and not has_vary_header(response, "*")
    )


def _shown(kept: dict[str, Any]) -> HttpResponse:
    response = HttpResponse(kept["content"])
    for name, value in kept["headers"]:
        response[name] = value
    return response


def invalidate_url(url: str, *, cache: Optional[str] = None, key_prefix: Optional[str] = None) -> int:
    """Removes what Django's own cache middleware or ``cache_page`` keeps of a URL, in every language and for every
    header; how many rows. ``url`` is absolute, as the visitor's browser has it: the keys are made of it."""
    backend: Any = caches[cache or settings.CACHE_MIDDLEWARE_ALIAS]
    table = getattr(backend, "table", None)
    if not isinstance(table, Table):
        raise ImproperlyConfigured(f"cache {cache!r} is not in sqlcached")
    prefix = settings.CACHE_MIDDLEWARE_KEY_PREFIX if key_prefix is None else key_prefix
    digest = hashlib.md5(iri_to_uri(url).encode("ascii"), usedforsecurity=False).hexdigest()
    starts = [f"cache_page.{prefix}.{method}.{digest}." for method in ("GET", "HEAD")] + [f"cache_header.{prefix}.{digest}."]
    places = [backend._place(f"views.decorators.cache.{start}", None) for start in starts]
    terms, values = [], []
    for version, start in places:
        # A range of keys, which the primary key serves.
        terms.append("(version = ? AND key >= ? AND key < ?)")
        values += [version, start, start[:-1] + "/"]
    try:
        return table.changed(f"DELETE FROM {table.quoted} WHERE {' OR '.join(terms)}", *values)
    except SqlcachedError:
        table.suspend()
        raise

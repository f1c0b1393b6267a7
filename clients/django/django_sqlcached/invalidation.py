"""Invalidation after the commit of the database that the cached values came from.

``invalidate`` collects what a transaction changed and sends one statement for each table when it was committed. A
transaction that is rolled back invalidates nothing. A reader who fills the cache with old data between the commit and
the statement loses against it, if it fills by a lease (``get_or_set``, fragments, ``cache_page_by``).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping, Optional, Union

from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models.signals import post_delete, post_save

from . import conf
from .errors import SqlcachedError, UnavailableError, logger
from .table import Table

#: Conditions that one statement joins.
CONDITIONS_MAX = 200

#: Pauses before an invalidation is sent again to a daemon that is away.
RETRIES = (0.05, 0.25)

Condition = Mapping[str, Any]
Observer = Callable[[Table, Condition, bool], None]

#: Who wants to know of each condition that is sent: the assertions of tests.
observers: list[Observer] = []


def invalidate(target: Any, *, using: Optional[str] = None, soft: bool = False, **columns: Any) -> None:
    """Removes rows of a fragment or a cache when the transaction of ``using`` was committed; at once outside one.

    ``target`` is a ``Fragment`` class, a cache, or a cache's alias. ``columns`` are as in ``delete_where``:
    ``page=17``, ``page=[17, 18]``, ``tags=["product:17"]``.
    """
    table, condition = located(target, columns)
    connection = connections[using or DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        send({(table, soft): [condition]})
        return
    _batch(connection).setdefault((table, soft), []).append(condition)


def located(target: Any, columns: Mapping[str, Any]) -> tuple[Table, dict[str, Any]]:
    """The table of a fragment or a cache, and the condition as its columns have it."""
    from .fragments import Fragment

    if not columns:
        raise TypeError("say which rows: a column, or tags; clear() removes all")
    if isinstance(target, type) and issubclass(target, Fragment):
        return target.table(), target.condition(columns)
    cache = caches[target] if isinstance(target, str) else target
    table = getattr(cache, "table", None)
    if not isinstance(table, Table):
        raise ImproperlyConfigured(f"{target!r} is no cache in sqlcached")
    table.where(columns)
    return table, dict(columns)


class Batch(dict):  # type: ignore[type-arg]
    """What a transaction invalidates: conditions by table and kind. It is called after the commit."""

    def __call__(self) -> None:
        send(self)


def _batch(connection: Any) -> Batch:
    """The batch of the transaction. Each savepoint has its own, because it can be rolled back by itself."""
    savepoints = set(connection.savepoint_ids)
    # A TestCase is one transaction that is never committed, and its captureOnCommitCallbacks sees new callbacks only.
    is_test = any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)
    for entry in [] if is_test else connection.run_on_commit:
        if isinstance(entry[1], Batch) and entry[0] == savepoints:
            return entry[1]
    made = Batch()
    transaction.on_commit(made, using=connection.alias)
    return made


def send(batch: Mapping[tuple[Table, bool], list[Condition]]) -> None:
    """One statement for each table. If it fails, the setting ``ON_FAILURE`` says what happens."""
    for (table, soft), conditions in batch.items():
        for condition in conditions:
            for observer in observers:
                observer(table, condition, soft)
        merged = _merged(conditions)
        for start in range(0, len(merged), CONDITIONS_MAX):
            _delete(table, merged[start : start + CONDITIONS_MAX], soft)


def _merged(conditions: list[Condition]) -> list[Condition]:
    """Conditions on one and the same column become one with all their values."""
    lists: dict[str, dict[Any, None]] = {}
    rest: list[Condition] = []
    for condition in conditions:
        (name, value), *more = condition.items()
        if more or value is None:
            rest += [] if condition in rest else [condition]
            continue
        values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        lists.setdefault(name, {}).update(dict.fromkeys(values))
    single: list[Condition] = []
    for name, found in lists.items():
        every = list(found)
        single += [{name: every[at : at + CONDITIONS_MAX]} for at in range(0, len(every), CONDITIONS_MAX)]
    return single + rest


def _delete(table: Table, conditions: list[Condition], soft: bool) -> None:
    for pause in (*RETRIES, None):
        try:
            table.delete_any(conditions, soft=soft)
            return
        except SqlcachedError as why:
            if isinstance(why, UnavailableError) and pause is not None:
                time.sleep(pause)
                continue
            _failed(table, conditions, why)
            return


def _failed(table: Table, conditions: list[Condition], why: SqlcachedError) -> None:
    """``suspend`` (the default) reads nothing from the table until it was emptied; ``raise`` and ``log`` keep it."""
    policy = conf.configuration()["ON_FAILURE"]
    if policy == "suspend":
        table.suspend()
    logger.error("table %s: rows of %s could not be invalidated: %s", table.name, conditions, why)
    if policy == "raise":
        raise why


Value = Union[str, Callable[[Any], Any]]


def invalidates(target: Any, *, using: Optional[str] = None, soft: bool = False, **columns: Value) -> Callable[[Any], Any]:
    """Decorates a model: saving or deleting an instance invalidates what shows it.

    ::

        @invalidates(ProductFragment, page="product_id")
        @invalidates("pages", tags=lambda review: [f"product:{review.product_id}"])
        class Review(models.Model): ...

    A value is the name of an attribute (``"product__brand_id"`` goes on to another object), or a function of the
    instance; None invalidates nothing. Django sends no signal for ``QuerySet.update``, ``bulk_create``, ``bulk_update``
    and raw SQL: call ``invalidate`` there, or let the database notify ``manage.py sqlcached_listen``.
    """

    def decorate(model: Any) -> Any:
        def changed(sender: Any, instance: Any, using: str, **_: Any) -> None:
            found = {name: _value(instance, value) for name, value in columns.items()}
            if None not in found.values():
                invalidate(target, using=database or using, soft=soft, **found)

        database = using
        for signal in (post_save, post_delete):
            # The model keeps its receivers: nobody else does.
            signal.connect(changed, sender=model, weak=False)
        return model

    return decorate


def _value(instance: Any, value: Value) -> Any:
    if callable(value):
        return value(instance)
    for name in value.split("__"):
        instance = getattr(instance, name, None)
    return instance

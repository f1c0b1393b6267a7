"""Fragments: pieces of pages with named parts, declared like models.

::

    class ProductFragment(Fragment):
        page: int
        user: int = 0
        part: str

        class Meta:
            ttl = "10 min"
            shared_memory = True

    ProductFragment.set(html, page=17, part="head")
    ProductFragment.get(page=17, part="head")
    ProductFragment.invalidate(page=17)

Each class is a table: the fields are its primary key. Fields have the types int, str, bool or uuid.UUID; a field with a
default need not be named. The module ``fragments`` of each installed app is imported at start.
"""

from __future__ import annotations

import typing
import uuid
from typing import Any, ClassVar, Iterable, Mapping, Optional

from django.core.exceptions import ImproperlyConfigured

from . import conf
from .errors import SqlcachedError
from .leases import LEASE, LEASE_WAIT, Claim, Store, acomputed, computed, in_thread
from .protocol import KEY_MAX, fitting, wire
from .schema import OPTIONS, Definition, Index, seconds
from .table import Table, exptime, shared
from .values import Values

#: What ``Meta`` may say besides the options of a table.
META = ("table", "prefix", "index", "serializer", "server", "ignore_errors", "lease_wait", "near", "abstract")

#: The types of fields as columns.
TYPES: dict[Any, str] = {int: "BIGINT", str: "TEXT", bool: "BIGINT", uuid.UUID: "UUID"}

MISSING = object()

#: Fragments by the name of their class, for templates and commands.
registry: dict[str, "type[Fragment]"] = {}


class Field:
    """A part of the key."""

    def __init__(self, name: str, kind: Any, default: Any) -> None:
        self.name, self.kind, self.default = name, kind, default
        #: A text before the last field: its colons are encoded, because they separate the parts of a key.
        self.encoded = False

    def cell(self, value: Any) -> Any:
        """A value as the column has it."""
        if value is None and self.default is not MISSING:
            value = self.default
        try:
            if self.kind is str and value is not None:
                text = str(value)
                return text.replace("%", "%25").replace(":", "%3A") if self.encoded else text
            if self.kind is uuid.UUID:
                return str(value if isinstance(value, uuid.UUID) else uuid.UUID(value))
            if value is not None:
                return int(value)
        except (TypeError, ValueError, AttributeError):
            pass
        raise TypeError(f"{self.name} is {self.kind.__name__}, not {value!r}")


class Fragment:
    """The base of fragments; see the module."""

    fields: ClassVar[dict[str, Field]] = {}
    meta: ClassVar[dict[str, Any]] = {}
    _values: ClassVar[Values]
    #: The table, and the generation of the settings that it was made of.
    _made: ClassVar[tuple[int, Optional[Store]]] = (0, None)

    def __init__(self) -> None:
        raise TypeError("a fragment is a table; its methods are the class's")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherited = {name: field.kind for name, field in cls.fields.items()}
        own = {
            name: kind
            for name, kind in typing.get_type_hints(cls).items()
            if name in cls.__dict__.get("__annotations__", {}) and typing.get_origin(kind) is not ClassVar
        }
        cls.fields = {
            name: Field(name, kind, getattr(cls, name, MISSING)) for name, kind in {**inherited, **own}.items()
        }
        meta = vars(cls.__dict__["Meta"]) if "Meta" in cls.__dict__ else {}
        declared = {name: value for name, value in meta.items() if not name.startswith("__")}
        kept = {name: value for name, value in cls.meta.items() if name not in ("abstract", "table", "prefix")}
        cls.meta = {**kept, **declared}
        cls._values = Values(cls.meta.get("serializer"))
        cls._made = 0, None
        cls._check()
        if not cls.meta.get("abstract"):
            registry[cls.__name__] = cls

    @classmethod
    def _check(cls) -> None:
        unknown = sorted(set(cls.meta) - set(META) - set(OPTIONS))
        if unknown:
            raise ImproperlyConfigured(f"{cls.__name__}.Meta: unknown option {', '.join(unknown)}")
        for field in cls.fields.values():
            if field.kind not in TYPES:
                raise ImproperlyConfigured(f"{cls.__name__}.{field.name}: the type is int, str, bool or uuid.UUID")
            if field.name in ("body", "tags", "soft", "using", "timeout", "value", "compute"):
                raise ImproperlyConfigured(f"{cls.__name__}.{field.name}: this name has another meaning")
        if not cls.fields and not cls.meta.get("abstract"):
            raise ImproperlyConfigured(f"{cls.__name__} has no fields")
        texts = [field for field in cls._key_fields() if field.kind is str]
        for field in texts:
            field.encoded = field is not texts[-1]

    @classmethod
    def _key_fields(cls) -> list[Field]:
        """The parts of the key: texts stand last, because the last may contain anything."""
        return sorted(cls.fields.values(), key=lambda field: field.kind is str)

    # The table.

    @classmethod
    def definition(cls) -> Definition:
        """The table of this fragment."""
        name = cls.meta.get("table") or conf.configuration()["TABLE_PREFIX"] + cls.__name__.lower()
        key = tuple(field.name for field in cls._key_fields())
        index = cls.meta.get("index", [(field,) for field in key[1:]])
        columns = [(each,) if isinstance(each, str) else tuple(each) for each in index]
        return Definition(
            name=name,
            columns={
                **{field.name: TYPES[field.kind] for field in cls._key_fields()},
                "body": "ANY",
                "tags": "TEXT[]",
            },
            key=key,
            value="body",
            prefix=cls.meta.get("prefix") or f"{name}:",
            indexes=(*map(Index, columns), Index(("tags",), elements=True)),
            options={name: cls.meta[name] for name in OPTIONS if name in cls.meta},
        )

    @classmethod
    def table(cls) -> Table:
        """The table in its daemon: that of the setting, or of ``Meta.server``, whose entries override the setting's."""
        return cls.store().table

    @classmethod
    def store(cls) -> Store:
        """The table with the form of its values."""
        generation, made = cls._made
        if made is None or generation != conf.generation():
            made = cls._store()
            cls._made = conf.generation(), made
        return made

    @classmethod
    def _store(cls) -> Store:
        near = bool(cls.meta.get("near", cls.meta.get("shared_memory", False)))
        make = conf.configuration()["AUTO_SYNC"]
        return Store(
            shared(conf.server(cls.meta.get("server")), cls.definition(), read_near=near, make=make),
            cls._values,
            lease=round(seconds(cls.meta.get("lease", LEASE))),
            wait=float(cls.meta.get("lease_wait", LEASE_WAIT)),
            ignore=bool(cls.meta.get("ignore_errors", False)),
        )

    @classmethod
    def key(cls, **fields: Any) -> dict[str, Any]:
        """The primary key of a row. Every field without a default must be named."""
        unknown = sorted(set(fields) - set(cls.fields))
        if unknown:
            raise TypeError(f"{cls.__name__} has no field {', '.join(unknown)}")
        given = {name: fields.get(name, field.default) for name, field in cls.fields.items()}
        missing = sorted(name for name, value in given.items() if value is MISSING)
        if missing:
            raise TypeError(f"{cls.__name__} needs {', '.join(missing)}")
        return {field.name: field.cell(given[field.name]) for field in cls._key_fields()}

    @classmethod
    def condition(cls, columns: Mapping[str, Any]) -> dict[str, Any]:
        """A condition of some fields, as the columns have them."""
        made: dict[str, Any] = {}
        for name, value in columns.items():
            field = cls.fields.get(name)
            if field is None and name != "tags":
                raise TypeError(f"{cls.__name__} has no field {name}")
            several = isinstance(value, (list, tuple, set, frozenset))
            made[name] = value if field is None else [*map(field.cell, value)] if several else field.cell(value)
        return made

    @classmethod
    def _name(cls, table: Table, fields: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """The primary key of a row, and its key in memcached's protocol."""
        key = cls.key(**fields)
        *first, (last, value) = key.items()
        head = table.definition.prefix + "".join(f"{part}:" for _, part in first)
        text = fitting(str(value), KEY_MAX - len(head.encode()))
        if isinstance(value, str):
            key[last] = text
        return key, wire((head + text).encode())

    # Rows.

    @classmethod
    def get(cls, default: Any = None, **fields: Any) -> Any:
        """The value, or ``default``."""
        store = cls.store()
        try:
            found = store.table.get(cls._name(store.table, fields)[1])
        except SqlcachedError as why:
            return store.failed(why, default)
        return default if found is None else cls._values.load(*found)

    @classmethod
    def set(cls, value: Any, *, tags: Optional[Iterable[str]] = None, timeout: Any = MISSING, **fields: Any) -> None:
        """Stores a value. Without ``timeout`` it has the table's ``ttl``; None is no deadline."""
        store = cls.store()
        key, name = cls._name(store.table, fields)
        try:
            cls._write(store.table, key, name, cls._values.dump(value), timeout, tags, 0)
        except SqlcachedError as why:
            store.failed(why, None)

    @classmethod
    def _write(
        cls,
        table: Table,
        key: Mapping[str, Any],
        name: bytes,
        data: tuple[bytes, int],
        timeout: Any,
        tags: Optional[Iterable[str]],
        cas: int,
    ) -> object:
        """Stores a row; with ``cas`` only over this version."""
        if tags is None:
            expire = 0 if timeout is MISSING else exptime(timeout, has_ttl="ttl" in cls.meta)
            return table.set(name, *data, expire, cas=cas)
        left = (seconds(cls.meta["ttl"]) if "ttl" in cls.meta else None) if timeout is MISSING else timeout
        if cas:
            return table.fill(key, data, left, tags, cas)
        table.put(key, data, left, tags, name)
        return True

    @classmethod
    def _claim(
        cls, tags: Optional[Iterable[str]], timeout: Any, fields: Mapping[str, Any], refresh_before: int
    ) -> Claim:
        store = cls.store()
        key, name = cls._name(store.table, fields)

        def fill(data: tuple[bytes, int], cas: int) -> object:
            return cls._write(store.table, key, name, data, timeout, tags, cas)

        def reserve(lease: int) -> bool:
            return store.table.reserve(key, tags or (), lease)

        return Claim(store, name, fill, refresh_before, None if tags is None else reserve)

    @classmethod
    def get_or_set(
        cls,
        compute: Any,
        *,
        tags: Optional[Iterable[str]] = None,
        timeout: Any = MISSING,
        refresh_before: int = 0,
        **fields: Any,
    ) -> Any:
        """The value, or what ``compute`` returns, which is stored. Of all who miss it at once, one computes."""
        return computed(cls._claim(tags, timeout, fields, refresh_before), compute)

    @classmethod
    async def aget_or_set(
        cls,
        compute: Any,
        *,
        tags: Optional[Iterable[str]] = None,
        timeout: Any = MISSING,
        refresh_before: int = 0,
        **fields: Any,
    ) -> Any:
        """As ``get_or_set``; ``compute`` may be a coroutine function."""
        return await acomputed(cls._claim(tags, timeout, fields, refresh_before), compute)

    @classmethod
    async def aget(cls, default: Any = None, **fields: Any) -> Any:
        """As ``get``. A row that shared memory has needs no thread."""
        table = cls.table()
        found = table.peek(cls._name(table, fields)[1])
        return await in_thread(cls.get, default, **fields) if found is None else cls._values.load(*found)

    @classmethod
    def delete(cls, **fields: Any) -> bool:
        """Removes one row at once; whether it was there."""
        store = cls.store()
        try:
            return store.table.delete(cls._name(store.table, fields)[1])
        except SqlcachedError as why:
            answer: bool = store.failed(why, False)
            return answer

    @classmethod
    def delete_where(cls, *, soft: bool = False, **columns: Any) -> int:
        """Removes the rows of a condition at once; how many. In a transaction use ``invalidate``."""
        return cls.table().delete_where(cls.condition(columns), soft=soft)

    @classmethod
    def invalidate(cls, *, using: Optional[str] = None, soft: bool = False, **columns: Any) -> None:
        """Removes the rows of a condition when the database's transaction was committed; at once outside one."""
        from .invalidation import invalidate

        invalidate(cls, using=using, soft=soft, **columns)

    @classmethod
    def clear(cls) -> None:
        """Empties the table."""
        cls.table().truncate()

    @classmethod
    def rows(cls, **columns: Any) -> list[dict[str, Any]]:
        """The rows of a condition, as dictionaries."""
        table = cls.table()
        condition, values = table.where(cls.condition(columns))
        text = f"SELECT * FROM {table.quoted}" + (f" WHERE {condition}" if condition else "")
        found = table.sql(text, *values)
        return found if isinstance(found, list) else []

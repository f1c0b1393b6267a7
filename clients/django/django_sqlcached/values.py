"""How Python's values become bytes with flags, and come back as what they were.

The flags are those of pymemcache, so that its clients read the rows, too: 0 bytes, 1 a pickle, 2 a decimal integer, 16
text. A ``SafeString`` stays one. Bytes without contents have a flag, because an empty value without flags is a place
that another client reserved.
"""

from __future__ import annotations

import pickle
from typing import Any, Protocol

from django.utils.module_loading import import_string
from django.utils.safestring import SafeString

BYTES, PICKLE, INTEGER, TEXT, SAFE, EMPTY, CUSTOM = 0, 1, 2, 16, 32, 64, 128

#: Integers up to this one are decimal, so that ``incr`` works on them in the daemon; larger ones are serialized.
INTEGER_MAX = 2**63 - 1


class Serializer(Protocol):
    """What the option ``serializer`` names: an object, a class or a dotted path with these two methods."""

    def dumps(self, value: Any) -> bytes: ...

    def loads(self, data: bytes) -> Any: ...


class PickleSerializer:
    """The default. Who can write the cache can run code in the processes that read it: see Django's documentation."""

    def __init__(self, protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
        self.protocol = protocol

    def dumps(self, value: Any) -> bytes:
        return pickle.dumps(value, self.protocol)

    def loads(self, data: bytes) -> Any:
        return pickle.loads(data)


def serializer(named: Any) -> Serializer:
    """The serializer of an option, which Django's Redis backend spells in the same ways."""
    if named is None:
        return PickleSerializer()
    if isinstance(named, str):
        named = import_string(named)
    made: Serializer = named() if callable(named) else named
    return made


class Values:
    """Encodes and decodes with one serializer for what has no form of its own."""

    def __init__(self, named: Any = None) -> None:
        self._serializer = serializer(named)
        self._other = PICKLE if isinstance(self._serializer, PickleSerializer) else CUSTOM

    def dump(self, value: Any) -> tuple[bytes, int]:
        """The bytes of a value, and its flags."""
        kind = type(value)
        if kind is str or kind is SafeString:
            try:
                return value.encode(), TEXT if kind is str else TEXT | SAFE
            except UnicodeEncodeError:
                # Half a surrogate pair is no text of a database.
                return self._serializer.dumps(value), self._other
        if kind is int and -INTEGER_MAX <= value <= INTEGER_MAX:
            return b"%d" % value, INTEGER
        if kind is bytes:
            return value, BYTES if value else EMPTY
        return self._serializer.dumps(value), self._other

    def load(self, data: bytes, flags: int) -> Any:
        """The value of bytes and flags. Flags of another client mean bytes."""
        if flags & TEXT:
            text = data.decode()
            return SafeString(text) if flags & SAFE else text
        if flags == PICKLE:
            return self._serializer.loads(data) if self._other == PICKLE else pickle.loads(data)
        if flags == INTEGER:
            return int(data)
        if flags == CUSTOM and self._other == CUSTOM:
            return self._serializer.loads(data)
        return data

"""Pooled values: equal values are the same object, so trees are shared and compare by identity."""

from __future__ import annotations

import threading
from typing import Any, NoReturn
from weakref import WeakValueDictionary

_LOCK = threading.Lock()


class Pooled(type):
    """Metaclass: constructing an equal value twice gives the same object."""

    _pool: WeakValueDictionary[Any, Any] = WeakValueDictionary()

    def __call__(cls, *args: Any) -> Any:
        key = (cls, cls.pool_key(*args))  # type: ignore[attr-defined]
        found = Pooled._pool.get(key)
        if found is not None:
            return found
        made = super().__call__(*args)
        with _LOCK:
            return Pooled._pool.setdefault(key, made)


class Value(metaclass=Pooled):
    """Base of nodes and scalars. Subclasses are frozen dataclasses with positional fields."""

    __slots__ = ("__weakref__",)

    @classmethod
    def pool_key(cls, *args: Any) -> Any:
        """What makes two values equal; the fields, unless Python's equality is too coarse."""
        return args


def assert_never(value: NoReturn) -> NoReturn:
    """The end of every ``match``: mypy proves that no case is missing."""
    raise AssertionError(f"no case for {value!r}")

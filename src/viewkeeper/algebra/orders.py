"""The orders of ORDER BY that have a meaning outside the engine: columns with a direction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import total_ordering
from typing import Any

from viewkeeper.algebra.scalars import Col, Opaque

_ORDERS = {
    " ASC NULLS FIRST": (False, False),
    " ASC NULLS LAST": (False, True),
    " DESC NULLS FIRST": (True, False),
    " DESC NULLS LAST": (True, True),
}


def plain_order(order: Opaque) -> bool:
    """Is it a column, with a direction? Other orders are known to the engine only.

    >>> plain_order(Opaque(("", " DESC NULLS LAST"), (Col(0),)))
    True
    >>> plain_order(Opaque(("abs(", ") DESC NULLS LAST"), (Col(0),)))
    False
    """
    return (
        len(order.args) == 1
        and isinstance(order.args[0], Col)
        and order.parts[0] == ""
        and order.parts[1] in _ORDERS
    )


@total_ordering
class _Reversed:
    """A value that is before those that are less."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def sort_key(row: tuple[Any, ...], order: Sequence[Opaque]) -> tuple[Any, ...]:
    """A key by which rows are sorted."""
    key: list[Any] = []
    for o in order:
        column = o.args[0]
        assert isinstance(column, Col)
        value, (down, last) = row[column.index], _ORDERS[o.parts[1]]
        key.append((value is None) == last)
        key.append(0 if value is None else _Reversed(value) if down else value)
    return tuple(key)

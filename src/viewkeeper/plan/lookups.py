"""Lookups that the change controls: base tables read for the values that can matter, no others.

A join, ⋉, ▷ or ⟕ with a small side needs, of its other side, only the rows whose joined columns
have values of the small side. These values are known before the query runs, if the small side is
on the driver; the rows they ask for are then small too, and so on outwards. Each leaf so reached is
replaced by one that holds the rows asked for, and perhaps more.

    reduced(q, {i: V, …}) agrees with q on the rows whose column i has a value in V, for each i
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, Protocol, TypeVar

from viewkeeper.algebra.meaning import equalities
from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
    children,
    with_children,
)
from viewkeeper.algebra.scalars import Col, Scalar

MOST_VISITS = 5_000  # nodes looked at, with their limits, before the rest is left as it is
DEEPEST = 150  # nested operators, likewise


V = TypeVar("V", bound="Values")


class Values(Hashable, Protocol):
    """A set of values of one column; NULL may be among them."""

    def __len__(self) -> int: ...
    def with_null(self: V) -> V: ...
    def without_null(self: V) -> V: ...
    def union(self: V, other: V, /) -> V | None: ...


class Reader(Protocol[V]):
    """Where the rows are."""

    def values(self, leaf: Table, column: int) -> V | None:
        """The values of a column of a leaf whose rows are on the driver; None for other leaves."""

    def read(self, leaf: Table, wanted: Mapping[int, V]) -> Table:
        """A leaf with the rows of this one that have wanted values in all the columns, perhaps with
        more rows of it; the leaf itself where that is not to be had."""


def reduced(query: Query, reader: Reader[V]) -> Query:
    """The same query over leaves that hold no more than it can need of them."""
    return _Lookups(reader).reduced(query, {}, 0)


class _Lookups(Generic[V]):
    def __init__(self, reader: Reader[V]) -> None:
        self.reader = reader
        self.done: dict[tuple[Query, tuple[tuple[int, V], ...]], Query] = {}
        self.known: dict[tuple[Query, int], V | None] = {}

    def reduced(self, q: Query, limits: Mapping[int, V], depth: int) -> Query:
        key = (q, tuple(sorted(limits.items(), key=lambda item: item[0])))
        if key not in self.done:
            if len(self.done) > MOST_VISITS or depth > DEEPEST:
                return q
            self.done[key] = self._reduced(q, limits, depth + 1)
        return self.done[key]

    def _reduced(self, q: Query, limits: Mapping[int, V], depth: int) -> Query:
        match q:
            case Table():
                return self.reader.read(q, limits) if limits else q
            case Empty() | Literal():
                return q
            case Join(s, t, on) | Semi(s, t, on):
                return self._joined(q, s, t, on, limits, depth)
            case Left(s, t, on) | Anti(s, t, on):
                left = self.reduced(s, _below(limits, s.arity), depth)
                found = self._of_pairs(left, on, s.arity)
                return with_children(q, (left, self.reduced(t, found, depth)))
            case Right(s, t, on):
                right = self.reduced(t, _above(limits, s.arity), depth)
                found = self._of_right(right, on, s.arity)
                return with_children(q, (self.reduced(s, found, depth), right))
            case Product(s, t):
                left = self.reduced(s, _below(limits, s.arity), depth)
                return Product(left, self.reduced(t, _above(limits, s.arity), depth))
            case _:
                passed = _passed(q, limits)
                return with_children(q, tuple(self.reduced(c, passed, depth) for c in children(q)))

    def _joined(
        self, q: Join | Semi, s: Query, t: Query, on: Scalar, limits: Mapping[int, V], depth: int
    ) -> Query:
        """Each side limited by the other's values: first the right, then the left if need be."""
        own = _below(limits, s.arity)
        other = _above(limits, s.arity) if isinstance(q, Join) else {}
        left = self.reduced(s, own, depth)
        found = self._of_pairs(left, on, s.arity)
        right = self.reduced(t, _both(other, found), depth)
        more = {
            i: v
            for i, v in self._of_right(right, on, s.arity).items()
            if self.values(left, i) is None
        }
        if more:
            left = self.reduced(s, _both(own, more), depth)
        return with_children(q, (left, right))

    def _of_pairs(self, left: Query, on: Scalar, arity: int) -> dict[int, V]:
        """Limits for the right side of a join, by the left one's values."""
        found: dict[int, V] = {}
        for i, j, safe in _pairs(on, arity):
            v = self.values(left, i)
            if v is not None:
                found = _both(found, {j: v if safe else v.without_null()})
        return found

    def _of_right(self, right: Query, on: Scalar, arity: int) -> dict[int, V]:
        found: dict[int, V] = {}
        for i, j, safe in _pairs(on, arity):
            v = self.values(right, j)
            if v is not None:
                found = _both(found, {i: v if safe else v.without_null()})
        return found

    # ── values ──

    def values(self, q: Query, i: int) -> V | None:
        """All values that a column of a query can have; None where that is not known."""
        if (q, i) not in self.known:
            self.known[q, i] = None  # while it is looked for
            self.known[q, i] = self._values(q, i)
        return self.known[q, i]

    def _values(self, q: Query, i: int) -> V | None:
        match q:
            case Table():
                return self.reader.values(q, i)
            case Project(s, items):
                item = items[i]
                return self.values(s, item.index) if isinstance(item, Col) else None
            case Select(s) | Distinct(s) | Top(s) | Net(s):
                return self.values(s, i)
            case GroupBy(s, keys):
                return self.values(s, keys[i]) if i < len(keys) else None
            case Window(s) | Unnest(s):
                return self.values(s, i) if i < s.arity else None
            case Semi(s) | Anti(s) | Monus(s):
                return self.values(s, i)
            case Min(s, t):
                found = self.values(s, i)
                return self.values(t, i) if found is None else found
            case Plus(s, t) | Max(s, t):
                a, b = self.values(s, i), self.values(t, i)
                return None if a is None or b is None else a.union(b)
            case Product(s, t):
                return self.values(s, i) if i < s.arity else self.values(t, i - s.arity)
            case Join(s, t, on):
                found = self.values(s, i) if i < s.arity else self.values(t, i - s.arity)
                return self._partner(s, t, on, i) if found is None else found
            case Left(s, t):
                return self.values(s, i) if i < s.arity else _padded(self.values(t, i - s.arity))
            case Right(s, t):
                return _padded(self.values(s, i)) if i < s.arity else self.values(t, i - s.arity)
            case Full(s, t):
                return _padded(self.values(s, i) if i < s.arity else self.values(t, i - s.arity))
            case _:
                return None

    def _partner(self, s: Query, t: Query, on: Scalar, i: int) -> V | None:
        """The values of the column that a joined column equals."""
        for a, b, _ in _pairs(on, s.arity):
            if i == a:
                return self.values(t, b)
            if i == b + s.arity:
                return self.values(s, a)
        return None


def _pairs(on: Scalar, arity: int) -> list[tuple[int, int, bool]]:
    """The equalities of plain columns: left, right, whether NULL equals NULL."""
    pairs, _ = equalities(on, arity)
    return [
        (a.index, b.index - arity, safe)
        for a, b, safe in pairs
        if isinstance(a, Col) and isinstance(b, Col)
    ]


def _passed(q: Query, limits: Mapping[int, V]) -> dict[int, V]:
    """The limits on a node's columns as limits on its inputs' columns."""
    match q:
        case Project(_, items):
            found: dict[int, V] = {}
            for i, v in limits.items():
                item = items[i]
                if isinstance(item, Col):
                    found = _both(found, {item.index: v})
            return found
        case Select() | Distinct() | Net() | Plus() | Monus() | Min() | Max():
            return dict(limits)
        case GroupBy(_, keys):
            return {keys[i]: v for i, v in limits.items() if i < len(keys)}
        case Window(_, keys):
            return {i: v for i, v in limits.items() if i in keys}
        case Unnest(s):
            return {i: v for i, v in limits.items() if i < s.arity}
        case _:
            return {}


def _below(limits: Mapping[int, V], arity: int) -> dict[int, V]:
    return {i: v for i, v in limits.items() if i < arity}


def _above(limits: Mapping[int, V], arity: int) -> dict[int, V]:
    return {i - arity: v for i, v in limits.items() if i >= arity}


def _both(a: Mapping[int, V], b: Mapping[int, V]) -> dict[int, V]:
    """Both limits; of two on one column, the one with fewer values."""
    found = dict(a)
    for i, v in b.items():
        found[i] = v if i not in found or len(v) < len(found[i]) else found[i]
    return found


def _padded(values: V | None) -> V | None:
    return None if values is None else values.with_null()

"""The bag algebra: a closed union of frozen, pooled nodes. An ill-formed node cannot be built.

Each docstring gives the notation, how often a row x occurs (m in S, n in T), the SQL name and what
NULL does. Operators read as on ``collections.Counter``: ``+`` ⊎, ``-`` ∸, ``&`` min, ``|`` max.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union, cast

from viewkeeper.algebra.fluent import Fluent
from viewkeeper.algebra.pool import Value
from viewkeeper.algebra.scalars import Agg, Col, Opaque, Scalar, columns_of
from viewkeeper.algebra.scope import Column, Columns
from viewkeeper.errors import ArityError

REMOVED, ADDED, SIGNED, OLD, NEW = "∇", "Δ", "±", "@old", "@new"
STATES = ("", REMOVED, ADDED, SIGNED, OLD, NEW)


class Node(Fluent, Value):
    """Base of all operators: ``scope`` holds the columns, by position."""

    __slots__ = ("scope",)
    scope: Columns

    def _set_scope(self, scope: Columns) -> None:
        object.__setattr__(self, "scope", scope)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns.

        >>> Table("R", ("a", "b")).columns
        ('a', 'b')
        """
        return tuple(c.name for c in self.scope)

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.scope)

    def __add__(self, other: Query) -> Query:
        return Plus(_query(self), other) if isinstance(other, Node) else NotImplemented

    def __sub__(self, other: Query) -> Query:
        return Monus(_query(self), other) if isinstance(other, Node) else NotImplemented

    def __and__(self, other: Query) -> Query:
        return Min(_query(self), other) if isinstance(other, Node) else NotImplemented

    def __or__(self, other: Query) -> Query:
        return Max(_query(self), other) if isinstance(other, Node) else NotImplemented

    def __str__(self) -> str:
        from viewkeeper.algebra.notation import write

        return write(_query(self))

    def __repr__(self) -> str:
        return f"<{self}>"


def _query(node: Any) -> Query:
    return cast("Query", node)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Table(Node):
    """R, or ∇R, ΔR, R@old, R@new: a stored bag, what a transaction removes from it and adds to it,
    and its state before and after. A plain R is the state in which the query is evaluated.
    ±R is the signed change: the rows of ∇R with weight −1 and those of ΔR with weight 1."""

    name: str
    names: tuple[str, ...]
    state: str = ""

    def __post_init__(self) -> None:
        assert self.state in STATES
        scope = tuple(Column(n, self.name) for n in self.names)
        self._set_scope((*scope, Column("weight")) if self.state == SIGNED else scope)

    @classmethod
    def pool_key(cls, *args: Any) -> Any:
        return args if len(args) == 3 else (*args, "")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Empty(Node):
    """∅: no row (the papers' φ)."""

    header: Columns

    def __post_init__(self) -> None:
        self._set_scope(self.header)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Literal(Node):
    """{(1, 2), …}: the given rows (VALUES). NULL is ``None``."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def pool_key(cls, *args: Any) -> Any:
        return args[0], repr(args[1])

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.names):
                raise ArityError(
                    f"row {row!r} has {len(row)} values for {len(self.names)} columns",
                    hint=f"Give one value each for {', '.join(self.names)}.",
                )
        self._set_scope(tuple(Column(n) for n in self.names))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Select(Node):
    """σ[p](S): m where p is TRUE, else 0 (WHERE). An unknown p drops the row."""

    s: Query
    predicate: Scalar

    def __post_init__(self) -> None:
        _check_columns(self.predicate, self.s.arity)
        self._set_scope(self.s.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Project(Node):
    """Π[e AS a, …](S): the sum of m over the rows that give x (SELECT). NULL is a value."""

    s: Query
    items: tuple[Scalar, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.items) == len(self.names)
        below = self.s.scope
        scope = []
        for item, name in zip(self.items, self.names, strict=True):
            _check_columns(item, len(below))
            kept = isinstance(item, Col) and below[item.index].name == name
            scope.append(below[cast(Col, item).index] if kept else Column(name))
        self._set_scope(tuple(scope))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Plus(Node):
    """S ⊎ T: m + n (UNION ALL)."""

    s: Query
    t: Query

    def __post_init__(self) -> None:
        self._set_scope(_same_arity("⊎", self.s, self.t))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Monus(Node):
    """S ∸ T: max(m - n, 0) (EXCEPT ALL). NULL matches NULL."""

    s: Query
    t: Query

    def __post_init__(self) -> None:
        self._set_scope(_same_arity("∸", self.s, self.t))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Min(Node):
    """S min T: min(m, n) (INTERSECT ALL). NULL matches NULL."""

    s: Query
    t: Query

    def __post_init__(self) -> None:
        self._set_scope(_same_arity("min", self.s, self.t))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Max(Node):
    """S max T: max(m, n) (no SQL name; on sets, UNION). NULL matches NULL."""

    s: Query
    t: Query

    def __post_init__(self) -> None:
        self._set_scope(_same_arity("max", self.s, self.t))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Distinct(Node):
    """ε(S): 1 where m > 0 (SELECT DISTINCT). NULL is one value."""

    s: Query

    def __post_init__(self) -> None:
        self._set_scope(self.s.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Product(Node):
    """S × T: m · n for each pair of rows (CROSS JOIN)."""

    s: Query
    t: Query

    def __post_init__(self) -> None:
        self._set_scope(self.s.scope + self.t.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Join(Node):
    """S ⋈[p] T = σ[p](S × T): m · n where p is TRUE (JOIN). NULL = NULL is not TRUE."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        self._set_scope(_joined(self.s, self.t, self.on))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Semi(Node):
    """S ⋉[p] T: m where some row of T makes p TRUE, else 0 (EXISTS, LEFT SEMI JOIN)."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        _check_columns(self.on, self.s.arity + self.t.arity)
        self._set_scope(self.s.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Anti(Node):
    """S ▷[p] T: m where no row of T makes p TRUE, else 0 (NOT EXISTS, LEFT ANTI JOIN)."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        _check_columns(self.on, self.s.arity + self.t.arity)
        self._set_scope(self.s.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Left(Node):
    """S ⟕[p] T = (S ⋈ T) ⊎ ((S ▷ T) × {NULLs}) (LEFT OUTER JOIN)."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        self._set_scope(_joined(self.s, self.t, self.on))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Right(Node):
    """S ⟖[p] T = (S ⋈ T) ⊎ ({NULLs} × (T ▷ S)) (RIGHT OUTER JOIN)."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        self._set_scope(_joined(self.s, self.t, self.on))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Full(Node):
    """S ⟗[p] T = (S ⟕ T) ⊎ ({NULLs} × (T ▷ S)) (FULL OUTER JOIN)."""

    s: Query
    t: Query
    on: Scalar

    def __post_init__(self) -> None:
        self._set_scope(_joined(self.s, self.t, self.on))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class GroupBy(Node):
    """Γ[a; f AS b](S): one row per value of the keys (GROUP BY). NULL is one key; without keys
    there is one row even where S is empty."""

    s: Query
    keys: tuple[int, ...]
    aggs: tuple[Agg | Opaque, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.aggs) == len(self.names)
        below = self.s.scope
        for agg in self.aggs:
            for arg in agg.args:
                _check_columns(arg, len(below))
        keys = tuple(below[k] for k in self.keys)
        self._set_scope(keys + tuple(Column(n) for n in self.names))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Unnest(Node):
    """λ[g AS a, …](S): each row of S with each row that the engine's generator g gives for it
    (LATERAL VIEW g). With ``outer``, a row for which g gives none is kept once, with NULLs."""

    s: Query
    generator: Opaque
    names: tuple[str, ...]
    outer: bool

    def __post_init__(self) -> None:
        _check_columns(self.generator, self.s.arity)
        self._set_scope(self.s.scope + tuple(Column(n) for n in self.names))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Window(Node):
    """ω[k; w AS a, …](S): the rows of S with the engine's window functions w, each of which looks
    at the rows of S with equal k (OVER (PARTITION BY k …)). NULL is one key."""

    s: Query
    keys: tuple[int, ...]
    functions: tuple[Opaque, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.functions) == len(self.names)
        for f in self.functions:
            _check_columns(f, self.s.arity)
        self._set_scope(self.s.scope + tuple(Column(n) for n in self.names))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Top(Node):
    """τ[o; n, m](S): the n rows after the first m in the engine's order o (ORDER BY … LIMIT)."""

    s: Query
    order: tuple[Opaque, ...]
    limit: int | None
    offset: int

    def __post_init__(self) -> None:
        for o in self.order:
            _check_columns(o, self.s.arity)
        self._set_scope(self.s.scope)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Net(Node):
    """net(S), of a signed S whose last column is a weight: max(sum of the weights of x, 0)."""

    s: Query

    def __post_init__(self) -> None:
        assert self.s.arity > 0
        self._set_scope(self.s.scope[:-1])


Leaf = Union[Table, Empty, Literal]
Engine = Union[Unnest, Window, Top]
Unary = Union[Select, Project, Distinct, GroupBy, Engine, Net]
SetOp = Union[Plus, Monus, Min, Max]
Joined = Union[Join, Semi, Anti, Left, Right, Full]
Binary = Union[SetOp, Product, Joined]
Query = Union[Leaf, Unary, Binary]

ENGINE = (Unnest, Window, Top)
UNARY = (Select, Project, Distinct, GroupBy, *ENGINE, Net)
SET_OPS = (Plus, Monus, Min, Max)
JOINED = (Join, Semi, Anti, Left, Right, Full)
BINARY = (*SET_OPS, Product, *JOINED)


_INPUTS: dict[type, Callable[[Any], tuple[Query, ...]]] = {
    **dict.fromkeys(UNARY, lambda q: (q.s,)),
    **dict.fromkeys(BINARY, lambda q: (q.s, q.t)),
}


def children(q: Query) -> tuple[Query, ...]:
    """The direct inputs of a node."""
    inputs = _INPUTS.get(type(q))
    return inputs(q) if inputs else ()


def with_children(q: Query, new: tuple[Query, ...]) -> Query:
    """The same operator over other inputs of the same arity."""
    match q:
        case Select(_, p):
            return Select(new[0], p)
        case Project(_, items, names):
            return Project(new[0], items, names)
        case GroupBy(_, keys, aggs, names):
            return GroupBy(new[0], keys, aggs, names)
        case Unnest(_, generator, names, outer):
            return Unnest(new[0], generator, names, outer)
        case Window(_, keys, functions, names):
            return Window(new[0], keys, functions, names)
        case Top(_, order, limit, offset):
            return Top(new[0], order, limit, offset)
        case Distinct() | Net():
            return type(q)(new[0])
        case Plus() | Monus() | Min() | Max() | Product():
            return type(q)(new[0], new[1])
        case Join() | Semi() | Anti() | Left() | Right() | Full():
            return type(q)(new[0], new[1], q.on)
        case _:
            return q


def _check_columns(e: Scalar, arity: int) -> None:
    used = columns_of(e)
    assert not used or max(used) < arity, f"column #{max(used)} of {arity}"


def _joined(left: Query, right: Query, on: Scalar) -> Columns:
    scope = left.scope + right.scope
    _check_columns(on, len(scope))
    return scope


def _same_arity(op: str, left: Query, right: Query) -> Columns:
    if len(left.scope) != len(right.scope):
        raise ArityError(
            f"{op} needs as many columns on both sides:"
            f" left has {len(left.scope)} ({', '.join(left.columns)}),"
            f" right has {len(right.scope)} ({', '.join(right.columns)})",
            hint="Project one side so that both have the same columns in the same order.",
        )
    return left.scope

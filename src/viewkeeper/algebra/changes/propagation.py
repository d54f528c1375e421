"""How a figure of the papers is run: bottom-up over the shared graph, each node once.

A figure is two functions, ``nabla(q, c)`` and ``delta(q, c)``. They give ∇q and Δq in terms of
q's inputs and of their changes, which ``c`` holds already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    Empty,
    Monus,
    Plus,
    Project,
    Query,
    Table,
    children,
)
from viewkeeper.algebra.scalars import NULL, Col, Scalar
from viewkeeper.algebra.walk import postorder


class Pair(NamedTuple):
    """The change of a query: what is removed, ∇q, and what is added, Δq."""

    removed: Query
    added: Query


class Changes:
    """The changes of the nodes seen so far, with the papers' abbreviations over them."""

    def __init__(self, tables: Mapping[Query, Pair]) -> None:
        self.tables = tables
        self._pairs: dict[Query, Pair] = {}

    def __setitem__(self, q: Query, pair: Pair) -> None:
        self._pairs[q] = pair

    def __getitem__(self, q: Query) -> Pair:
        return self._pairs[q]

    def nabla(self, q: Query) -> Query:
        """∇q."""
        return self._pairs[q].removed

    def delta(self, q: Query) -> Query:
        """Δq."""
        return self._pairs[q].added

    def sub(self, q: Query) -> Query:
        """del(t, q) = q ∸ ∇q, the 1997 paper's sub."""
        return Monus(q, self.nabla(q))

    def add(self, q: Query) -> Query:
        """add(t, q) = q ⊎ Δq."""
        return Plus(q, self.delta(q))

    def mod(self, q: Query) -> Query:
        """mod(t, q) = (q ∸ ∇q) ⊎ Δq, the value of q after the transaction."""
        return Plus(self.sub(q), self.delta(q))


class Rule(Protocol):
    """One half of a figure."""

    def __call__(self, q: Query, c: Changes) -> Query: ...


class Figure(NamedTuple):
    """∇ and Δ as mutually recursive functions."""

    nabla: Rule
    delta: Rule


def propagate(q: Query, tables: Mapping[Query, Pair], figure: Figure) -> Pair:
    """The change of a query from the changes of its tables, by the rules of a figure."""
    c = Changes(tables)
    for node in postorder(q):
        unchanged = all(_no_change(c[child]) for child in children(node))
        if unchanged and node not in tables:
            nothing = Empty(node.scope)
            c[node] = Pair(nothing, nothing)
        else:
            c[node] = Pair(figure.nabla(node, c), figure.delta(node, c))
    return c[q]


def _no_change(pair: Pair) -> bool:
    return isinstance(pair.removed, Empty) and isinstance(pair.added, Empty)


def table_change(table: Table) -> Pair:
    """∇R and ΔR as names: a change not known when the rules are run."""
    return Pair(
        Table(table.name, table.names, REMOVED),
        Table(table.name, table.names, ADDED),
    )


def padded(q: Query, t: Query) -> Query:
    """q × {d_T}: the rows of q with NULLs in the place of T's columns."""
    items: tuple[Scalar, ...] = (*(Col(i) for i in range(q.arity)), *(NULL for _ in t.scope))
    return Project(q, items, q.columns + t.columns)


def padded_left(s: Query, q: Query) -> Query:
    """{d_S} × q: the rows of q with NULLs in the place of S's columns."""
    items: tuple[Scalar, ...] = (*(NULL for _ in s.scope), *(Col(i) for i in range(q.arity)))
    return Project(q, items, s.columns + q.columns)

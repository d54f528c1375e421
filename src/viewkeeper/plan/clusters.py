"""Join clusters: nested ⋈ × σ Π seen as many inputs, one list of conditions and the output columns.

A change enters a cluster at one input and meets the others one by one, along the join's conditions,
so that every join has a small side: never a product of two large tables on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.algebra.nodes import Join, Product, Project, Query, Select
from viewkeeper.algebra.scalars import (
    Call,
    Col,
    Scalar,
    call,
    columns_of,
    conjunction,
    conjuncts,
    replace_columns,
    shift,
)


@dataclass(frozen=True)
class Cluster:
    """Π[outputs](σ[conditions](I₁ × I₂ × …)), columns counted through all inputs."""

    inputs: tuple[Query, ...]
    conditions: tuple[Scalar, ...]
    outputs: tuple[Scalar, ...]
    names: tuple[str, ...]

    def offset(self, i: int) -> int:
        """The place of the first column of an input."""
        return sum(q.arity for q in self.inputs[:i])

    def owner(self, column: int) -> int:
        """The input that a column belongs to."""
        for i, q in enumerate(self.inputs):
            if column < q.arity:
                return i
            column -= q.arity
        raise AssertionError("no such column")


def cluster(q: Query) -> Cluster:
    """The largest cluster with this root; a single input if the root is no join.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a", "b"]), al.table("S", ["c", "d"])
    >>> c = cluster(R.join(S, "a = c").select("d > 1").project({"x": "b + d"}))
    >>> [str(i) for i in c.inputs], len(c.conditions)
    (['R', 'S'], 2)
    """
    match q:
        case Join(s, t, on):
            return _joined(cluster(s), cluster(t), on, q)
        case Product(s, t):
            return _joined(cluster(s), cluster(t), None, q)
        case Select(s, p) if _is_join(s):
            below = cluster(s)
            more = tuple(_over(c, below.outputs) for c in conjuncts(p))
            return Cluster(below.inputs, below.conditions + more, below.outputs, q.columns)
        case Project(s, items, names) if _is_join(s):
            below = cluster(s)
            outputs = tuple(_over(e, below.outputs) for e in items)
            return Cluster(below.inputs, below.conditions, outputs, names)
        case _:
            return Cluster((q,), (), tuple(Col(i) for i in range(q.arity)), q.columns)


def _is_join(q: Query) -> bool:
    while isinstance(q, (Select, Project)):
        q = q.s
    return isinstance(q, (Join, Product))


def _over(e: Scalar, outputs: tuple[Scalar, ...]) -> Scalar:
    return replace_columns(e, lambda i: outputs[i])


def _joined(a: Cluster, b: Cluster, on: Scalar | None, q: Query) -> Cluster:
    width = sum(i.arity for i in a.inputs)
    outputs = a.outputs + tuple(shift(e, width) for e in b.outputs)
    conditions = a.conditions + tuple(shift(c, width) for c in b.conditions)
    if on is not None:
        conditions += tuple(_over(c, outputs) for c in conjuncts(on))
    return Cluster(a.inputs + b.inputs, conditions, outputs, q.columns)


@dataclass(frozen=True)
class Part:
    """A query that stands for an input of a cluster, its weight, if it has one, last."""

    query: Query
    weighted: bool


def assemble(
    c: Cluster,
    parts: Sequence[Part],
    start: Sequence[int],
    extra: Sequence[tuple[Query, Scalar]] = (),
    weight: bool = True,
) -> Query:
    """The cluster over other parts, joined from ``start`` outwards along its conditions.

    ``extra`` are further inputs that come before all others, each with its condition over the
    cluster's columns and, after these, its own; it must not multiply rows. With ``weight``, the
    product of the parts' weights is the last column.
    """
    total = sum(i.arity for i in c.inputs)
    place: dict[int, int] = {}  # cluster column -> column of what is joined so far
    weights: list[int] = []
    left: list[Scalar] = list(c.conditions)
    joined: Query | None = None
    extras_at = total
    for query, condition in extra:
        for j in range(query.arity):
            place[extras_at + j] = (joined.arity if joined else 0) + j
        left += conjuncts(condition)
        joined = query if joined is None else Product(joined, query)
        extras_at += query.arity
    todo = list(range(len(c.inputs)))
    while todo:
        if joined is None:
            i = start[0] if start else todo[0]
        else:
            i = _next(c, todo, left, place)
        todo.remove(i)
        part, width = parts[i], 0 if joined is None else joined.arity
        for j in range(c.inputs[i].arity):
            place[c.offset(i) + j] = width + j
        if part.weighted:
            weights.append(width + part.query.arity - 1)
        ready = [e for e in left if columns_of(e) <= place.keys()]
        left = [e for e in left if e not in ready]
        on = conjunction([replace_columns(e, lambda k: Col(place[k])) for e in ready])
        if joined is None:
            joined = part.query if not ready else Select(part.query, on)
        else:
            joined = Join(joined, part.query, on) if ready else Product(joined, part.query)
    assert joined is not None
    items = tuple(replace_columns(e, lambda k: Col(place[k])) for e in c.outputs)
    if not weight:
        return Project(joined, items, c.names)
    product: Scalar = Col(weights[0])
    for w in weights[1:]:
        product = call("*", product, Col(w))
    return Project(joined, (*items, product), (*c.names, "weight"))


def _next(c: Cluster, todo: list[int], left: list[Scalar], place: dict[int, int]) -> int:
    """The input to join next: one that an equality ties to what is joined already, if any."""
    for i in todo:
        own = range(c.offset(i), c.offset(i) + c.inputs[i].arity)
        for e in left:
            used = columns_of(e)
            if not (isinstance(e, Call) and e.op in ("=", "<=>")):
                continue
            here = any(k in own for k in used)
            if here and all(k in own or k in place for k in used) and any(k in place for k in used):
                return i
    return todo[0]

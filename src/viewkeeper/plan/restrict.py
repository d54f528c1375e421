"""S ⋉ K pushed down: a query restricted to some keys reads no more than these keys need."""

from __future__ import annotations

from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    GroupBy,
    Join,
    Left,
    Max,
    Min,
    Monus,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Unnest,
    Window,
    with_children,
)
from viewkeeper.algebra.scalars import (
    Call,
    Col,
    Scalar,
    columns_of,
    conjunction,
    equal_columns,
)
from viewkeeper.plan.clusters import Cluster, Part, assemble, cluster


def restrict(q: Query, columns: tuple[int, ...], keys: Query) -> Query:
    """The rows of q whose ``columns`` are among the rows of ``keys``, which has no duplicates.

    NULL is one key. Without columns, all rows (the caller knows that there is a key).

    >>> from viewkeeper import algebra as al
    >>> R, K = al.table("R", ["a", "b"]), al.table("K", ["a"])
    >>> print(restrict(R.select("b > 1").group_by(["a"], {"n": "count(*)"}), (0,), K))
    Γ[a; count(*) AS n](σ[b > 1](R ⋉[left.a <=> right.a] K))
    """
    if not columns:
        return q
    match q:
        case Select(s, p) if not _joins(q):
            return Select(restrict(s, columns, keys), p)
        case Project(s, items, names) if not _joins(q):
            below = [items[i] for i in columns]
            if all(isinstance(e, Col) for e in below):
                at = tuple(e.index for e in below if isinstance(e, Col))
                return Project(restrict(s, at, keys), items, names)
            return _semi(q, columns, keys)
        case Plus(s, t) | Max(s, t):
            return with_children(q, (restrict(s, columns, keys), restrict(t, columns, keys)))
        case Monus(s, t) | Min(s, t):
            return with_children(q, (restrict(s, columns, keys), restrict(t, columns, keys)))
        case Distinct(s):
            return Distinct(restrict(s, columns, keys))
        case GroupBy(s, by, _, _) if by and all(i < len(by) for i in columns):
            return with_children(q, (restrict(s, tuple(by[i] for i in columns), keys),))
        case Window(s, by, _, _) if by and all(i in by for i in columns):
            return with_children(q, (restrict(s, columns, keys),))
        case Unnest(s, _, _, _) if all(i < s.arity for i in columns):
            return with_children(q, (restrict(s, columns, keys),))
        case Semi(s, t, on):
            return Semi(restrict(s, columns, keys), t, on)
        case Anti(s, t, on):
            return Anti(restrict(s, columns, keys), t, on)
        case Left(s, t, on) if all(i < s.arity for i in columns):
            return Left(restrict(s, columns, keys), t, on)
        case Right(s, t, on) if all(i >= s.arity for i in columns):
            at = tuple(i - s.arity for i in columns)
            return Right(s, restrict(t, at, keys), on)
        case Join() | Product() | Select() | Project():
            return _cluster(q, columns, keys)
        case _:
            return _semi(q, columns, keys)


def _joins(q: Query) -> bool:
    while isinstance(q, (Select, Project)):
        q = q.s
    return isinstance(q, (Join, Product))


def _semi(q: Query, columns: tuple[int, ...], keys: Query) -> Query:
    return Semi(q, keys, equal_columns(columns, tuple(range(len(columns))), q.arity))


def _cluster(q: Query, columns: tuple[int, ...], keys: Query) -> Query:
    """A cluster joined from the keys outwards; where the keys are computed, ⋉ on top."""
    c = cluster(q)
    wanted = [c.outputs[i] for i in columns]
    total = sum(i.arity for i in c.inputs)
    if any(not columns_of(e) for e in wanted):
        return _semi(q, columns, keys)
    first = c.owner(min(columns_of(wanted[0])))
    if len({c.owner(k) for e in wanted for k in columns_of(e)}) > 1:
        return _semi(assemble(c, _narrowed(c, wanted, keys), [first], weight=False), columns, keys)
    on = conjunction([Call("<=>", (e, Col(total + i))) for i, e in enumerate(wanted)])
    parts = [Part(i, weighted=False) for i in c.inputs]
    return assemble(c, parts, [first], extra=[(keys, on)], weight=False)


def _narrowed(c: Cluster, wanted: list[Scalar], keys: Query) -> list[Part]:
    """The inputs of a cluster, each restricted to what it has of the keys. Joined with whole keys,
    an input that has a part of them would be multiplied by all others."""
    parts = []
    for n, one in enumerate(c.inputs):
        own = {
            k: e.index - c.offset(n)
            for k, e in enumerate(wanted)
            if isinstance(e, Col) and c.owner(e.index) == n
        }
        if own:
            items = tuple(Col(k) for k in own)
            some = Distinct(Project(keys, items, tuple(keys.columns[k] for k in own)))
            one = restrict(one, tuple(own.values()), some)
        parts.append(Part(one, weighted=False))
    return parts

"""Aggregates whose last digits depend on the order of rows, made to depend on none.

A refresh computes f(Snew) − f(Sold). A sum of floating point numbers over the same rows in another
order differs in its last digits, so f(Sold) would not be what was counted, compared or stored
before. At the root of a view by groups the store has the old value; further down, such a function
takes its values in their own order:

    Γ[k; f(x)](S) = Γ[k; max(w)](ω[k; f(x) OVER (ORDER BY x, all rows) AS w](S))

One group of all rows would be sorted as a whole. Its sum is that of the sums of a few hundred
groups by value, so that many of these are sorted at once, and only those of changed values
again.
"""

from __future__ import annotations

import re

from viewkeeper.algebra.nodes import (
    GroupBy,
    Product,
    Project,
    Query,
    Window,
    children,
    with_children,
)
from viewkeeper.algebra.scalars import Agg, Col, Opaque, Scalar
from viewkeeper.algebra.texts import splice
from viewkeeper.algebra.walk import postorder

_FLOATS = ("float", "double")
_MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_BUCKETS = 256
_PARTS = ("_sum", "_count")
_CALLS = re.compile(r"(try_sum|try_avg|corr|covar_\w+|regr_\w+|skewness|kurtosis)\(")


def is_rough(a: Agg | Opaque) -> bool:
    """Does the answer depend on the order of rows, in its last digits only?

    >>> is_rough(Agg("sum", (Col(0),), False, "double"))
    True
    >>> is_rough(Agg("sum", (Col(0),), False, "decimal(10,2)"))
    False
    """
    if isinstance(a, Opaque):
        return _CALLS.match(a.parts[0]) is not None
    if a.function in _MOMENTS:
        return True
    if a.function == "avg":  # Spark adds large whole numbers as doubles here
        return a.type in (*_FLOATS, "bigint")
    return a.function == "sum" and a.type in _FLOATS


def in_order(query: Query, root: GroupBy | None) -> Query:
    """The query with such functions taking values in order, but for those of the root.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a", "b"])
    >>> total = Agg("sum", (Col(1),), False, "double")
    >>> q = GroupBy(R, (0,), (total,), ("s",))
    >>> in_order(q, q) is q
    True
    >>> in_order(q, None).s.functions[0].parts[:3]
    ('sum(', ') OVER (PARTITION BY ', ' ORDER BY ')
    """
    done: dict[Query, Query] = {}
    for q in postorder(query):
        made = with_children(q, tuple(done[c] for c in children(q)))
        if q is not root and isinstance(made, GroupBy):
            made = _in_order(made)
        done[q] = made
    return done[query]


def unordered_part(query: Query, root: GroupBy | None) -> str | None:
    """A sentence that names such a function that takes no order, or None."""
    for q in postorder(query):
        if isinstance(q, GroupBy) and q is not root:
            for a in q.aggs:
                if is_rough(a) and not _takes_order(a):
                    name = a.function if isinstance(a, Agg) else a.parts[0].split("(")[0]
                    return (
                        f"The last digits of {name} with DISTINCT or FILTER depend on the order of"
                        " rows, below the root of the view."
                    )
    return None


def _takes_order(a: Agg | Opaque) -> bool:
    """Spark has no DISTINCT over windows, and what a FILTER holds need not have an order."""
    if isinstance(a, Agg):
        return not a.distinct
    return not re.search(r"\(DISTINCT | FILTER \(", "".join(a.parts))


def _in_order(q: GroupBy) -> Query:
    rough = [a for a in dict.fromkeys(q.aggs) if is_rough(a) and _takes_order(a)]
    if not rough:
        return q
    if q.keys:
        return _sorted(q)
    places: list[Agg | Opaque] = []
    made: list[Query] = []
    for a in rough:
        if isinstance(a, Agg) and a.function in ("sum", "avg"):
            places.append(a)
            made.append(_total(q.s, a))
    rest = tuple(a for a in dict.fromkeys(q.aggs) if a not in places)
    if rest:
        places += rest
        made.append(_sorted(GroupBy(q.s, (), rest, tuple(f"_agg{i}" for i in range(len(rest))))))
    rows = made[0]
    for one in made[1:]:
        rows = Product(rows, one)
    return Project(rows, tuple(Col(places.index(a)) for a in q.aggs), q.names)


def _sorted(q: GroupBy) -> GroupBy:
    """Γ[k; f(x)](S) over a window for each rough f."""
    rough = [a for a in dict.fromkeys(q.aggs) if is_rough(a) and _takes_order(a)]
    names = tuple(f"_sum{i}" for i in range(len(rough)))
    window = Window(q.s, q.keys, tuple(_over(a, q.keys) for a in rough), names)
    place = {a: Col(q.s.arity + i) for i, a in enumerate(rough)}
    aggs = tuple(Agg("max", (place[a],), False, "double") if a in place else a for a in q.aggs)
    made = GroupBy(window if rough else q.s, q.keys, aggs, q.names)
    assert isinstance(made, GroupBy)
    return made


def _total(s: Query, a: Agg) -> Query:
    """A sum or an average over all rows, from the sums of groups by value."""
    x = a.args[0]
    bucket = Opaque(("pmod(xxhash64(", f"), {_BUCKETS}L)"), (x,))
    rows = Project(s, (bucket, x), ("_bucket", "_value"))
    parts = (Agg("sum", (_double(Col(1)),), False, "double"), Agg("count", (Col(1),)))
    sums = _sorted(GroupBy(rows, (0,), parts, ("_sum", "_count")))
    total = Agg("sum", (Col(1),), False, "double")
    whole = _sorted(GroupBy(sums, (), (total, Agg("sum", (Col(2),), False, "bigint")), _PARTS))
    if a.function == "sum":
        return Project(whole, (Col(0),), ("_total",))
    return Project(whole, (Opaque(("(", " / nullif(", ", 0L))"), (Col(0), Col(1))),), ("_total",))


def _double(x: Scalar) -> Opaque:
    return Opaque(("CAST(", " AS DOUBLE)"), (x,))


def _over(a: Agg | Opaque, keys: tuple[int, ...]) -> Opaque:
    """f(x) OVER (PARTITION BY k ORDER BY x ROWS …), over all rows of the partition."""
    pieces: list[str | Scalar] = (
        [a] if isinstance(a, Opaque) else [f"{a.function}(", a.args[0], ")"]
    )
    pieces.append(" OVER (")
    for i, k in enumerate(keys):
        pieces += [", " if i else "PARTITION BY ", Col(k)]
    for i, x in enumerate(a.args):
        pieces += [", " if i else " ORDER BY ", x, " ASC NULLS FIRST"]
    pieces.append(" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)")
    return splice(pieces)

"""Columns that are NULL and of no type, such as that of ``SELECT a, NULL AS b``.

Spark's joins find no partner by such a column, not even by ``<=>``; so a change that compares rows
with one would be wrong. Above all that compares rows it does no harm: a store gives it a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from viewkeeper.algebra.nodes import (
    GroupBy,
    Plus,
    Project,
    Query,
    Select,
    Unnest,
    Window,
    children,
)
from viewkeeper.algebra.scalars import NULL, Agg, Opaque, Scalar, parts_of
from viewkeeper.algebra.walk import postorder

_MAKES = re.compile(r"\b(null|void|array\(\)|map\(\))", re.IGNORECASE)


_ROW_BY_ROW = (Project, Select, Plus, Unnest)


def doubtful(query: Query) -> list[Query]:
    """The parts of a query that may have such a column and whose rows are compared.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a"])
    >>> n = Project(R, (NULL,), ("n",))
    >>> doubtful(n), [str(q) for q in doubtful(n.distinct())]
    ([], ['Π[NULL AS n](R)'])
    """
    above = [q for q in postorder(query) if not isinstance(q, _ROW_BY_ROW)]
    compared = dict.fromkeys(below for q in above for below in children(q))
    return [q for q in compared if any(map(_may_make, _passed_on(q)))]


def _passed_on(query: Query) -> Iterator[Query]:
    """The part, and those below it whose columns it may pass on as they are."""
    stack = [query]
    while stack:
        q = stack.pop()
        yield q
        if isinstance(q, _ROW_BY_ROW):
            stack.extend(children(q))


def _may_make(q: Query) -> bool:
    parts = (p for e in _scalars(q) for p in parts_of(e))
    return any(p == NULL or (isinstance(p, Opaque) and _says(p)) for p in parts)


def _says(e: Opaque) -> bool:
    return any(_MAKES.search(part) for part in e.parts)


def _scalars(q: Query) -> Iterator[Scalar]:
    match q:
        case Project():
            yield from q.items
        case Unnest():
            yield q.generator
        case GroupBy() | Window():
            for f in q.aggs if isinstance(q, GroupBy) else q.functions:
                yield from f.args if isinstance(f, Agg) else (f,)

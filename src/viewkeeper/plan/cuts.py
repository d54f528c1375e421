"""Parts of a change that are computed first, because Spark would compute them again and again.

Queries share their parts; Spark does not: it puts a part into each place that names it. A change of
a deep query, of which most tables have changed, may be a thousand times larger written out.
"""

from __future__ import annotations

from collections import Counter

from viewkeeper.algebra.nodes import Query, children
from viewkeeper.algebra.walk import postorder
from viewkeeper.plan.small import small_parts

MANY_SCANS = 60  # leaves of a query written out; Spark plans fewer without effort
_TOO_MANY = 4  # times as many: then it is worth it to keep whole states too
_WORTH_IT = 0.1  # of them below a part that is computed first


def shared_parts(query: Query, many: int = MANY_SCANS) -> list[Query]:
    """The parts to compute before the query, inner ones first; none where it is of a usual size.

    Results are kept, so they are parts whose size follows from the change, as far as these do.

    >>> from viewkeeper.algebra.nodes import SIGNED, Table
    >>> def doubled(part, times):
    ...     return doubled(part + part, times - 1) if times else part
    >>> change, state = doubled(Table("R", ("a",), SIGNED), 5), doubled(Table("R", ("a",)), 5)
    >>> len(shared_parts(change)), len(shared_parts(change, many=20))
    (0, 2)
    >>> len(shared_parts(state, many=20)), len(shared_parts(state, many=5))
    (0, 4)
    """
    order = postorder(query)
    if _cut(order, set(), 0)[1] <= many:
        return []
    uses = Counter(c for q in order for c in children(q))
    shared = {q for q in order if uses[q] > 1 and q != query}
    least = int(many * _WORTH_IT)
    found, left = _cut(order, shared & small_parts(query), least)
    return _cut(order, shared, least)[0] if left > _TOO_MANY * many else found


def _cut(order: list[Query], may: set[Query], least: int) -> tuple[list[Query], int]:
    """The nodes to cut at, of more leaves than the least; and how many leaves are left."""
    leaves: dict[Query, int] = {}
    found = []
    for q in order:
        leaves[q] = sum(leaves[c] for c in children(q)) or 1
        if q in may and leaves[q] > max(least, 1):
            found.append(q)
            leaves[q] = 1
    return found, leaves[order[-1]]

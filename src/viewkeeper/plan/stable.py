"""What may differ when it is computed again over the same rows, and so cannot be subtracted.

A refresh computes f(Snew) − f(Sold). Where f takes rows in no fixed order (``first``,
``collect_list``), f(Sold) need not be what the store holds. At the root of a view the store itself
has the old value; further down such a function makes the view one that is refreshed in full.
"""

from __future__ import annotations

import re

from viewkeeper.algebra.nodes import GroupBy, Project, Query, children
from viewkeeper.algebra.scalars import Col, Opaque
from viewkeeper.algebra.walk import postorder

_LOOSE = re.compile(
    r"(first|first_value|last|last_value|any_value|collect_list|array_agg|collect_set|mode"
    r"|max_by|min_by|listagg|string_agg|approx_percentile|percentile_approx|histogram_numeric"
    r"|approx_top_k\w*|(hll|theta|kll|tuple)_\w*agg\w*)\("
)
_SORTED = ("sort_array(", "array_sort(")


def unstable_part(query: Query, root: GroupBy | None) -> str | None:
    """A sentence that names an aggregate whose old value cannot be computed again, or None.

    ``root`` is the grouping whose old values are in the view's store.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a", "b"])
    >>> q = GroupBy(R, (0,), (Opaque(("collect_list(", ")"), (Col(1),)),), ("l",))
    >>> unstable_part(q, None)
    'collect_list takes the rows of a group in no fixed order, below the root of the view.'
    >>> unstable_part(q, q)
    """
    parents: dict[Query, list[Query]] = {}
    order = postorder(query)
    for q in order:
        for c in children(q):
            parents.setdefault(c, []).append(q)
    for q in order:
        if not isinstance(q, GroupBy) or q is root:
            continue
        for i, a in enumerate(q.aggs):
            found = _LOOSE.match(a.parts[0]) if isinstance(a, Opaque) else None
            if found and not _sorted_above(len(q.keys) + i, parents.get(q, [])):
                return (
                    f"{found[1]} takes the rows of a group in no fixed order,"
                    " below the root of the view."
                )
    return None


def _sorted_above(column: int, parents: list[Query]) -> bool:
    """Is each use of a column inside of a function that sorts it?"""
    for p in parents:
        if not isinstance(p, Project):
            return False
        for e in p.items:
            if isinstance(e, Opaque):
                for before, arg in zip(e.parts, e.args, strict=False):
                    if arg == Col(column) and not before.endswith(_SORTED):
                        return False
            elif e == Col(column):
                return False
    return bool(parents)

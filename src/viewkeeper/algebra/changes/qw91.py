"""Qian & Wiederhold 1991: the original propagation rules for sets, kept as the baseline.

The sixteen rules (numbered as in figure 1 of the 1997 paper) move one change upward at a time.
The algorithm first collects all positive changes, then the negative ones:

    pre(t, Q)  ⟹*  Q⁻ ∪ ΔQ  ⟹*  (Q − ∇Q) ∪ ΔQ                       ``deletions``

Below the right side of a difference the polarity turns, and the dual order is needed:

    pre(t, Q)  ⟹*  Q⁺ − ∇Q  ⟹*  (Q ∪ ΔQ) − ∇Q                       ``insertions``

Both are correct. Neither is minimal, as the 1997 paper shows: with R1 = {a, b}, R2 = {a},
∇R1 = {b}, ΔR2 = {b, c}, the first gives Δ(R1 ∪ R2) = {b, c}. The text of the 1991 paper lost its
formulas; the rules are those that the 1997 and 1998 papers reprint, and the orders of application
follow the 1997 paper's example (within a stage the paper leaves the order open).
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra.changes.gl95 import times
from viewkeeper.algebra.changes.propagation import Pair
from viewkeeper.algebra.nodes import (
    Distinct,
    Empty,
    Join,
    Literal,
    Max,
    Min,
    Monus,
    Product,
    Project,
    Query,
    Select,
    Table,
)
from viewkeeper.algebra.walk import postorder
from viewkeeper.errors import ChangeError

Solved = dict[Query, Pair]


def propagate(q: Query, tables: Mapping[Query, Pair]) -> Pair:
    """The change of a query in set form by the rules of 1991: correct, not always minimal."""
    inner: Solved = {}  # (Q − ∇Q) ∪ ΔQ
    outer: Solved = {}  # (Q ∪ ΔQ) − ∇Q
    for node in postorder(q):
        if isinstance(node, Table):
            nothing = Empty(node.scope)
            inner[node] = outer[node] = tables.get(node, Pair(nothing, nothing))
        else:
            inner[node], outer[node] = (
                deletions(node, inner, outer),
                insertions(node, inner, outer),
            )
    return inner[q]


def deletions(q: Query, inner: Solved, outer: Solved) -> Pair:
    """pre(t, Q) = (Q − ∇Q) ∪ ΔQ, from the same form of the inputs (the dual right of −)."""
    match q:
        case Empty() | Literal():
            return Pair(Empty(q.scope), Empty(q.scope))
        case Select(s, p):  # rules 1, 2
            return Pair(Select(inner[s].removed, p), Select(inner[s].added, p))
        case Distinct(Project(s)):  # 4: ΠΔS − ΠS⁻, then 3: ΠS − ΠS⁻
            whole, left = _pi(s, q), _pi(s - inner[s].removed, q)
            return Pair(whole - left, _pi(inner[s].added, q) - left)
        case Product() | Join():  # 6, then 5 (16, then 15)
            s, t = q.s, q.t
            (ds, a), (dt, b) = inner[s], inner[t]
            s_less, t_less = s - ds, t - dt
            added = times(q, a, t_less) | times(q, s_less | a, b)
            return Pair(times(q, ds, t) | times(q, s_less, dt), added)
        case Max(s, t):  # 8, then 7
            (ds, a), (dt, b) = inner[s], inner[t]
            s_less, t_less = s - ds, t - dt
            return Pair((ds - t) | (dt - s_less), (a - t_less) | (b - (s_less | a)))
        case Min(s, t):  # 14, then 13
            (ds, a), (dt, b) = inner[s], inner[t]
            s_less, t_less = s - ds, t - dt
            return Pair((ds & t) | (s_less & dt), (a & t_less) | ((s_less | a) & b))
        case Monus(s, t):  # 11 and 10, then 9 and 12
            (ds, a), (dt, b) = inner[s], outer[t]
            s_less, t_more = s - ds, t | b
            return Pair((ds - t_more) | (s & b), (a - (t_more - dt)) | (s_less & dt))
        case Project():  # only below ε, which reads its input
            return Pair(Empty(q.scope), Empty(q.scope))
        case _:
            raise _no_rule(q)


def insertions(q: Query, inner: Solved, outer: Solved) -> Pair:
    """pre(t, Q) = (Q ∪ ΔQ) − ∇Q, from the same form of the inputs (the dual right of −)."""
    match q:
        case Empty() | Literal():
            return Pair(Empty(q.scope), Empty(q.scope))
        case Select(s, p):  # rules 1, 2
            return Pair(Select(outer[s].removed, p), Select(outer[s].added, p))
        case Distinct(Project(s)):  # 3: ΠS⁺ − Π(S⁺ − ∇S), then 4: ΠΔS − ΠS
            more = s | outer[s].added
            removed = _pi(more, q) - _pi(more - outer[s].removed, q)
            return Pair(removed, _pi(outer[s].added, q) - _pi(s, q))
        case Product() | Join():  # 5, then 6 (15, then 16)
            s, t = q.s, q.t
            (ds, a), (dt, b) = outer[s], outer[t]
            s_more, t_more = s | a, t | b
            removed = times(q, ds, t_more) | times(q, s_more - ds, dt)
            return Pair(removed, times(q, a, t) | times(q, s_more, b))
        case Max(s, t):  # 7, then 8
            (ds, a), (dt, b) = outer[s], outer[t]
            s_more, t_more = s | a, t | b
            return Pair((ds - t_more) | (dt - (s_more - ds)), (a - t) | (b - s_more))
        case Min(s, t):  # 13, then 14
            (ds, a), (dt, b) = outer[s], outer[t]
            s_more, t_more = s | a, t | b
            return Pair((ds & t_more) | ((s_more - ds) & dt), (a & t) | (s_more & b))
        case Monus(s, t):  # 9 and 12, then 11 and 10
            (ds, a), (dt, b) = outer[s], inner[t]
            s_more, t_less = s | a, t - dt
            return Pair((ds - (t_less | b)) | (s_more & b), (a - t_less) | (s & dt))
        case Project():  # only below ε, which reads its input
            return Pair(Empty(q.scope), Empty(q.scope))
        case _:
            raise _no_rule(q)


def _pi(s: Query, q: Distinct) -> Query:
    """The projection of ``q``, of another set."""
    assert isinstance(q.s, Project)
    return Distinct(Project(s, q.s.items, q.s.names))


def _no_rule(q: Query) -> ChangeError:
    return ChangeError(
        f"the 1991 paper has no rule for {type(q).__name__}",
        hint='Use semantics="set", whose rules cover all operators.',
    )

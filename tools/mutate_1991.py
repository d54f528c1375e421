"""The rules of 1991 step by step, as the 1997 paper prints them: what ``qw91`` must agree with."""

from __future__ import annotations

from collections import Counter
from typing import Any

from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag, Evaluation
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

State = dict[str, Bag]
Rows = frozenset[tuple[Any, ...]]
Solved = tuple[Rows, Rows]


class Rules1991:
    """pre(t, Q) by moving one change at a time through one operator, on Python's sets."""

    def __init__(self, old: State, changes: dict[str, tuple[Bag, Bag]]) -> None:
        self.changes = changes
        self.value = Evaluation(old, changes)

    def rows(self, q: Query) -> Rows:
        return frozenset(self.value(q))

    def moved(self, q: Query, s: Rows, t: Rows, d: Rows, left: bool, adds: bool) -> Rows:
        """The term by which the operator changes, when d goes from or comes to one input."""
        match q:
            case Select():  # 1, 2
                return self.of(q, d, t)
            case Distinct():
                if adds:  # 4: Π(S ∪ ΔS) = ΠS ∪ (ΠΔS − ΠS)
                    return self.of(q, d, t) - self.of(q, s, t)
                return self.of(q, s, t) - self.of(q, s - d, t)  # 3
            case Product() | Join():  # 5, 6, 15, 16
                return self.of(q, d, t) if left else self.of(q, s, d)
            case Max():  # 7, 8
                return d - t if left else d - s
            case Min():  # 13, 14
                return d & t if left else s & d
            case Monus():  # 9, 11 on the left; 10, 12 on the right
                return d - t if left else s & d
        raise AssertionError(q)

    def of(self, q: Query, s: Rows, t: Rows) -> Rows:
        """The operator on given rows."""
        below = q.s.s if isinstance(q, Distinct) and isinstance(q.s, Project) else q.s  # type: ignore[union-attr]
        x = Table("x", below.columns)
        if isinstance(q, Distinct):
            assert isinstance(q.s, Project)
            return frozenset(al.evaluate(Project(x, q.s.items, q.s.names), {"x": s}))
        if isinstance(q, Select):
            return frozenset(al.evaluate(Select(x, q.predicate), {"x": s}))
        assert isinstance(q, (Product, Join))
        y = Table("y", q.t.columns)
        made = Product(x, y) if isinstance(q, Product) else Join(x, y, q.on)
        return frozenset(al.evaluate(made, {"x": s, "y": t}))

    def solve(self, q: Query, deletions: bool) -> Solved:
        """(∇Q, ΔQ) of (Q − ∇Q) ∪ ΔQ, or of (Q ∪ ΔQ) − ∇Q."""
        if isinstance(q, Table):
            removed, added = self.changes.get(q.name, (Counter(), Counter()))
            return frozenset(removed), frozenset(added)
        if isinstance(q, (Empty, Literal)):
            return frozenset(), frozenset()
        s_in = q.s.s if isinstance(q, Distinct) and isinstance(q.s, Project) else q.s  # type: ignore[union-attr]
        s = self.rows(s_in)
        ds, a = self.solve(s_in, deletions)
        t: Rows = frozenset()
        dt, b = t, t
        turned = isinstance(q, Monus)
        if isinstance(q, (Product, Join, Max, Min, Monus)):
            t = self.rows(q.t)
            dt, b = self.solve(q.t, deletions != turned)
        inner, outer = (ds, a), (dt, b)
        # the positive changes of Q move first, or last; right of −, a deletion is a positive one.
        # The papers leave open which input comes first: here it is T, but S for −.
        first = [(False, True), (True, True)] if not turned else [(True, True), (False, False)]
        first = first if deletions else [(left, not adds) for left, adds in first]
        second = [(left, not adds) for left, adds in first]
        gone: Rows = frozenset()
        come: Rows = frozenset()
        todo = [*first, *second]
        for i, (left, adds) in enumerate(todo):
            rest = todo[i + 1 :]
            now_s = self.part(s, inner, [x for side, x in rest if side], deletions)
            now_t = self.part(t, outer, [x for side, x in rest if not side], deletions != turned)
            d = (inner if left else outer)[1 if adds else 0]
            term = self.moved(q, now_s, now_t, d, left, adds)
            positive = adds if left or not turned else not adds
            come, gone = (come | term, gone) if positive else (come, gone | term)
        return gone, come

    @staticmethod
    def part(rows: Rows, change: Solved, left: list[bool], deletions: bool) -> Rows:
        """An input with those of its changes that have not moved yet."""
        order = (False, True) if deletions else (True, False)
        for adds in order:
            if adds in left:
                rows = rows | change[1] if adds else rows - change[0]
        return rows

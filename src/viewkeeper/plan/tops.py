"""A view of the first rows (ORDER BY … LIMIT k) stored as a bag: its rows with a hidden count.

The new first rows are among the stored and the added ones, unless so many stored rows went or fell
back that one from beyond the old last row may come up. Only then are they computed again. The order
is total: the frontend adds all columns to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.algebra.changes.signed import WEIGHT, negated, plus
from viewkeeper.algebra.nodes import (
    Anti,
    Monus,
    Net,
    Plus,
    Project,
    Query,
    Select,
    Top,
    with_children,
)
from viewkeeper.algebra.scalars import TRUE, Col
from viewkeeper.plan.bags import ONE, CountStore, columns_up_to, net_by_row, patched, repeated
from viewkeeper.plan.present import Present
from viewkeeper.plan.steps import Compute, Refresh, store_leaf, stored_names

_DOUBT = "__doubt"


@dataclass(frozen=True)
class TopStore(CountStore):
    """The store of a view of first rows, possibly with σ and Π above."""

    above: tuple[Query, ...]  # the nodes above τ, outermost first
    top: Top

    def build(self) -> Query:
        """The rows of the store, from scratch."""
        return Project(self.top, (*columns_up_to(self.top.arity), ONE), self.columns)

    def visible(self, store: Query) -> Query:
        """The view's rows, from the store's."""
        rows = repeated(store, self.top.columns)
        for node in reversed(self.above):
            rows = with_children(node, (rows,))
        return rows

    def refresh(self, changed: Collection[str]) -> Refresh:
        """The steps of an incremental refresh."""
        present = Present(self.top.s, changed)
        signed = present.change(self.top.s)
        assert signed is not None
        width = self.top.arity
        held = Project(store_leaf(self.columns), columns_up_to(width + 1), (*self.names, WEIGHT))
        computes: tuple[Compute, ...]
        if self.top.limit and not self.top.offset:
            computes, rows = self._among(present, signed, held)
        else:
            again = Compute("again", self._first(present.new(self.top.s)), "the rows, once more")
            computes, rows = (again,), again.leaf
        difference = plus(rows) + negated(held)
        change = Compute(
            "change", net_by_row(difference, self.names), "the first rows less the stored ones"
        )
        refresh = patched(self.names, change, (*computes, change))
        seen: Query = Project(change.leaf, columns_up_to(width + 1), (*self.top.columns, WEIGHT))
        for node in reversed(self.above):
            seen = _with_weight(node, seen)
        return Refresh(refresh.computes, refresh.patch, seen, refresh.must_be_empty)

    def _first(self, s: Query, limit: int | None = None) -> Query:
        most = self.top.limit if limit is None else limit
        return Top(s, self.top.order, most, self.top.offset)

    def _among(
        self, present: Present, signed: Query, held: Query
    ) -> tuple[tuple[Compute, ...], Query]:
        """The first rows among the stored and the new ones, computed again where that may fail."""
        assert self.top.limit is not None
        below = Compute(
            "below", net_by_row(signed, self.names), "the change below LIMIT, netted row by row"
        )
        first = Compute(
            "first", self._first(Net(Plus(held, below.leaf))), "the first of stored and new rows"
        )
        # the old last row, if there may be rows beyond it
        stored = Net(held)
        last: Query = stored
        if self.top.limit > 1:
            last = Monus(stored, self._first(stored, self.top.limit - 1))
        # with it among them the first rows are the same, if all of them come before it
        beside = self._first(Plus(first.leaf, last))
        differ = Plus(Monus(first.leaf, beside), Monus(beside, first.leaf))
        places = columns_up_to(self.top.arity)
        doubt = Compute(
            "doubt",
            Project(differ, (*places, TRUE), (*self.names, _DOUBT)),
            "whether a row from beyond the stored ones may come up",
        )
        again = Compute(
            "again", self._first(present.new(self.top.s)), "the rows, once more", ("doubt", _DOUBT)
        )
        kept = Anti(first.leaf, doubt.leaf, TRUE)
        return (below, first, doubt, again), Plus(kept, again.leaf)


def _with_weight(node: Query, signed: Query) -> Query:
    """σ or Π over rows with a weight."""
    if isinstance(node, Select):
        return Select(signed, node.predicate)
    assert isinstance(node, Project)
    return Project(signed, (*node.items, Col(signed.arity - 1)), (*node.names, WEIGHT))


def top_store(q: Query) -> TopStore | None:
    """The store of first rows, if the query is τ with only σ and Π above."""
    above: list[Query] = []
    node = q
    while isinstance(node, (Select, Project)):
        above.append(node)
        node = node.s
    if not isinstance(node, Top):
        return None
    return TopStore(q, stored_names(node.columns), tuple(above), node)

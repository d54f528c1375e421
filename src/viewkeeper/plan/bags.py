"""A view stored as a bag: its rows with a hidden count, which add up where a row stands twice.

Inserts are appended without a look at the store. Where a row is deleted, its rows in the store are
replaced by one with the remaining count.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.algebra.changes.signed import WEIGHT
from viewkeeper.algebra.nodes import GroupBy, Join, Plus, Project, Query, Select, Semi, Unnest
from viewkeeper.algebra.scalars import Agg, Col, Const, Opaque, Scalar, call, equal_columns
from viewkeeper.plan.present import signed_change
from viewkeeper.plan.steps import DELETE, INSERT, OP, Compute, Patch, Refresh, store_leaf

COUNT = "__count"


@dataclass(frozen=True)
class BagStore:
    """The store of a view as a bag of its rows."""

    query: Query
    names: tuple[str, ...]  # the columns in the store, all different

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the store."""
        return (*self.names, COUNT)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows of the store are found."""
        return self.names

    def build(self) -> Query:
        """The rows of the store, from scratch."""
        q = self.query
        return Project(q, (*_columns(q.arity), ONE), self.columns)

    def visible(self, store: Query) -> Query:
        """The view's rows, from the store's."""
        width = len(self.names)
        times = Opaque(("explode(sequence(1, CAST(", " AS INT)))"), (Col(width),))
        repeated = Unnest(store, times, ("__time",), False)
        return Project(repeated, _columns(width), self.query.columns)

    def weighted(self, store: Query) -> Query:
        """The view's rows with their counts as weights, from the store's."""
        return Project(store, _columns(len(self.names) + 1), (*self.query.columns, WEIGHT))

    def refresh(self, changed: Collection[str]) -> Refresh:
        """The steps of an incremental refresh."""
        width = len(self.names)
        signed = signed_change(self.query, changed)
        change = Compute("change", _net(signed, self.names), "the view's change, netted row by row")
        store = store_leaf(self.columns)
        gone = Select(change.leaf, call("<", Col(width), Const(0)))
        places = tuple(range(width))
        there = Semi(store, gone, equal_columns(places, places, store.arity))
        total = GroupBy(there, places, (Agg("sum", (Col(width),)),), (COUNT,))
        stored = Compute(
            "stored", total, "how often the deleted rows are stored", ("change", f"{WEIGHT} < 0")
        )
        return Refresh((change, stored), self._patch(change, stored), change.leaf)

    def _patch(self, change: Compute, stored: Compute) -> Patch:
        width = len(self.names)
        places = tuple(range(width))
        rows = _columns(width)
        come = Select(change.leaf, call(">", Col(width), Const(0)))
        gone = Select(change.leaf, call("<", Col(width), Const(0)))
        columns = (*self.columns, OP)
        added = Project(come, (*rows, Col(width), Const(INSERT)), columns)
        dropped = Project(gone, (*rows, Const(0), Const(DELETE)), columns)
        both = Join(gone, stored.leaf, equal_columns(places, places, gone.arity))
        rest = call("+", Col(width), Col(gone.arity + width))
        left = Select(both, call(">", rest, Const(0)))
        kept = Project(left, (*rows, rest, Const(INSERT)), columns)
        return Patch(Plus(Plus(added, dropped), kept), self.keys)


ONE = Opaque(("1L",), ())


def _columns(n: int) -> tuple[Scalar, ...]:
    return tuple(Col(i) for i in range(n))


def _net(signed: Query, names: tuple[str, ...]) -> Query:
    """One row per distinct row, with the sum of its weights where that is not zero."""
    width = signed.arity - 1
    grouped = GroupBy(signed, tuple(range(width)), (Agg("sum", (Col(width),)),), (WEIGHT,))
    netted = Select(grouped, call("<>", Col(width), Const(0)))
    return Project(netted, _columns(width + 1), (*names, WEIGHT))

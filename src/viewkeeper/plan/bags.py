"""A view stored as a bag: its rows with a hidden count, which add up where a row stands twice.

Inserts are appended without a look at the store. Where a row is deleted, its rows in the store are
replaced by one with the remaining count. A deleted row that is not stored shows that the stored
rows are not what computing them again gives (sums of floating point numbers): the refresh is then
done in full.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.algebra.changes.signed import WEIGHT
from viewkeeper.algebra.nodes import (
    Anti,
    GroupBy,
    Join,
    Plus,
    Project,
    Query,
    Select,
    Semi,
    Unnest,
)
from viewkeeper.algebra.repeats import times
from viewkeeper.algebra.scalars import (
    Agg,
    Col,
    Const,
    Opaque,
    Scalar,
    call,
    conjunction,
    equal_columns,
)
from viewkeeper.plan.present import signed_change
from viewkeeper.plan.steps import DELETE, INSERT, OP, Compute, Patch, Refresh, store_leaf

COUNT = "__count"


@dataclass(frozen=True)
class CountStore:
    """A store of rows with a hidden count."""

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


@dataclass(frozen=True)
class BagStore(CountStore):
    """The store of a view as a bag of its rows."""

    shown: tuple[Scalar, ...] = ()  # the view's columns from the store's, if not as they are

    def build(self) -> Query:
        """The rows of the store, from scratch."""
        q = self.query
        return Project(q, (*columns_up_to(q.arity), ONE), self.columns)

    def visible(self, store: Query) -> Query:
        """The view's rows, from the store's."""
        rows = repeated(store, self.query.columns)
        return Project(rows, self.shown, rows.columns) if self.shown else rows

    def refresh(self, changed: Collection[str]) -> Refresh:
        """The steps of an incremental refresh."""
        signed = signed_change(self.query, changed)
        why = "the view's change, netted row by row"
        change = Compute("change", net_by_row(signed, self.names), why)
        return patched(self.names, change, (change,))


ONE = Opaque(("1L",), ())


def repeated(store: Query, names: tuple[str, ...]) -> Query:
    """Rows with a count, each as often as its count says."""
    width = store.arity - 1
    return Project(
        Unnest(store, times(Col(width)), ("__time",), False), columns_up_to(width), names
    )


def columns_up_to(n: int) -> tuple[Scalar, ...]:
    """The first columns, as they are."""
    return tuple(Col(i) for i in range(n))


def net_by_row(signed: Query, names: tuple[str, ...]) -> Query:
    """One row per distinct row, with the sum of its weights where that is not zero."""
    width = signed.arity - 1
    grouped = GroupBy(signed, tuple(range(width)), (Agg("sum", (Col(width),)),), (WEIGHT,))
    netted = Select(grouped, call("<>", Col(width), Const(0)))
    return Project(netted, columns_up_to(width + 1), (*names, WEIGHT))


def patched(names: tuple[str, ...], change: Compute, computes: tuple[Compute, ...]) -> Refresh:
    """The refresh that brings a netted change into a store of rows with counts."""
    width = len(names)
    store = store_leaf((*names, COUNT))
    places, rows = tuple(range(width)), columns_up_to(width)
    come = Select(change.leaf, call(">", Col(width), Const(0)))
    gone = Select(change.leaf, call("<", Col(width), Const(0)))
    there = Semi(store, gone, equal_columns(places, places, store.arity))
    total = GroupBy(there, places, (Agg("sum", (Col(width),)),), (COUNT,))
    if_gone = (change.name, f"{WEIGHT} < 0")
    stored = Compute("stored", total, "how often the deleted rows are stored", if_gone)
    same = equal_columns(places, places, gone.arity)
    rest = call("+", Col(width), Col(gone.arity + width))
    enough = conjunction([same, call(">=", rest, Const(0))])
    missing = Compute(
        "missing", Anti(gone, stored.leaf, enough), "deleted rows that are not stored", if_gone
    )
    columns = (*names, COUNT, OP)
    added = Project(come, (*rows, Col(width), Const(INSERT)), columns)
    dropped = Project(gone, (*rows, Const(0), Const(DELETE)), columns)
    left = Select(Join(gone, stored.leaf, same), call(">", rest, Const(0)))
    kept = Project(left, (*rows, rest, Const(INSERT)), columns)
    patch = Patch(Plus(Plus(added, dropped), kept), names)
    return Refresh((*computes, stored, missing), patch, change.leaf, ("missing",))

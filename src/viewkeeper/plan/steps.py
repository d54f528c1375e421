"""The steps of a refresh, as values: ``explain`` prints them, the engine performs them.

A step's query reads the sources (R@new, ±R), the store, and the results of earlier steps, which are
leaves with the step's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql_names import unique_names

STORE = "store"
OP = "__op"
INSERT, UPSERT, DELETE = "I", "U", "D"
OWN_NAMES = re.compile(r"__(\d+|count|op|weight)", re.IGNORECASE)


@dataclass(frozen=True)
class Compute:
    """Runs a query once and keeps its rows under a name for the later steps."""

    name: str
    query: Query
    why: str
    # the step is needed only if this earlier result has rows that meet the condition
    only_if: tuple[str, str] | None = None

    @property
    def leaf(self) -> Table:
        """The result, as a leaf of later queries."""
        return result(self.name, self.query.columns)


@dataclass(frozen=True)
class Patch:
    """Changes the store by rows with an operation: insert, upsert by key, delete by key."""

    query: Query
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Refresh:
    """An incremental refresh: what is computed, how the store is patched, what the view's readers
    see of it (``change``: the view's columns and a weight; weights of equal rows add up;
    ``reads_store``: it is seen only in the whole store). Where a result that must be empty is not,
    the store cannot be patched."""

    computes: tuple[Compute, ...]
    patch: Patch
    change: Query
    must_be_empty: tuple[str, ...] = ()
    reads_store: bool = False


def stored_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Names for columns of a store: all different, and none that we give to columns of our own.

    >>> stored_names(("a", "A", "__0"))
    ('a', 'A_2', '__0_')
    """
    return unique_names(tuple(f"{c}_" if OWN_NAMES.fullmatch(c) else c for c in columns))


def result(name: str, columns: tuple[str, ...]) -> Table:
    """A leaf that stands for the result of an earlier step."""
    return Table(f"#{name}", columns, "")


def store_leaf(columns: tuple[str, ...]) -> Table:
    """The leaf that stands for the view's store."""
    return Table(f"#{STORE}", columns, "")

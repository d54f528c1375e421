"""The bag algebra and the papers' change rules, usable on their own.

>>> from viewkeeper import algebra as al
>>> R, S = al.table("R", ["a", "b"]), al.table("S", ["a", "b"])
>>> q = (R.select("a > 1") - S).project(["a"]).distinct()
>>> print(q)
ε(Π[a](σ[a > 1](R) ∸ S))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from viewkeeper.algebra.changes.change import Change, change
from viewkeeper.algebra.changes.glt97 import as_set
from viewkeeper.algebra.changes.propagation import Pair
from viewkeeper.algebra.changes.signed import net, signed
from viewkeeper.algebra.changes.transactions import (
    Statement,
    Transaction,
    delete,
    insert,
    transaction,
    update,
    violations,
)
from viewkeeper.algebra.cost import Cost, cost
from viewkeeper.algebra.meaning import evaluate
from viewkeeper.algebra.nodes import Empty, Literal, Query, Table
from viewkeeper.algebra.reading import parse
from viewkeeper.algebra.scope import Column, column_names, expect
from viewkeeper.algebra.simplify.facts import Facts, ForeignKey
from viewkeeper.algebra.simplify.rewrite import Step, simplify, simplify_all
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import size, tables

__all__ = [
    "Change",
    "Cost",
    "Facts",
    "ForeignKey",
    "Pair",
    "Query",
    "Statement",
    "Step",
    "Table",
    "Transaction",
    "as_set",
    "change",
    "cost",
    "delete",
    "empty",
    "evaluate",
    "insert",
    "literal",
    "net",
    "parse",
    "signed",
    "simplify",
    "simplify_all",
    "size",
    "table",
    "tables",
    "to_sql",
    "transaction",
    "update",
    "violations",
]


def table(name: str, columns: Sequence[str]) -> Table:
    """A stored bag of rows.

    >>> table("R", ["a", "b"]).columns
    ('a', 'b')
    """
    expect(name, str, "the name of a table")
    return Table(name, column_names(columns, f"the columns of {name}"), "")


def empty(columns: Sequence[str]) -> Query:
    """∅, the query without rows.

    >>> print(empty(["a", "b"]))
    ∅[a, b]
    """
    return Empty(tuple(Column(c) for c in column_names(columns, "the columns of ∅")))


def literal(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Query:
    """The given rows, as often as they are given.

    >>> print(literal(["a", "b"], [(1, None), (1, None)]))
    {(1, NULL), (1, NULL)}[a, b]
    """
    names = column_names(columns, "the columns of a literal")
    expect(rows, Iterable, "the rows of a literal")
    given = list(rows)
    for row in given:
        expect(row, (tuple, list), "a row of a literal", "Give each row as a tuple, such as (1,).")
    return Literal(names, tuple(tuple(row) for row in given))

"""Transactions as in the papers: statements given as queries, composed into one change per table.

A later statement sees the earlier ones: with R changed to (R ∸ ∇₁) ⊎ Δ₁ so far, a statement that
takes D away and puts I in gives

    ∇₂ = ∇₁ ⊎ (D ∸ Δ₁)        Δ₂ = (Δ₁ ∸ D) ⊎ I

and Theorem 2 of Griffin & Libkin 1995 makes the pair strongly minimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.changes.change import Change, change
from viewkeeper.algebra.changes.gl95 import strongly_minimal
from viewkeeper.algebra.changes.propagation import Pair
from viewkeeper.algebra.nodes import Empty, Node, Project, Query, Table
from viewkeeper.algebra.scalar_text import read_scalar
from viewkeeper.algebra.scalars import Col
from viewkeeper.algebra.scope import A_QUERY, Scope, expect
from viewkeeper.algebra.walk import substitute
from viewkeeper.errors import ArityError, UnknownColumnError, suggestion


@dataclass(frozen=True)
class Statement:
    """R ← (R ∸ removed) ⊎ added, both evaluated in the state that the statement finds."""

    table: Table
    removed: Query
    added: Query

    def __post_init__(self) -> None:
        expect(self.table, Table, "what a statement changes", "Give a table: al.table(…).")
        for part in (self.removed, self.added):
            expect(part, Node, "the rows of a statement", A_QUERY)
            if part.arity != self.table.arity:
                raise ArityError(
                    f"{self.table.name} has {self.table.arity} columns,"
                    f" the statement's rows have {part.arity}",
                    hint=f"Give rows of ({', '.join(self.table.names)}).",
                )


def insert(table: Table, rows: Query) -> Statement:
    """INSERT INTO table: adds the rows of a query.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a"])
    >>> print(al.insert(R, al.literal(["a"], [(1,)])).added)
    {(1)}[a]
    """
    expect(table, Table, "what an insertion changes", "Give a table: al.table(…).")
    return Statement(table, Empty(table.scope), rows)


def delete(table: Table, rows: str | Query) -> Statement:
    """DELETE FROM table: takes away the rows of a query, or those that meet a condition.

    >>> from viewkeeper import algebra as al
    >>> print(al.delete(al.table("R", ["a"]), "a > 1").removed)
    σ[a > 1](R)
    """
    expect(table, Table, "what a deletion changes", "Give a table: al.table(…).")
    gone = table.select(rows) if isinstance(rows, str) else rows
    return Statement(table, gone, Empty(table.scope))


def update(table: Table, values: Mapping[str, str], where: str = "TRUE") -> Statement:
    """UPDATE table SET column = expression, … WHERE condition.

    >>> from viewkeeper import algebra as al
    >>> s = al.update(al.table("R", ["a", "b"]), {"b": "b + 1"}, where="a = 1")
    >>> print(s.removed, "  ", s.added)
    σ[a = 1](R)    Π[a, b + 1 AS b](σ[a = 1](R))
    """
    expect(table, Table, "what an update changes", "Give a table: al.table(…).")
    expect(values, Mapping, "what an update sets", 'Give a dict, such as {"b": "b + 1"}.')
    for name in values:
        if name not in table.names:
            raise UnknownColumnError(
                f"no column {name!r} in {table.name}", hint=suggestion(name, table.names)
            )
    met = table.select(where)
    scope = Scope(table.scope)
    items = tuple(
        read_scalar(values[n], scope) if n in values else Col(i) for i, n in enumerate(table.names)
    )
    return Statement(table, met, Project(met, items, table.names))


class Transaction(Mapping[str, Pair]):
    """One strongly minimal change per table, as queries over the state before."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.tables: dict[str, Table] = {}
        self._pairs: dict[str, Pair] = {}
        expect(statements, Iterable, "a transaction")
        for statement in statements:
            expect(statement, Statement, "a statement", "Make one with insert, delete or update.")
            self._compose(statement)

    def _compose(self, statement: Statement) -> None:
        table = statement.table
        now: dict[Query, Query] = {t: self.after(t) for t in self.tables.values()}
        gone = substitute(statement.removed, now)
        come = substitute(statement.added, now)
        if table.name in self._pairs:
            before = self._pairs[table.name]
            pair = Pair(before.removed + (gone - before.added), (before.added - gone) + come)
        else:
            pair = Pair(gone, come)
        self.tables[table.name] = table
        self._pairs[table.name] = strongly_minimal(table, pair)

    def after(self, table: Table) -> Query:
        """(R ∸ ∇R) ⊎ ΔR: the table as the transaction leaves it, over the state before."""
        pair = self._pairs[table.name]
        return (table - pair.removed) + pair.added

    def pre(self, query: Query) -> Query:
        """pre(t, Q): the value that a query will have afterwards, evaluated before.

        >>> from viewkeeper import algebra as al
        >>> R = al.table("R", ["a"])
        >>> t = al.transaction([al.delete(R, "a > 1")])
        >>> al.evaluate(t.pre(R), {"R": [(1,), (2,)]})
        Counter({(1,): 1})
        """
        return substitute(query, {t: self.after(t) for t in self.tables.values()})

    def __getitem__(self, name: str) -> Pair:
        return self._pairs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def transaction(statements: Iterable[Statement]) -> Transaction:
    """Statements, in order, as one transaction.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a"])
    >>> one = al.literal(["a"], [(1,)])
    >>> t = al.transaction([al.insert(R, one), al.delete(R, one)])
    >>> [al.evaluate(part, {"R": [(1,)]}) for part in t["R"]]
    [Counter(), Counter()]
    """
    return Transaction(statements)


def violations(constraint: Query, changed: Transaction | Iterable[str]) -> Query:
    """The test α of a safe transaction, ``if α then t else abort``: safe where this is empty.

    ``constraint`` is a query that must stay empty, and is empty before the transaction. So its
    value afterwards is what the transaction adds to it, Δ, evaluated before anything is written.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a"])
    >>> negative = R.select("a < 0")
    >>> print(al.simplify(al.violations(negative, ["R"])))
    σ[a < 0](ΔR)
    """
    found: Change = change(constraint, changed)
    return found.added

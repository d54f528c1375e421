"""What is known of the tables, and what follows for queries: a fact may be unknown, never wrong.

A fact holds in the state before a transaction and in the state after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from viewkeeper.algebra.nodes import Node, Query, Table
from viewkeeper.algebra.scalar_text import read_scalar
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.algebra.scope import Scope
from viewkeeper.errors import FactError, suggestion


class ForeignKey(NamedTuple):
    """Each row of ``table`` without NULL in ``columns`` has a row of ``parent`` with equal values
    in ``parent_columns``, which are a key there."""

    table: str
    columns: Sequence[str]
    parent: str
    parent_columns: Sequence[str]


Keys = str | Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Facts:
    """What the optimizer may rely on.

    Parameters
    ----------
    keys : mapping of str to list of str, or to a list of such lists
        Columns that no two rows of a table share. A table with a key has no duplicates.
    foreign_keys : list of (table, columns, parent, parent columns)
    append_only : list of str
        Tables from which nothing is ever removed: ∇R = ∅.
    insert_free : list of str
        Tables to which nothing is ever added: ΔR = ∅.
    duplicate_free : list of str
        Tables without duplicates.
    checks : mapping of str to str
        A condition that is TRUE for every row of a table.
    contained : list of (query, query)
        S ⊑ T: S has no row more often than T.
    disjoint : list of (query, query)
        S min T = ∅: no row is in both.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["a"])
    >>> print(al.simplify(R - S, al.Facts(checks={"R": "a < 0", "S": "a > 0"})))
    R
    """

    keys: Mapping[str, Keys] = field(default_factory=dict)
    foreign_keys: Sequence[tuple[str, Sequence[str], str, Sequence[str]]] = ()
    append_only: Collection[str] = ()
    insert_free: Collection[str] = ()
    duplicate_free: Collection[str] = ()
    checks: Mapping[str, str] = field(default_factory=dict)
    contained: Sequence[tuple[Query, Query]] = ()
    disjoint: Sequence[tuple[Query, Query]] = ()

    def __post_init__(self) -> None:
        for what in ("keys", "checks"):
            if not isinstance(getattr(self, what), Mapping):
                raise _wrong(what, getattr(self, what), 'a dict, such as {"R": "a"}')
        for what in ("append_only", "insert_free", "duplicate_free"):
            names = getattr(self, what)
            if isinstance(names, str):  # one table; a text would hold the names within it too
                names = (names,)
                object.__setattr__(self, what, names)
            if not (isinstance(names, Collection) and all(isinstance(n, str) for n in names)):
                raise _wrong(what, names, "a list of table names")
        for what, parts in (("foreign_keys", 4), ("contained", 2), ("disjoint", 2)):
            given = getattr(self, what)
            if not (isinstance(given, Sequence) and all(_parts(g) == parts for g in given)):
                raise _wrong(what, given, f"a list of tuples, each with {parts} parts")
        for table, given in self.keys.items():
            if not isinstance(given, Sequence):
                raise _wrong(f"the key of {table}", given, "column names")
        for s, t in (*self.contained, *self.disjoint):
            if not (isinstance(s, Node) and isinstance(t, Node) and s.arity == t.arity):
                raise _wrong("a fact", (s, t), "two queries with as many columns")

    def keys_of(self, table: Table) -> list[frozenset[int]]:
        """The keys of a table, as positions."""
        given = self.keys.get(table.name, ())
        if isinstance(given, str):
            return [frozenset(positions(table, [given]))]
        single = [k for k in given if isinstance(k, str)]
        if single:
            return [frozenset(positions(table, single))]
        return [frozenset(positions(table, list(k))) for k in given]

    def check(self, table: Table) -> Scalar | None:
        """The condition that every row of a table meets."""
        text = self.checks.get(table.name)
        own = table.scope[: len(table.names)]  # not the weight of ±R
        return None if text is None else read_scalar(text, Scope(own))

    def references(self) -> list[ForeignKey]:
        """The foreign keys, single columns given as lists."""
        found = []
        for fk in self.foreign_keys:
            table, columns, parent, parent_columns = fk
            columns = [columns] if isinstance(columns, str) else columns
            more = [parent_columns] if isinstance(parent_columns, str) else parent_columns
            if len(columns) != len(more):
                raise FactError(
                    f"the foreign key of {table} has {len(columns)} columns,"
                    f" the key of {parent} has {len(more)}",
                    hint="Give as many columns on both sides.",
                )
            found.append(ForeignKey(table, columns, parent, more))
        return found


def _parts(given: object) -> int:
    return len(given) if isinstance(given, tuple | list) else -1


def _wrong(what: str, given: object, wanted: str) -> FactError:
    return FactError(f"{what} is {given!r}", hint=f"Give {wanted}.")


def positions(table: Table, columns: Sequence[str]) -> tuple[int, ...]:
    """The places of named columns in a table."""
    for c in columns:
        if c not in table.names:
            raise FactError(
                f"a fact names column {c!r}, which table {table.name} does not have",
                hint=suggestion(c, table.names),
            )
    return tuple(table.names.index(c) for c in columns)

"""What an incremental evaluation system is: tables, outputs, and what to do on each event.

The words are those of Libkin, Su, Wong and Dong, *Maintaining Transitive Closure of Graphs in SQL*:
an input database, an answer, auxiliary tables, and one update program per kind of update. A program
is a list of small values; all of its queries are SELECTs, so running it changes nothing until the
rows that it names are committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Union

NODE = "NODE"  # the type of a column that holds a node: one column of the edges, or several

Event = Literal["INSERT", "DELETE", "BATCH", "BUILD"]
EVENTS: tuple[Event, ...] = ("INSERT", "DELETE", "BATCH", "BUILD")


@dataclass(frozen=True)
class Column:
    """A column of a stored table or of an input: its name and its SQL type, or NODE."""

    name: str
    type: str


@dataclass(frozen=True)
class Relation:
    """A stored table or an input."""

    name: str
    columns: tuple[Column, ...]
    comment: str = ""


@dataclass(frozen=True)
class Output:
    """A query over the stored tables that readers see."""

    name: str
    sql: str
    comment: str = ""


@dataclass(frozen=True)
class Step:
    """A temporary relation: ``name`` means the rows of ``sql`` from here on.

    A lazy one (``-- VIEW``) is a name for its query; the others are computed once, here.
    """

    name: str
    sql: str
    comment: str = ""
    lazy: bool = False


@dataclass(frozen=True)
class Change:
    """Rows that leave a stored table, or enter it, when the program has come to its end."""

    kind: Literal["DELETE", "INSERT"]
    table: str
    sql: str
    comment: str = ""

    @property
    def name(self) -> str:
        """The name of the relation that holds the rows."""
        return f"{self.table}_{'GONE' if self.kind == 'DELETE' else 'COME'}"


@dataclass(frozen=True)
class When:
    """Steps that run only if a relation has rows; else what they define is empty."""

    relation: str
    body: tuple[Item, ...]
    comment: str = ""


@dataclass(frozen=True)
class Repeat:
    """Steps that run as long as a relation has rows.

    After ``at_most`` rounds, if given, the program gives up as `Recompute` does.
    """

    relation: str
    body: tuple[Item, ...]
    at_most: int | None = None
    comment: str = ""


@dataclass(frozen=True)
class Fail:
    """An error if a relation has rows; the rows of ``show`` are in the error."""

    check: str
    relation: str
    show: str
    comment: str = ""


@dataclass(frozen=True)
class Recompute:
    """Gives up if a relation has rows: building anew is cheaper."""

    relation: str
    comment: str = ""


Item = Union[Step, Change, When, Repeat, Fail, Recompute]


@dataclass(frozen=True)
class Program:
    """What to do on an event; ``parameters`` are the columns of the changed row, if it is one."""

    event: Event
    body: tuple[Item, ...]
    parameters: tuple[Column, ...] = ()
    comment: str = ""

    def items(self) -> Iterator[Item]:
        """All parts, those inside blocks included, in their order."""
        return walk(self.body)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The rows that leave and enter stored tables."""
        return tuple(item for item in self.items() if isinstance(item, Change))


@dataclass(frozen=True)
class System:
    """An incremental evaluation system (IES)."""

    name: str
    inputs: tuple[Relation, ...]
    tables: tuple[Relation, ...]
    outputs: tuple[Output, ...]
    programs: Mapping[Event, Program]
    nodes: frozenset[str] = frozenset()  # the column names that hold nodes, in lower case
    comment: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)  # parameters with a default

    def table(self, name: str) -> Relation:
        """The stored table of a name."""
        return next(table for table in self.tables if table.name == name)

    def output(self, name: str) -> Output:
        """The output of a name."""
        return next(output for output in self.outputs if output.name == name)


def walk(items: tuple[Item, ...]) -> Iterator[Item]:
    """All parts of a program, those inside blocks included, in their order."""
    for item in items:
        yield item
        if isinstance(item, (When, Repeat)):
            yield from walk(item.body)

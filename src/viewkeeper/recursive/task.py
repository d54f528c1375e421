"""What a view that is kept by a program is: a closure, or a system of the user's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import cast

from viewkeeper.recursive.closure import Closure
from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.layout import Columns, Layout
from viewkeeper.recursive.library import SINGLE, Graph, load
from viewkeeper.recursive.model import NODE, Relation, System
from viewkeeper.recursive.nodes import column_names
from viewkeeper.recursive.reading import read_system
from viewkeeper.recursive.rendering import columns, prepare

PREFIX = "__vk_"  # of the relations of a running program


@dataclass(frozen=True)
class Task:
    """A closure (``graph``, ``start``, ``end``) or a program (``text``), over an input query.

    Parameters
    ----------
    graph : str
        The kind of graph, for a closure.
    start, end : tuple of str
        The columns of the input query for the two ends, for a closure.
    text : str
        The text of a system, or the name of a shipped one, for a program.
    inputs : tuple of (str, str)
        The columns of the input query, with their types.
    nulls : str
        What a NULL end is in a closure: "skip", no edge; "refuse", an error, because the query
        that the closure stands for would keep it.

    Examples
    --------
    >>> inputs = (("src", "int"), ("dst", "int"))
    >>> task = Task("acyclic", ("src",), ("dst",), inputs=inputs)
    >>> task.outputs("store")
    {'pairs': 'SELECT `t`.`Start` AS `src`, `t`.`End` AS `dst` FROM (SELECT `Start` AS `Start`, \
`End` AS `End` FROM `store`) AS `t`'}
    >>> Task.from_json(task.to_json()) == task
    True
    >>> Task(text="even", inputs=(("row", "string"),)).layout.columns
    (('One', 'INT'),)
    """

    graph: str = ""
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    text: str = ""
    inputs: Columns = ()
    nulls: str = "skip"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Task:
        found = json.loads(text)
        found["inputs"] = tuple((n, t) for n, t in found["inputs"])
        return Task(**{**found, "start": tuple(found["start"]), "end": tuple(found["end"])})

    @property
    def is_closure(self) -> bool:
        return bool(self.graph)

    @property
    def known(self) -> bool:
        """Whether the programs are ours, so that each engine gives the same answer."""
        return self.is_closure or self.text in SINGLE

    def closure(self, dialect: str = "spark") -> Closure:
        """The closure, in a dialect."""
        return Closure(self.start, self.end, cast(Graph, self.graph), dialect, PREFIX)

    def system(self, dialect: str = "spark") -> System:
        """The programs, in a dialect."""
        if self.is_closure:
            return self.closure(dialect).system
        return _prepared(self.text, dialect, self.width)

    @property
    def plain_system(self) -> System:
        """The programs as their text has them."""
        return load(self.graph) if self.is_closure else _read(self.text)

    @property
    def rowwise(self) -> bool:
        """Whether the programs are for one row at a time."""
        return "BATCH" not in self.plain_system.programs

    @property
    def input(self) -> Relation:
        """The relation that holds the rows of the input query."""
        return self.plain_system.inputs[0]

    @cached_property
    def width(self) -> int:
        """How many columns tell nodes apart."""
        if self.is_closure:
            return len(self.start)
        nodes = sum(c.type.upper() == NODE for c in self.input.columns)
        plain = len(self.input.columns) - nodes
        given = len(self.inputs)
        if (
            given < nodes + plain
            or (given - plain) % max(nodes, 1)
            or (not nodes and given > plain)
        ):
            raise ProgramError(
                f"the query has {given} columns, the input {self.input.name} has "
                f"{', '.join(c.name for c in self.input.columns)}",
                hint="Select these columns; a NODE may be several, as many for each.",
            )
        return (given - plain) // nodes if nodes else 1

    @cached_property
    def node_types(self) -> tuple[str, ...]:
        """The types of the columns of a node."""
        found: list[tuple[str, ...]] = []
        at = 0
        for column in self.input.columns:
            wide = self.width if column.type.upper() == NODE else 1
            if column.type.upper() == NODE:
                found.append(tuple(kind for _, kind in self.inputs[at : at + wide]))
            at += wide
        if any(kinds != found[0] for kinds in found):
            listed = ", ".join(f"{name} {kind}" for name, kind in self.inputs)
            raise ProgramError(
                f"the ends of an edge are of different types: {listed}",
                hint="Give a query that casts them to one type.",
            )
        return found[0] if found else ("STRING",)

    @cached_property
    def input_columns(self) -> Columns:
        """The columns of the input relation, as the programs know them."""
        return tuple(columns(self.input, self.width, self.node_types))

    @cached_property
    def node_columns(self) -> tuple[str, ...]:
        """Those that hold nodes."""
        nodes = [c.name for c in self.input.columns if c.type.upper() == NODE]
        return tuple(n for name in nodes for n in column_names(name, self.width))

    @cached_property
    def layout(self) -> Layout:
        """Where the stored tables are in the store."""
        return Layout.of(self.plain_system, self.width, self.node_types)

    def outputs(self, store: str) -> dict[str, str]:
        """What readers see: a query over the store for each output."""
        names = [o.name for o in self.plain_system.outputs]
        if self.is_closure:
            closure = self.closure()
            texts = {name: closure.output(name) for name in names}
        else:
            texts = {o.name: o.sql for o in self.system().outputs}
        return {name: self.layout.reader(sql, store, PREFIX) for name, sql in texts.items()}


@cache
def _read(text: str) -> System:
    return load(text) if text in SINGLE else read_system(text)


@cache
def _prepared(text: str, dialect: str, width: int) -> System:
    return prepare(_read(text), dialect, width, PREFIX)


def names_of(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One column or several, as given.

    >>> names_of("a"), names_of(["a", "b"])
    (('a',), ('a', 'b'))
    """
    found = (columns,) if isinstance(columns, str) else tuple(columns or ())
    if not all(isinstance(name, str) for name in found):
        raise ProgramError(f"{columns!r} does not name columns", hint="Give names, as text.")
    return found

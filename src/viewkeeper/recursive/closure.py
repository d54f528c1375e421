"""The closure of a graph, kept: which program runs, over which columns, and what readers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlglot import exp, parse_one

from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.library import GRAPHS, Graph, load
from viewkeeper.recursive.model import System
from viewkeeper.recursive.nodes import column_names
from viewkeeper.recursive.rendering import bind, prepare
from viewkeeper.recursive.running import Outcome, Runner, run


@dataclass(frozen=True)
class Closure:
    """What a user asks for: the closure of the edges in a table.

    Parameters
    ----------
    start, end : sequence of str
        The columns of the edges' table that hold the two ends, as many for each.
    graph : str
        "directed", "acyclic" or "undirected".
    dialect : str
        The SQL that the programs are written in: "spark" or "duckdb".
    prefix : str
        What the names of all relations begin with.

    Examples
    --------
    >>> closure = Closure(["src"], ["dst"], "acyclic", prefix="v_")
    >>> closure.edges("links")
    'SELECT `src` AS `Start`, `dst` AS `End` FROM links'
    >>> closure.output("pairs")
    'SELECT `t`.`Start` AS `src`, `t`.`End` AS `dst` FROM `v_TC` AS `t`'
    """

    start: Sequence[str]
    end: Sequence[str]
    graph: Graph
    dialect: str = "spark"
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.graph not in GRAPHS:
            raise ProgramError(
                f"{self.graph!r} is no kind of graph", hint=f"There are: {', '.join(GRAPHS)}."
            )
        if not self.start or len(self.start) != len(self.end):
            raise ProgramError(
                f"start has {len(self.start)} columns and end has {len(self.end)}",
                hint="Give as many columns for the one as for the other, at least one.",
            )
        names = [name.lower() for name in (*self.start, *self.end)]
        if len(set(names)) < len(names):
            raise ProgramError(
                f"a column is named twice: {', '.join((*self.start, *self.end))}",
                hint="The two ends of an edge have columns of their own.",
            )

    @property
    def width(self) -> int:
        """How many columns tell nodes apart."""
        return len(self.start)

    @property
    def system(self) -> System:
        """The programs, for the dialect and the number of columns."""
        return _prepared(self.graph, self.dialect, self.width, self.prefix)

    def edges(self, table: str, *extra: str) -> str:
        """The query that gives the input EDGES from the user's table (and ``extra`` columns)."""
        ours = [*column_names("Start", self.width), *column_names("End", self.width), *extra]
        theirs = [*self.start, *self.end, *extra]
        listed = ", ".join(
            f"{self._quoted(t)} AS {self._quoted(o)}" for t, o in zip(theirs, ours, strict=True)
        )
        return f"SELECT {listed} FROM {table}"

    def output(self, name: str = "pairs") -> str:
        """The query that readers see, with the user's column names.

        ``pairs`` has the columns of start and end. For undirected graphs ``components`` has those
        of start for a node, and then, with ``component_`` before their names, its component.
        """
        sql = self.system.output(name).sql
        tree = parse_one(sql, read=self.dialect)
        assert isinstance(tree, exp.Select)
        second = [f"component_{c}" for c in self.start] if name == "components" else self.end
        names = [*self.start, *second]
        renamed = [
            exp.alias_(e.unalias(), exp.to_identifier(n, quoted=True))
            for e, n in zip(tree.expressions, names, strict=True)
        ]
        tree.set("expressions", renamed)
        return tree.sql(self.dialect, identify=True)

    def _quoted(self, name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(self.dialect)


@cache
def _prepared(graph: Graph, dialect: str, width: int, prefix: str) -> System:
    return prepare(load(graph), dialect, width, prefix)


def refresh(
    closure: Closure,
    runner: Runner,
    settings: Mapping[str, Any] | None = None,
    *,
    gives_up: bool = True,
) -> Outcome:
    """Follows a batch of changed rows: says which rows of the stored tables change.

    The runner knows EDGES (the rows now), CHANGES (the rows that came and went, with a ``Weight``)
    and the stored tables. If the program gives up (and it may), the tables are built anew: then
    ``outcome.replace`` is true, and each stored table is to hold exactly the inserted rows.
    """
    system = closure.system
    how = {"dialect": closure.dialect, "width": closure.width}
    program = bind(system, system.programs["BATCH"], settings, **how)  # type: ignore[arg-type]
    outcome = run(program, runner, width=closure.width, gives_up=gives_up)
    if outcome.recompute is None:
        return outcome
    built = build(closure, runner, settings)
    return replace(
        built,
        recompute=outcome.recompute,
        steps=outcome.steps + built.steps,
        rounds=outcome.rounds + built.rounds,
    )


def build(closure: Closure, runner: Runner, settings: Mapping[str, Any] | None = None) -> Outcome:
    """Builds the stored tables from EDGES; each is to hold exactly the inserted rows."""
    system = closure.system
    how = {"dialect": closure.dialect, "width": closure.width}
    program = bind(system, system.programs["BUILD"], settings, **how)  # type: ignore[arg-type]
    outcome = run(program, runner, width=closure.width)
    return replace(outcome, replace=True)

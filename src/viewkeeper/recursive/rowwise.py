"""Programs for one row at a time, run for all rows that came and went in a batch.

The deletions come first. Between two rows the stored tables and the input are brought up to date,
in relations of the runner; what is to be committed is the difference between the stored tables
before the first row and after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.layout import Columns, in_dialect, quoted
from viewkeeper.recursive.model import NODE, Column, Event
from viewkeeper.recursive.rendering import bind, literal
from viewkeeper.recursive.running import Outcome, Runner, TableChange, run
from viewkeeper.recursive.task import PREFIX, Task

ROWS, CHANGES = "ROWS__", "CHANGES__"  # the rows now, the rows that came and went
MOST_ROWS = 500  # with more, building anew is cheaper, if the system says how


def follow(task: Task, runner: Runner, dialect: str, *, gives_up: bool = True) -> Outcome:
    """Runs the programs for the rows of CHANGES__; the runner also knows ROWS__ and the tables.

    The input is a set: a row counts once however often it is there, and a row with a NULL node
    does not count.
    """
    one = _RowWise(task, runner, dialect, gives_up)
    gone, come = one.changed()
    if gives_up and len(gone) + len(come) > MOST_ROWS and "BUILD" in one.system.programs:
        reason = f"{len(gone) + len(come)} rows changed"
        return replace(build(task, runner, dialect), recompute=reason)
    one.start_before()
    return one.all([("DELETE", row) for row in gone] + [("INSERT", row) for row in come])


def build(task: Task, runner: Runner, dialect: str) -> Outcome:
    """Builds the stored tables from ROWS__: by ON BUILD, or by inserting row after row."""
    one = _RowWise(task, runner, dialect)
    if "BUILD" in one.system.programs:
        one.define(task.input.name, one.distinct())
        program = bind(one.system, one.system.programs["BUILD"], dialect=dialect, width=task.width)
        return replace(run(program, runner, width=task.width), replace=True)
    for table, _ in task.layout.tables:
        one.define(table, f"SELECT * FROM {_name(table)} LIMIT 0")
    one.define("NOW__", one.distinct())
    one.define(task.input.name, f"SELECT * FROM {_name('NOW__')} LIMIT 0")
    outcome = one.all([("INSERT", row) for row in runner.rows("NOW__")])
    return replace(outcome, replace=True)


class _RowWise:
    def __init__(self, task: Task, runner: Runner, dialect: str, gives_up: bool = True) -> None:
        self.task, self.runner, self.dialect = task, runner, dialect
        self.gives_up = gives_up
        self.system = task.system(dialect)
        self.input = task.input.name
        self.columns: Columns = task.input_columns
        self.listed = ", ".join(quoted(name) for name, _ in self.columns)

    def define(self, name: str, sql: str) -> None:
        self.runner.define(name, in_dialect(sql, self.dialect), lazy=False)

    def whole(self, alias: str) -> str:
        """The condition that no node is NULL."""
        tests = [f"{alias}.{quoted(n)} IS NOT NULL" for n in self.task.node_columns]
        return " AND ".join(tests) or "TRUE"

    def distinct(self) -> str:
        return f"SELECT DISTINCT {self.listed} FROM {_name(ROWS)} AS r WHERE {self.whole('r')}"

    def changed(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The rows that are there no more, and those that were not there before."""
        self.define(
            "NET__",
            f"SELECT {self.listed}, SUM(u.`Weight`) AS `Weight`, SUM(u.`Now`) AS `Now` FROM ("
            f"SELECT {self.listed}, c.`Weight`, 0 AS `Now` FROM {_name(CHANGES)} AS c"
            f" UNION ALL SELECT {self.listed}, 0 AS `Weight`, 1 AS `Now` FROM {_name(ROWS)} AS r"
            f") AS u WHERE {self.whole('u')} GROUP BY {self.listed} HAVING SUM(u.`Weight`) <> 0",
        )
        net = _name("NET__")
        self.define("WENT__", f"SELECT {self.listed} FROM {net} AS n WHERE n.`Now` = 0")
        self.define(
            "CAME__",
            f"SELECT {self.listed} FROM {net} AS n WHERE n.`Now` > 0 AND n.`Now` <= n.`Weight`",
        )
        return self.runner.rows("WENT__"), self.runner.rows("CAME__")

    def start_before(self) -> None:
        """The input as it was before the batch."""
        self.define(
            self.input,
            f"SELECT * FROM (({self.distinct()}) EXCEPT (SELECT * FROM {_name('CAME__')})) AS k"
            f" UNION ALL SELECT * FROM {_name('WENT__')}",
        )

    def all(self, events: Sequence[tuple[Event, tuple[Any, ...]]]) -> Outcome:
        outcome = Outcome()
        for table, _ in self.task.layout.tables:
            self.define(f"{table}__BEFORE", f"SELECT * FROM {_name(table)}")
        for event, row in events:
            found = self.one(event, row)
            if found.recompute is not None:
                return replace(
                    build(self.task, self.runner, self.dialect), recompute=found.recompute
                )
            outcome.steps += found.steps
            outcome.rounds += found.rounds
        for table, held in self.task.layout.tables:
            cast = _casts(held)
            now, before = f"SELECT {cast} FROM {_name(table)}", f"SELECT {cast} FROM "
            before += _name(f"{table}__BEFORE")
            self.define(f"{table}__GONE", f"({before}) EXCEPT ({now})")
            self.define(f"{table}__COME", f"({now}) EXCEPT ({before})")
            outcome.changes.append(TableChange(table, f"{table}__GONE", f"{table}__COME"))
        return outcome

    def one(self, event: Event, row: tuple[Any, ...]) -> Outcome:
        """Runs the program for one row, and brings the tables and the input up to date."""
        if event not in self.system.programs:
            raise ProgramError(
                f"{self.system.name} has no program ON {event}",
                hint='Write one; or refresh the view with strategy="full".',
            )
        program = self.system.programs[event]
        bound = bind(
            self.system, program, values_of(self.task, program.parameters, row),
            dialect=self.dialect, width=self.task.width,
        )  # fmt: skip
        found = run(bound, self.runner, width=self.task.width, gives_up=self.gives_up)
        for change in found.changes:
            self.update(change)
        values = ", ".join(
            f"CAST({v.sql('spark')} AS {kind}) AS {quoted(name)}"
            for v, (name, kind) in zip(_literals(self.task, row), self.columns, strict=True)
        )
        how = "EXCEPT" if event == "DELETE" else "UNION"
        self.define(self.input, f"SELECT * FROM {_name(self.input)} {how} SELECT {values}")
        return found

    def update(self, change: TableChange) -> None:
        cast = _casts(self.task.layout.held(change.table))
        text = f"SELECT {cast} FROM {_name(change.table)}"
        if change.deleted:
            text = f"({text}) EXCEPT (SELECT {cast} FROM {_name(change.deleted)})"
        if change.inserted:
            text = f"({text}) UNION (SELECT {cast} FROM {_name(change.inserted)})"
        self.define(change.table, text)


def values_of(
    task: Task, parameters: Sequence[Column], row: tuple[Any, ...]
) -> dict[str, exp.Expr | tuple[exp.Expr, ...]]:
    """A row of the input as the parameters of a program, with their types."""
    left = _literals(task, row)
    found: dict[str, Any] = {}
    for parameter in parameters:
        wide = task.width if parameter.type.upper() == NODE else 1
        part, left = left[:wide], left[wide:]
        found[parameter.name] = part[0] if wide == 1 else tuple(part)
    return found


def _literals(task: Task, row: tuple[Any, ...]) -> list[exp.Expr]:
    """The values of a row, with their types."""
    return [literal(v, kind) for v, (_, kind) in zip(row, task.input_columns, strict=True)]


def _casts(held: Columns) -> str:
    return ", ".join(f"CAST({quoted(n)} AS {kind}) AS {quoted(n)}" for n, kind in held)


def _name(relation: str) -> str:
    return quoted(PREFIX + relation)


__all__ = ["CHANGES", "MOST_ROWS", "ROWS", "build", "follow", "values_of"]

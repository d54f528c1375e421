"""Where a program runs, and the queries that turn what it says into rows of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from viewkeeper.compiled import Compiled
from viewkeeper.engine import program_driver
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.program_driver import DriverDesk, NotHere
from viewkeeper.engine.program_spark import SparkDesk
from viewkeeper.engine.runner import Result, Runner
from viewkeeper.engine.sure_text import UnsureError
from viewkeeper.engine.vector import Pin
from viewkeeper.lake.sources import at
from viewkeeper.recursive import closure as closures
from viewkeeper.recursive import rowwise
from viewkeeper.recursive.errors import NullEndError
from viewkeeper.recursive.layout import in_dialect
from viewkeeper.recursive.model import Change, Step
from viewkeeper.recursive.rendering import bind
from viewkeeper.recursive.running import Outcome, run
from viewkeeper.recursive.task import PREFIX, Task

Desk = DriverDesk | SparkDesk
_COLLECTED = 2_000_000  # edges that Spark reads for the driver


@dataclass
class Place:
    """Where a program runs: the query of its input, the sources, the store if there is one, and
    what a transaction does to the sources."""

    runner: Runner
    task: Task
    compiled: Compiled
    pins: Mapping[str, Pin]
    sql: str
    store: Pin | None = None
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

    def edges(self) -> DataFrame:
        """The rows of the input, by Spark."""
        spark = self.runner.spark
        if self.compiled.definition.query is None:
            return spark.sql(self.sql)
        for leaf, table in self.compiled.leaves.items():
            pin = self.pins.get(leaf)
            if pin is None:
                self.runner.bind(table, spark.table(self.compiled.definition.sources[leaf].sql))
            elif leaf in self.overlays:
                self.runner.bind(table, self.overlays[leaf].frame(spark, list(table.names)))
            else:
                self.runner.bind(table, at(spark, pin.source, pin.version, list(table.names)))
        return self.runner.frame(self.compiled.query)

    def driver(self, change: Result | None) -> DriverDesk:
        """The input, its change and the store known to DuckDB."""
        if change is not None and change.rows is None:
            raise UnsureError("a change that is not on the driver")
        pins = [*self.pins.values(), *([self.store] if self.store else [])]
        program_driver.check(self.runner, self.task, pins)
        desk = DriverDesk(self.runner)
        try:
            self._fill(desk, change)
        except BaseException:
            desk.close()
            raise
        return desk

    def _fill(self, desk: DriverDesk, change: Result | None) -> None:
        names, columns = inputs(self.task), self.task.input_columns
        try:
            if self.compiled.definition.query is None:
                raise UnsureError("a query that has no translation")
            query, pins = self.compiled.query, dict(self.pins)
            desk.bind_query(names[0], query, pins, columns, self.overlays)
        except NotHere:  # Spark reads the edges, and the driver goes on with them
            rows = self.edges().limit(_COLLECTED + 1).toArrow()
            if rows.num_rows > _COLLECTED:
                raise
            desk.bind_rows(names[0], rows, columns)
        if change is not None and change.rows is not None:
            desk.bind_rows(names[1], change.rows, (*columns, ("Weight", "BIGINT")))
        desk.bind_store(self.task.layout, self.store)
        desk.keep()

    def spark(self, change: Result | None) -> SparkDesk:
        """The same for Spark."""
        desk = SparkDesk(self.runner)
        names = inputs(self.task)
        columns = [name for name, _ in self.task.input_columns]
        edges = self.edges().toDF(*columns)
        if change is None:  # each round reads them
            edges = edges.persist()
            self.runner.at_end(edges.unpersist)
        desk.bind(names[0], edges)
        if change is not None:
            if change.rows is not None:
                frame = self.runner.local(change.rows, change.schema)
            else:
                assert change.frame is not None
                frame = change.frame
            desk.bind(names[1], frame.toDF(*columns, "Weight"))
        layout = self.task.layout
        if self.store is None:
            types = ", ".join(f"`{n}` {kind}" for n, kind in layout.columns)
            stored = desk.spark.createDataFrame([], types)
        else:
            stored = at(desk.spark, self.store.source, self.store.version)
        stored.createOrReplaceTempView(f"{PREFIX}STORE__")
        for table, _ in layout.tables:
            desk.bind(table, desk.spark.sql(layout.select(table, f"`{PREFIX}STORE__`")))
        return desk


def inputs(task: Task) -> tuple[str, str]:
    """The names of the rows now, and of those that came and went."""
    if task.rowwise:
        return rowwise.ROWS, rowwise.CHANGES
    now, changes, *_ = task.plain_system.inputs
    return now.name, changes.name


def build(task: Task, desk: Desk) -> Outcome:
    """The stored tables from the rows of the input."""
    _check_nulls(task, desk, inputs(task)[0], "TRUE")
    if task.rowwise:
        return rowwise.build(task, desk, desk.dialect)
    if task.is_closure:
        return closures.build(task.closure(desk.dialect), desk)
    return _event(task, desk, "BUILD")


def follow(task: Task, desk: Desk, *, gives_up: bool = True) -> Outcome:
    """What the rows that came and went do to the stored tables; whether the program may give up."""
    _check_nulls(task, desk, inputs(task)[1], "`Weight` > 0")
    if task.rowwise:
        return rowwise.follow(task, desk, desk.dialect, gives_up=gives_up)
    if task.is_closure:
        return _closure(task, desk, gives_up)
    outcome = _event(task, desk, "BATCH", gives_up)
    if outcome.recompute is None:
        return outcome
    return replace(_event(task, desk, "BUILD"), recompute=outcome.recompute)


def rehearse(task: Task, desk: SparkDesk) -> None:
    """Reads all queries of a system of the user's, over no rows: what is wrong with its program for
    deletions is said when it is made, not when the first row goes.

    Raises
    ------
    ProgramError
        If Spark cannot read one of them.
    """
    rows, changes = inputs(task)
    none = ", ".join(f"CAST(NULL AS {kind}) AS `{n}`" for n, kind in task.input_columns)
    for name, more in ((rows, ""), (changes, ", CAST(NULL AS BIGINT) AS Weight")):
        desk.define_empty(name, f"SELECT {none}{more}")
    if task.rowwise:
        desk.define_empty(task.input.name, f"SELECT {none}")
    system = task.system()
    for program in system.programs.values():
        values = rowwise.values_of(task, program.parameters, (None,) * len(task.input_columns))
        bound = bind(system, program, values, width=task.width)
        for item in bound.items():
            if isinstance(item, (Step, Change)):
                desk.define_empty(item.name, item.sql)
            if isinstance(item, Change):
                desk.define_empty(
                    f"{item.name}__", task.layout.rows(item.table, PREFIX + item.name)
                )


def _closure(task: Task, desk: Desk, gives_up: bool) -> Outcome:
    """A batch of edges. What is too much for the driver to follow it may still build anew, which
    takes less than following it on Spark."""
    closure = task.closure(desk.dialect)
    try:
        return closures.refresh(closure, desk, gives_up=gives_up)
    except NotHere:
        if isinstance(desk, SparkDesk) or not gives_up:
            raise
        desk.forget()
        reason = "following the change takes more than the driver has"
        return replace(closures.build(closure, desk), recompute=reason)


def _event(task: Task, desk: Desk, event: Any, gives_up: bool = True) -> Outcome:
    system = task.system(desk.dialect)
    program = bind(system, system.programs[event], dialect=desk.dialect, width=task.width)
    outcome = run(program, desk, width=task.width, gives_up=gives_up)
    return replace(outcome, replace=event == "BUILD")


def _check_nulls(task: Task, desk: Desk, relation: str, which: str) -> None:
    """A closure that stands for a query which would keep edges without an end has none."""
    if task.nulls != "refuse":
        return
    missing = " OR ".join(f"`{name}` IS NULL" for name in task.node_columns)
    sql = f"SELECT * FROM `{PREFIX}{relation}` WHERE ({missing}) AND {which} LIMIT 1"
    desk.define("NULLS__", in_dialect(sql, desk.dialect), lazy=False)
    rows = desk.rows("NULLS__")
    if rows:
        raise NullEndError(rows[0][: len(task.inputs)])


def patch_sql(task: Task, desk: Desk, outcome: Outcome) -> str | None:
    """The query that gives the patch: the rows of the store that go and come."""
    if not task.known and not task.rowwise:
        return exact_sql(task, desk, outcome)
    parts = []
    for change in outcome.changes:
        for relation, op in ((change.deleted, "D"), (change.inserted, "I")):
            if relation and not desk.is_empty(relation):
                parts.append(task.layout.rows(change.table, PREFIX + relation, op))
    return in_dialect(" UNION ALL ".join(parts), desk.dialect) if parts else None


def whole_sql(task: Task, desk: Desk, outcome: Outcome) -> str:
    """The query that gives all rows of the store, after building."""
    come = {c.table: c.inserted for c in outcome.changes if c.inserted}
    parts = [task.layout.rows(t, PREFIX + name) for t, name in come.items()]
    if not task.known:  # a table is a set, whatever a program inserts
        parts = [f"SELECT DISTINCT * FROM ({part})" for part in parts]
    if not parts:
        parts = [task.layout.rows(t, PREFIX + t) + " WHERE FALSE" for t, _ in task.layout.tables]
    return in_dialect(" UNION ALL ".join(parts), desk.dialect)


def exact_sql(task: Task, desk: Desk, outcome: Outcome) -> str | None:
    """The same for a program that may delete what is not there, insert what is, or both."""
    parts = []
    for change in outcome.changes:
        held = task.layout.held(change.table)
        listed = ", ".join(f"CAST(`{n}` AS {kind}) AS `{n}`" for n, kind in held)
        old, gone, come = (
            f"(SELECT {listed} FROM `{PREFIX}{name}`)" if name else ""
            for name in (change.table, change.deleted, change.inserted)
        )
        went = f"({old} INTERSECT {gone}) EXCEPT {come}" if come else f"{old} INTERSECT {gone}"
        for op, sql in (("D", went if gone else ""), ("I", f"{come} EXCEPT {old}" if come else "")):
            if sql:
                relation = f"{change.table}__{op}"
                desk.define(relation, in_dialect(sql, desk.dialect), lazy=False)
                if not desk.is_empty(relation):
                    parts.append(task.layout.rows(change.table, PREFIX + relation, op))
    return in_dialect(" UNION ALL ".join(parts), desk.dialect) if parts else None


def difference_sql(task: Task, desk: Desk, outcome: Outcome) -> str:
    """The query that gives the patch from the stored tables to those just built."""
    come = {c.table: c.inserted for c in outcome.changes if c.inserted}
    parts = []
    for table, held in task.layout.tables:
        listed = ", ".join(f"CAST(`{n}` AS {kind}) AS `{n}`" for n, kind in held)
        old = f"SELECT {listed} FROM `{PREFIX}{table}`"
        name = come.get(table)
        new = f"SELECT {listed} FROM `{PREFIX}{name}`" if name else f"{old} WHERE FALSE"
        for relation, first, second in ((f"{table}__D", old, new), (f"{table}__I", new, old)):
            sql = f"({first}) EXCEPT ({second})"
            desk.define(relation, in_dialect(sql, desk.dialect), lazy=False)
            parts.append(task.layout.rows(table, PREFIX + relation, relation[-1]))
    return in_dialect(" UNION ALL ".join(parts), desk.dialect)

"""Views kept by programs: closures, and systems of the user's own, in the same refresh as others.

The program says which rows of its stored tables change; they change in one commit of the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.compiled import Compiled
from viewkeeper.engine import program_driver
from viewkeeper.engine.incremental import Planned, bind_source, fitted_patch, no_rows
from viewkeeper.engine.lookups import Lookups
from viewkeeper.engine.program_driver import NotHere
from viewkeeper.engine.program_place import (
    Desk,
    Place,
    build,
    difference_sql,
    follow,
    patch_sql,
    rehearse,
    whole_sql,
)
from viewkeeper.engine.program_sizes import Sizes, size_of, sizes_between, sizes_of_patch
from viewkeeper.engine.program_spark import SparkDesk
from viewkeeper.engine.refresh import Ways, settled
from viewkeeper.engine.runner import Result, Runner
from viewkeeper.engine.situation import Situation, learn, metadata_of
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import stores
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import Source
from viewkeeper.lake.stores import OP, Patch
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.choose import Choice, Timing
from viewkeeper.records import Record, RefreshReport
from viewkeeper.recursive.layout import TAG
from viewkeeper.recursive.task import PREFIX, Task

# Seconds: to build anew, and per row of the edges and the store; to follow a change, per row of
# them, per changed row
_DRIVER = (0.5, 4e-6, 0.4, 0.2e-6, 0.3e-3)
_SPARK = (4.0, 20e-6, 4.0, 1e-6, 1e-3)
_TIE, _LITTLE = 1.25, 1.0  # building anew must be clearly cheaper, and by seconds worth having


def decide(found: Situation, wanted: str | None = None) -> Choice:
    """The strategy of a refresh; a program may still give up when it has seen the change."""
    rows = sum(row_count(pin) for pin in found.pins.values()) + row_count(found.store)
    changed = sum(f.rows for f in found.feeds.values())
    choice = choose(changed, rows, found.timing, driver=_likely_here(found, rows))
    return settled(found, choice, wanted)


def choose(changed: int, rows: int, timing: Timing, *, driver: bool) -> Choice:
    """Following a change, or building anew.

    >>> choose(1, 1_000_000, Timing(), driver=True).strategy
    'incremental'
    >>> choose(900_000, 1_000_000, Timing(), driver=True).strategy
    'full'
    """
    full_start, full_row, start, row, change = _DRIVER if driver else _SPARK
    # a machine that is slow for the one is slow for the other, until that was measured
    slow = timing.full if timing.full != 1.0 else max(timing.incremental, 1.0)
    full = (full_start + rows * full_row) * slow
    incremental = (start + rows * row + changed * change) * timing.incremental
    close = incremental <= full * _TIE or incremental - full < _LITTLE
    strategy = "incremental" if close else "full"
    reason = (
        f"{changed:,} changed edges, {rows:,} rows of edges and store:"
        f" following them predicted {incremental:.2f} s, building anew {full:.2f} s"
    )
    return Choice(strategy, full, incremental, reason, changed, rows)


def _likely_here(found: Situation, rows: int) -> bool:
    return program_driver.suits(task_of(found)) and rows <= program_driver.MOST_STORED


def task_of(found: Situation) -> Task:
    """What a view's record says of its program."""
    return Task.from_json(found.record.program)


# ── the two strategies ───────────────────────────────────────────────────────────────────────────


def build_program(
    runner: Runner, task: Task, compiled: Compiled, pins: Mapping[str, Pin], sql: str
) -> DataFrame:
    """The rows of a store from scratch, computed."""
    place = Place(runner, task, compiled, pins, sql)
    try:
        with closing(place.driver(None)) as desk:
            outcome = build(task, desk)
            return _typed(runner, task, desk.result(whole_sql(task, desk, outcome)))
    except NotHere:
        slow = place.spark(None)
        outcome = build(task, slow)
        return slow.frame(whole_sql(task, slow, outcome))


def first_rows(
    runner: Runner, record: Record, compiled: Compiled, pins: Mapping[str, Pin]
) -> tuple[DataFrame, str | None]:
    """The rows of a new store, and the column by which its files are kept apart."""
    task = Task.from_json(record.program)
    if not task.known:
        rehearse(task, Place(runner, task, compiled, pins, record.sql).spark(None))
    frame = build_program(runner, task, compiled, pins, record.sql)
    return frame, TAG if task.layout.tagged else None


def first_sizes(spark: SparkSession, record: Record, store: Source) -> Callable[[], Sizes]:
    """How many rows readers of a new view see, when first asked for."""
    return lambda: size_of(spark, store, Task.from_json(record.program))


def expected(
    runner: Runner, record: Record, compiled: Compiled, pins: Mapping[str, Pin]
) -> DataFrame:
    """What readers should see, built from scratch: of the last output, which for undirected
    graphs has a row a node."""
    task = Task.from_json(record.program)
    frame = build_program(runner, task, compiled, pins, record.sql)
    frame.createOrReplaceTempView(f"{PREFIX}EXPECTED__")
    return runner.spark.sql(list(task.outputs(f"{PREFIX}EXPECTED__").values())[-1])


def _typed(runner: Runner, task: Task, rows: pa.Table | DataFrame) -> DataFrame:
    schema = ", ".join(f"`{n}` {kind}" for n, kind in task.layout.columns)
    if isinstance(rows, DataFrame):
        return rows
    empty = runner.spark.createDataFrame([], schema).schema
    return local_frame(runner.spark, rows, empty)


def _full(spark: SparkSession, found: Situation, report: RefreshReport, choice: Choice) -> None:
    _work(spark, found, report, choice, None)


def _incremental(
    spark: SparkSession, found: Situation, report: RefreshReport, choice: Choice
) -> None:
    _work(spark, found, report, choice, found.changed)


def _work(
    spark: SparkSession,
    found: Situation,
    report: RefreshReport,
    choice: Choice,
    changed: list[str] | None,
) -> None:
    start = time.perf_counter()
    only = found.record.refresh == "incremental" or choice.reason == 'asked for "incremental"'
    with Runner(spark) as runner:
        change = None
        if changed is not None:
            change, report.lookups = _change(runner, found)
        place = _place(runner, found)
        try:
            with closing(place.driver(change)) as desk:
                _finish(spark, desk, place, found, report, change, only)
        except NotHere:
            _finish(spark, place.spark(change), place, found, report, change, only)
    learn(found, report.strategy, time.perf_counter() - start, _as(choice, report.strategy))


def _as(choice: Choice, strategy: str) -> Choice:
    return replace(choice, strategy=strategy)


def _place(runner: Runner, found: Situation) -> Place:
    query, sql = found.compiled, found.record.sql
    return Place(runner, task_of(found), query, found.pins, sql, found.store, found.overlays)


def _change(runner: Runner, found: Situation) -> tuple[Result, list[str]]:
    """The rows of the input that came and went, and what was looked up for them."""
    places: dict[Any, Any] = {}
    for leaf in found.compiled.leaves:
        places.update(bind_source(runner, found, leaf))
    query = found.compiled.query
    step = BagStore(query, unique_names(query.columns)).refresh(found.changed).computes[0]
    lookups = Lookups(runner, places)
    return runner.compute(lookups.reduced(step.query)), lookups.reads


def _finish(
    spark: SparkSession,
    desk: Desk,
    place: Place,
    found: Situation,
    report: RefreshReport,
    change: Result | None,
    only: bool,
) -> None:
    """Runs the program, and commits what it says."""
    task = place.task
    outcome = build(task, desk) if change is None else follow(task, desk, gives_up=not only)
    strategy = "full" if outcome.replace else "incremental"
    whole: DataFrame | None = None
    patch: Patch | None = None
    if outcome.replace and (isinstance(desk, SparkDesk) or task.rowwise):
        rows = desk.result(whole_sql(task, desk, outcome))
        lane, whole = "rewrite", _typed(place.runner, task, rows)
    else:
        sql = (difference_sql if outcome.replace else patch_sql)(task, desk, outcome)
        patch, lane = _patch(desk.result(sql) if sql else None, found, task)
        if lane == "overwrite" and outcome.replace:
            lane = "rewrite"
            whole = _typed(place.runner, task, desk.result(whole_sql(task, desk, outcome)))
    stamp = metadata_of(found, found.timing, strategy)
    how = {"app_id": found.record.id, "txn": stamp["refresh"], "metadata": stamp}
    own, store = place.runner.spark, found.store.source
    if whole is not None:
        report.version = stores.rewrite(own, store, whole, **how)
    else:
        assert patch is not None
        report.version = stores.apply(own, store, patch, lane=lane, **how)  # type: ignore[arg-type]
    report.lane, report.strategy = lane, strategy
    old = found.store.version
    report.sizes = sizes_between(spark, store, task, old, report.version, patch)
    if outcome.recompute is not None:
        report.reason = f"built anew, because {outcome.recompute}; {report.reason}"
    where = "on the driver" if desk.dialect == "duckdb" else "on Spark"
    report.reason += f"; {outcome.steps} steps, {outcome.rounds} rounds {where}"


def _patch(rows: pa.Table | DataFrame | None, found: Situation, task: Task) -> tuple[Patch, str]:
    """The patch and the lane that fits it."""
    keys = [name for name, _ in task.layout.columns]
    if rows is None:
        return Patch(no_rows(), [], only_inserts=True), "touch"
    if isinstance(rows, pa.Table):
        return fitted_patch(rows, keys, found)
    if rows.where(F.col(OP) != "I").isEmpty():
        return Patch(rows, keys, only_inserts=True), "append"
    return Patch(rows, keys), "merge"


# ── within a transaction ─────────────────────────────────────────────────────────────────────────


def planned(runner: Runner, found: Situation) -> Planned:
    """What a program does to its store, computed and not yet applied."""
    change, lookups = _change(runner, found)
    place = _place(runner, found)
    try:
        with closing(place.driver(change)) as desk:
            return _planned(desk, place, found, lookups)
    except NotHere:
        return _planned(place.spark(change), place, found, lookups)


def _planned(desk: Desk, place: Place, found: Situation, lookups: list[str]) -> Planned:
    task = place.task
    outcome = follow(task, desk)
    sql = (difference_sql if outcome.replace else patch_sql)(task, desk, outcome)
    patch, lane = _patch(desk.result(sql) if sql else None, found, task)
    return Planned(patch, lane, sizes_of_patch(task, patch), lookups)


WAYS = Ways(decide, _full, _incremental)

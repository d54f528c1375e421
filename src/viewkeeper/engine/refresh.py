"""One view's refresh: what changed, which strategy, the steps, and one atomic commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    NumberFormatException,
    SparkRuntimeException,
)
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.engine.incremental import StoreDiffersError, no_rows, planned
from viewkeeper.engine.runner import MANY, HeavyError, Runner
from viewkeeper.engine.situation import Situation, learn, look, metadata_of
from viewkeeper.engine.sizes import row_count, store_difference
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.lake import compaction, stores
from viewkeeper.lake.sources import at
from viewkeeper.lake.stores import Patch
from viewkeeper.plan.choose import GIVEN, Choice, Timing, choose
from viewkeeper.plan.groups import GroupStore
from viewkeeper.records import NotIncrementalError, Record, RefreshReport

_OF_VALUES = (ArithmeticException, NumberFormatException, SparkRuntimeException)


Way = Callable[[SparkSession, Situation, RefreshReport, Choice], None]


@dataclass(frozen=True)
class Ways:
    """How a strategy is chosen, and how each one changes the store and fills the report."""

    decide: Callable[[Situation, str | None], Choice]
    full: Way
    incremental: Way


def decide(found: Situation, wanted: str | None = None) -> Choice:
    """The strategy of a refresh; ``wanted`` is what the caller insists on."""
    names = found.changed
    rows = sum(row_count(pin) for pin in found.pins.values())
    changed = sum(found.feeds[n].rows for n in names)
    lookups = not (isinstance(found.compiled.store, GroupStore) and found.compiled.store.stored)
    driver = all(found.feeds[n].local is not None for n in names)
    choice = choose(changed, rows, found.timing, lookups=lookups, driver=driver)
    return settled(found, choice, wanted)


def settled(found: Situation, choice: Choice, wanted: str | None) -> Choice:
    """The strategy where there is nothing to choose; else the predicted one."""
    if found.ahead:
        return replace(choice, strategy="none", reason="the view was refreshed meanwhile")
    if found.full_reason:
        return replace(choice, strategy="full", reason=found.full_reason)
    if not found.changed and wanted != "full":
        return replace(choice, strategy="none", reason="no source changed")
    if found.record.refresh != "auto":
        wanted = wanted or found.record.refresh
    if wanted:
        return replace(choice, strategy=wanted, reason=f'asked for "{wanted}"')
    return choice


def refresh(
    spark: SparkSession,
    record: Record,
    compiled: Compiled,
    vector: Vector,
    wanted: str | None,
    ways: Ways | None = None,
) -> RefreshReport:
    """Brings one view up to the vector of source versions; ``ways`` if not by its query."""
    start = time.perf_counter()
    ways = ways or Ways(decide, _full, _incremental)
    found = look(spark, record, compiled, vector)
    found.strict = "incremental" in (record.refresh, wanted)
    choice = ways.decide(found, wanted)
    if choice.strategy == "full" and record.refresh == "incremental" and wanted != "full":
        raise NotIncrementalError(
            f"{record.label} is kept incrementally only, and cannot be now: {choice.reason}",
            hint='Refresh it once with strategy="full", then go on as before.',
        )
    report = RefreshReport(record.label, choice.strategy, 0.0, choice.reason)
    report.sources = found.versions
    report.changed_rows, report.source_rows = choice.changed, choice.rows
    report.version = found.store.version
    if choice.strategy == "full":
        ways.full(spark, found, report, choice)
    elif choice.strategy == "incremental":
        tried = time.perf_counter()
        try:
            ways.incremental(spark, found, report, choice)
        except (StoreDiffersError, HeavyError, AnalysisException, *_OF_VALUES) as error:
            e = _why_not(error)
            if record.refresh == "incremental":
                raise NotIncrementalError(
                    f"{record.label} is kept incrementally only, and cannot be now: {e}",
                    hint='Refresh it once with strategy="full", then go on as before.',
                ) from None
            report.strategy, report.reason = "full", e
            ways.full(spark, found, report, replace(choice, strategy="full"))
            learn(found, choice.way, time.perf_counter() - tried, choice)
    elif not found.ahead and any(old != new for old, new in found.versions.values()):
        report.reason = "the sources' commits net to no change of the columns used"
        empty = Patch(no_rows(), [], only_inserts=True)
        report.version = _apply(spark, found, empty, "touch", found.timing)
        report.lane = "touch"
    if report.lane != "none":
        vector.moved(record.store)
        if stores.last_metadata(spark, found.store.source)[1].get("by") != found.nonce:
            report.strategy, report.lane, report.sizes = "none", "none", (0, 0)
            report.reason = "another process refreshed the view at the same moment"
    if report.lane not in ("none", "touch"):  # files came
        report.compacted = compaction.compact(spark, found.store.source)
        vector.moved(record.store)
    report.seconds = time.perf_counter() - start
    return report


# ── full ─────────────────────────────────────────────────────────────────────────────────────────


def build_frame(runner: Runner, compiled: Compiled, pins: Mapping[str, Pin], sql: str) -> DataFrame:
    """The rows of a view's store, from its sources as pinned."""
    spark = runner.spark
    for leaf, table in compiled.leaves.items():
        if leaf in pins:
            pin = pins[leaf]
            runner.bind(table, at(spark, pin.source, pin.version, list(table.names)))
        else:
            runner.bind(table, spark.table(compiled.definition.sources[leaf].sql))
    return compiled.build(spark, runner.frame, sql)


def _full(spark: SparkSession, found: Situation, report: RefreshReport, choice: Choice) -> None:
    start = time.perf_counter()
    with Runner(spark) as runner:
        frame = build_frame(runner, found.compiled, found.pins, found.record.sql)
        report.version = stores.rewrite(
            spark,
            found.store.source,
            frame,
            app_id=found.record.id,
            txn=found.meta.get("refresh", 0) + 1,
            metadata=metadata_of(found, found.timing, "full"),
        )
    report.lane = "rewrite"
    before, after, shape = found.store.version, report.version, found.compiled.store
    report.sizes = lambda: store_difference(spark, found.store.source, shape, before, after)
    learn(found, choice.way, time.perf_counter() - start, choice)


def _why_not(error: Exception) -> str:
    """Why a change could not be computed. Spark refuses queries of ours where values of a type,
    such as maps, cannot be compared; and the sum of a change may be too large for a number where
    the sum of all rows is not."""
    if not isinstance(error, (StoreDiffersError, HeavyError)):
        return f"Spark cannot compute the change: {str(error).splitlines()[0]}"
    return str(error)


# ── incremental ──────────────────────────────────────────────────────────────────────────────────


def _incremental(
    spark: SparkSession, found: Situation, report: RefreshReport, choice: Choice
) -> None:
    start = time.perf_counter()
    with Runner(spark) as runner:
        if not found.strict and choice.full < GIVEN:
            runner.most_given = MANY  # it is faster to compute all than to give Spark so many rows
        made = planned(runner, found)
        report.lookups = made.lookups
        report.version = _apply(spark, found, made.patch, made.lane, found.timing)
    report.lane = made.lane
    if made.sizes is not None:
        report.sizes = made.sizes
    else:
        before, after, source = found.store.version, report.version, found.store.source
        shape = found.compiled.store
        report.sizes = lambda: store_difference(spark, source, shape, before, after)
    learn(found, choice.way, time.perf_counter() - start, choice)


def _apply(spark: SparkSession, found: Situation, patch: Patch, lane: str, timing: Timing) -> int:
    return stores.apply(
        spark,
        found.store.source,
        patch,
        lane=lane,  # type: ignore[arg-type]
        app_id=found.record.id,
        txn=found.meta.get("refresh", 0) + 1,
        metadata=metadata_of(found, timing, "incremental"),
    )

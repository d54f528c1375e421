"""One view's refresh: what changed, which strategy, the steps, and one atomic commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    NumberFormatException,
    SparkRuntimeException,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper.algebra.changes.signed import WEIGHT
from viewkeeper.algebra.nodes import NEW, SIGNED, Query, Table
from viewkeeper.compiled import Compiled
from viewkeeper.engine.lookups import Lookups, Place
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.runner import MANY, HeavyError, Result, Runner
from viewkeeper.engine.sizes import row_count, store_difference
from viewkeeper.engine.sure import kinds_of
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import compaction, jvm, stores
from viewkeeper.lake.arrow import WEIGHT as FEED_WEIGHT
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.feeds import Feed, net_change
from viewkeeper.lake.history import fingerprint
from viewkeeper.lake.sources import at, version
from viewkeeper.lake.stores import OP, Patch
from viewkeeper.plan.choose import Choice, Timing, choose, on_spark
from viewkeeper.plan.groups import GroupStore, net_rows
from viewkeeper.plan.steps import INSERT, store_leaf
from viewkeeper.records import NotIncrementalError, Record, RefreshReport, SourceError

_NATIVE_ROWS = 300_000  # patches of more rows are merged by Spark
_OVERWRITE_SHARE = 0.3  # a patch of more of the store rewrites it
_OF_VALUES = (ArithmeticException, NumberFormatException, SparkRuntimeException)
_TIMINGS: dict[str, Timing] = {}  # by view, what this process measured last


@dataclass
class Situation:
    """What a refresh finds: the store's last commit, the sources then and now, what changed."""

    record: Record
    compiled: Compiled
    store: Pin
    meta: dict[str, Any]
    pins: dict[str, Pin]
    feeds: dict[str, Feed] = field(default_factory=dict)
    full_reason: str | None = None
    strict: bool = False  # it must be incremental, whatever that takes
    ahead: bool = False  # the view has seen a later version of a source than this refresh
    # what a transaction that is not committed yet does to sources, by leaf
    overlays: dict[str, Overlay] = field(default_factory=dict)
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def changed(self) -> list[str]:
        """The sources that have rows to tell of."""
        return [name for name, feed in self.feeds.items() if not feed.empty]

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """Each source's version before and after."""
        then = self.meta.get("sources", {})
        return {
            name: (then.get(name, {}).get("version", -1), pin.version)
            for name, pin in self.pins.items()
        }

    @property
    def timing(self) -> Timing:
        return _TIMINGS.get(self.record.id) or Timing.of(self.meta.get("timing"))


Way = Callable[[SparkSession, Situation, RefreshReport, Choice], None]


@dataclass(frozen=True)
class Ways:
    """How a strategy is chosen, and how each one changes the store and fills the report."""

    decide: Callable[[Situation, str | None], Choice]
    full: Way
    incremental: Way


def source_names(compiled: Compiled) -> dict[str, str]:
    """The SQL name of each Delta source, by leaf."""
    refs = compiled.definition.sources
    return {leaf: ref.sql for leaf, ref in refs.items() if ref.provider == "delta"}


def look(spark: SparkSession, record: Record, compiled: Compiled, vector: Vector) -> Situation:
    """What changed since the last refresh. Unchanged sources cost a look at their logs only."""
    store = vector.pin(record.store)
    _, meta = stores.last_metadata(spark, store.source)
    found = Situation(record, compiled, store, meta, _pins(record, compiled, vector))
    then: Mapping[str, Any] = meta.get("sources", {})
    if compiled.blocked and not _is_same(found, then):
        found.full_reason = compiled.blocked
        return found
    if meta.get("names") != compiled.names:
        found.full_reason = "a view or function in the query was redefined since the last refresh"
        return found
    for leaf, table in compiled.leaves.items():
        pin, old = found.pins[leaf], then.get(leaf)
        if old is None or old["id"] != pin.source.table_id:
            found.full_reason = f"{pin.source.name} was replaced since the last refresh"
            return found
        if _set_back(spark, pin, old):
            found.full_reason = (
                f"the log of {pin.source.name} is not what it was at the last refresh: the table"
                " was copied back, or commits were taken away"
            )
            return found
        if old["version"] > pin.version:
            found.ahead = True
            found.feeds = {}
            return found
        if old["version"] != pin.version:
            try:
                found.feeds[leaf] = net_change(
                    spark, pin.source, old["version"], pin.version, list(table.names)
                )
            except LostHistoryError as e:
                found.full_reason = e.what
                return found
    return found


def _set_back(spark: SparkSession, pin: Pin, old: Mapping[str, Any]) -> bool:
    """Whether a source has another past than at the last refresh, under the same id."""
    if not old.get("commit"):
        return False
    if old["version"] > pin.version:  # then this refresh is late, or the log has gone back
        return version(spark, pin.source) < int(old["version"])
    return fingerprint(spark, pin.source, old["version"]) not in (None, old["commit"])


def _is_same(found: Situation, then: Mapping[str, Any]) -> bool:
    """Whether nothing that the result depends on can have changed since the last refresh."""
    now = {n: (pin.source.table_id, pin.version) for n, pin in found.pins.items()}
    before = {n: (old["id"], old["version"]) for n, old in then.items()}
    if not found.compiled.steady or now != before:
        return False
    return all(old.get("commit") in (None, found.pins[n].commit) for n, old in then.items())


def _pins(record: Record, compiled: Compiled, vector: Vector) -> dict[str, Pin]:
    pins: dict[str, Pin] = {}
    for leaf, name in source_names(compiled).items():
        try:
            pins[leaf] = vector.pin(name)
        except UnknownTableError as e:
            raise SourceError(
                f"{name}, which the view {record.label} reads, is gone",
                hint="Restore it, or drop the view; the view's rows are as they were.",
            ) from e
    return pins


def decide(found: Situation, wanted: str | None = None) -> Choice:
    """The strategy of a refresh; ``wanted`` is what the caller insists on."""
    names = found.changed
    rows = sum(row_count(pin) for pin in found.pins.values())
    changed = sum(found.feeds[n].inserted + found.feeds[n].deleted for n in names)
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
            learn(found, "incremental", time.perf_counter() - tried, choice)
    elif not found.ahead and any(old != new for old, new in found.versions.values()):
        report.reason = "the sources' commits net to no change of the columns used"
        empty = Patch(_no_rows(), [], only_inserts=True)
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


def metadata_of(found: Situation, timing: Timing, strategy: str) -> dict[str, Any]:
    """What the commit says of itself. A transaction adds one version to each table it changes."""
    sources = {
        leaf: {
            "id": pin.source.table_id,
            "version": pin.version + (leaf in found.overlays),
            "name": pin.source.name,
            "commit": None if leaf in found.overlays else pin.commit,
        }
        for leaf, pin in found.pins.items()
    }
    return {
        "view": found.record.id,
        "refresh": found.meta.get("refresh", 0) + 1,
        "strategy": strategy,
        "by": found.nonce,
        "names": found.compiled.names,
        "sources": sources,
        "timing": timing.as_dict(),
    }


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
    learn(found, "full", time.perf_counter() - start, choice)


class StoreDiffersError(Exception):
    """The stored rows are not those that the change was computed for."""


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
        if not found.strict and choice.full < on_spark(MANY):
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
    learn(found, "incremental", time.perf_counter() - start, choice)


@dataclass(frozen=True)
class Planned:
    """An incremental refresh, computed and not yet applied."""

    patch: Patch
    lane: str
    sizes: tuple[int, int] | None  # None: they are found when asked for
    lookups: list[str]
    change: Query | None = None  # the view's signed change, over leaves of the runner


def planned(runner: Runner, found: Situation) -> Planned:
    """Computes what an incremental refresh does to the store."""
    shape = found.compiled.store
    plan = shape.refresh(found.changed)
    places = {}
    for name in found.compiled.leaves:
        places.update(bind_source(runner, found, name))
    places.update(bind_leaf(runner, store_leaf(shape.columns), found.store))
    lookups = Lookups(runner, places)
    for step in plan.computes:
        needed = step.only_if is None or _has(runner, plan.computes, step.only_if)
        if needed:
            result = runner.compute(lookups.reduced(step.query))
        else:
            result = runner.nothing(step.query)
        runner.bind_result(step.leaf, result)
        if step.name in plan.must_be_empty and not _is_empty(result):
            raise StoreDiffersError(
                "rows to be deleted are stored with other values: what is computed again, such"
                " as sums of floating point numbers, need not be the same"
            )
    sizes = None if plan.reads_store and not found.overlays else _sizes(runner, plan.change)
    patch, lane = _patch(runner, plan.patch.query, list(plan.patch.keys), found)
    return Planned(patch, lane, sizes, lookups.reads, plan.change)


def _is_empty(result: Result) -> bool:
    if result.rows is not None:
        return bool(result.rows.num_rows == 0)
    assert result.frame is not None
    return bool(result.frame.isEmpty())


def bind_source(runner: Runner, found: Situation, leaf: str) -> dict[Table, Place]:
    """The source as it is now, and its change."""
    table, pin = found.compiled.leaves[leaf], found.pins[leaf]
    if leaf in found.changed:
        bind_change(runner, table, pin, found.feeds[leaf])
    now = Table(table.name, table.names, NEW)
    return bind_leaf(runner, now, pin, found.overlays.get(leaf))


def bind_change(runner: Runner, table: Table, pin: Pin, feed: Feed) -> None:
    """The signed change of a source."""
    columns = list(table.names)
    change = Table(table.name, table.names, SIGNED)
    if feed.local is None:
        runner.small = False
        assert feed.frame is not None
        frame = jvm.move_frame(runner.spark, feed.frame)
        runner.bind(change, frame.toDF(*columns, WEIGHT))
    else:
        rows = feed.local.select([*columns, FEED_WEIGHT]).rename_columns([*columns, WEIGHT])
        runner.bind_rows(change, rows, pin.schema(columns).add(WEIGHT, "long"))


def bind_leaf(
    runner: Runner, leaf: Table, pin: Pin, overlay: Overlay | None = None
) -> dict[Table, Place]:
    """A table at a version, with what a transaction does to it."""
    columns = list(leaf.names)
    if overlay is None:
        runner.bind(leaf, lambda: at(runner.spark, pin.source, pin.version, columns))
    else:
        runner.bind(leaf, lambda: overlay.frame(runner.spark, columns))
    runner.kinds[leaf] = kinds_of(pin.schema(columns))
    return {leaf: Place(pin, leaf.names, overlay)}


def _has(runner: Runner, computes: Any, condition: tuple[str, str]) -> bool:
    """Whether an earlier result has a row whose last column meets the condition: is true, or is
    below zero."""
    name, test = condition
    leaf = next(c.leaf for c in computes if c.name == name)
    rows = runner.rows.get(leaf)
    if rows is None:
        frame = runner.frame(leaf)
        last = F.col(f"c{len(frame.columns) - 1}")
        frame = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
        return not frame.where(last < 0 if "<" in test else last).isEmpty()
    values = rows.column(rows.num_columns - 1)
    return bool(pc.any(pc.less(values, 0) if "<" in test else values).as_py())


def _sizes(runner: Runner, change: Query) -> tuple[int, int]:
    """How many rows the view gains and loses, by its netted change."""
    if runner.small and runner.tiny(change):
        rows = runner.rows.get(change)
        if rows is None:
            rows = runner.compute(net_rows(change)).rows
        if rows is not None:
            weights = rows.column(rows.num_columns - 1)
            plus = pc.sum(pc.max_element_wise(weights, 0)).as_py() or 0
            return plus, plus - (pc.sum(weights).as_py() or 0)
    netted = runner.frame(change if isinstance(change, Table) else net_rows(change))
    netted = netted.toDF(*(f"c{i}" for i in range(len(netted.columns))))
    weight = F.col(netted.columns[-1])
    row = netted.agg(
        F.sum(F.greatest(weight, F.lit(0))), F.sum(F.greatest(-weight, F.lit(0)))
    ).first()
    assert row is not None
    return int(row[0] or 0), int(row[1] or 0)


def _patch(runner: Runner, query: Query, keys: list[str], found: Situation) -> tuple[Patch, str]:
    """The patch and the lane that fits its size."""
    rows = runner.compute(query).rows if runner.small else None
    if rows is None:
        return Patch(runner.frame(query), keys), "merge"
    ops = set(pc.unique(rows.column(OP)).to_pylist())
    if not ops:
        return Patch(rows, keys, only_inserts=True), "touch"
    if ops == {INSERT}:
        return Patch(rows, keys, only_inserts=True), "append"
    if rows.num_rows > _OVERWRITE_SHARE * row_count(found.store):
        small = rows.num_rows <= _NATIVE_ROWS
        return Patch(rows, keys), "native" if small else "overwrite"
    return Patch(rows, keys), "native" if rows.num_rows <= _NATIVE_ROWS else "merge"


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


def _no_rows() -> pa.Table:
    return pa.table({OP: pa.array([], pa.string())})


def learn(found: Situation, strategy: str, seconds: float, choice: Choice) -> None:
    """What the refresh took, for the next one's prediction; it is in the next commit."""
    timing = found.timing.learned(strategy, seconds, choice.predicted)
    _TIMINGS[found.record.id] = timing


def learn_build(record: Record, pins: Mapping[str, Pin], seconds: float) -> None:
    """What filling the store at first took is what a full refresh takes."""
    rows = sum(row_count(pin) for pin in pins.values())
    _TIMINGS[record.id] = Timing.built(seconds, rows)

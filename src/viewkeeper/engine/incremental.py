"""An incremental refresh, computed: the plan's steps, the patch, and how it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from viewkeeper.algebra.changes.signed import WEIGHT
from viewkeeper.algebra.nodes import NEW, SIGNED, Query, Table
from viewkeeper.engine.lookups import Lookups, Place
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.runner import Result, Runner
from viewkeeper.engine.situation import Situation
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.sure import kinds_of
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import WEIGHT as FEED_WEIGHT
from viewkeeper.lake.feeds import Feed
from viewkeeper.lake.sources import at
from viewkeeper.lake.stores import OP, Patch
from viewkeeper.plan.groups import net_rows
from viewkeeper.plan.steps import INSERT, store_leaf

_NATIVE_ROWS = 300_000  # patches of more rows are merged by Spark
_OVERWRITE_SHARE = 0.3  # a patch of more of the store rewrites it


class StoreDiffersError(Exception):
    """The stored rows are not those that the change was computed for."""


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
        runner.bind(change, runner.kept(frame.toDF(*columns, WEIGHT)))  # it is read at each use
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
    result = runner.compute(query) if runner.small else None
    if result is not None and result.rows is not None:
        return fitted_patch(result.rows, keys, found)
    much = row_count(found.store) * _OVERWRITE_SHARE
    many = sum(found.feeds[n].rows for n in found.changed) > much  # they may touch much of it
    if result is None and not many:
        return Patch(runner.frame(query), keys), "merge"  # which computes it once
    frame = (result or runner.compute(query)).frame
    assert frame is not None
    return Patch(frame, keys), "overwrite" if many and frame.count() > much else "merge"


def fitted_patch(rows: pa.Table, keys: list[str], found: Situation) -> tuple[Patch, str]:
    """A patch whose rows the driver has, and the lane that fits its size."""
    ops = set(pc.unique(rows.column(OP)).to_pylist())
    if not ops:
        return Patch(rows, keys, only_inserts=True), "touch"
    if ops == {INSERT}:
        return Patch(rows, keys, only_inserts=True), "append"
    if rows.num_rows <= _NATIVE_ROWS:
        return Patch(rows, keys), "native"
    large = rows.num_rows > _OVERWRITE_SHARE * row_count(found.store)
    return Patch(rows, keys), "overwrite" if large else "merge"


def no_rows() -> pa.Table:
    return pa.table({OP: pa.array([], pa.string())})

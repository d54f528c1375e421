"""Compares a view with its query, as bags: every row as often as the query gives it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, MapType, StructField

from viewkeeper.engine import programs
from viewkeeper.engine.refresh import build_frame
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Pin, pinned
from viewkeeper.errors import ViewKeeperError
from viewkeeper.lake import jvm, stores
from viewkeeper.lake.sources import find, version
from viewkeeper.plan.steps import store_leaf
from viewkeeper.records import Record


class NotComparableError(ViewKeeperError):
    """A view whose query cannot be computed as it was at the last refresh."""

    code = "NOT_COMPARABLE"


def compare_view(keeper: Any, record: Record) -> tuple[int, int]:
    """How many rows the view lacks, and how many it has too many.

    The query is computed at the versions of the sources that the last refresh saw, so a view that
    is not up to date is compared with what it should be.

    Raises
    ------
    NotComparableError
        The query gives another answer each time, or a source is no longer what it was.
    """
    spark, compiled = keeper.spark, keeper._views.compiled(record)
    _, meta = stores.last_metadata(spark, find(spark, record.store))
    pins: dict[str, Pin] = {}
    for leaf, then in meta.get("sources", {}).items():
        source = find(spark, then["name"])
        if source.table_id != then["id"]:
            raise NotComparableError(f"{source.name} was replaced", hint="Refresh the view first.")
        pins[leaf] = replace(pinned(spark, source), version=then["version"])
    if compiled.definition.volatile:
        raise NotComparableError(compiled.definition.volatile)
    if compiled.definition.query is None:
        moved = [p.source.name for p in pins.values() if version(spark, p.source) != p.version]
        if moved:
            raise NotComparableError(f"{moved[0]} has changed", hint="Refresh the view first.")
    with jvm.with_settings(spark, record.settings) as own, Runner(own) as runner:
        if record.program:
            expected = programs.expected(runner, record, compiled, pins)
            name = record.others[-1][0] if record.others else record.name
            return difference(expected, runner.spark.table(name))
        leaf_ = store_leaf(compiled.store.columns)
        runner.bind(leaf_, build_frame(runner, compiled, pins, record.sql))
        expected = runner.frame(compiled.store.visible(leaf_))
        return difference(expected, runner.spark.table(record.name))


def difference(expected: DataFrame, found: DataFrame) -> tuple[int, int]:
    """The sizes of expected ∸ found and found ∸ expected; floats are equal to 10 digits."""
    signed = []
    for frame, sign in ((expected, 1), (found, -1)):
        columns = [_comparable(f, i) for i, f in enumerate(frame.schema.fields)]
        plain = frame.toDF(*(f"c{i}" for i in range(len(columns))))
        signed.append(plain.select(*columns, F.lit(sign).alias("__sign")))
    both = signed[0].unionAll(signed[1])
    net = both.groupBy(*both.columns[:-1]).agg(F.sum("__sign").alias("w"))
    row = net.agg(
        F.sum(F.greatest(F.col("w"), F.lit(0))), F.sum(F.greatest(-F.col("w"), F.lit(0)))
    ).first()
    assert row is not None
    return int(row[0] or 0), int(row[1] or 0)


def _comparable(field: StructField, i: int) -> Column:
    """A column by whose values rows can be grouped."""
    column = F.col(f"c{i}")
    if isinstance(field.dataType, (DoubleType, FloatType)):
        return F.format_string("%.9e", column.cast("double") + F.lit(0.0)).alias(f"c{i}")
    if isinstance(field.dataType, MapType):
        return F.array_sort(F.map_entries(column)).alias(f"c{i}")
    return column

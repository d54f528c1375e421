"""The rows of a view at a version of its store, and their net change between two, as its readers
see them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from viewkeeper.algebra.nodes import NEW, SIGNED, Table
from viewkeeper.engine.runner import Runner
from viewkeeper.frontend.comparing import is_stored_otherwise
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import WEIGHT
from viewkeeper.lake.feeds import net_change, summed
from viewkeeper.lake.sources import Source, at, version
from viewkeeper.plan.groups import net_rows
from viewkeeper.plan.present import signed_change
from viewkeeper.plan.shapes import Store
from viewkeeper.plan.steps import store_leaf


def since(spark: SparkSession, store: Source, shape: Store, old: int) -> DataFrame:
    """The view's columns and ``__weight``: positive for rows added since, negative for removed."""
    return between(spark, store, shape, old, version(spark, store))


def whole(spark: SparkSession, store: Source, shape: Store, now: int) -> DataFrame:
    """All rows at a version of the store."""
    leaf = store_leaf(shape.columns)
    with Runner(spark) as runner:
        runner.bind(leaf, at(runner.spark, store, now, list(shape.columns)))
        return jvm.move_frame(spark, runner.frame(shape.visible(leaf)))


def between(spark: SparkSession, store: Source, shape: Store, old: int, now: int) -> DataFrame:
    """The same between two versions of the store."""
    feed = net_change(spark, store, old, now, list(shape.columns))
    leaf = store_leaf(shape.columns)
    signed = signed_change(shape.visible(leaf), [leaf.name])
    with Runner(spark) as runner:
        if feed.local is None:
            assert feed.frame is not None
            frame = jvm.move_frame(runner.spark, feed.frame)
        else:
            stored = at(runner.spark, store, now, list(shape.columns))
            schema = StructType([*stored.schema.fields, StructField(WEIGHT, LongType())])
            frame = runner.local(feed.local, schema)
        runner.bind(Table(leaf.name, leaf.names, SIGNED), frame.toDF(*shape.columns, "weight"))
        new = Table(leaf.name, leaf.names, NEW)  # which rows are the first depends on all
        runner.bind(new, lambda: at(runner.spark, store, now, list(shape.columns)))
        rows = runner.frame(net_rows(signed))
        if any(is_stored_otherwise(field.dataType) for field in rows.schema.fields):
            rows = _summed(runner.frame(signed))
        return jvm.move_frame(spark, rows.toDF(*rows.columns[:-1], WEIGHT))


def _summed(signed: DataFrame) -> DataFrame:
    """The net change of rows with maps, whose entries keep their order."""
    numbered = signed.toDF(*(f"c{i}" for i in range(len(signed.columns) - 1)), WEIGHT)
    return summed(numbered, numbered.schema.fields[:-1]).toDF(*signed.columns)

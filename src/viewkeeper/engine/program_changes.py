"""What readers see of a store, and its net change, by the query behind the view's name."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from viewkeeper.algebra.changes.signed import WEIGHT
from viewkeeper.algebra.nodes import NEW, SIGNED, Table
from viewkeeper.compiled import compile_view
from viewkeeper.engine.runner import Runner
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import WEIGHT as FEED_WEIGHT
from viewkeeper.lake.feeds import net_change
from viewkeeper.lake.sources import Source, at, version
from viewkeeper.plan.groups import net_rows
from viewkeeper.plan.present import signed_change


def since(spark: SparkSession, store: Source, reader: str, old: int) -> DataFrame:
    """The view's columns and ``__weight``: positive for rows added since, negative for removed."""
    return between(spark, store, reader, old, version(spark, store))


def whole(spark: SparkSession, store: Source, reader: str, now: int) -> DataFrame:
    """All rows at a version of the store."""
    compiled = compile_view(spark, reader)
    (table,) = compiled.leaves.values()
    with Runner(spark) as runner:
        runner.bind(table, at(runner.spark, store, now, list(table.names)))
        names = [name for name, _ in compiled.columns]
        return jvm.move_frame(spark, runner.frame(compiled.query).toDF(*names))


def between(spark: SparkSession, store: Source, reader: str, old: int, now: int) -> DataFrame:
    """The net change between two versions of the store."""
    compiled = compile_view(spark, reader)
    ((leaf, table),) = compiled.leaves.items()
    columns = list(table.names)
    feed = net_change(spark, store, old, now, columns)
    with Runner(spark) as runner:
        rows = at(runner.spark, store, now, columns)
        if feed.local is None:
            assert feed.frame is not None
            frame = jvm.move_frame(runner.spark, feed.frame)
        else:
            schema = StructType([*rows.schema.fields, StructField(FEED_WEIGHT, LongType())])
            frame = runner.local(feed.local, schema)
        runner.bind(Table(table.name, table.names, NEW), rows)
        runner.bind(Table(table.name, table.names, SIGNED), frame.toDF(*columns, WEIGHT))
        netted = runner.frame(net_rows(signed_change(compiled.query, [leaf])))
        names = [name for name, _ in compiled.columns]
        return jvm.move_frame(spark, netted.toDF(*names, FEED_WEIGHT))

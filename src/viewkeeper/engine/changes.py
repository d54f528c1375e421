"""The net change of a view between two versions of its store, as its readers see it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.nodes import SIGNED, Table
from viewkeeper.engine.runner import Runner
from viewkeeper.lake.arrow import WEIGHT
from viewkeeper.lake.feeds import net_change
from viewkeeper.lake.sources import Source, version
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.groups import GroupStore, net_rows
from viewkeeper.plan.present import signed_change
from viewkeeper.plan.steps import store_leaf


def since(spark: SparkSession, store: Source, shape: BagStore | GroupStore, old: int) -> DataFrame:
    """The view's columns and ``__weight``: positive for rows added since, negative for removed."""
    now = version(spark, store)
    feed = net_change(spark, store, old, now, list(shape.columns))
    frame = feed.frame if feed.frame is not None else None
    if frame is None:
        schema = spark.table(store.name).select(*shape.columns).schema.add(WEIGHT, "long")
        assert feed.local is not None
        frame = spark.createDataFrame(feed.local, schema=schema)
    leaf = store_leaf(shape.columns)
    runner = Runner(spark)
    signed = signed_change(shape.visible(leaf), [leaf.name])
    runner.bind(Table(leaf.name, leaf.names, SIGNED), frame.toDF(*shape.columns, "weight"))
    rows = runner.frame(net_rows(signed))
    return rows.toDF(*rows.columns[:-1], WEIGHT)

"""Numbers of rows, without reading them where the log tells."""

from __future__ import annotations

from functools import lru_cache

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from viewkeeper.algebra.nodes import Query
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Pin
from viewkeeper.frontend.comparing import comparable
from viewkeeper.lake import history, log, tips
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.sources import Source, at
from viewkeeper.plan.shapes import Store
from viewkeeper.plan.steps import store_leaf

_UNKNOWN = 1_000_000  # rows of a table whose log we cannot read on the driver


def row_count(pin: Pin) -> int:
    """The number of rows of a table at a version, from its log's statistics."""
    path = pin.source.local_path
    if path is None:
        return _UNKNOWN
    mark = tips.mark_of(path, pin.version)
    return _counted(path, pin.source.table_id, pin.version, mark)


@lru_cache(maxsize=1024)
def _counted(path: str, table_id: str, version: int, mark: tips.Mark | None) -> int:
    try:
        return sum(history.row_count(add) or 0 for add in log.files(path, version).values())
    except UnusualError:
        pass
    try:
        actions = DeltaTable(path, version=version).get_add_actions(flatten=True)
    except Exception:  # features that deltalake does not know
        return _UNKNOWN
    counts = actions.column("num_records").to_pylist()
    return sum(c for c in counts if c is not None)


def store_difference(
    spark: SparkSession, store: Source, shape: Store, before: int, after: int
) -> tuple[int, int]:
    """The sizes of Δ and ∇ between two versions of a store, as the view's readers see them."""
    with Runner(spark) as runner:
        frames = []
        for version, sign in ((before, -1), (after, 1)):
            leaf: Query = store_leaf(shape.columns)
            runner.bind(leaf, at(runner.spark, store, version, list(shape.columns)))
            rows = runner.frame(shape.visible(leaf))
            frames.append(rows.toDF(*(f"c{i}" for i in range(len(rows.columns)))))
            frames[-1] = frames[-1].withColumn("__sign", F.lit(sign))
        both = frames[0].unionAll(frames[1])
        keys = [F.expr(comparable(field)) for field in both.schema.fields[:-1]]
        net = both.groupBy(*keys).agg(F.sum("__sign").alias("w"))
        weight = F.col("w")
        row = net.agg(
            F.sum(F.greatest(weight, F.lit(0))), F.sum(F.greatest(-weight, F.lit(0)))
        ).first()
        assert row is not None
        return int(row[0] or 0), int(row[1] or 0)

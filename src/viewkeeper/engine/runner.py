"""Runs queries of the algebra on Spark, and keeps their results under names.

A small result is collected once and becomes a local relation; a large one stays in Spark.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import tables
from viewkeeper.plan.small import small_parts

_NUMBERS = itertools.count(1)
MOST_ROWS = 200_000  # a result with more rows stays in Spark


@dataclass(frozen=True)
class Result:
    """Computed rows: on the driver if they are few."""

    frame: DataFrame
    rows: pa.Table | None

    @property
    def small(self) -> bool:
        return self.rows is not None


class Runner:
    """Names for the leaves of one refresh, and the queries over them."""

    def __init__(self, spark: SparkSession, most_rows: int = MOST_ROWS) -> None:
        self.spark = spark
        self.most_rows = most_rows
        self.prefix = f"__vk_{next(_NUMBERS)}_"
        self.frames: dict[Query, DataFrame] = {}
        self.names: dict[Query, str] = {}
        self.kept: list[DataFrame] = []
        self.small = True  # so far all changes and results are

    def bind(self, leaf: Query, frame: DataFrame) -> None:
        """Gives a leaf its rows."""
        name = f"{self.prefix}{len(self.names)}"
        frame.createOrReplaceTempView(name)
        self.frames[leaf] = frame
        self.names[leaf] = name

    def sql(self, query: Query) -> str:
        """The SQL text of a query over the leaves' names."""
        small = small_parts(query) if self.small else set()
        names: dict[Query, str] = {leaf: self.names[leaf] for leaf in tables(query)}
        return to_sql(query, tables=names, small=small)

    def frame(self, query: Query) -> DataFrame:
        """The rows of a query, not yet computed."""
        if isinstance(query, Table):
            return self.frames[query]
        return self.spark.sql(self.sql(query))

    def compute(self, query: Query) -> Result:
        """The rows of a query, computed once: local if they are few, else kept by Spark."""
        frame = self.frame(query)
        if self.small:
            rows = frame.limit(self.most_rows + 1).toArrow()
            if rows.num_rows <= self.most_rows:
                return Result(self.local(rows, frame.schema), rows)
            self.small = False
        kept = frame.persist()
        self.kept.append(kept)
        return Result(kept, None)

    def nothing(self, query: Query) -> Result:
        """No rows, in the shape of a query's: for a step that is not needed."""
        return Result(self.frame(query).where("FALSE"), None)

    def local(self, rows: pa.Table, schema: Any) -> DataFrame:
        """A local relation: its rows are on the driver, and reading them is no job."""
        return self.spark.createDataFrame(rows, schema=schema)

    def close(self) -> None:
        """Forgets all names and results."""
        for frame in self.kept:
            frame.unpersist()
        for name in self.names.values():
            self.spark.catalog.dropTempView(name)

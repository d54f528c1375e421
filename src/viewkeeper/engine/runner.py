"""Runs queries of the algebra on Spark, and keeps their results under names.

A small result is collected once and becomes a local relation; a large one stays in Spark. All of it
happens in a copy of the user's session, so that neither names nor settings are left behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import tables
from viewkeeper.lake import jvm
from viewkeeper.plan.small import small_parts

_NUMBERS = itertools.count(1)
MOST_ROWS = 200_000  # a result with more rows stays in Spark
# A query whose rows are all on the driver gains nothing by a plan that adapts, or by many tasks.
_TINY = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


@dataclass(frozen=True)
class Result:
    """Computed rows: on the driver if they are few."""

    frame: DataFrame
    rows: pa.Table | None

    @property
    def small(self) -> bool:
        return self.rows is not None


class Runner:
    """Names for the leaves of one refresh, and the queries over them.

    Use it as a context: at its end all names and results are forgotten.
    """

    def __init__(self, spark: SparkSession, most_rows: int = MOST_ROWS) -> None:
        self._ending = ExitStack()
        self.spark = self._ending.enter_context(jvm.own_session(spark, {}))
        self.most_rows = most_rows
        self.prefix = f"__vk_{next(_NUMBERS)}_"
        self.rows: dict[Query, pa.Table] = {}  # of the leaves on the driver
        self._frames: dict[Query, DataFrame | Callable[[], DataFrame]] = {}
        self._names: dict[Query, str] = {}
        self.small = True  # so far all changes and results are
        self._usual = {key: self.spark.conf.get(key) for key in _TINY}
        self._tiny = False

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def bind(self, leaf: Query, frame: DataFrame | Callable[[], DataFrame]) -> None:
        """Gives a leaf its rows: a frame, or what makes one if it is needed."""
        self._frames[leaf] = frame

    def bind_rows(self, leaf: Query, rows: pa.Table, schema: StructType) -> None:
        """Gives a leaf its rows, which are on the driver."""
        self.rows[leaf] = rows
        self._frames[leaf] = lambda: self.local(rows, schema)

    def bind_result(self, leaf: Query, result: Result) -> None:
        """Gives a leaf the rows that were computed."""
        self._frames[leaf] = result.frame
        if result.rows is not None:
            self.rows[leaf] = result.rows

    def name(self, prefix: str, columns: tuple[str, ...]) -> Table:
        """A leaf of a new name."""
        made = Table(f"#{prefix}{len(self._frames)}", columns, "")
        assert isinstance(made, Table)
        return made

    def leaf(self, leaf: Query) -> DataFrame:
        """The rows of a leaf."""
        found = self._frames[leaf]
        if not isinstance(found, DataFrame):
            found = self._frames[leaf] = found()
        return found

    def keep(self, prefix: str, columns: tuple[str, ...], rows: pa.Table, schema: Any) -> Table:
        """A new leaf with these rows, on the driver."""
        leaf = self.name(prefix, columns)
        self.bind_rows(leaf, rows, schema)
        return leaf

    def sql(self, query: Query) -> str:
        """The SQL text of a query over the leaves' names."""
        small = small_parts(query) if self.small else set()
        names: dict[Query, str] = {leaf: self._named(leaf) for leaf in tables(query)}
        return to_sql(query, tables=names, small=small)

    def _named(self, leaf: Query) -> str:
        """The name of a leaf in SQL."""
        if leaf not in self._names:
            self._names[leaf] = name = f"{self.prefix}{len(self._names)}"
            self.leaf(leaf).createOrReplaceTempView(name)
        return self._names[leaf]

    def frame(self, query: Query) -> DataFrame:
        """The rows of a query, not yet computed."""
        if isinstance(query, Table):
            return self.leaf(query)
        self._settle(query)
        return self.spark.sql(self.sql(query))

    def compute(self, query: Query) -> Result:
        """The rows of a query, computed once: local if they are few, else kept by Spark."""
        frame = self.frame(query)
        if self.small:
            local = all(leaf in self.rows for leaf in tables(query))
            rows = (frame if local else frame.limit(self.most_rows + 1)).toArrow()
            if rows.num_rows <= self.most_rows:
                return Result(self.local(rows, frame.schema), rows)
            self.small = False
        kept = frame.persist()
        self._ending.callback(kept.unpersist)
        return Result(kept, None)

    def nothing(self, query: Query) -> Result:
        """No rows, in the shape of a query's: for a step that is not needed."""
        frame = self.frame(query)
        rows = _empty(frame)
        return Result(self.local(rows, frame.schema), rows)

    def local(self, rows: pa.Table, schema: Any) -> DataFrame:
        """A local relation: its rows are on the driver, and reading them is no job."""
        return self.spark.createDataFrame(rows, schema=schema)

    def _settle(self, query: Query) -> None:
        """The settings that fit a query: other ones if all its rows are on the driver."""
        tiny = all(leaf in self.rows for leaf in tables(query))
        if tiny != self._tiny:
            self._tiny = tiny
            for key, value in (_TINY if tiny else self._usual).items():
                if value is not None:
                    self.spark.conf.set(key, value)


def _empty(frame: DataFrame) -> pa.Table:
    from viewkeeper.lake.arrow import arrow_schema

    return arrow_schema(frame.schema.fields).empty_table()

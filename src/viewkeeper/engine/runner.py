"""Runs queries of the algebra on Spark, and keeps their results under names.

A small result is collected once and becomes a local relation; a large one stays in Spark. All of it
happens in a copy of the user's session, so that neither names nor settings are left behind.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.algebra.walk import substitute, tables
from viewkeeper.engine import duck
from viewkeeper.engine.sure import Kinds, kinds_of
from viewkeeper.engine.sure_text import UnsureError
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import arrow_schema
from viewkeeper.lake.lookup import Files
from viewkeeper.lake.nested import can_collect, local_frame
from viewkeeper.plan.cuts import MANY_SCANS, shared_parts
from viewkeeper.plan.small import small_parts

DRIVER = "spark.viewkeeper.driver"  # "false": even the smallest query is run by Spark
SCANS = "spark.viewkeeper.scans"  # how many tables a query of Spark's reads before it is divided
_NUMBERS = itertools.count(1)
MOST_ROWS = 200_000  # a result with more rows stays in Spark
MOST_SCANNED = 400_000_000  # values that are read on the driver, of whole tables; more are Spark's
MOST_FOUND = 1_000_000  # rows of a result over whole tables that comes to the driver
MANY = 50_000  # rows on the driver that are many for Spark to be given
# Larger tables of the driver are sent to the executors rather than put into the plan.
_LOCAL = {"spark.sql.execution.arrow.localRelationThreshold": "4MB"}
# A query whose rows are all on the driver gains nothing by a plan that adapts, or by many tasks.
_TINY = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


@dataclass(frozen=True)
class Result:
    """Computed rows: on the driver, with their schema, if they are few; else a frame."""

    rows: pa.Table | None
    schema: StructType
    frame: DataFrame | None = None


class HeavyError(Exception):
    """A query with many rows on the driver that only Spark can run."""


class Runner:
    """Names for the leaves of one refresh, and the queries over them.

    Use it as a context: at its end all names and results are forgotten.
    """

    def __init__(self, spark: SparkSession, most_rows: int = MOST_ROWS) -> None:
        self._ending = ExitStack()
        self.spark = self._ending.enter_context(jvm.own_session(spark, _LOCAL))
        self.most_rows = most_rows
        self.prefix = f"__vk_{next(_NUMBERS)}_"
        self.rows: dict[Query, pa.Table] = {}  # of the leaves on the driver
        self.kinds: dict[Query, Kinds | None] = {}  # their types
        self.files: dict[Query, Files] = {}  # of the leaves that can be read without Spark
        self._frames: dict[Query, DataFrame | Callable[[], DataFrame]] = {}
        self._names: dict[Query, str] = {}
        self._named_so_far = 0
        self.small = True  # so far all changes and results are
        self._usual = {key: self.spark.conf.get(key) for key in _TINY}
        self._tiny = False
        self._driver = self.spark.conf.get(DRIVER, "true") != "false"
        self._scans = int(self.spark.conf.get(SCANS, str(MANY_SCANS)) or MANY_SCANS)
        self.most_given = sys.maxsize  # rows on the driver that Spark may be given

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def at_end(self, call: Callable[[], object]) -> None:
        """Something to do when all names and results are forgotten."""
        self._ending.callback(call)

    def bind(self, leaf: Query, frame: DataFrame | Callable[[], DataFrame]) -> None:
        """Gives a leaf its rows: a frame, or what makes one if it is needed."""
        self._frames[leaf] = frame
        self._names.pop(leaf, None)
        self.rows.pop(leaf, None)
        self.files.pop(leaf, None)

    def bind_rows(self, leaf: Query, rows: pa.Table, schema: StructType) -> None:
        """Gives a leaf its rows, which are on the driver."""
        self.bind(leaf, lambda: self.local(rows, schema))
        self.rows[leaf] = rows
        self.kinds[leaf] = kinds_of(schema)

    def bind_result(self, leaf: Query, result: Result) -> None:
        """Gives a leaf the rows that were computed."""
        if result.rows is not None:
            self.bind_rows(leaf, result.rows, result.schema)
        else:
            assert result.frame is not None
            self.bind(leaf, result.frame)

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
            self._named_so_far += 1
            self._names[leaf] = name = f"{self.prefix}{self._named_so_far}"
            columns = unique_names(leaf.columns)  # a column may have the name of the weight
            frame = self.leaf(leaf)
            if tuple(frame.columns) != columns:
                frame = frame.toDF(*columns)
            frame.createOrReplaceTempView(name)
        return self._names[leaf]

    def frame(self, query: Query) -> DataFrame:
        """The rows of a query, not yet computed."""
        if isinstance(query, Table):
            return self.leaf(query)
        self._settle(query)
        return self.spark.sql(self.sql(query))

    def compute(self, query: Query) -> Result:
        """The rows of a query, computed once: local if they are few, else kept by Spark."""
        found = self._on_driver(query)
        if found is not None:
            return found
        given = sum(self.rows[t].num_rows for t in tables(query) if t in self.rows)
        if given > self.most_given:
            raise HeavyError(f"Spark would have to be given {given:,} rows of the driver")
        frame = self.frame(self._cut(query))
        self.small = self.small and can_collect(frame)
        if self.small:
            try:
                rows = (frame if self.tiny(query) else frame.limit(self.most_rows + 1)).toArrow()
            except Exception as error:
                if "maxResultSize" not in str(error):  # few rows, but very wide ones
                    raise
                rows = None
            if rows is not None and rows.num_rows <= self.most_rows:
                return Result(rows, frame.schema)
            self.small = False
        return Result(None, frame.schema, self.kept(frame))

    def _cut(self, query: Query) -> Query:
        """The query over the results of parts that Spark would compute many times."""
        done: dict[Query, Query] = {}
        parts = shared_parts(query, self._scans)
        small = small_parts(query) if parts else set()
        for part in parts:
            leaf, inner = self.name("part", part.columns), substitute(part, done)
            done[part] = leaf
            if part in small:
                self.bind_result(leaf, self.compute(inner))
            else:
                self.bind(leaf, self.kept(self.frame(inner)))
        return substitute(query, done)

    def kept(self, frame: DataFrame) -> DataFrame:
        """The frame, computed once and kept by Spark until the end."""
        kept = frame.persist()
        self._ending.callback(kept.unpersist)
        return jvm.cached_frame(kept)

    def nothing(self, query: Query) -> Result:
        """No rows, in the shape of a query's: for a step that is not needed."""
        try:
            rows = duck.empty(query, self.kinds)
            return Result(rows, from_arrow_schema(rows.schema))
        except UnsureError:
            schema = self.frame(query).schema
            return Result(arrow_schema(schema.fields).empty_table(), schema)

    def tiny(self, query: Query) -> bool:
        """Whether all rows of a query are on the driver."""
        return all(leaf in self.rows for leaf in tables(query))

    def _on_driver(self, query: Query) -> Result | None:
        """The rows of a query without Spark, where that is sure to give the same."""
        if not (self.small and self._driver and self._near(query)):
            return None
        most = None if self.tiny(query) else MOST_FOUND
        try:
            rows = duck.run(query, self.rows, self.kinds, self.files, most)
        except UnsureError:
            return None
        if most is not None and rows.num_rows > most:
            return None
        return Result(rows, from_arrow_schema(rows.schema))

    def _near(self, query: Query) -> bool:
        """Whether a query's rows are on the driver, or in files that are soon read there."""
        values = 0
        for leaf in tables(query):
            if leaf not in self.rows:
                if leaf not in self.files:
                    return False
                values += self.files[leaf].rows * leaf.arity
        return values <= MOST_SCANNED

    def local(self, rows: pa.Table, schema: Any) -> DataFrame:
        """A local relation: its rows are on the driver, and reading them is no job."""
        return local_frame(self.spark, rows, schema)

    def _settle(self, query: Query) -> None:
        """The settings that fit a query: other ones if all its rows are on the driver."""
        tiny = self.tiny(query)
        if tiny != self._tiny:
            self._tiny = tiny
            for key, value in (_TINY if tiny else self._usual).items():
                if value is not None:
                    self.spark.conf.set(key, value)

"""Runs programs on Spark: each relation is a temporary view of the refresh's own session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from viewkeeper.engine.runner import Runner
from viewkeeper.lake.arrow import arrow_schema
from viewkeeper.lake.nested import local_frame
from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.task import PREFIX

_THEIRS = ("22", "42")  # classes of SQLSTATEs: wrong values, and text that has no meaning
MOST_ROWS = 100_000  # a relation with more rows stays in Spark


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """What Spark says of the text or the values of a query is about the program."""
    try:
        yield
    except PySparkException as error:
        if not (error.getSqlState() or "").startswith(_THEIRS):
            raise
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise ProgramError(
            f"{name} cannot be computed: {first}", hint="Nothing was changed. Look at its query."
        ) from error


class SparkDesk:
    """A runner of programs. Small relations are collected, so that plans do not grow with rounds
    and joins with them are broadcast; large ones are checkpointed, for the same reason."""

    dialect = "spark"

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.spark = runner.spark
        self._frames: dict[str, DataFrame] = {}
        self._rows: dict[str, pa.Table] = {}
        self._large: set[str] = set()

    def close(self) -> None:
        """Nothing is kept that the session's end does not end."""

    def bind(self, name: str, frame: DataFrame) -> None:
        """Makes the rows of a frame known under a name."""
        frame.createOrReplaceTempView(PREFIX + name)
        self._frames[name] = frame
        self._rows.pop(name, None)

    def bind_rows(self, name: str, rows: pa.Table, schema: StructType) -> None:
        """Makes rows on the driver known under a name."""
        self.bind(name, local_frame(self.spark, rows, schema))
        self._rows[name] = rows

    def define(self, name: str, sql: str, *, lazy: bool) -> None:
        with _refusals(name):
            self._define(name, sql, lazy)

    def _define(self, name: str, sql: str, lazy: bool) -> None:
        frame = self.spark.sql(sql)
        if lazy:
            return self.bind(name, frame)
        if name not in self._large:
            rows = frame.limit(MOST_ROWS + 1).toArrow()
            if rows.num_rows <= MOST_ROWS:
                return self.bind_rows(name, rows, frame.schema)
            self._large.add(name)
        self.bind(name, frame.localCheckpoint())

    def define_empty(self, name: str, sql: str) -> None:
        with _refusals(name):
            schema = self.spark.sql(sql).schema
        self.bind_rows(name, arrow_schema(schema.fields).empty_table(), schema)

    def is_empty(self, name: str) -> bool:
        if name in self._rows:
            return not self._rows[name].num_rows
        return bool(self._frames[name].isEmpty())

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._frames[name].collect()]

    def result(self, sql: str) -> pa.Table | DataFrame:
        """The rows of a query: on the driver if all it reads is, and then computed."""
        with _refusals("the changed rows"):
            frame = self.spark.sql(sql)
            few = frame.limit(MOST_ROWS + 1).toArrow()
        return few if few.num_rows <= MOST_ROWS else frame

    def frame(self, sql: str) -> DataFrame:
        """The rows of a query as a frame."""
        return self.spark.sql(sql)

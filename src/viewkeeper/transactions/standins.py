"""A table as a statement is read over it: its columns, without its log.

Spark looks at the log of a table whenever a query names it, and after each commit that takes a job.
To read a statement the columns are enough; its rows are taken later, at the version of the commit.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from viewkeeper.frontend.leaves import STAND_IN
from viewkeeper.lake.arrow import arrow_schema
from viewkeeper.lake.sources import Source
from viewkeeper.transactions.targets import Target

_PART = re.compile(r"`((?:[^`]|``)*)`")
_FRAMES: WeakKeyDictionary[SparkSession, dict[tuple[str, str], DataFrame]] = WeakKeyDictionary()
_MOST = 200  # frames that are kept


@contextmanager
def stand_in(spark: SparkSession, target: Target) -> Iterator[str]:
    """The name of an empty relation that stands for a table in queries inside the block."""
    held = _FRAMES.setdefault(spark, {})
    source = target.pin.source
    name = f"__vk_target_{source.table_id.replace('-', '')}_{threading.get_ident()}"
    key = name, str(target.pin.metadata["schemaString"])
    if key not in held:
        if len(held) >= _MOST:
            held.clear()
        held[key] = _frame(spark, target, name)
    held[key].createOrReplaceTempView(name)
    try:
        yield name
    finally:
        spark.catalog.dropTempView(name)


def _frame(spark: SparkSession, target: Target, name: str) -> DataFrame:
    first, *others = target.fields
    said: dict[str, Any] = {STAND_IN: name, **_names(target.pin.source)}
    marked = StructField(first.name, first.dataType, True, {**first.metadata, **said})
    schema = StructType([marked, *(StructField(f.name, f.dataType) for f in others)])
    return spark.createDataFrame(arrow_schema(schema.fields).empty_table(), schema=schema)


def _names(source: Source) -> dict[str, Any]:
    """The parts of a table's name, or its path.

    >>> _names(Source("`c`.`d`.`a``b`", "", ""))
    {'parts': ['c', 'd', 'a`b'], 'path': ''}
    >>> _names(Source("delta.`/data/t`", "", ""))
    {'parts': [], 'path': '/data/t'}
    """
    parts = [part.replace("``", "`") for part in _PART.findall(source.name)]
    return {"parts": [], "path": parts[0]} if source.is_path else {"parts": parts, "path": ""}

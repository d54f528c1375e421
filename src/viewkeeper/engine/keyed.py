"""Rows of a table by their keys, at a version: on the driver if that can be, else by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from viewkeeper.engine.lookups import MOST_VALUES, SMALL_TABLE
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import lookup
from viewkeeper.lake.arrow import UnusualError, arrow_schema
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import at, quoted

_MOST_ROWS = 200_000


def rows_with(spark: SparkSession, pin: Pin, sought: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows of a table that have the keys of some rows, NULL being equal to NULL; without keys,
    all rows."""
    schema = arrow_schema(pin.columns)
    wanted = sought.select(list(keys)).cast(pa.schema([schema.field(k) for k in keys]))
    rows = _on_driver(pin, wanted, keys)
    if rows is not None:
        return rows
    frame = at(spark, pin.source, pin.version, schema.names)
    if not keys:
        return frame.toArrow().cast(schema)
    others = [f"g{i}" for i in range(len(keys))]
    taken = local_frame(spark, wanted.rename_columns(others)).distinct()
    same = F.lit(True)
    for name, other in zip(keys, others, strict=True):
        same = same & frame[quoted(name)].eqNullSafe(taken[other])
    return frame.join(F.broadcast(taken), same, "left_semi").toArrow().cast(schema)


def _on_driver(pin: Pin, wanted: pa.Table, keys: Sequence[str]) -> pa.Table | None:
    """The rows; None if only Spark can read them, or they are too many."""
    found = lookup.files(pin.source, pin.version)
    if found is None:
        return None
    limits: dict[str, pa.Array] = {}
    if found.rows > SMALL_TABLE:
        sought = [k for k in keys if lookup.can_seek(found.fields[k])]
        values = {k: pc.unique(wanted.column(k).combine_chunks()) for k in sought}
        limits = {k: v for k, v in values.items() if len(v) <= MOST_VALUES}
        if not limits:
            return None
    try:
        rows = lookup.read(found, [f.name for f in pin.columns], limits, _MOST_ROWS)
        return None if rows is None else _with_keys(rows, wanted, keys)
    except (UnusualError, OverflowError, ValueError):  # also dates that Python has not
        return None


def _with_keys(rows: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> pa.Table:
    def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
        columns = [["NaN" if v != v else v for v in table.column(k).to_pylist()] for k in keys]
        return list(zip(*columns, strict=True))

    if not keys:
        return rows
    those = set(tuples(wanted))
    return rows.filter(pa.array([t in those for t in tuples(rows)], pa.bool_()))

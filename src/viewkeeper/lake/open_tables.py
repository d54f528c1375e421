"""Tables as deltalake has them: those it can write, what it can tell apart, and open handles."""

from __future__ import annotations

import json
import threading

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, StructField, StructType

from viewkeeper.lake import arrow, tips
from viewkeeper.lake.sources import GENERATED, IDENTITY, Source, tip

_EXACT_DIGITS = 15  # of a decimal that a floating point number holds
# Key types whose equality deltalake and Spark agree on; of the floats, all values but zero.
_NATIVE_KEYS = {
    "boolean", "byte", "short", "integer", "long", "decimal", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
}  # fmt: skip
_FLOATS = {"float", "double"}
_NOT_NATIVE: set[str] = set()  # locations of tables that deltalake refused to write
_FOREIGN = ("variant", "interval", "collate", "geometry", "geography", "time(")


class _Handles(threading.local):
    """Tables that deltalake has open, for one thread: two threads with one handle could each
    commit what the other has just committed, without a conflict."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[DeltaTable, int, tips.Mark]] = {}


_HANDLES = _Handles()
_MOST_HANDLES = 64


def open_native(source: Source, at: int | None = None) -> DeltaTable:
    """The store as deltalake sees it now, or at a version.

    A table that is open already reads only the commits that came since.
    """
    folder = source.local_path
    if at is not None or folder is None:
        return DeltaTable(folder, version=at)
    held = _HANDLES.held
    table, version, mark = held.pop(folder, (None, 0, None))
    if table is not None and tips.mark_of(folder, version) == mark:  # the same log as then
        try:
            table.update_incremental()
        except DeltaError:  # commits that are gone from the log
            table = None
    else:
        table = None
    table = table or DeltaTable(folder)
    mark = tips.mark_of(folder, table.version())
    if mark is not None:
        while len(held) >= _MOST_HANDLES:
            del held[next(iter(held))]
        held[folder] = (table, table.version(), mark)
    return table


def can_write(spark: SparkSession, source: Source) -> bool:
    """Whether deltalake can write a table."""
    return native_fields(spark, source) is not None


def native_fields(spark: SparkSession, source: Source) -> list[StructField] | None:
    """The columns of a table that deltalake can write: our own properties, types that it has, and
    no column that the table computes; None for other tables."""
    if source.local_path is None or source.location in _NOT_NATIVE:
        return None
    metadata = tip(spark, source).metadata
    config = metadata.get("configuration") or {}
    fields: list[StructField] = StructType.fromJson(json.loads(metadata["schemaString"])).fields
    parts = set(metadata.get("partitionColumns") or ())
    foreign = any(mark in f.dataType.simpleString() for f in fields for mark in _FOREIGN)
    binary = any(f.name in parts and f.dataType.typeName() == "binary" for f in fields)
    mapped = config.get("delta.columnMapping.mode", "none") != "none"
    computed = any(key.startswith((GENERATED, IDENTITY)) for f in fields for key in f.metadata)
    return None if foreign or binary or mapped or computed else fields


def refuse(source: Source) -> None:
    """From now on Spark writes a table: deltalake cannot, whatever it looks like."""
    _NOT_NATIVE.add(source.location)


def same_keys(values: pa.ChunkedArray, kind: str) -> bool:
    """Whether deltalake finds the rows of these keys that Spark finds: to it, -0.0 is not 0.0.

    >>> [same_keys(pa.chunked_array([[1.5, x]]), "double") for x in (None, float("nan"), -0.0)]
    [True, True, False]
    """
    if kind in _FLOATS:
        return not pc.any(pc.equal(values, 0.0)).as_py()
    return kind in _NATIVE_KEYS


def is_rounded(field: StructField) -> bool:
    """Whether deltalake's statistics of a column are not exact, so that readers would leave out
    files: it writes decimals as floating point numbers, and does not count NaN."""
    kind = field.dataType
    if isinstance(kind, DecimalType):
        return bool(kind.scale > 0 and kind.precision > _EXACT_DIGITS)
    return kind.typeName() in ("float", "double")


def fills(rows: pa.Table, fields: list[StructField]) -> bool:
    """Whether no value is missing where there must be one."""
    return all(f.nullable or not rows.column(f.name).null_count for f in fields)


def fitted(rows: pa.Table, fields: list[StructField]) -> pa.Table:
    """The store's columns in the store's order and types."""
    schema = arrow.arrow_schema(fields)
    return rows.select(schema.names).cast(schema)

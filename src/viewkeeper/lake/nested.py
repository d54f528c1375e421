"""Columns of arrays and structs on the driver, which Arrow cannot group by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from viewkeeper.lake.sources import quoted

_NAN = object()


def loosened(kind: DataType) -> DataType:
    """A type in which every value inside may be NULL.

    >>> from pyspark.sql.types import LongType
    >>> loosened(ArrayType(LongType(), containsNull=False))
    ArrayType(LongType(), True)
    """
    if isinstance(kind, ArrayType):
        return ArrayType(loosened(kind.elementType), True)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, loosened(f.dataType)) for f in kind.fields])
    return kind


def type_sql(kind: DataType) -> str:
    """A type in SQL, whatever its fields are called.

    >>> from pyspark.sql.types import LongType
    >>> type_sql(ArrayType(StructType([StructField("o'clock", LongType())])))
    "array<struct<`o'clock`:bigint>>"
    """
    if isinstance(kind, ArrayType):
        return f"array<{type_sql(kind.elementType)}>"
    if isinstance(kind, StructType):
        fields = (f"{quoted(f.name)}:{type_sql(f.dataType)}" for f in kind.fields)
        return f"struct<{','.join(fields)}>"
    return str(kind.simpleString())


def local_frame(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Rows on the driver as a frame; times without a zone stay such, for some of them are none or
    two in the session's. PySpark takes nested columns only if they are whole: not cut from longer
    ones, and not without any part.

    Examples
    --------
    >>> rows = pa.table({"a": [[{"n": 1}], None]})
    >>> local_frame(spark, rows.slice(1)).collect()                           # doctest: +SKIP
    [Row(a=None)]
    """
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        whole = rows.take(pa.array(range(rows.num_rows), pa.int64()))
        rows = whole if whole.num_rows else rows.schema.empty_table()
    if schema is None:
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(rows, schema=schema)


def can_collect(frame: DataFrame) -> bool:
    """Whether PySpark brings the rows of a frame to the driver as Arrow's: not a column that is
    always NULL and said never to be, which is what ``explode(array())`` has.

    Examples
    --------
    >>> can_collect(spark.sql("SELECT explode(array()) AS a"))                # doctest: +SKIP
    False
    """
    try:
        to_arrow_schema(frame.schema, timezone="UTC")
    except (ValueError, PySparkException):
        return False
    return True


def coded(column: pa.ChunkedArray) -> tuple[pa.Array, pa.ChunkedArray]:
    """A number for each value, the same for those that Spark's GROUP BY takes for one; and the
    values, by these numbers.

    >>> numbers, values = coded(pa.chunked_array([[[0.0, None], None, [-0.0, None], []]]))
    >>> numbers.to_pylist(), values.to_pylist()
    ([0, 1, 0, 2], [[0.0, None], None, []])
    """
    seen: dict[Any, int] = {}
    first: list[int] = []
    numbers: list[int] = []
    for place, value in enumerate(column.cast(_counted(column.type)).to_pylist()):
        number = seen.setdefault(_frozen(value), len(seen))
        if number == len(first):
            first.append(place)
        numbers.append(number)
    return pa.array(numbers, pa.int64()), column.take(pa.array(first, pa.int64()))


def _counted(kind: pa.DataType) -> pa.DataType:
    """A type with days and microseconds for times: Python knows no year 10,000."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_counted(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _counted(f.type)) for f in kind])
    if pa.types.is_nested(kind):
        raise pa.ArrowNotImplementedError(f"values of type {kind} are not compared")
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _frozen(value: Any) -> Any:
    """A value as a key: NaN is itself, and -0.0 is 0.0.

    >>> nan = float("nan")
    >>> _frozen([{"x": nan}]) == _frozen([{"x": -nan}]), _frozen([None]) == _frozen([])
    (True, False)
    """
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple(map(_frozen, value.values()))
    return _NAN if isinstance(value, float) and value != value else value


def as_arrow(value: Any, kind: pa.DataType) -> Any:
    """A value that a user gave for a column, as Arrow takes it: of structs a dict, a tuple or
    a row of Spark's; times without a zone are local, as in PySpark.

    >>> pairs = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))
    >>> as_arrow([(1, "a"), {"y": "b"}], pairs)
    [{'x': 1, 'y': 'a'}, {'y': 'b'}]
    >>> as_arrow([(1,)], pairs)
    Traceback (most recent call last):
    ValueError: (1,) has 1 values, for x, y
    """
    if value is None:
        return None
    if pa.types.is_list(kind) and isinstance(value, (list, tuple)):
        return [as_arrow(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        types = {f.name: f.type for f in kind}
        named = _named(value, list(types))
        return {n: as_arrow(v, types[n]) for n, v in named.items()}
    if pa.types.is_integer(kind) and isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value!r} is not a whole number")
    if isinstance(value, datetime) and value.tzinfo is None and getattr(kind, "tz", None):
        return value.astimezone()
    return value


def _named(value: Any, names: Sequence[str]) -> Mapping[str, Any]:
    if hasattr(value, "__fields__"):
        value = dict(zip(value.__fields__, value, strict=True))
    if isinstance(value, tuple):
        if len(value) != len(names):
            raise ValueError(f"{value!r} has {len(value)} values, for {', '.join(names)}")
        return dict(zip(names, value, strict=True))
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is no struct of {', '.join(names)}")
    spelled = {n.lower(): n for n in names}
    odd = [n for n in value if str(n).lower() not in spelled]
    if odd:
        raise ValueError(f"no field {odd[0]!r}: there are {', '.join(names)}")
    if len({str(n).lower() for n in value}) < len(value):
        raise ValueError(f"a field is there twice: {', '.join(map(str, value))}")
    return {spelled[str(n).lower()]: v for n, v in value.items()}

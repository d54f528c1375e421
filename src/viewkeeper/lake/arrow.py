"""Small changes without Spark: Parquet files read by Arrow and netted by Arrow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from viewkeeper.lake.nested import coded, loosened

WEIGHT = "__weight"

# Types that Arrow can group by; all others go through Spark.
_GROUPED = {
    "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary",
    "date", "timestamp", "timestamp_ntz",
}  # fmt: skip
# Types whose text in a partition value Arrow reads as Delta means it.
_PARTITION = {"boolean", "byte", "short", "integer", "long", "string", "date"}
# Marks of writers with another calendar; Spark knows how to read them.
LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_PIECE = 65_536  # rows that are read at once
_LEAST = 8  # bytes of a row: its weight
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


class UnusualError(Exception):
    """Something that this reader leaves to Spark."""


class LargeError(Exception):
    """More rows than the driver is to hold."""


def can_group(kind: DataType) -> bool:
    """Whether Arrow can net rows with a column of this type.

    Examples
    --------
    >>> from pyspark.sql.types import ArrayType, DecimalType, LongType
    >>> [can_group(kind) for kind in (LongType(), DecimalType(10, 2), ArrayType(LongType()))]
    [True, True, False]
    """
    name = kind.typeName()
    return name == "decimal" or (name in _GROUPED and "collate" not in kind.simpleString())


def can_net(kind: DataType) -> bool:
    """Whether the driver can net rows with a column of this type: arrays and structs as well.

    Examples
    --------
    >>> from pyspark.sql.types import ArrayType, LongType, MapType
    >>> [can_net(k) for k in (ArrayType(LongType()), MapType(LongType(), LongType()))]
    [True, False]
    """
    if isinstance(kind, ArrayType):
        return can_net(kind.elementType)
    if isinstance(kind, StructType):
        return all(can_net(f.dataType) for f in kind.fields)
    return can_group(kind)


def can_partition(kind: DataType) -> bool:
    """Whether Arrow reads the partition values of this type as Delta means them."""
    return kind.typeName() in _PARTITION


def arrow_schema(fields: Sequence[StructField]) -> pa.Schema:
    """The Arrow types that we use for Spark's; every column may be NULL."""
    struct = StructType([StructField(f.name, loosened(f.dataType), True) for f in fields])
    return to_arrow_schema(struct, timezone="UTC", prefers_large_types=False)


def change_schema(fields: Sequence[StructField]) -> pa.Schema:
    """The schema of a change: the columns and the weight."""
    return arrow_schema(fields).append(pa.field(WEIGHT, pa.int64()))


def read_file(
    path: str,
    fields: Sequence[StructField],
    partition: Mapping[str, str | None],
    *,
    sign: int | None,
    weight: str | None,
    most_bytes: int,
) -> pa.Table:
    """The rows of one Parquet file, each with its weight.

    ``sign`` is +1 for a file that was added, -1 for one that was removed, None for a change file,
    whose rows have signs of their own. ``partition`` holds the values that the file lacks.

    Raises
    ------
    LargeError
        When the rows take more than ``most_bytes``: a small file may hold very many.
    UnusualError
        When only Spark can read the file.
    """
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    if is_legacy(file.metadata.metadata or {}):
        raise UnusualError("another calendar")
    target = arrow_schema(fields)
    stored = set(file.schema_arrow.names)
    check_case(stored, target.names)
    wanted = [name for name in target.names if name in stored and name not in partition]
    extra = [c for c in (weight, "_change_type" if sign is None else None) if c]
    held = _held(file, list(dict.fromkeys([*wanted, *extra])), most_bytes)
    try:
        columns = [
            _constant(partition[f.name], f.type, held.num_rows)
            if f.name in partition
            else held.column(f.name).cast(f.type)
            if f.name in stored
            else pa.nulls(held.num_rows, f.type)
            for f in target
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnusualError(str(error)) from error
    weights = _weights(held, sign, weight)
    return pa.table([*columns, weights], schema=change_schema(fields))


def _held(file: pq.ParquetFile, columns: list[str], most_bytes: int) -> pa.Table:
    """The columns of a file, unless they take too much."""
    rows = file.metadata.num_rows
    if rows * _LEAST > most_bytes:
        raise LargeError
    if rows <= _PIECE:
        held = file.read(columns=columns)
        if held.nbytes > most_bytes:
            raise LargeError
        return held
    pieces, size = [], 0
    for piece in file.iter_batches(_PIECE, columns=columns):
        size += piece.nbytes
        if size > most_bytes:
            raise LargeError
        pieces.append(piece)
    return pa.Table.from_batches(pieces)


def is_legacy(marks: Mapping[bytes, bytes]) -> bool:
    """Whether a file's old dates or times are in another calendar: it says so, or was written by a
    version of Spark that did not know another.

    >>> [is_legacy({b"org.apache.spark.version": v}) for v in (b"2.4.3", b"3.0.1", b"4.2.0")]
    [True, True, False]
    """
    if any(mark in marks for mark in LEGACY):
        return True
    written = re.match(rb"(\d+)\.(\d+)", marks.get(b"org.apache.spark.version", b""))
    return written is not None and (int(written[1]), int(written[2])) < (3, 1)


def check_case(stored: Collection[str], names: Iterable[str]) -> None:
    """Raises where a file has a column under its name in other letters, as Spark would read it.

    Raises
    ------
    UnusualError
        When only Spark can read the file.
    """
    lower = {name.lower() for name in stored}
    if any(name not in stored and name.lower() in lower for name in names):
        raise UnusualError("a column whose name differs in case")


def net(change: pa.Table) -> pa.Table:
    """One row per distinct row, with the sum of its weights; rows whose weights cancel are gone.

    NULL equals NULL, NaN equals NaN and -0.0 equals 0.0, as in Spark's GROUP BY.

    Examples
    --------
    >>> change = pa.table({"a": [1, None, 1, None], "__weight": [1, 1, -1, 1]})
    >>> net(change).to_pylist()
    [{'a': None, '__weight': 2}]
    """
    names = [name for name in change.schema.names if name != WEIGHT]
    return summed(change.select([*names, WEIGHT]), 1).select(change.schema.names)


def summed(rows: pa.Table, numbers: int) -> pa.Table:
    """One row per distinct row; the last columns are numbers, which are added up, and rows whose
    numbers are all zero are gone.

    Examples
    --------
    >>> rows = pa.table({"a": [1, None, 1, None], "m": [1, 1, 0, 0], "n": [0, 0, 2, -1]})
    >>> summed(rows, 2).to_pylist()
    [{'a': 1, 'm': 1, 'n': 2}, {'a': None, 'm': 1, 'n': -1}]
    """
    schema = rows.schema
    width = len(schema.names) - numbers
    held = schema.names[width:]
    if not width:
        totals = [pc.sum(rows.column(i)).as_py() or 0 for i in range(numbers)]
        if not any(totals):
            return schema.empty_table()
        return pa.table([pa.array([t], pa.int64()) for t in totals], schema=schema)
    values: dict[int, pa.ChunkedArray] = {}
    for i in range(width):
        if pa.types.is_floating(schema.field(i).type):
            rows = rows.set_column(i, schema.field(i), _one_zero(rows.column(i)))
        elif pa.types.is_nested(schema.field(i).type):
            codes, values[i] = coded(rows.column(i))
            rows = rows.set_column(i, schema.field(i).name, codes)
    # the names of columns may be those of Arrow's own results: group by positions instead
    keys = [str(i) for i in range(width)]
    plain = rows.rename_columns([*keys, *(f"w{i}" for i in range(numbers))])
    sums = [(f"w{i}", "sum") for i in range(numbers)]
    grouped = plain.group_by(keys, use_threads=False).aggregate(sums)
    grouped = grouped.select([*keys, *(f"w{i}_sum" for i in range(numbers))])
    for i, distinct in values.items():
        grouped = grouped.set_column(i, str(i), distinct.take(grouped.column(i)))
    result = grouped.rename_columns([*schema.names[:width], *held]).cast(schema)
    some = pc.not_equal(result.column(width), 0)
    for i in range(1, numbers):
        some = pc.or_(some, pc.not_equal(result.column(width + i), 0))
    return result.filter(some).combine_chunks()


def repeated(rows: pa.Table, times: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Each row as often as its number says.

    Examples
    --------
    >>> repeated(pa.table({"a": ["x", "y"]}), pa.array([2, 0])).to_pylist()
    [{'a': 'x'}, {'a': 'x'}]
    """
    places = [i for i, n in enumerate(times.to_pylist()) for _ in range(n)]
    return rows.take(pa.array(places, pa.int64()))


def _one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with one zero and one NaN."""
    zero = pa.scalar(0.0, column.type)
    same = pc.add(column, zero)
    return pc.if_else(pc.is_nan(same), pa.scalar(float("nan"), column.type), same)


def _constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """A partition value as a column; the empty text is NULL in Delta's log."""
    if text is None or text == "":
        return pa.nulls(rows, kind)
    return pa.repeat(pa.scalar(text).cast(kind), rows)


def _weights(held: pa.Table, sign: int | None, weight: str | None) -> Any:
    if sign is not None:
        signs: Any = pa.repeat(pa.scalar(sign, pa.int64()), held.num_rows)
    else:
        kinds = held.column("_change_type").to_pylist()
        signs = pa.array([_SIGNS[kind] for kind in kinds], pa.int64())
    if weight is None:
        return signs
    return pc.multiply(signs, held.column(weight).cast(pa.int64()).combine_chunks())

"""Rows of a table by the values of some columns, read without Spark.

The log's statistics leave out files, Parquet's leave out row groups, and of the rest the sought
columns are looked at first. DuckDB reads the files; the types are those of the change feed.
"""

from __future__ import annotations

import bisect
import json
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import StructField, StructType

from viewkeeper.lake import arrow, history, tips
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.sources import Source
from viewkeeper.lake.vectors import FILE, ROW, Kept, kept_rows, without_deleted

# Types that DuckDB reads from Parquet as Spark does.
_READ = {
    "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date",
    "decimal", "timestamp", "timestamp_ntz",
}  # fmt: skip
# Types that need no cast to be what the change feed has.
_SCANNED = _READ - {"float", "timestamp", "timestamp_ntz"}
# Types whose equality is that of their bits: values of them can be sought.
_SOUGHT = {"boolean", "byte", "short", "integer", "long", "string", "date", "decimal"}
_RANGED = {"byte", "short", "integer", "long", "date"}  # with exact minima and maxima in the log
_COMPRESSED = 5  # bytes in memory for one in a file
_FEW_FILES = 4  # no look at the log's statistics
_MOST_MASKED = 100_000_000  # rows of a table with deletion vectors, one byte each
_MEMORY = "2GB"  # of all queries on the driver; what needs more goes to the disk
_LOCAL = threading.local()
_SHARED: dict[int, Any] = {}  # by process
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Files:
    """The files of a table at a version, and how they are to be read."""

    folder: str
    fields: Mapping[str, StructField]
    actions: pa.Table
    partitions: tuple[str, ...]
    kept: Kept

    @property
    def rows(self) -> int:
        """The number of rows, deleted ones among them where files have deletion vectors."""
        return int(pc.sum(self.actions.column("num_records")).as_py() or 0)

    def rows_in(self, size: int) -> int:
        """How many rows fit into so many bytes, by the files' sizes."""
        stored = int(pc.sum(self.actions.column("size_bytes")).as_py() or 0)
        return size // max(16, _COMPRESSED * stored // max(self.rows, 1))


def can_seek(field: StructField) -> bool:
    """Whether values of a column can be sought.

    >>> from pyspark.sql.types import DoubleType, LongType
    >>> [can_seek(StructField("a", kind)) for kind in (LongType(), DoubleType())]
    [True, False]
    """
    return field.dataType.typeName() in _SOUGHT and "collate" not in field.dataType.simpleString()


def can_read(field: StructField) -> bool:
    """Whether DuckDB reads values of a column from Parquet as Spark does."""
    kind = field.dataType
    return kind.typeName() in _READ and "collate" not in kind.simpleString()


def files(source: Source, version: int) -> Files | None:
    """The files of a local table, None where only Spark can read them."""
    path = source.local_path
    try:
        return None if path is None else _files(path, source.table_id, version)
    except UnusualError:
        return None


def obstacle(source: Source, version: int) -> str | None:
    """Why only Spark can read a table; None where it need not."""
    path = source.local_path
    if path is None:
        return "remote files"
    try:
        _files(path, source.table_id, version)
    except UnusualError as error:
        return str(error)
    return None


def _files(path: str, table_id: str, version: int) -> Files:
    # deltalake names files by the folder's real path
    return _listed(os.path.realpath(path), table_id, version, tips.mark_of(path, version))


@lru_cache(maxsize=256)
def _listed(path: str, table_id: str, version: int, mark: tips.Mark | None) -> Files:
    """The files; the mark tells a version from another one that had its number before."""
    try:
        table = DeltaTable(path, version=version)
        config = table.metadata().configuration
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        actions = pa.table(table.get_add_actions(flatten=True))
    except Exception as error:  # features that deltalake does not know
        raise UnusualError(str(error)) from error
    if str(table.metadata().id) != table_id:
        raise UnusualError("another table")
    if config.get("delta.columnMapping.mode", "none") != "none":
        raise UnusualError("column mapping")
    if actions.num_rows and actions.column("num_records").null_count:
        raise UnusualError("no statistics")
    kept: Kept = {}
    if "deletionVectors" in (table.protocol().reader_features or ()):
        if actions.num_rows and pc.sum(actions.column("num_records")).as_py() > _MOST_MASKED:
            raise UnusualError("deletion vectors of a large table")
        try:
            kept = kept_rows(table)
        except Exception as error:  # a vector that is not there, for one
            raise UnusualError(str(error)) from error
    fields = {f.name: f for f in schema.fields}
    found = Files(path, fields, actions, tuple(table.metadata().partition_columns), kept)
    if not set(kept) <= set(paths_of(found, actions)):
        raise UnusualError("deletion vectors of files that have other names")
    return found


def read(
    found: Files, columns: Sequence[str], wanted: Mapping[str, pa.Array], most_rows: int
) -> pa.Table | None:
    """The rows that have wanted values in all the columns named; None if they are too many.

    A NULL among the wanted values asks for the rows with NULL.

    Raises
    ------
    UnusualError
        When only Spark can read the rows.
    """
    fields = [found.fields[c] for c in columns]
    if not all(can_read(f) for f in fields):
        raise UnusualError("a type that is left to Spark")
    stored = [c for c in columns if c not in found.partitions]
    if not stored:
        raise UnusualError("no column that the files hold")
    used = {*columns, *wanted} & set(found.partitions)
    if not all(arrow.can_partition(found.fields[c].dataType) for c in used):
        raise UnusualError("partition values that are left to Spark")
    target = arrow.arrow_schema(fields)
    actions = files_with(found, wanted)
    if not actions.num_rows or any(len(v) == 0 for v in wanted.values()):
        return target.empty_table()
    paths = paths_of(found, actions)
    if not all(is_usual(p) for p in paths):
        raise UnusualError("another calendar")
    sought = {c: v for c, v in wanted.items() if c not in found.partitions}
    parts = [c for c in columns if c in found.partitions]
    masked = any(p in found.kept for p in paths)
    extra = ([FILE] if parts or masked else []) + ([ROW] if masked else [])
    if any(name.lower() in extra for name in found.fields):
        raise UnusualError("a column has a name that DuckDB uses")
    rows = _query(paths, stored, extra, sought, most_rows)
    if rows.num_rows > most_rows:
        return None
    if masked:
        rows = without_deleted(rows, found.kept)
    try:
        for name in parts:
            of_file = dict(zip(paths, _list(actions, f"partition.{name}"), strict=True))
            values = [of_file[p] for p in _list(rows, FILE)]
            rows = rows.append_column(name, pa.array(values, target.field(name).type))
        return rows.select(list(columns)).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnusualError(str(error)) from error


def scan_text(
    found: Files, columns: Sequence[str], names: Sequence[str], hidden: str = "hidden"
) -> str:
    """A query of DuckDB's for all rows of a table: some columns, under other names; ``hidden`` is
    what it calls the table of ``hidden_places``.

    Raises
    ------
    UnusualError
        When only Spark can read the rows.
    """
    kinds = [found.fields[c].dataType for c in columns]
    if any(k.typeName() not in _SCANNED or "collate" in k.simpleString() for k in kinds):
        raise UnusualError("a type that is left to Spark")
    paths = paths_of(found, found.actions)
    if set(columns) & set(found.partitions):
        raise UnusualError("columns that the files do not hold")
    if not paths or not columns or not all(is_usual(p) for p in paths):
        raise UnusualError("no rows, no columns, or another calendar")
    values = [f"t.{quoted(c)}" for c in columns]
    values = [
        _whole(v) if k.typeName() == "double" else v for v, k in zip(values, kinds, strict=True)
    ]
    items = [f"{v} AS {quoted(n)}" for v, n in zip(values, names, strict=True)]
    masked = any(p in found.kept for p in paths)
    if masked and any(name.lower() in (FILE, ROW) for name in found.fields):
        raise UnusualError("a column has a name that DuckDB uses")
    listed = ", ".join("'" + p.replace("'", "''") + "'" for p in paths)
    options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
    options += ", filename = true, file_row_number = true" if masked else ""
    text = f"SELECT {', '.join(items)} FROM read_parquet([{listed}], {options}) t"
    if masked:
        text += f" ANTI JOIN {quoted(hidden)} h ON t.{FILE} = h.{FILE} AND t.{ROW} = h.{ROW}"
    return text


def _query(
    paths: list[str],
    columns: Sequence[str],
    extra: Sequence[str],
    wanted: Mapping[str, pa.Array],
    most_rows: int,
) -> pa.Table:
    conditions = []
    duck = connection()
    try:
        for i, (name, values) in enumerate(wanted.items()):
            duck.register(f"wanted{i}", pa.table({"v": values.drop_null()}))
            condition = f"{quoted(name)} IN (SELECT v FROM wanted{i})"
            if values.null_count:
                condition = f"({condition} OR {quoted(name)} IS NULL)"
            conditions.append(condition)
        names = ", ".join(quoted(c) for c in [*columns, *extra])
        options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
        options += f", filename = {FILE in extra}, file_row_number = {ROW in extra}"
        text = f"SELECT {names} FROM read_parquet($1, {options})"
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        text += f" LIMIT {most_rows + 1}"
        return duck.sql(text, params=[paths]).to_arrow_table()
    except duckdb.Error as error:
        raise UnusualError(str(error)) from error
    finally:
        for i in range(len(wanted)):
            duck.unregister(f"wanted{i}")


def paths_of(found: Files, actions: pa.Table) -> list[str]:
    """Where some files of a table are."""
    return [history.file_path(found.folder, {"path": p}) for p in _list(actions, "path")]


def _list(table: pa.Table, name: str) -> list[Any]:
    return list(table.column(name).to_pylist())


def connection() -> Any:
    """One DuckDB, with a connection for each thread."""
    if getattr(_LOCAL, "process", None) != os.getpid():
        with _LOCK:
            if os.getpid() not in _SHARED:
                folder = os.path.join(tempfile.gettempdir(), f"viewkeeper-{os.getpid()}")
                _SHARED[os.getpid()] = duckdb.connect(
                    config={"memory_limit": _MEMORY, "temp_directory": folder}
                )
                # Spark's files have times without a zone that are in UTC, others have them with one
                _SHARED[os.getpid()].execute("SET GLOBAL TimeZone = 'UTC'")
            _LOCAL.duck = _SHARED[os.getpid()].cursor()
        _LOCAL.process = os.getpid()
    return _LOCAL.duck


def files_with(found: Files, wanted: Mapping[str, pa.Array]) -> pa.Table:
    """The files that may have wanted values, by their partition and by the log's statistics."""
    actions = found.actions
    for name, values in wanted.items():
        if name in found.partitions:
            kept = set(values.to_pylist())
            mask = [v in kept for v in _list(actions, f"partition.{name}")]
            actions = actions.filter(pa.array(mask, pa.bool_()))
            continue
        low, high = f"min.{name}", f"max.{name}"
        ranged = found.fields[name].dataType.typeName() in _RANGED and not values.null_count
        if actions.num_rows > _FEW_FILES and ranged and len(values) and low in actions.schema.names:
            actions = actions.filter(_between(actions, low, high, values))
    return actions


def _between(actions: pa.Table, low: str, high: str, values: pa.Array) -> pa.ChunkedArray:
    """Whether a wanted value lies between a file's minimum and maximum; yes, if these are not
    known."""
    try:
        ordered = pc.array_take(values, pc.sort_indices(values)).to_pylist()
        ends = zip(*(actions.column(c).to_pylist() for c in (low, high)), strict=True)
    except (OverflowError, ValueError):  # dates that Python has not
        return pa.chunked_array([pa.array([True] * actions.num_rows, pa.bool_())])
    kept = []
    for a, b in ends:
        if a is None or b is None:
            kept.append(True)
        else:
            at = bisect.bisect_left(ordered, a)
            kept.append(at < len(ordered) and ordered[at] <= b)
    return pa.chunked_array([pa.array(kept, pa.bool_())])


@lru_cache(maxsize=65_536)
def is_usual(path: str) -> bool:
    """Whether a file can be read, and has today's calendar; files never change."""
    try:
        marks = pq.read_metadata(path).metadata or {}
    except OSError:  # a file of another place, or one that is gone
        return False
    return not arrow.is_legacy(marks)


def _whole(column: str) -> str:
    """A column of doubles that DuckDB does not look up in the statistics of files: those of some
    writers leave out NaN. A file may have it in single precision, from before it was widened."""
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE CAST({column} AS DOUBLE) END"


def quoted(name: str) -> str:
    """A name in the double quotes of DuckDB's SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'

"""Data files that we write ourselves, as the log is to name them."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.lake.history import Action

_GROUP = 131_072  # rows of a row group: lookups leave out the others
_LONGEST = 32  # characters of a text in the statistics
_MOST_STATISTICS = 32  # columns
CHANGE = "_change_type"


def data_file(
    folder: str,
    rows: pa.Table,
    partition: Mapping[str, str | None] | None = None,
    *,
    change: bool = True,
) -> Action:
    """Writes rows into a new file; the action that adds it. ``change``: whether they are new."""
    name = f"part-{uuid.uuid4()}.parquet"
    size = _write(f"{folder}/{name}", rows)
    add = {
        "path": name,
        "partitionValues": dict(partition or {}),
        "size": size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": change,
        "stats": statistics(rows),
    }
    return {"add": add}


def change_file(folder: str, gone: pa.Table, come: pa.Table) -> Action:
    """Writes what a commit does into a file of the change feed; the action that says so."""
    os.makedirs(f"{folder}/_change_data", exist_ok=True)
    name = f"_change_data/cdc-{uuid.uuid4()}.parquet"
    kinds = [
        rows.append_column(CHANGE, pa.repeat(pa.scalar(kind), rows.num_rows))
        for rows, kind in ((gone, "delete"), (come, "insert"))
    ]
    size = _write(f"{folder}/{name}", pa.concat_tables(kinds))
    return {"cdc": {"path": name, "partitionValues": {}, "size": size, "dataChange": False}}


def removed(add: Action, *, change: bool = True) -> Action:
    """The action that takes a file away."""
    kept = ("path", "partitionValues", "size", "deletionVector")
    remove: dict[str, Any] = {k: add[k] for k in kept if k in add}
    remove |= {
        "deletionTimestamp": int(time.time() * 1000),
        "dataChange": change,
        "extendedFileMetadata": True,
    }
    return {"remove": remove}


def hidden(add: Action, vector: Action) -> Action:
    """The action that adds a file again with another deletion vector."""
    again = add | {"dataChange": True, "stats": loose(add["stats"]), "deletionVector": vector}
    return {"add": again}


def loose(stats: str) -> str:
    """The same statistics, said to be of more rows than there are. They stay a text: the digits of
    a decimal would not survive being read as a number.

    >>> loose('{"numRecords":2,"maxValues":{"a":0.333333333333333333},"tightBounds":true}')
    '{"numRecords":2,"maxValues":{"a":0.333333333333333333},"tightBounds":false}'
    >>> loose('{"numRecords":2}')
    '{"numRecords":2,"tightBounds":false}'
    """
    said = re.sub(r'"tightBounds"\s*:\s*true(?=[^"]*$)', '"tightBounds":false', stats)
    if re.search(r'"tightBounds"\s*:\s*false(?=[^"]*$)', said):
        return said
    return f'{stats.rstrip().removesuffix("}")},"tightBounds":false}}'


def statistics(rows: pa.Table) -> str:
    """The statistics of a file as JSON: numbers of rows and of NULLs, and the least and greatest
    values where these are whole numbers, dates or short texts.

    >>> statistics(pa.table({"a": [3, None, 1], "b": [0.5, 1.5, 2.5]}))
    '{"numRecords": 3, "minValues": {"a": 1}, "maxValues": {"a": 3}, "nullCount": {"a": 1, "b": 0}}'
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.schema.names[:_MOST_STATISTICS]:
        column = rows.column(name)
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if not _is_ranged(column.type):
            continue
        try:
            ends = pc.min_max(column).as_py()
        except (OverflowError, ValueError):  # a date that Python has not
            continue
        if ends["min"] is not None and all(_fits(v) for v in ends.values()):
            least[name], most[name] = (_json(ends[end]) for end in ("min", "max"))
    found: Mapping[str, Any] = {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": most,
        "nullCount": nulls,
    }
    return json.dumps(found)


def _is_ranged(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind))


def _fits(value: Any) -> bool:
    return not isinstance(value, str) or len(value) <= _LONGEST


def _json(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else value.isoformat()


def _has_floats(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _write(path: str, rows: pa.Table) -> int:
    """The size of the file, which is on the disk when this returns."""
    with open(path, "xb") as file:
        # Arrow's statistics leave out NaN, which is greater than any number to Spark
        exact = [f.name for f in rows.schema if not _has_floats(f.type)]
        pq.write_table(rows, file, row_group_size=_GROUP, write_statistics=exact)
        file.flush()
        os.fsync(file.fileno())
    return os.path.getsize(path)

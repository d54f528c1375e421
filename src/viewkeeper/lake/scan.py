"""A table's files as a query of DuckDB's, where it reads them as Spark does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from viewkeeper.lake import history
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.lookup import Files, can_seek, is_usual


def scan(found: Files, columns: Sequence[str], where: Mapping[str, str] | None = None) -> str:
    """The query that gives some columns of all rows, in the types of the table.

    Parameters
    ----------
    found : Files
        The files of a table at a version.
    columns : sequence of str
        Columns whose values are equal in both engines if they are equal in one.
    where : mapping, optional
        Values of partition columns; only their files are read.

    Raises
    ------
    UnusualError
        When only Spark can read the rows.
    """
    for name in columns:
        if not can_seek(found.fields[name]) or name in found.partitions:
            raise UnusualError(f"{name} is left to Spark")
    if found.kept:
        raise UnusualError("deletion vectors")
    actions = found.actions
    rows = zip(*[actions.column(f"partition.{n}").to_pylist() for n in where or ()], strict=True)
    held = list(rows) if where else [()] * actions.num_rows
    wanted = tuple((where or {}).values())
    paths = [
        history.file_path(found.folder, {"path": path})
        for path, values in zip(actions.column("path").to_pylist(), held, strict=True)
        if values == wanted
    ]
    if not all(is_usual(path) for path in paths):
        raise UnusualError("another calendar")
    items = [(name, duck_type(found.fields[name].dataType.simpleString())) for name in columns]
    if not paths:
        empty = ", ".join(f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in items)
        return f"SELECT {empty} WHERE FALSE"
    listed = ", ".join(
        f"CAST({_quoted(name)} AS {kind}) AS {_quoted(name)}" for name, kind in items
    )
    files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
    return f"SELECT {listed} FROM read_parquet([{files}], {options})"


def duck_type(kind: str) -> str:
    """DuckDB's name of one of Spark's types.

    >>> duck_type("bigint"), duck_type("decimal(10,2)"), duck_type("string")
    ('BIGINT', 'DECIMAL(10, 2)', 'TEXT')
    """
    return exp.DataType.build(kind, dialect="spark").sql("duckdb")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

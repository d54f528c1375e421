"""Runs a query without Spark: over rows on the driver, and over files that it can read."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.algebra.walk import tables
from viewkeeper.engine.sure import Kinds, translate
from viewkeeper.engine.sure_text import UnsureError
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.lookup import Files, connection, scan_text
from viewkeeper.lake.vectors import hidden_places


def run(
    query: Query,
    rows: Mapping[Query, pa.Table],
    kinds: Mapping[Query, Kinds | None],
    files: Mapping[Query, Files] | None = None,
    most_rows: int | None = None,
) -> pa.Table:
    """The rows of a query over leaves on the driver or in ``files``, in the types that Spark would
    give them; of more than ``most_rows`` one more than these.

    Raises
    ------
    UnsureError
        When only Spark is sure to give the right answer.
    """
    made, types = _translated(query, kinds)
    used: list[Query] = list(tables(made))
    names = {leaf: f"t{i}" for i, leaf in enumerate(used)}
    text = to_sql(made, dialect="duckdb", tables=names)
    if most_rows is not None:
        text = f"SELECT * FROM ({text}) LIMIT {most_rows + 1}"
    duck = connection()
    try:
        for leaf, name in names.items():
            columns = list(unique_names(leaf.columns))
            if leaf in rows:
                duck.register(name, rows[leaf].rename_columns(columns))
            else:
                assert files is not None and isinstance(leaf, Table)
                found_in = files[leaf]
                scan = scan_text(found_in, leaf.names, columns, hidden=f"{name}_hidden")
                if found_in.kept:
                    duck.register(f"{name}_hidden", hidden_places(found_in.kept))
                duck.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {scan}")
        found = duck.sql(text).to_arrow_table()
    except (duckdb.Error, UnusualError) as error:
        raise UnsureError(str(error)) from error
    finally:
        for leaf, name in names.items():
            if leaf in rows:
                duck.unregister(name)
            else:
                duck.execute(f"DROP VIEW IF EXISTS {name}")
                duck.unregister(f"{name}_hidden")
    target = pa.schema([(name, kind) for name, kind in zip(found.schema.names, types, strict=True)])
    try:
        return found.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise UnsureError(str(error)) from error


def empty(query: Query, kinds: Mapping[Query, Kinds | None]) -> pa.Table:
    """No rows, in the shape and the types of a query's."""
    _, types = _translated(query, kinds)
    names = unique_names(query.columns)
    return pa.schema(list(zip(names, types, strict=True))).empty_table()


def _translated(query: Query, kinds: Mapping[Query, Kinds | None]) -> tuple[Query, Kinds]:
    def of_leaf(leaf: Table) -> Kinds:
        found = kinds.get(leaf)
        if found is None or not leaf.columns:
            raise UnsureError(leaf.name)
        return found

    return translate(query, of_leaf)

"""The oracle: queries recomputed by Spark, over the tables' rows as another reader gives them.

The tables are read by deltalake and stand as local relations in a copy of the session, so that a
recomputation takes no look at a Delta log and no job for a scan. Views stand for their queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from scenario import Bag, ScenarioError, alike, bag


def session(spark: Any) -> Any:
    """A copy of the session, with names of its own."""
    from pyspark.sql import SparkSession

    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def recomputed(
    spark: Any, tables: Iterable[str], queries: Mapping[str, str]
) -> dict[str, tuple[Bag, list[str]]]:
    """The rows and columns of each query; a query may read those before it by name."""
    copy = session(spark)
    for table in tables:
        local_table(spark, copy, table).createOrReplaceTempView(table)
    found = {}
    for name, sql in queries.items():
        frame = copy.sql(sql)
        frame.createOrReplaceTempView(name)
        found[name] = bag(frame.collect()), frame.columns
    return found


def local_table(spark: Any, copy: Any, table: str) -> Any:
    """A table's rows as a local relation."""
    from deltalake import DeltaTable

    from viewkeeper.lake.arrow import arrow_schema
    from viewkeeper.lake.nested import local_frame
    from viewkeeper.lake.sources import find

    schema = spark.table(table).schema
    try:
        found = DeltaTable(find(spark, table).local_path)
        if "delta.columnMapping.mode" in found.metadata().configuration:
            raise ValueError("column mapping")
        if found.protocol().reader_features:
            rows = _unhidden(found, schema.names)
        else:
            rows = found.to_pyarrow_table(columns=schema.names)
        rows = rows.cast(arrow_schema(schema.fields))
    except Exception:  # also types that deltalake has not, and views
        rows = spark.table(table).toArrow()
    return local_frame(copy, rows, schema)


def _unhidden(table: Any, names: list[str]) -> pa.Table:
    """The rows of a table that deletion vectors leave, by deltalake's reading of these."""
    kept = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for file, mask in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            kept[unquote(urlsplit(file).path)] = mask
    pieces = []
    for file in table.file_uris():
        path = unquote(urlsplit(file).path)
        rows = pq.read_table(path, columns=names, partitioning=None)
        mask = kept.get(path, [])
        there = mask[: rows.num_rows] + [True] * (rows.num_rows - len(mask))
        pieces.append(rows.filter(pa.array(there, pa.bool_())))
    return pa.concat_tables(pieces)


def check_rows(name: str, have: Bag, want: Bag, where: str) -> None:
    """Raises where a view differs from its query."""
    if not alike(have, want):
        missing, extra = list((want - have).items())[:5], list((have - want).items())[:5]
        raise ScenarioError(f"{where}: {name} lacks {missing} and has {extra} too many")


def visible(keeper: Any, names: Iterable[str]) -> dict[str, tuple[Bag, list[str]]]:
    """The rows and columns of views: their stores read by deltalake, under the readers' SQL."""
    found = {}
    copy = session(keeper.spark)
    for name in names:
        record = keeper._views.get(name)
        local_table(keeper.spark, copy, record.store).createOrReplaceTempView("stored")
        frame = copy.sql(keeper._views.compiled(record).reader_sql("stored"))
        found[name] = bag(frame.collect()), frame.columns
    return found


def compare_all(
    keeper: Any, tables: Iterable[str], queries: Mapping[str, str], where: str
) -> dict[str, Bag]:
    """The rows of all views, each compared with its query recomputed."""
    want = recomputed(keeper.spark, tables, queries)
    have = visible(keeper, queries)
    for name, (rows, columns) in want.items():
        if len(columns) != len(have[name][1]):  # a source of SELECT * got a new column
            places = [columns.index(c) for c in have[name][1]]
            rows = bag([tuple(row[i] for i in places) for row in rows.elements()])
        check_rows(name, have[name][0], rows, where)
    return {name: rows for name, (rows, _) in have.items()}

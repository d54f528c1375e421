"""Rows looked up by values without Spark agree with Spark's own filter."""

from __future__ import annotations

import pyarrow as pa
import pytest
from bags import bag
from pyspark.sql import SparkSession

from viewkeeper.lake import lookup, sources

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("parts", ["", "PARTITIONED BY (p)"])
def test_tables_with_deletion_vectors(lake_spark: SparkSession, table: str, parts: str) -> None:
    spark = lake_spark
    spark.sql(
        f"CREATE TABLE {table} (k BIGINT, v STRING, p INT) USING delta {parts}"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for low in (0, 500):
        rows = f"SELECT id, concat('v', id % 7), int(id % 2) FROM range({low}, {low + 500})"
        spark.sql(f"INSERT INTO {table} {rows}")
    spark.sql(f"DELETE FROM {table} WHERE k % 5 = 1")
    spark.sql(f"UPDATE {table} SET v = 'new' WHERE k BETWEEN 490 AND 510")
    source = sources.find(spark, table)
    found = lookup.files(source, sources.version(spark, source))
    assert found is not None and found.kept, "the table has vectors, and they are read"
    keys = [1, 2, 11, 12, 491, 492, 499, 500, 507, 999, 5000]
    wanted = {"k": pa.array(keys, pa.int64())}
    rows = lookup.read(found, ["k", "v", "p"], wanted, 1000)
    assert rows is not None
    listed = ", ".join(map(str, keys))
    expected = bag(spark.sql(f"SELECT k, v, p FROM {table} WHERE k IN ({listed})"))
    assert bag(spark.createDataFrame(rows)) == expected
    whole = lookup.read(found, ["v"], {}, 5000)
    assert whole is not None
    assert bag(spark.createDataFrame(whole)) == bag(spark.sql(f"SELECT v FROM {table}"))

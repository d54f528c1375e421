"""Tables found by name, versions, schemas, rows pinned at a version."""

from __future__ import annotations

import pytest
from bags import bag
from pyspark.sql import SparkSession

from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import sources
from viewkeeper.lake.errors import LostHistoryError, NotDeltaError

pytestmark = pytest.mark.spark


def test_find_by_each_form_of_a_name(lake_spark: SparkSession, table: str) -> None:
    lake_spark.sql(f"CREATE TABLE {table} (id BIGINT, v STRING) USING delta")
    found = sources.find(lake_spark, table)
    assert found.name == f"`spark_catalog`.`default`.`{table}`"
    assert sources.find(lake_spark, f"default.{table}") == found
    assert sources.find(lake_spark, f"spark_catalog.default.{table}") == found
    assert sources.find(lake_spark, found.name) == found
    by_path = sources.find(lake_spark, f"delta.`{found.local_path}`")
    assert (by_path.table_id, by_path.location) == (found.table_id, found.location)
    assert by_path.is_path and not found.is_path
    assert sources.find(lake_spark, by_path.name) == by_path


@pytest.mark.parametrize("name", ["nothing_here", "no.such", "delta.`/no/such/path`", "a.b.c"])
def test_find_unknown(lake_spark: SparkSession, name: str) -> None:
    with pytest.raises(UnknownTableError):
        sources.find(lake_spark, name)


def test_find_refuses_other_providers(lake_spark: SparkSession, table: str) -> None:
    lake_spark.sql(f"CREATE TABLE {table} (id BIGINT) USING parquet")
    lake_spark.range(1).createOrReplaceTempView("lake_view")
    for name in (table, "lake_view"):
        with pytest.raises(NotDeltaError, match="NOT_A_DELTA_TABLE"):
            sources.find(lake_spark, name)


def test_replace_changes_the_id(lake_spark: SparkSession, table: str) -> None:
    lake_spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta")
    first = sources.find(lake_spark, table)
    lake_spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT) USING delta")
    assert sources.find(lake_spark, table).table_id != first.table_id


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_are_pinned_at_a_version(lake_spark: SparkSession, table: str, vectors: str) -> None:
    lake_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING) USING delta TBLPROPERTIES "
        f"('delta.enableDeletionVectors'='{vectors}', 'delta.columnMapping.mode'='name')"
    )
    lake_spark.sql(f"INSERT INTO {table} SELECT id, 'a' FROM range(5)")
    source = sources.find(lake_spark, table)
    assert sources.version(lake_spark, source) == 1
    pinned = sources.at(lake_spark, source, 1)
    lake_spark.sql(f"DELETE FROM {table} WHERE id < 2")
    lake_spark.sql(f"ALTER TABLE {table} RENAME COLUMN v TO w")
    lake_spark.sql(f"ALTER TABLE {table} ADD COLUMN d DECIMAL(5,1)")
    assert sources.version(lake_spark, source) == 4
    assert pinned.count() == 5, "made before the delete, run after it"
    assert sources.at(lake_spark, source, 2).count() == 3
    assert pinned.where("id = 1").count() == 1
    assert bag(sources.at(lake_spark, source, 4, ["w"])) == {("'a'",): 3}
    assert sources.schema(lake_spark, source, 1) == {"id": "bigint", "v": "string"}
    assert sources.schema(lake_spark, source) == {
        "id": "bigint",
        "w": "string",
        "d": "decimal(5,1)",
    }
    with pytest.raises(LostHistoryError):
        sources.at(lake_spark, source, 9)

"""What only a session has, in a view: rows given by hand, temporary views, NULL without a type."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.sql import Observation, Row
from pyspark.sql import functions as F

import viewkeeper as vk
from keeper_checks import fails


@pytest.fixture(scope="module")
def keeper(spark: Any) -> vk.Keeper:
    spark.sql("CREATE SCHEMA IF NOT EXISTS given")
    spark.sql("CREATE TABLE given.t (id INT, g STRING, v DOUBLE) USING delta")
    spark.sql("INSERT INTO given.t SELECT id, concat('g', id % 4), id * 1.5 FROM range(20)")
    return vk.Keeper(spark, schema="vk_given_tests")


def bag(frame: Any) -> Counter[str]:
    return Counter(map(repr, frame.collect()))


def change(keeper: vk.Keeper) -> dict[str, vk.RefreshReport]:
    keeper.spark.sql("INSERT INTO given.t VALUES (50, 'g1', 2), (51, 'g2', 2), (52, 'g3', NULL)")
    keeper.spark.sql("DELETE FROM given.t WHERE id % 20 < 5")
    return {r.view.split(".")[-1].strip("`"): r for r in keeper.refresh()}


def test_rows_of_a_dataframe_become_part_of_the_view(keeper: vk.Keeper) -> None:
    spark, t = keeper.spark, keeper.spark.table("given.t")
    two = spark.createDataFrame(
        [("g0", "o'ne\\x", 1), ("g1", None, None)], "g STRING, n STRING, w INT"
    )
    kinds = Row(
        g="g2",
        day=datetime.date(2020, 1, 2),
        at=datetime.datetime(2020, 1, 2, 3, 4, 5, 678),
        price=Decimal("1.50"),
        listed=[Decimal("2.5")],
        m={"a": 1},
        raw=bytearray(b"\x00\xff"),
        real=float("nan"),
        inner=Row(q=1, z="u"),
    )
    frames = {
        "joined": t.join(two, "g"),
        "without": t.join(F.broadcast(two.where("w = 1")), "g", "left_anti"),
        "kinds": t.join(spark.createDataFrame([kinds]), "g"),
        "more": t.unionByName(spark.createDataFrame([(100, "x", 0.0)], t.schema)),
        "none": t.join(spark.createDataFrame([], "g STRING, u INT"), "g", "left"),
        "observed": t.observe(Observation("seen"), F.count(F.lit(1)).alias("n")).where("id > 3"),
    }
    for name, frame in frames.items():
        keeper.create_view(f"given.{name}", frame, refresh="incremental")
    two.createOrReplaceTempView("given_two")
    temporary = "SELECT g, w, count(*) AS n FROM given.t JOIN given_two USING (g) GROUP BY g, w"
    keeper.create_view("given.temporary", temporary, refresh="incremental")
    want = {**frames, "temporary": spark.sql(temporary)}
    spark.catalog.dropTempView("given_two")  # as if in another session
    reports = change(keeper)
    for name, frame in want.items():
        assert bag(spark.table(f"given.{name}")) == bag(frame), name
        assert reports[name].strategy == "incremental", reports[name].reason


def test_rows_that_were_computed_are_no_part_of_a_view(keeper: vk.Keeper) -> None:
    spark, t = keeper.spark, keeper.spark.table("given.t")
    many = spark.createDataFrame([(i,) for i in range(1001)], "id INT")
    for frame, word in (
        (t.localCheckpoint(), "checkpoint"),
        (spark.createDataFrame(t.rdd, t.schema), "RDD"),
        (t.join(many, "id"), "1000 rows"),
    ):
        error = fails("NOT_INCREMENTAL", partial(keeper.create_view, "given.no", frame))
        assert word in str(error) and "table" in str(error)


def test_null_without_a_type(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    spark.sql("CREATE TABLE given.untyped USING delta AS SELECT 1 AS id, NULL AS note")
    ways = {
        "SELECT id, NULL AS n, array() AS a FROM given.t": "incremental",
        "SELECT id, x FROM given.t LATERAL VIEW explode(array()) AS x": "incremental",
        "SELECT id, coalesce(note, 'z') AS z, note FROM given.untyped": "incremental",
        "SELECT g, count(*) AS n FROM (SELECT DISTINCT g, NULL AS n FROM given.t)"
        " GROUP BY g": "full",
        "SELECT g, x, count(*) AS n FROM given.t LATERAL VIEW OUTER explode(array()) AS x"
        " GROUP BY g, x": "full",
    }
    for n, sql in enumerate(ways):
        keeper.create_view(f"given.untyped_{n}", sql)
    spark.sql("INSERT INTO given.untyped VALUES (2, NULL)")
    reports = change(keeper)
    for n, (sql, strategy) in enumerate(ways.items()):
        report = reports[f"untyped_{n}"]
        assert report.strategy == strategy, (sql, report.reason)
        assert bag(spark.table(f"given.untyped_{n}")) == bag(spark.sql(sql)), sql
        if strategy == "full":
            assert "CAST(NULL" in report.reason

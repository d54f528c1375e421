"""Changes of deep queries, whose shared parts Spark would write out many times."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.engine import runner

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
IN = (
    "EXISTS (SELECT * FROM deep.{t} t, deep.days d"
    " WHERE t.buyer = b.id AND t.day = d.day AND d.y > 1)"
)
# rpad is Spark's alone, so no part of it is computed on the driver
DEEP = (
    "SELECT rpad(b.kind, 3, '.') AS kind, count(*) AS n FROM deep.buyers b"
    f" WHERE {IN.format(t='shops')} AND ({IN.format(t='sites')} OR NOT {IN.format(t='shops')}"
    f" OR b.id IN (SELECT max(buyer) FROM deep.sites GROUP BY day)) GROUP BY rpad(b.kind, 3, '.')"
)


@pytest.mark.parametrize("scans", ["60", "4"])
def test_every_table_changes_oracle(spark: Any, scans: str, monkeypatch: Any) -> None:
    """However the change is divided, the view equals its query after each refresh."""
    parts = []
    cut = runner.shared_parts
    monkeypatch.setattr(runner, "shared_parts", lambda *a: parts.append(cut(*a)) or parts[-1])
    spark.sql("CREATE SCHEMA deep")
    keeper = vk.Keeper(spark, schema="vk_deep")
    try:
        spark.conf.set(runner.SCANS, scans)
        spark.sql(
            f"CREATE TABLE deep.buyers {FEED} AS SELECT id, 'k' || id % 4 AS kind FROM range(40)"
        )
        for t, step in (("shops", 3), ("sites", 7)):
            spark.sql(
                f"CREATE TABLE deep.{t} {FEED} AS"
                f" SELECT id * {step} % 45 AS buyer, id % 9 AS day FROM range(60)"
            )
        spark.sql(f"CREATE TABLE deep.days {FEED} AS SELECT id AS day, id % 4 AS y FROM range(9)")
        keeper.create_view("deep.v", DEEP, refresh="incremental")
        for n in range(2):
            spark.sql(f"DELETE FROM deep.buyers WHERE id % 11 = {n}")
            spark.sql(f"UPDATE deep.shops SET buyer = buyer + 1 WHERE day = {n}")
            spark.sql(
                f"INSERT INTO deep.sites SELECT buyer + 2, day FROM deep.shops WHERE day = {n + 3}"
            )
            spark.sql(f"UPDATE deep.days SET y = 3 - y WHERE day = {n + 4}")
            (report,) = keeper.refresh("deep.v")
            assert report.strategy == "incremental"
            rows, true = (
                Counter(map(tuple, frame.collect()))
                for frame in (spark.table("deep.v"), spark.sql(DEEP))
            )
            assert rows == true
        assert any(parts)
    finally:
        spark.conf.unset(runner.SCANS)
        spark.sql("DROP SCHEMA deep CASCADE")
        spark.sql("DROP SCHEMA IF EXISTS vk_deep CASCADE")

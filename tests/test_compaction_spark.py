"""Compaction of the stores of views: nobody notices it but those who count files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import viewkeeper as vk
from viewkeeper.lake import compaction, lanes, sources, stores
from viewkeeper.lake.sources import Source
from viewkeeper.lake.stores import Patch

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
LOW = "SELECT a, b FROM small.r WHERE a > 0"
HIGH = "SELECT b, count(*) AS n, sum(a) AS s FROM small.low GROUP BY b"


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS small")
    spark.sql(f"CREATE TABLE small.r (a INT, b STRING) {FEED}")
    spark.sql("INSERT INTO small.r VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    yield vk.Keeper(spark, schema="vk_small")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY", 3)
    monkeypatch.setattr(compaction, "_LOOK_EVERY", 1)


def store(keeper: vk.Keeper, view: str) -> Source:
    record = next(v.record for v in keeper.views() if v == view)
    return sources.find(keeper.spark, record.store)


def files(keeper: vk.Keeper, source: Source) -> int:
    row = keeper.spark.sql(f"DESCRIBE DETAIL {source.name}").first()
    assert row is not None
    return int(row.numFiles)


def test_a_view_over_a_view_does_not_notice(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    made = keeper.create_view("small.low", LOW)
    keeper.create_view("small.high", HIGH)
    reports = []
    for i in range(3):
        spark.sql(f"INSERT INTO small.r VALUES ({i + 3}, 'x'), (7, 'new{i}')")
        low, high = keeper.refresh("small.high")
        assert (low.lane, low.inserted, low.deleted) == ("append", 2, 0)
        assert high.strategy == "incremental"
        reports.append(low)
    assert 3 <= sum(r.compacted for r in reports) == sum(r.as_dict()["compacted"] for r in reports)
    assert files(keeper, store(keeper, "small.low")) < 3
    (none,) = keeper.refresh("small.low")
    assert (none.strategy, none.compacted) == ("none", 0)
    for first, report in enumerate([made, *reports]):
        told = {tuple(r) for r in keeper.changes("small.low", since=report.version).collect()}
        later = range(first, 3)
        assert told == {(i + 3, "x", 1) for i in later} | {(7, f"new{i}", 1) for i in later}
    spark.sql("DELETE FROM small.r WHERE a = 7")
    keeper.refresh()
    assert bag(spark.table("small.low")) == bag(spark.sql(LOW))
    assert bag(spark.table("small.high")) == bag(spark.sql(HIGH))


def test_by_spark_where_deltalake_cannot(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    sql = "SELECT a AS `a b`, b FROM small.r"
    keeper.create_view("small.odd", sql)
    compacted = 0
    for i in range(2):
        spark.sql(f"INSERT INTO small.r VALUES ({i}, 'odd')")
        (report,) = keeper.refresh("small.odd")
        compacted += report.compacted
    assert compacted >= 3 and files(keeper, store(keeper, "small.odd")) < 3
    assert bag(spark.table("small.odd")) == bag(spark.sql(sql))


@pytest.mark.parametrize("lane", ["append", pytest.param("native", marks=pytest.mark.slow)])
def test_a_refresh_meets_a_compaction(
    spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, lane: stores.Lane
) -> None:
    """The compaction is committed after the refresh looked: it is done again, once."""
    source = stores.create(spark, str(tmp_path / "s"), spark.range(2), metadata={})
    patch = Patch(pa.table({"id": [7], "__op": ["U"]}), ["id"], only_inserts=True)
    for txn in range(1, 4):
        stores.apply(spark, source, patch, lane="append", app_id="v", txn=txn, metadata={})
    called = []
    run = lanes.LANES[lane]

    def late(*args: Any) -> int:
        if not called:
            called.append(compaction.compact(spark, source))
            raise lanes.CommitFailedError("a commit came first")
        return run(*args)

    monkeypatch.setitem(lanes.LANES, lane, late)
    done = stores.apply(spark, source, patch, lane=lane, app_id="v", txn=4, metadata={"n": 4})
    assert called[0] >= 4 and done == 5
    assert stores.last_metadata(spark, source) == (5, {"n": 4})
    rows = bag(spark.table(source.name))
    assert rows == {(0,): 1, (1,): 1, (7,): 4 if lane == "append" else 1}

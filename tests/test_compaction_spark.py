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
    monkeypatch.setattr(compaction, "MANY", 4)
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
    compacted = []
    for i in range(6):
        spark.sql(f"INSERT INTO small.r VALUES ({i + 3}, 'x'), (7, 'new{i}')")
        low, high = keeper.refresh("small.high")
        assert (low.strategy, low.lane, low.inserted, low.deleted) == (
            "incremental",
            "append",
            2,
            0,
        )
        assert high.strategy == "incremental"
        compacted.append(low.compacted)
        assert bag(spark.table("small.low")) == bag(spark.sql(LOW))
        assert bag(spark.table("small.high")) == bag(spark.sql(HIGH))
    assert compacted == [0, 0, 4, 0, 0, 4], "by deltalake, and again when there are as many"
    assert low.as_dict()["compacted"] == 4
    assert files(keeper, store(keeper, "small.low")) == 1
    (none,) = keeper.refresh("small.low")
    assert (none.strategy, none.compacted) == ("none", 0)
    told = {tuple(r) for r in keeper.changes("small.low", since=made.version).collect()}
    assert told == {(i + 3, "x", 1) for i in range(6)} | {(7, f"new{i}", 1) for i in range(6)}
    before_last = keeper.changes("small.low", since=low.version - 2)
    assert {tuple(r) for r in before_last.collect()} >= {(8, "x", 1), (7, "new5", 1)}
    assert keeper.changes("small.low", since=low.version).count() == 0
    spark.sql("DELETE FROM small.r WHERE a = 7")
    keeper.refresh()
    assert bag(spark.table("small.low")) == bag(spark.sql(LOW))
    assert bag(spark.table("small.high")) == bag(spark.sql(HIGH))


def test_by_spark_where_deltalake_cannot(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    sql = "SELECT a AS `a b`, b FROM small.r"
    keeper.create_view("small.odd", sql)
    for i in range(3):
        spark.sql(f"INSERT INTO small.r VALUES ({i}, 'odd')")
        (report,) = keeper.refresh("small.odd")
    assert report.compacted == 4 and files(keeper, store(keeper, "small.odd")) == 1
    spark.sql("DELETE FROM small.r WHERE b = 'odd'")
    keeper.refresh("small.odd")
    assert bag(spark.table("small.odd")) == bag(spark.sql(sql))


@pytest.mark.parametrize("lane", ["append", "native", "overwrite", "touch"])
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
    expected = {"append": 4, "native": 3, "overwrite": 1, "touch": 3}
    assert rows == {(0,): 1, (1,): 1, (7,): expected[lane]}

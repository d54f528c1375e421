"""Advice on real tables: it appears, it can be followed, and the view stays right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import viewkeeper as vk
from viewkeeper.advice import Advice
from viewkeeper.cli import main
from viewkeeper.lake import layout, lookup, sources

JOINED = "SELECT d.g, count(*) AS n, sum(f.x) AS s FROM adv.d JOIN adv.f ON d.k = f.k GROUP BY d.g"
ABOVE = "SELECT d.k FROM adv.d JOIN (SELECT max(x) AS m FROM adv.f) ON d.g < m"


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    """Facts that lie in no order, and a dimension without a change feed."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS adv")
    facts = spark.range(12_000).selectExpr("(id * 7919) % 6000 AS k", "id AS x")
    facts.repartition(8).write.format("delta").saveAsTable("adv.f")
    spark.sql("CREATE TABLE adv.d (k BIGINT, g BIGINT) USING delta")
    spark.sql("INSERT INTO adv.d SELECT id, id % 10 FROM range(100)")
    spark.sql("UPDATE adv.d SET g = 3 WHERE k = 7")
    yield vk.Keeper(spark, schema="vk_adv")


def opened(keeper: vk.Keeper, value: int) -> int:
    """How many files of the facts a lookup by one value opens."""
    source = sources.find(keeper.spark, "adv.f")
    found = lookup.files(source, sources.version(keeper.spark, source))
    assert found is not None
    return int(lookup.files_with(found, {"k": pa.array([value], pa.int64())}).num_rows)


def test_advice_is_given_and_followed(
    keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(layout, "LEAST_SIZE", 10_000)  # small files for small tables
    spark = keeper.spark
    keeper.create_view("adv.v", JOINED)
    assert keeper.advise("adv.v") == [], "nothing is worth telling of tables this small"
    found = {a.kind: a for a in keeper.advise("adv.v", rows=1, least=0.0)}
    assert set(found) == {"clustering", "feed"}, found
    clustering = found["clustering"]
    assert "ZORDER BY (`k`)" in clustering.sql[1] and clustering.read_after < clustering.read_before
    assert "`d`" in found["feed"].table and found["feed"].seconds > 0
    before = opened(keeper, 4242)
    assert before == 8
    options = ["--rows", "1", "--least", "0", "--json", "--apply"]
    assert main(["--lake", "unused", "advise", "adv.v", *options], keeper) == 0
    told = json.loads(capsys.readouterr().out)
    assert [t["applied"] for t in told] == [True, True]
    assert opened(keeper, 4242) <= 2
    assert spark.conf.get("spark.databricks.delta.optimize.maxFileSize", None) is None
    spark.sql("INSERT INTO adv.d VALUES (4242, 77), (5, 78)")
    (report,) = keeper.refresh("adv.v", strategy="incremental")
    assert any("`f` by" in text for text in report.lookups)
    spark.sql("UPDATE adv.d SET g = 79 WHERE k = 4242")
    (report,) = keeper.refresh("adv.v", strategy="incremental")
    assert (report.inserted, report.deleted) == (1, 1)
    assert bag(spark.table("adv.v")) == bag(spark.sql(JOINED))
    assert keeper.advise("adv.v", rows=1, least=0.0) == [], "all of it was done"


@pytest.mark.slow
def test_a_part_as_a_view_of_its_own(keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = keeper.spark
    keeper.create_view("adv.above", ABOVE)
    advice = next(a for a in keeper.advise("adv.above") if a.kind == "intermediate")
    for text in advice.sql:
        keeper.sql(text)
    spark.sql("INSERT INTO adv.f VALUES (1, 100000)")
    spark.sql("INSERT INTO adv.d VALUES (1, 50000)")
    keeper.refresh()
    assert bag(spark.table("adv.above")) == bag(spark.sql(ABOVE))
    with pytest.raises(vk.ViewKeeperError, match="not applied"):
        keeper.apply_advice(advice)


def test_queries_that_are_never_incremental(keeper: vk.Keeper) -> None:
    keeper.create_view("adv.today", "SELECT k, current_date() AS t FROM adv.d")
    (advice,) = keeper.advise("adv.today")
    assert isinstance(advice, Advice) and advice.kind == "query" and not advice.can_apply

"""Views over maps: incremental, and equal to their query to the order of the entries."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import functions as F

import viewkeeper as vk

VIEWS = {
    "shown": "SELECT id, tags FROM maps.t WHERE g < 3",
    "nested": "SELECT tags, st, arr FROM maps.t",
    "functions": "SELECT map('g', g) AS m, map_keys(tags) AS k, to_json(tags) AS j FROM maps.t",
    "joined": "SELECT id, tags, map_values(props) AS v FROM maps.t LEFT JOIN maps.d USING (g)",
    "of_groups": "SELECT g, max_by(tags, id) AS m, count(*) AS n FROM maps.t GROUP BY g",
    "over_view": "SELECT map_keys(tags) AS keys, st.m[1] AS m FROM maps.nested",
    "over_groups": "SELECT map_keys(m) AS keys, n FROM maps.of_groups",
}


@pytest.fixture
def keeper(spark: Any) -> vk.Keeper:
    for schema in ("maps", "vk_maps_tests"):
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    spark.sql("CREATE SCHEMA maps")
    spark.sql(
        "CREATE TABLE maps.t (id INT, g INT, tags MAP<STRING, INT>, arr ARRAY<MAP<STRING, STRING>>,"
        " st STRUCT<a: INT, `o'm`: INT, m: MAP<INT, MAP<STRING, DOUBLE>>>) USING delta"
    )
    spark.sql("CREATE TABLE maps.d (g INT, props MAP<STRING, STRING>) USING delta")
    spark.sql(
        "INSERT INTO maps.d VALUES (0, map('x', 'y')), (1, map('q', NULL)), (2, NULL), (3, map())"
    )
    return vk.Keeper(spark, schema="vk_maps_tests")


def rows(keeper: vk.Keeper, low: int, high: int) -> None:
    """Rows whose maps are NULL, empty, nested, and the same but for the order of their entries."""
    keeper.spark.sql(
        "INSERT INTO maps.t SELECT CAST(id AS INT), CAST(id % 4 AS INT), CASE WHEN id % 5 = 0"
        " THEN NULL WHEN id % 2 = 0 THEN map('a', CAST(id % 3 AS INT), 'b', 2)"
        " ELSE map('b', 2, 'a', CAST(id % 3 AS INT)) END, array(map('k', 'v'), map(), NULL),"
        " IF(id % 7 = 0, NULL, named_struct('a', CAST(id % 2 AS INT), \"o'm\", 1,"
        " 'm', IF(id % 3 = 0, NULL, map(1, map('y', 1.5D, 'x', double('nan')), 0, NULL))))"
        f" FROM range({low}, {high})"
    )


def bag(frame: Any) -> Counter[str]:
    """The rows as text, in which the entries of maps keep their order."""
    text = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return Counter(row[0] for row in frame.select(text).collect())


def check(keeper: vk.Keeper, names: list[str]) -> None:
    before = {name: bag(keeper.spark.table(f"maps.{name}")) for name in names}
    for report in keeper.refresh():
        name = report.view.split(".")[-1]
        now = bag(keeper.spark.table(report.view))
        assert now == bag(keeper.spark.sql(VIEWS[name])), name
        sizes = ((now - before[name]).total(), (before[name] - now).total())
        assert (report.inserted, report.deleted) == sizes, name
        assert report.strategy != "full", (name, report.reason)


@pytest.mark.parametrize(
    "names",
    [["shown", "of_groups"], pytest.param(list(VIEWS), marks=pytest.mark.slow)],
    ids=["two", "all"],
)
def test_views_over_maps(keeper: vk.Keeper, names: list[str]) -> None:
    rows(keeper, 0, 20)
    for name in names:
        keeper.create_view(f"maps.{name}", VIEWS[name], refresh="incremental")
    rows(keeper, 20, 24)
    check(keeper, names)
    keeper.spark.sql("DELETE FROM maps.t WHERE id IN (3, 4, 5, 21)")
    keeper.spark.sql("UPDATE maps.t SET tags = map('b', 2, 'a', 1) WHERE id IN (1, 2, 10)")
    keeper.spark.sql("UPDATE maps.d SET props = map('n', 'm') WHERE g = 0")
    check(keeper, names)
    keeper.spark.sql("UPDATE maps.t SET tags = map('a', 1, 'b', 2) WHERE id IN (1, 10)")
    check(keeper, names)
    change = keeper.changes("maps.shown", since=0).where("id = 10")
    assert bag(change) == Counter(
        [
            '{"id":10,"tags":null,"__weight":-1}',
            '{"id":10,"tags":{"a":1,"b":2},"__weight":1}',
        ]
    )

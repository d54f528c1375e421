"""Views over columns of unusual types: equal to their query after each refresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.errors import ViewKeeperError

FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true,"
FEED += " delta.feature.allowColumnDefaults = 'supported')"


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS kinds")
    spark.sql(
        "CREATE OR REPLACE TABLE kinds.t (id INT, code CHAR(4), word VARCHAR(5) DEFAULT 'w9',"
        f" tags MAP<STRING, INT>, doc VARIANT) {FEED}"
    )
    yield vk.Keeper(spark, schema="vk_kinds_tests")


def rows(keeper: vk.Keeper, low: int, high: int) -> None:
    keeper.spark.sql(
        "INSERT INTO kinds.t SELECT CAST(id AS INT), concat('c', id % 3), concat('w', id % 2),"
        " map('a', CAST(id % 2 AS INT)), parse_json(concat('{\"k\":', id % 4, '}'))"
        f" FROM range({low}, {high})"
    )


def bag(frame: Any) -> Counter[str]:
    return Counter(map(repr, frame.collect()))


def check(keeper: vk.Keeper, views: dict[str, str]) -> dict[str, vk.RefreshReport]:
    reports = {}
    for name, sql in views.items():
        before = bag(keeper.spark.table(name))
        (reports[name],) = keeper.refresh(name)
        now = bag(keeper.spark.table(name))
        assert now == bag(keeper.spark.sql(sql)), name
        sizes = ((now - before).total(), (before - now).total())
        assert (reports[name].inserted, reports[name].deleted) == sizes, name
    return reports


@pytest.mark.slow  # eight views, refreshed three times
def test_unusual_types(keeper: vk.Keeper) -> None:
    rows(keeper, 0, 12)
    views = {
        "kinds.codes": "SELECT code, word, count(*) AS n FROM kinds.t GROUP BY code, word",
        "kinds.one_code": "SELECT id, code FROM kinds.t WHERE code = 'c1'",
        "kinds.pairs": "SELECT a.id, b.code FROM kinds.t a JOIN kinds.t b ON a.code = b.code",
        "kinds.docs": "SELECT id, variant_get(doc, '$.k', 'int') AS k FROM kinds.t",
        "kinds.k": "SELECT try_variant_get(doc, '$.k', 'bigint') AS k, count(*) AS n"
        " FROM kinds.t GROUP BY 1",
        "kinds.pivoted": "SELECT * FROM (SELECT code, word, id FROM kinds.t)"
        " PIVOT (sum(id) AS s, count(id) AS n FOR word IN ('w0', 'w1', 'w2' AS two))",
    }
    for name, sql in views.items():
        keeper.create_view(name, sql, refresh="incremental")
    others = {
        "kinds.by_tags": "SELECT tags, count(*) AS n FROM kinds.t GROUP BY tags",
        "kinds.raw": "SELECT doc FROM kinds.t",
    }
    for name, sql in others.items():
        keeper.create_view(name, sql)
    rows(keeper, 12, 15)
    check(keeper, views | others)
    keeper.spark.sql("DELETE FROM kinds.t WHERE id % 5 = 0")
    keeper.spark.sql("UPDATE kinds.t SET word = 'w2', doc = parse_json('{}') WHERE code = 'c2'")
    check(keeper, views)
    reports = check(keeper, others)
    assert "Spark cannot compute the change" in reports["kinds.by_tags"].reason
    assert "variant" in reports["kinds.raw"].reason
    keeper.spark.sql("ALTER TABLE kinds.t ALTER COLUMN word TYPE VARCHAR(9)")
    keeper.spark.sql("INSERT INTO kinds.t (id, code, word) VALUES (99, 'c1', 'very long')")
    check(keeper, {n: q for n, q in views.items() if "kinds.doc" not in n} | others)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT CURRENT_TIMESTAMP() - TIMESTAMP'2024-01-01' AS d", "INVALID_QUERY"),
        ("SELECT code COLLATE UTF8_LCASE AS c FROM kinds.t", "INVALID_QUERY"),
    ],
)
def test_types_that_delta_does_not_have(keeper: vk.Keeper, sql: str, code: str) -> None:
    with pytest.raises(ViewKeeperError) as caught:
        keeper.create_view("kinds.no", sql)
    assert caught.value.code == code and "CAST" in str(caught.value).upper()


def test_what_cannot_be_compared_is_not_incremental(keeper: vk.Keeper) -> None:
    views = {
        "tags": "SELECT tags, max(id) AS id FROM kinds.t GROUP BY tags",
        "doc": "SELECT doc FROM kinds.t",
    }
    for column, sql in views.items():
        with pytest.raises(ViewKeeperError) as caught:
            keeper.create_view("kinds.no", sql, refresh="incremental")
        assert caught.value.code == "NOT_INCREMENTAL" and column in str(caught.value)

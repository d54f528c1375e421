"""Transactions over tables whose columns are generated, or are arrays and structs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import Row

import viewkeeper as vk
from keeper_checks import FEED, bag, fails, make, table


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS bank")
    yield vk.Keeper(spark, schema="vk_transaction_columns")


def test_agrees_generated_columns_are_as_delta_computes_them(keeper: vk.Keeper) -> None:
    """The same statements by Spark on one table, and in transactions on another."""
    columns = (
        "at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), n INT,"
        " twice BIGINT GENERATED ALWAYS AS (CAST(n * 2 AS BIGINT))"
    )
    for name in ("by_spark", "by_us"):
        make(keeper, name, columns, more=f"{FEED} PARTITIONED BY (day)")
    make(keeper, "to_come", "at TIMESTAMP, n INT", "(TIMESTAMP'2024-01-01 10:00:00', 7)")
    keeper.sql("INSERT INTO bank.to_come VALUES (TIMESTAMP'2024-03-01 23:30:00', 9), (NULL, 10)")
    query = "SELECT day, count(*) AS n, sum(twice) AS s FROM bank.by_us GROUP BY day"
    keeper.create_view("bank.days", query, maintain="immediate")
    for statement in (
        "INSERT INTO {t} (at, n) VALUES (TIMESTAMP'2024-01-01 10:00:00', 1), (NULL, NULL)",
        "INSERT INTO {t} (n, at) SELECT n, at FROM bank.to_come",
        "INSERT INTO {t} (at, day, n) VALUES (TIMESTAMP'2024-02-01 10:00:00', '2024-02-01', 3)",
        "UPDATE {t} SET at = at + INTERVAL 1 DAY, n = n + 1 WHERE n < 8",
        "UPDATE {t} SET n = -1, twice = -2 WHERE n = 9",
        "MERGE INTO {t} AS t USING bank.to_come AS s ON t.n = s.n + 1 WHEN MATCHED THEN UPDATE SET"
        " t.at = s.at WHEN NOT MATCHED AND s.n > 9 THEN INSERT (at, n) VALUES (s.at, s.n + 1)"
        " WHEN NOT MATCHED THEN INSERT (at, n, twice) VALUES (s.at, s.n, s.n + s.n)"
        " WHEN NOT MATCHED BY SOURCE AND t.n < 0 THEN UPDATE SET n = 5",
        "DELETE FROM {t} WHERE twice = 16",
    ):
        keeper.spark.sql(statement.format(t="bank.by_spark"))
        with keeper.transaction() as t:
            t.sql(statement.format(t="bank.by_us"))
        assert table(keeper, "by_us") == table(keeper, "by_spark"), statement
        assert table(keeper, "days") == bag(keeper.spark.sql(query))
    with keeper.transaction() as t:
        t.insert("bank.by_us", [{"n": 4, "at": None}])
        t.insert("bank.by_us", keeper.spark.sql("SELECT 5 AS n, TIMESTAMP'2024-05-05' AS at"))
        t.update("bank.by_us", {"n": "n + 1", "twice": "DEFAULT"}, where="n IN (4, 5)")
    found = keeper.spark.sql("SELECT n, twice, CAST(day AS STRING) FROM bank.by_us WHERE n > 4")
    assert {(5, 10, None), (6, 12, "2024-05-05")} <= set(map(tuple, found.collect()))
    before = table(keeper, "by_us")
    wrong = "INSERT INTO bank.by_us (at, n, twice) VALUES (NULL, 1, 3)"
    assert "twice is generated" in str(fails("INVALID_ROWS", lambda: run(keeper, wrong)))
    fails("INVALID_ROWS", lambda: run(keeper, "UPDATE bank.by_us SET day = NULL WHERE n = 6"))
    assert table(keeper, "by_us") == before
    keeper.drop_view("bank.days")


def test_agrees_arrays_and_structs(keeper: vk.Keeper) -> None:
    """The same statements by Spark on one table, and in transactions on another."""
    pair = "STRUCT<x: DOUBLE, at: TIMESTAMP, `o'd`: DATE>"
    for name in ("of_spark", "of_us"):
        make(keeper, name, f"a INT, s {pair}, l ARRAY<{pair}>, t ARRAY<STRING>")
    query = "SELECT a, s, l FROM bank.of_us WHERE a > 0"
    grouped = "SELECT s, size(l) AS n, count(*) AS many FROM bank.of_us GROUP BY s, size(l)"
    keeper.create_view("bank.of_rows", query, maintain="immediate")
    keeper.create_view("bank.of_groups", grouped, maintain="immediate")
    keeper.create_view(
        "bank.of_words",
        "SELECT w, count(*) AS n FROM bank.of_us LATERAL VIEW explode(t) AS w GROUP BY w",
        maintain="immediate",
    )
    keeper.add_constraint("few_words", "SELECT a FROM bank.of_us WHERE size(t) > 3")
    value = "named_struct('x', {}, 'at', TIMESTAMP'2024-01-01', 'o''d', DATE'{}')"
    one, far = value.format("1D", "2024-02-03"), value.format("-0.0D", "+12024-02-03")
    zero, nan = value.format("0D", "+12024-02-03"), value.format("double('NaN')", "1500-01-01")
    for statement in (
        f"INSERT INTO {{t}} VALUES (1, {one}, array({one}, NULL), array('p', 'q')),"
        f" (1, {one}, array({one}, NULL), array('p', 'q')), (2, {far}, array(), NULL),"
        f" (3, NULL, NULL, array(NULL)), (4, {nan}, array({nan}), array())",
        f"DELETE FROM {{t}} WHERE s = {zero}",
        f"INSERT INTO {{t}} VALUES (5, {far}, array({zero}), array('q')), (0, {nan}, NULL, NULL)",
        "UPDATE {t} SET l = array(s), t = array_append(t, 'r') WHERE a IN (1, 3, 4)",
        "INSERT INTO {t} SELECT a + 10, s, l, t FROM {t} WHERE s.x IS NOT NULL",
        "MERGE INTO {t} AS t USING (SELECT s, max(a) AS a FROM {t} GROUP BY s) AS u ON t.s = u.s"
        " AND t.a = u.a WHEN MATCHED AND t.a > 13 THEN DELETE WHEN MATCHED THEN UPDATE SET"
        " t.t = NULL WHEN NOT MATCHED THEN INSERT (a, s) VALUES (-1, u.s)",
    ):
        keeper.spark.sql(statement.format(t="bank.of_spark"))
        run(keeper, statement.format(t="bank.of_us"))
        ours, theirs = (texts(keeper.spark.table(f"bank.of_{n}")) for n in ("us", "spark"))
        assert ours == theirs, statement
        for view, text in (("of_rows", query), ("of_groups", grouped)):
            kept, wanted = keeper.spark.table(f"bank.{view}"), keeper.spark.sql(text)
            assert texts(kept) == texts(wanted), (view, statement)
    with keeper.transaction() as t:
        row = Row(x=2.5, at=datetime(2024, 5, 6, 7), **{"o'd": None})
        t.insert("bank.of_us", [(7, row, [row, None], ("z",)), (8, {"x": 2}, [], None)])
        t.insert("bank.of_us", [{"a": 9, "s": (1.0, None, None)}])
        found = t.read("SELECT a, s.x, size(l) FROM bank.of_us WHERE a IN (7, 8, 9)").collect()
    assert sorted(map(tuple, found)) == [(7, 2.5, 2), (8, 2.0, 0), (9, 1.0, None)]
    fails("INVALID_ROWS", lambda: rows(keeper, [(7, {"z": 1}, None, None)]))
    fails("INVALID_ROWS", lambda: rows(keeper, [(7, (1.0,), None, None)]))
    fails("INVALID_ROWS", lambda: rows(keeper, [(7, None, 5, None)]))
    fails("CONSTRAINT_VIOLATED", lambda: rows(keeper, [(7, None, None, ["a"] * 4)]))
    keeper.drop_constraint("few_words")
    for view in ("of_rows", "of_groups", "of_words"):
        assert keeper.refresh(f"bank.{view}")[0].strategy == "none"
        keeper.drop_view(f"bank.{view}")


def texts(frame: Any) -> Counter[str]:
    """Rows as texts: Python knows no year 10,000. To a view -0.0 is 0.0."""
    found = frame.selectExpr("CAST(struct(*) AS STRING)").collect()
    return Counter(row[0].replace("-0.0", "0.0") for row in found)


def rows(keeper: vk.Keeper, given: list[Any]) -> None:
    with keeper.transaction() as t:
        t.insert("bank.of_us", given)


def run(keeper: vk.Keeper, statement: str) -> None:
    with keeper.transaction() as t:
        t.sql(statement)

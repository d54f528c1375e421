"""Statements of transactions beside Delta's own: the same rows, or both say no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row

import viewkeeper as vk
from keeper_checks import fails
from viewkeeper.errors import ViewKeeperError
from viewkeeper.transactions.reading import read_change

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
HOME = "vk_statement_tests"
NUMBERS = count()


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS oracle")
    made = vk.Keeper(spark, schema=HOME)
    make(made, "m", "k INT, v INT", "(1, 10), (2, 20), (3, 30)")
    make(made, "news", "k INT, v INT", "(1, 100), (2, 200), (4, 400)")
    make(made, "e", "a INT, b STRING", "(1, 'x')")
    yield made


def make(keeper: vk.Keeper, name: str, columns: str, rows: str = "", more: str = "") -> None:
    keeper.spark.sql(f"CREATE TABLE oracle.{name} ({columns}) {FEED} {more}")
    if rows:
        keeper.spark.sql(f"INSERT INTO oracle.{name} VALUES {rows}")


def table(keeper: vk.Keeper, name: str) -> Counter[Any]:
    return bag(keeper.spark.table(f"oracle.{name}"))


def within(keeper: vk.Keeper, do: Callable[[vk.Transaction], Any]) -> Callable[[], None]:
    def run() -> None:
        with keeper.transaction() as t:
            do(t)

    return run


def same(keeper: vk.Keeper, columns: str, rows: str, statements: list[str], more: str = "") -> None:
    """One table changed by Delta, another by a transaction; ``{}`` stands for either."""
    name = f"t{next(NUMBERS)}"
    for which in ("delta", "own"):
        make(keeper, f"{name}_{which}", columns, rows, more)
    for text in statements:
        keeper.spark.sql(text.replace("{}", f"oracle.{name}_delta"))
    with keeper.transaction() as t:
        for text in statements:
            t.sql(text.replace("{}", f"oracle.{name}_own"))
    assert table(keeper, f"{name}_own") == table(keeper, f"{name}_delta")


def neither(keeper: vk.Keeper, statement: str, code: str = "INVALID_STATEMENT") -> ViewKeeperError:
    """Delta refuses it, and so does a transaction."""
    with pytest.raises((PySparkException, Py4JJavaError)):
        keeper.spark.sql(statement)
    return fails(code, within(keeper, lambda t: t.sql(statement)))


MERGE = "MERGE INTO oracle.m AS m USING oracle.news AS s ON m.k = s.k"


def test_merge_refuses_subqueries_and_chance(keeper: vk.Keeper) -> None:
    some = "s.k IN (SELECT k FROM oracle.news)"
    for wrong in (
        f"{MERGE} WHEN MATCHED AND {some} THEN DELETE",
        f"{MERGE} AND {some} WHEN MATCHED THEN DELETE",
        f"{MERGE} WHEN MATCHED AND rand() < 0.5 THEN DELETE",
        f"{MERGE} WHEN NOT MATCHED AND rand() < 0.5 THEN INSERT *",
        f"{MERGE} WHEN NOT MATCHED BY SOURCE AND rand() < 0.5 THEN UPDATE SET v = 0",
        f"{MERGE} AND rand() < 0.5 WHEN MATCHED THEN DELETE",
    ):
        neither(keeper, wrong)
    # Delta would take this one; here it would not see what the transaction did before
    value = f"{MERGE} WHEN MATCHED THEN UPDATE SET v = (SELECT count(*) FROM oracle.news)"
    error = fails("INVALID_STATEMENT", within(keeper, lambda t: t.sql(value)))
    assert "subquery" in str(error) and "USING" in error.hint
    for where in ("k = 1 AND rand() < 0.5", "oracle.m.k = 1 AND rand() < 0.5"):
        error = fails(
            "INVALID_STATEMENT", within(keeper, lambda t, w=where: t.delete("oracle.m", w))
        )
        assert "deterministic" in str(error)
    assert table(keeper, "m") == Counter([(1, 10), (2, 20), (3, 30)])


def test_chance_in_a_value_is_asked_once(keeper: vk.Keeper) -> None:
    """As Delta allows: what the report and the table have is the same."""
    make(keeper, "luck", "k INT, v DOUBLE", "(1, 0), (1, 0), (1, 0), (1, 0)")
    with keeper.transaction() as t:
        t.sql(
            "MERGE INTO oracle.luck AS l USING (SELECT * FROM VALUES (1), (2) AS q(k)) AS s"
            " ON l.k = s.k WHEN MATCHED THEN UPDATE SET v = rand()"
            " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, rand())"
        )
        t.update("oracle.luck", {"v": "rand() + 1"}, "oracle.luck.k = 2")
    assert t.report is not None and t.report.tables == {"oracle.luck": (5, 4)}
    assert len(table(keeper, "luck")) == 5


def test_merge_clauses(keeper: vk.Keeper) -> None:
    few = "MERGE INTO oracle.m AS m USING (SELECT k FROM oracle.news) AS s ON m.k = s.k"
    for wrong in (
        f"{few} WHEN MATCHED THEN UPDATE SET *",
        f"{few} WHEN NOT MATCHED THEN INSERT *",
        f"{MERGE} WHEN MATCHED BY SOURCE THEN DELETE",
        f"{MERGE} WHEN MATCHED BY TARGET THEN DELETE",
        f"{MERGE} WHEN NOT MATCHED BY foo THEN INSERT *",
        f"{MERGE} WHEN NOT MATCHED BY THEN INSERT *",
    ):
        neither(keeper, wrong)
    same(
        keeper,
        "k INT, v INT",
        "(1, 10), (2, 20), (3, 30)",
        [
            "MERGE INTO {} USING oracle.news ON {}.k = oracle.news.k"
            " WHEN MATCHED AND `oracle`.NEWS.v > {}.v THEN UPDATE SET v = oracle.news.v + {}.v"
            " WHEN NOT MATCHED BY TARGET THEN INSERT (k, v) VALUES (news.k, oracle.news.v)",
            "MERGE INTO {} USING oracle.news AS s ON {}.k = s.k AND s.k = 1"
            " WHEN MATCHED THEN UPDATE SET {}.v = 0 WHEN NOT MATCHED BY SOURCE AND {}.k = 3"
            " THEN DELETE",
        ],
    )


def test_parsed_by_spark_too(keeper: vk.Keeper) -> None:
    good = "DELETE FROM oracle.m WHERE k = 1"
    assert read_change(good, keeper.spark) == read_change(good)
    for wrong in ("DELETE FROM oracle.m WHERE k = = 1", "UPDATE oracle.m SET v = 1 1"):
        fails("INVALID_STATEMENT", lambda wrong=wrong: read_change(wrong, keeper.spark))


def test_what_merge_sets(keeper: vk.Keeper) -> None:
    given = "oracle.m", "oracle.news", "t.k = s.k"
    for wrong in ("v = s.v + 1", {}, 5):
        fails("INVALID_STATEMENT", within(keeper, lambda t, w=wrong: t.merge(*given, update=w)))
        fails("INVALID_STATEMENT", within(keeper, lambda t, w=wrong: t.merge(*given, insert=w)))
    within(keeper, lambda t: t.merge(*given, update={"v": 1}, insert={"k": "s.k", "v": None}))()
    assert table(keeper, "m") == Counter([(1, 1), (2, 1), (3, 30), (4, None)])
    within(keeper, lambda t: t.update("oracle.m", {"`v`": None}, "k = 3"))()
    assert table(keeper, "m") == Counter([(1, 1), (2, 1), (3, None), (4, None)])
    within(keeper, lambda t: t.merge(*given, update="*", delete="t.k = 4"))()
    keeper.spark.sql("UPDATE oracle.m SET v = k * 10")
    assert table(keeper, "m") == Counter([(1, 10), (2, 20), (3, 30)])


def test_several_matches_of_nan(keeper: vk.Keeper) -> None:
    nan = "(1, double('NaN')), (1, double('NaN')), (1, -0.0), (1, NULL), (2, double('NaN'))"
    make(keeper, "nan", "k INT, x DOUBLE", nan)
    with keeper.transaction() as t:
        t.sql(
            "MERGE INTO oracle.nan AS d USING (SELECT * FROM VALUES (1), (1), (1) AS q(k)) AS s"
            " ON d.k = s.k WHEN MATCHED THEN DELETE"
        )
    assert t.report is not None and t.report.tables == {"oracle.nan": (0, 4)}
    assert [r.k for r in keeper.spark.table("oracle.nan").collect()] == [2]


def test_values_that_do_not_fit(keeper: vk.Keeper) -> None:
    """Spark refuses to store them, also where its expressions give NULL or another value."""
    make(keeper, "fit", "a INT, d DECIMAL(3, 1), u DATE", "(1, 1, NULL), (2, 2, NULL)")
    source = "MERGE INTO {} AS m USING oracle.news AS s ON m.a = s.k"
    long = keeper.spark.sql("SELECT 3000000000L AS a")
    stored = keeper.spark.sql("SELECT v + 3000000000L AS a FROM oracle.news")
    keeper.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for wrong in (
            "INSERT INTO {} (a) SELECT 3000000000L",
            "INSERT INTO {} (a) VALUES ('one')",
            "INSERT INTO {} (a, d) SELECT k, 123.4 FROM oracle.news",
            "INSERT INTO {} (u) VALUES ('2024-1-1x')",
            "UPDATE {} SET a = a + 3000000000L",
            source + " WHEN MATCHED THEN UPDATE SET a = 'q'",
            source + " WHEN NOT MATCHED THEN INSERT (a, d) VALUES (s.k, s.v)",
        ):
            error = neither(keeper, wrong.replace("{}", "oracle.fit"))
            assert "does not fit the column" in str(error)
        same(
            keeper,
            "a INT, d DECIMAL(3, 1), u DATE",
            "(1, 1, NULL), (2, 2, NULL)",
            [
                "INSERT INTO {} (a, d) SELECT CAST('x' AS INT), '1.26' FROM oracle.news",
                "INSERT INTO {} (a, u) VALUES (' 7 ', '2024-02-03'), ('8', NULL)",
                "UPDATE {} SET a = a / 0, d = '7' WHERE a = 7",
                f"{source} WHEN MATCHED AND a = 1 THEN UPDATE SET a = '5' WHEN MATCHED THEN DELETE"
                " WHEN NOT MATCHED THEN INSERT (a) VALUES (s.v)",
            ],
        )
        for frame in (long, stored):
            run = within(keeper, lambda t, frame=frame: t.insert("oracle.fit", frame))
            assert "does not fit" in str(fails("INVALID_STATEMENT", run))
    finally:
        keeper.spark.conf.set("spark.sql.ansi.enabled", "true")


def test_the_empty_text_as_a_partition(keeper: vk.Keeper) -> None:
    make(keeper, "part", "p STRING, x INT", "('q', 1)", "PARTITIONED BY (p)")
    make(keeper, "strict", "p STRING NOT NULL, x INT", "", "PARTITIONED BY (p)")
    same(
        keeper,
        "p STRING, x INT",
        "('q', 1), ('r', 2)",
        [
            "INSERT INTO {} VALUES ('', 3), (NULL, 4), ('s', 5)",
            "UPDATE {} SET p = '' WHERE x = 1",
            "MERGE INTO {} m USING (SELECT '' AS p, 2 AS x) s ON m.x = s.x"
            " WHEN MATCHED THEN UPDATE SET p = s.p",
        ],
        "PARTITIONED BY (p)",
    )
    neither(keeper, "INSERT INTO oracle.strict VALUES ('', 2)", "INVALID_ROWS")
    with keeper.transaction() as t:
        t.insert("oracle.part", [("", 5), (None, 5), ("s", 6)])
        t.sql("DELETE FROM oracle.part WHERE p = 's' OR p = ''")
    assert table(keeper, "part") == Counter({("q", 1): 1, (None, 5): 2})
    within(keeper, lambda t: t.delete("oracle.part", "p IS NULL"))()
    assert table(keeper, "part") == Counter([("q", 1)])


def test_columns_that_are_there_twice(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    twice = pa.table([[1], [2]], names=["a", "a"])
    for code, given in (
        ("INVALID_ROWS", [{"a": 7, "A": 8}]),
        ("INVALID_ROWS", twice),
        ("INVALID_ROWS", [Row("a", "a")(1, 2)]),
        ("INVALID_STATEMENT", spark.sql("SELECT 1 AS a, 2 AS A")),
        ("INVALID_STATEMENT", spark.sql("SELECT array(1) AS a")),
    ):
        fails(code, within(keeper, lambda t, given=given: t.insert("oracle.e", given)))
    neither(keeper, "INSERT INTO oracle.e BY NAME SELECT 5 AS a, 6 AS a")
    twin = "(SELECT 1 AS a, 2 AS a) AS s ON e.a = s.a WHEN MATCHED THEN DELETE"
    neither(keeper, f"MERGE INTO oracle.e AS e USING {twin}")
    assert table(keeper, "e") == Counter([(1, "x")])


def test_values_that_raise(keeper: vk.Keeper) -> None:
    word = "(SELECT CAST('x' AS INT) AS a) AS s ON e.a = s.a WHEN MATCHED THEN DELETE"
    for wrong in (
        f"MERGE INTO oracle.e AS e USING {word}",
        "UPDATE oracle.m SET v = (SELECT v FROM oracle.news)",
        "INSERT INTO oracle.e (a) SELECT (SELECT k FROM oracle.news) FROM oracle.m",
        "INSERT INTO oracle.e (a) VALUES (raise_error('no'))",
        f"{MERGE} WHEN MATCHED THEN UPDATE SET v = raise_error('no')",
    ):
        neither(keeper, wrong)


def test_words_that_are_names(keeper: vk.Keeper) -> None:
    same(
        keeper,
        "start INT, end INT",
        "(1, 2), (3, 4)",
        [
            "UPDATE {} SET start = end + 1,"
            " end = CASE WHEN end > 2 THEN end ELSE 0 END WHERE end > 0",
            "UPDATE {} AS s SET start = s.end, end = (s.end)"
            " WHERE CASE WHEN s.end = 2 THEN true END",
            "INSERT INTO {} (TABLE {})",
            "INSERT INTO {} (FROM {})",
            "INSERT INTO {} (end, start) TABLE {}",
        ],
    )

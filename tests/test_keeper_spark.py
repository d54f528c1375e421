"""The keeper on a user's own session: its verbs, and what it says to bad input."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import viewkeeper as vk
from keeper_checks import bag, fails
from viewkeeper.errors import NotationError, ViewKeeperError

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


def same(keeper: vk.Keeper, name: str, sql: str) -> None:
    assert bag(keeper.spark.table(name)) == bag(keeper.spark.sql(sql)), name


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    made = vk.Keeper(spark, schema="vk_keeper_tests")
    spark.sql(f"CREATE TABLE shop.r (a INT, b STRING) {FEED}")
    spark.sql("INSERT INTO shop.r VALUES (1, 'x'), (1, 'x'), (2, 'y'), (NULL, 'z')")
    yield made


GROUPED = "SELECT b, count(*) AS n, max(a) AS m FROM shop.r GROUP BY b"


def test_the_verbs(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    made = keeper.create_view("shop.v", GROUPED)
    assert made.strategy == "full" and made.view == "shop.v" and made.inserted == 3
    assert "shop.v" in keeper.views()
    (none,) = keeper.refresh("shop.v")
    assert (none.strategy, none.inserted, none.deleted) == ("none", 0, 0)
    spark.sql("INSERT INTO shop.r VALUES (7, 'x')")
    (report,) = keeper.refresh("shop.v")
    assert (report.strategy, report.inserted, report.deleted) == ("incremental", 1, 1)
    same(keeper, "shop.v", GROUPED)
    changed = {tuple(r) for r in keeper.changes("shop.v", since=made.version).collect()}
    assert changed == {("x", 2, 1, -1), ("x", 3, 7, 1)}
    text = str(keeper.explain("shop.v"))
    assert "from stored counts, sums and extrema" in text and "no source changed" in text
    strategies = [r.strategy for r in keeper.history("shop.v").collect()]
    assert strategies == ["incremental", "full"]
    keeper.drop_view("shop.v")
    assert "shop.v" not in keeper.views()
    assert not spark.catalog.tableExists("shop.v")


def test_sql_statements(keeper: vk.Keeper) -> None:
    row = keeper.sql(f"CREATE MATERIALIZED VIEW shop.s AS {GROUPED}").first()
    assert row is not None and row.view == "shop.s"
    keeper.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS shop.s AS {GROUPED}")
    with pytest.raises(ViewKeeperError, match="NAME_TAKEN"):
        keeper.sql(f"CREATE MATERIALIZED VIEW shop.s AS {GROUPED}")
    keeper.sql("INSERT INTO shop.r VALUES (9, 'w')")
    assert [r.strategy for r in keeper.sql("REFRESH MATERIALIZED VIEW shop.s").collect()] == [
        "incremental"
    ]
    plan = keeper.sql("EXPLAIN MATERIALIZED VIEW shop.s").first()
    assert plan is not None and "steps" in plan.plan
    other = keeper.sql("EXPLAIN CREATE MATERIALIZED VIEW q AS SELECT a FROM shop.r").first()
    assert other is not None and "not yet a view" in other.plan
    smaller = "SELECT a FROM shop.r WHERE a > 1"
    keeper.sql(f"CREATE OR REPLACE MATERIALIZED VIEW shop.s AS {smaller}")
    same(keeper, "shop.s", smaller)
    keeper.sql("DROP MATERIALIZED VIEW shop.s")
    keeper.sql("DROP MATERIALIZED VIEW IF EXISTS shop.s")
    text = "it's the \\ groups"
    keeper.sql(
        "CREATE MATERIALIZED VIEW shop.s (word, `how many`) COMMENT 'it\\'s the \\\\ groups'"
        " TBLPROPERTIES (refresh = 'incremental', 'viewkeeper.maintain' = 'immediate')"
        " AS SELECT b, count(*) FROM shop.r GROUP BY b"
    )
    (view,) = (v for v in keeper.views() if v == "shop.s")
    assert (view.refresh, view.record.maintain, view.comment) == ("incremental", "immediate", text)
    assert keeper.spark.catalog.getTable("shop.s").description == text
    with keeper.transaction() as t:
        t.sql("INSERT INTO shop.r VALUES (1, 'v'), (2, 'v')")
    same(keeper, "shop.s", "SELECT b AS word, count(*) AS `how many` FROM shop.r GROUP BY b")
    keeper.sql("DROP MATERIALIZED VIEW shop.s")
    with pytest.raises(NotationError):
        keeper.sql("CREATE MATERIALIZED VIEW shop.s SELECT 1")


def test_dataframes_and_the_decorator(keeper: vk.Keeper) -> None:
    @keeper.materialized_view(name="shop.per_b", refresh="incremental")
    def per_b() -> Any:
        r = keeper.spark.table("shop.r")
        return r.where("a IS NOT NULL").groupBy("b").count()

    keeper.spark.sql("DELETE FROM shop.r WHERE b = 'y'")
    fresh = vk.Keeper(keeper.spark, schema="vk_keeper_tests")  # knows nothing but the registry
    (report,) = fresh.refresh("shop.per_b")
    assert (report.strategy, report.inserted, report.deleted) == ("incremental", 0, 1)
    same(keeper, "shop.per_b", "SELECT b, count(*) FROM shop.r WHERE a IS NOT NULL GROUP BY b")
    keeper.drop_view("shop.per_b")


def test_bad_input_gets_the_right_error_and_changes_nothing(keeper: vk.Keeper) -> None:
    keeper.create_view("shop.base", "SELECT a, b FROM shop.r")
    keeper.create_view("shop.over", "SELECT b, count(*) AS n FROM shop.base GROUP BY b")
    before = {v: bag(keeper.spark.table(v)) for v in keeper.views()}

    create = keeper.create_view
    fails("INVALID_QUERY", lambda: create("shop.x", "SELEC 1"))
    fails("INVALID_QUERY", lambda: create("shop.x", "SELECT nope FROM shop.r"))
    fails("INVALID_QUERY", lambda: create("shop.x", "SELECT a AS __count FROM shop.r"))
    fails("UNKNOWN_TABLE", lambda: create("shop.x", "SELECT * FROM shop.nowhere"))
    fails("NAME_TAKEN", lambda: create("shop.base", "SELECT 1 AS a"))
    fails("NAME_TAKEN", lambda: create("shop.r", "SELECT 1 AS a"))
    fails("INVALID_OPTION", lambda: create("shop.x", "SELECT 1 AS a", refresh="sometimes"))
    fails("INVALID_OPTION", lambda: create("a.b.c.d", "SELECT 1 AS a"))
    fails("CYCLIC_DEFINITION", lambda: create("shop.base", "SELECT * FROM shop.base", replace=True))
    fails(
        "CYCLIC_DEFINITION",
        lambda: create("shop.base", "SELECT n AS a, b FROM shop.over", replace=True),
    )
    error = fails(
        "NOT_INCREMENTAL",
        lambda: create(
            "shop.x", "SELECT a, current_date() AS d FROM shop.r", refresh="incremental"
        ),
    )
    assert "current_date" in str(error).lower()
    fails("VIEW_IN_USE", lambda: keeper.drop_view("shop.base"))
    fails("UNKNOWN_VIEW", lambda: keeper.drop_view("shop.nothing"))
    fails("UNKNOWN_VIEW", lambda: keeper.refresh("shop.nothing"))
    fails("UNKNOWN_VIEW", lambda: keeper.explain("nothing"))
    assert {v: bag(keeper.spark.table(v)) for v in keeper.views()} == before
    keeper.drop_view("shop.over")
    keeper.drop_view("shop.base")


def test_a_source_dropped_between_refreshes(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.gone (a INT) {FEED}")
    spark.sql("INSERT INTO shop.gone VALUES (1), (2)")
    keeper.create_view("shop.g", "SELECT sum(a) AS s FROM shop.gone")
    keeper.create_view("shop.other", "SELECT count(*) AS n FROM shop.r")
    spark.sql("DROP TABLE shop.gone")
    spark.sql("INSERT INTO shop.r VALUES (5, 'five')")
    with pytest.raises(ViewKeeperError) as caught:
        keeper.refresh()
    assert caught.value.code == "SOURCE_CHANGED" and "gone" in str(caught.value)
    assert bag(spark.table("shop.g")) == Counter({(3,): 1}), "the view is as it was"
    same(keeper, "shop.other", "SELECT count(*) AS n FROM shop.r")
    spark.sql(f"CREATE TABLE shop.gone (a INT) {FEED}")
    spark.sql("INSERT INTO shop.gone VALUES (10)")
    (report,) = keeper.refresh("shop.g")
    assert report.strategy == "full" and "replaced" in report.reason
    assert bag(spark.table("shop.g")) == Counter({(10,): 1})
    keeper.drop_view("shop.g")
    keeper.drop_view("shop.other")


def test_a_source_copied_back_from_elsewhere(keeper: vk.Keeper, tmp_path: Path) -> None:
    """The table has its id, and another past: below, at and above the version that was seen."""
    spark = keeper.spark
    spark.sql("CREATE TABLE shop.copied (a INT) USING delta")
    spark.sql("INSERT INTO shop.copied VALUES (1)")
    keeper.create_view("shop.sums", "SELECT sum(a) AS s FROM shop.copied")
    folder = spark.sql("DESCRIBE DETAIL shop.copied").first()["location"].removeprefix("file:")
    shutil.copytree(folder, tmp_path / "aside")
    for later in range(3):
        spark.sql("INSERT INTO shop.copied VALUES (5)")
        (report,) = keeper.refresh("shop.sums", strategy="incremental")
        assert report.strategy == "incremental"
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "aside", folder)
        rows = pa.table({"a": pa.array([100], pa.int32())})
        for _ in range(later):
            write_deltalake(folder, rows, mode="append")
        (report,) = keeper.refresh("shop.sums")
        assert report.strategy == "full" and "copied back" in report.reason
        assert bag(spark.table("shop.sums")) == Counter({(1 + 100 * later,): 1})
    keeper.drop_view("shop.sums")


def test_one_name_in_two_schemas(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    home = spark.catalog.currentDatabase()
    made = []
    for schema in ("shop_one", "shop_two"):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        spark.sql(f"USE {schema}")
        made.append(keeper.create_view("twin", f"SELECT '{schema}' AS s").view)
    assert made == ["twin", "`spark_catalog`.`shop_two`.`twin`"]
    spark.sql(f"USE {home}")
    views = [v for v in keeper.views() if "twin" in v]
    assert [r.view for r in keeper.refresh(views)] == made
    assert [keeper.explain(v).view for v in views] == made  # type: ignore[union-attr]
    with pytest.raises(ViewKeeperError, match=r"`shop_one`\.`twin`"):
        keeper.refresh("twin")
    for view in views:
        assert keeper.history(view).count() == 1
        keeper.drop_view(view)


def test_time_dependent_views_are_refreshed_in_full(keeper: vk.Keeper) -> None:
    keeper.create_view("shop.today", "SELECT a, current_date() AS d FROM shop.r")
    (report,) = keeper.refresh("shop.today")
    assert report.strategy == "full" and "current_date" in report.reason.lower()
    keeper.drop_view("shop.today")


def test_no_job_where_nothing_changed(keeper: vk.Keeper) -> None:
    keeper.create_view("shop.idle", GROUPED)
    keeper.refresh("shop.idle")
    tracker = keeper.spark.sparkContext.statusTracker()
    keeper.spark.sparkContext.setJobGroup("idle", "nothing changed")
    (report,) = keeper.refresh("shop.idle")
    assert report.strategy == "none"
    assert not tracker.getJobIdsForGroup("idle")
    keeper.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    keeper.drop_view("shop.idle")


def test_a_view_replaced_under_another(keeper: vk.Keeper) -> None:
    """The view above is refreshed in full once, and then goes on; also in another process."""
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.base (a INT, b STRING) {FEED}")
    spark.sql("INSERT INTO shop.base VALUES (1, 'x'), (2, 'y')")
    keeper.create_view("shop.low", "SELECT a, b FROM shop.base")
    above = "SELECT b, count(*) AS n FROM shop.low GROUP BY b"
    keeper.create_view("shop.high", above)
    keeper.create_view("shop.low", "SELECT a, b FROM shop.base WHERE a > 1", replace=True)
    with pytest.raises(ViewKeeperError, match="is read by"):
        keeper.drop_view("shop.low")
    (_, report) = keeper.refresh("shop.high")
    assert (report.strategy, report.inserted, report.deleted) == ("full", 0, 1)
    same(keeper, "shop.high", above)
    spark.sql("INSERT INTO shop.base VALUES (3, 'y')")
    other = vk.Keeper(spark, schema="vk_keeper_tests")
    low, high = other.refresh(["shop.high"])
    assert (low.inserted, high.strategy, high.inserted, high.deleted) == (1, "incremental", 1, 1)
    same(keeper, "shop.high", above)
    keeper.create_view("shop.low", "SELECT a FROM shop.base", replace=True)
    with pytest.raises(ViewKeeperError, match="no longer fits its query") as caught:
        keeper.refresh("shop.high")
    assert caught.value.code == "SOURCE_CHANGED"
    keeper.drop_view("shop.high")
    keeper.drop_view("shop.low")


def test_select_star_keeps_its_columns(keeper: vk.Keeper) -> None:
    """A source gets a column: nothing for the view, in this process and in another."""
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.wide (a INT, weight INT) {FEED}")
    spark.sql("INSERT INTO shop.wide VALUES (1, 5), (1, 5)")
    keeper.create_view("shop.star", "SELECT * FROM shop.wide; -- all")
    spark.sql("ALTER TABLE shop.wide ADD COLUMNS (extra STRING)")
    spark.sql("INSERT INTO shop.wide VALUES (2, 6, 'e')")
    other = vk.Keeper(spark, schema="vk_keeper_tests")
    (report,) = other.refresh("shop.star")
    assert (report.strategy, report.inserted, report.deleted) == ("incremental", 1, 0)
    spark.conf.set("spark.viewkeeper.driver", "false")
    try:
        spark.sql("UPDATE shop.wide SET weight = 7 WHERE a = 1")
        (report,) = keeper.refresh("shop.star", strategy="incremental")
    finally:
        spark.conf.unset("spark.viewkeeper.driver")
    assert (report.strategy, report.inserted, report.deleted) == ("incremental", 2, 2)
    same(keeper, "shop.star", "SELECT a, weight FROM shop.wide")
    keeper.drop_view("shop.star")


def test_times_without_a_zone_in_a_session_that_has_one(keeper: vk.Keeper) -> None:
    """Some of them are none in the session's zone, or two."""
    spark, zone = keeper.spark, "spark.sql.session.timeZone"
    spark.sql(f"CREATE TABLE shop.local (k INT, n TIMESTAMP_NTZ) {FEED}")
    before = spark.conf.get(zone)
    query = "SELECT window(n, '10 minutes').start AS w, count(*) AS c FROM shop.local GROUP BY 1"
    try:
        spark.conf.set(zone, "America/New_York")
        keeper.create_view("shop.spans", query, refresh="incremental")
        for time in ("2024-03-10 02:34:00", "2024-11-03 01:34:00", "0001-01-01 00:00:00"):
            spark.sql(f"INSERT INTO shop.local VALUES (1, TIMESTAMP_NTZ '{time}')")
            (report,) = keeper.refresh("shop.spans")
            assert (report.strategy, report.inserted) == ("incremental", 1)
            same(keeper, "shop.spans", query)
    finally:
        spark.conf.set(zone, before)
        keeper.drop_view("shop.spans")


def test_a_view_keeps_the_settings_of_its_creation(keeper: vk.Keeper) -> None:
    spark, zone = keeper.spark, "spark.sql.session.timeZone"
    spark.sql(f"CREATE TABLE shop.moments (t TIMESTAMP, s STRING) {FEED}")
    spark.sql("INSERT INTO shop.moments VALUES (TIMESTAMP '2024-01-01 23:30:00Z', 'x')")
    days = "SELECT CAST(t AS DATE) AS d, count(*) AS n FROM shop.moments GROUP BY 1"
    last = "SELECT s, CAST(max(t) AS STRING) AS t FROM shop.moments GROUP BY s"  # cast when read
    numbers = "SELECT CAST(s AS INT) AS i FROM shop.moments"
    before = spark.conf.get(zone)
    settings = {zone: "Asia/Tokyo", "spark.sql.ansi.enabled": "false"}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        keeper.create_view("shop.days", days)
        keeper.create_view("shop.last", last)
        keeper.create_view("shop.numbers", numbers)
        spark.conf.set(zone, "UTC")
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.sql("INSERT INTO shop.moments VALUES (TIMESTAMP '2024-01-02 01:00:00Z', '7')")
        views = ["shop.days", "shop.last", "shop.numbers"]
        made = [keeper.refresh(v, strategy="incremental")[0] for v in views]
        assert [(r.strategy, r.inserted, r.deleted) for r in made] == [
            ("incremental", 1, 1), ("incremental", 1, 0), ("incremental", 1, 0)
        ]  # fmt: skip
        shown = {v: bag(spark.table(v)) for v in views}
        for key, value in settings.items():
            spark.conf.set(key, value)
        for view, sql in zip(views, (days, last, numbers), strict=True):
            assert shown[view] == bag(spark.sql(sql)), view
    finally:
        spark.conf.set(zone, before)
        spark.conf.set("spark.sql.ansi.enabled", "true")
        for view in ("shop.days", "shop.last", "shop.numbers"):
            keeper.drop_view(view, if_exists=True)


def test_what_a_query_uses_is_redefined(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.ground (a INT) {FEED}")
    spark.sql("INSERT INTO shop.ground VALUES (1)")
    spark.sql("CREATE VIEW shop.plain AS SELECT a FROM shop.ground")
    spark.sql("CREATE TEMPORARY FUNCTION more(x INT) RETURNS INT RETURN x + 1")
    queries = {
        "shop.above": "SELECT a FROM shop.plain",
        "shop.fun": "SELECT more(a) AS a FROM shop.ground",
    }
    for view, sql in queries.items():
        keeper.create_view(view, sql)
    spark.sql("INSERT INTO shop.ground VALUES (2)")
    assert {keeper.refresh(v, strategy="incremental")[0].strategy for v in queries} == {
        "incremental"
    }
    spark.sql("CREATE OR REPLACE VIEW shop.plain AS SELECT a + 10 AS a FROM shop.ground")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION more(x INT) RETURNS INT RETURN x + 100")
    for view, sql in queries.items():
        (report,) = keeper.refresh(view)
        assert report.strategy == "full" and "was redefined" in report.reason
        same(keeper, view, sql)
    spark.sql("CREATE OR REPLACE VIEW shop.plain AS SELECT a FROM shop.r")  # another source
    keeper.refresh("shop.above")
    same(keeper, "shop.above", queries["shop.above"])
    assert [r.reads for r in keeper._views.all() if r.label == "shop.above"] == [
        ("`spark_catalog`.`shop`.`r`",)
    ]
    spark.sql("DECLARE OR REPLACE VARIABLE five INT DEFAULT 5")
    with pytest.raises(ViewKeeperError, match="variable five has a value in this session only"):
        keeper.create_view("shop.variable", "SELECT a + five AS a FROM shop.ground")
    for view in queries:
        keeper.drop_view(view)


def test_a_sum_that_overflows_silently(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.large (k INT, d DECIMAL(38, 0), b BIGINT) {FEED}")
    for _ in range(2):
        spark.sql(f"INSERT INTO shop.large VALUES (1, {6 * 10**37}, {2**63 - 1})")
    sql = "SELECT k, sum(d) AS d, sum(b) AS b, avg(b) AS m FROM shop.large GROUP BY k"
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        keeper.create_view("shop.sums", sql, refresh="incremental")
        same(keeper, "shop.sums", sql)
        spark.sql(f"INSERT INTO shop.large VALUES (1, 1, 1), (2, {9 * 10**37}, 5)")
        spark.sql(f"INSERT INTO shop.large VALUES (2, {9 * 10**37}, 5)")
        keeper.refresh("shop.sums")
        same(keeper, "shop.sums", sql)
        spark.sql("DELETE FROM shop.large WHERE k = 1 AND d > 5")
        spark.sql("UPDATE shop.large SET d = 1 WHERE k = 2")
        keeper.refresh("shop.sums")
        same(keeper, "shop.sums", sql)
        keeper.drop_view("shop.sums")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_rows_that_a_query_cannot_take(keeper: vk.Keeper) -> None:
    """A value that the query fails on is told by our error, and the view is as it was before."""
    spark, query = keeper.spark, "SELECT b, 10 / a AS q FROM shop.divided"
    spark.sql(f"CREATE TABLE shop.divided (a INT, b STRING) {FEED}")
    spark.sql("INSERT INTO shop.divided VALUES (2, 'x')")
    keeper.create_view("shop.quotients", query)
    before = bag(spark.table("shop.quotients"))
    spark.sql("INSERT INTO shop.divided VALUES (0, 'y')")
    with pytest.raises(ViewKeeperError, match="DIVIDE_BY_ZERO") as refused:
        keeper.refresh("shop.quotients")
    assert refused.value.code == "QUERY_FAILED"
    assert bag(spark.table("shop.quotients")) == before
    with pytest.raises(ViewKeeperError, match="DIVIDE_BY_ZERO") as unmade:
        keeper.create_view("shop.others", query)
    assert unmade.value.code == "QUERY_FAILED"
    assert "shop.others" not in keeper.views() and not spark.catalog.tableExists("shop.others")
    spark.sql("DELETE FROM shop.divided WHERE a = 0")
    keeper.refresh("shop.quotients")
    same(keeper, "shop.quotients", query)
    keeper.drop_view("shop.quotients")


def test_a_table_that_spark_cannot_broadcast(keeper: vk.Keeper) -> None:
    """Spark takes a table for small and has no room for it: it is joined otherwise."""
    spark, query = keeper.spark, "SELECT v, w FROM shop.left_ JOIN shop.right_ USING (k)"
    spark.sql(f"CREATE TABLE shop.left_ (k INT, v INT) {FEED}")
    spark.sql(f"CREATE TABLE shop.right_ (k INT, w INT) {FEED}")
    spark.sql("INSERT INTO shop.left_ SELECT id % 3, id FROM range(10)")
    spark.sql("INSERT INTO shop.right_ SELECT id, id FROM range(3)")
    spark.conf.set("spark.sql.maxBroadcastTableSize", "10")
    spark.conf.set("spark.viewkeeper.driver", "false")
    try:
        with pytest.raises(Exception, match="Cannot broadcast"):
            spark.sql(query).collect()
        keeper.create_view("shop.joined", query)
        for strategy in ("full", "incremental"):
            spark.sql("INSERT INTO shop.left_ VALUES (1, 20)")
            keeper.refresh("shop.joined", strategy=strategy)
    finally:
        spark.conf.unset("spark.sql.maxBroadcastTableSize")
        spark.conf.unset("spark.viewkeeper.driver")
    same(keeper, "shop.joined", query)
    keeper.drop_view("shop.joined")


def test_nothing_is_computed_while_nothing_changes(keeper: vk.Keeper) -> None:
    """Nor for a view that is always computed in full: what it reads has no new version."""
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.clicks (at TIMESTAMP, who STRING) {FEED}")
    spark.sql("INSERT INTO shop.clicks VALUES (TIMESTAMP'2024-01-01 00:00:00', 'ann')")
    before = "SELECT who, (SELECT b.who FROM shop.clicks b WHERE b.at < c.at) AS b"
    before += " FROM shop.clicks c"
    volatile = "SELECT who FROM shop.clicks WHERE at < current_timestamp()"
    keeper.create_view("shop.untranslated", before)
    keeper.create_view("shop.insisting", "SELECT who FROM shop.clicks", refresh="full")
    keeper.create_view("shop.of_time", volatile)
    names = ["shop.untranslated", "shop.insisting", "shop.of_time"]

    def strategies(**options: Any) -> list[str]:
        return [keeper.refresh(name, **options)[0].strategy for name in names]

    assert strategies() == ["none", "none", "full"]
    assert strategies(strategy="full") == ["full"] * 3
    spark.sql("INSERT INTO shop.clicks VALUES (TIMESTAMP'2024-01-01 00:30:00', 'ann')")
    assert strategies() == ["full"] * 3
    same(keeper, "shop.untranslated", before)
    for name in names:
        keeper.drop_view(name)


def test_types_of_what_is_always_empty(keeper: vk.Keeper) -> None:
    """What has been proved to have no rows, or no value, has its types all the same."""
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.typed (a INT, b DATE, c DECIMAL(9, 2)) {FEED}")
    never = "(SELECT * FROM shop.typed WHERE a IS NULL AND a > 1)"
    for query in (
        f"SELECT a, b, c FROM {never}",
        f"SELECT b, sum(c) AS s, count(*) AS n FROM {never} GROUP BY b",
        f"SELECT max(b) AS m, sum(a) AS s FROM {never}",
        f"SELECT t.a, n.b, n.c FROM shop.typed t LEFT JOIN {never} n ON t.a = n.a",
        f"SELECT n.b, t.c FROM {never} n FULL JOIN shop.typed t ON t.a = n.a",
    ):
        keeper.create_view("shop.never", query, refresh="incremental", replace=True)
        assert spark.table("shop.never").dtypes == spark.sql(query).dtypes, query
        spark.sql("INSERT INTO shop.typed VALUES (NULL, NULL, NULL), (2, DATE'2024-01-01', 1.5)")
        keeper.refresh("shop.never")
        same(keeper, "shop.never", query)
    keeper.drop_view("shop.never")


def test_the_first_of_duplicates(keeper: vk.Keeper) -> None:
    """dropDuplicates on some of the columns keeps one row for each of their values."""
    spark = keeper.spark
    spark.sql(f"CREATE TABLE shop.doubles (a INT, b STRING, c INT) {FEED}")
    spark.sql("INSERT INTO shop.doubles SELECT id % 4, 'b' || id % 3, id FROM range(20)")
    frame = spark.table("shop.doubles").dropDuplicates(["a"])
    keeper.create_view("shop.firsts", frame, refresh="incremental")
    query = "SELECT a, min_by(b, (b, c)) AS b, min((b, c)).c AS c FROM shop.doubles GROUP BY a"
    for change in (
        "DELETE FROM shop.doubles WHERE b = 'b0' AND a < 2",
        "INSERT INTO shop.doubles VALUES (NULL, 'x', 1), (NULL, 'x', NULL), (3, NULL, 5)",
        "UPDATE shop.doubles SET a = a + 1 WHERE c % 2 = 0",
    ):
        spark.sql(change)
        (report,) = keeper.refresh("shop.firsts")
        assert report.strategy == "incremental"
        same(keeper, "shop.firsts", query)
    keeper.drop_view("shop.firsts")

"""What guards a lake: viewkeeper's own tables, constraints whose sources change, reads that
conflict, the blame of a check, entries that a table refuses, and input that makes no sense."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

import viewkeeper as vk
from keeper_checks import fails
from viewkeeper.lake.sources import find
from viewkeeper.transactions.constraints import Constraint
from viewkeeper.transactions.journal import Journal

HOME = "vk_guard_tests"
ZONE = "spark.sql.session.timeZone"


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS guard")
    yield vk.Keeper(spark, schema=HOME)


@pytest.fixture(autouse=True)
def no_constraints(keeper: vk.Keeper) -> Iterator[None]:
    """Each test has its own."""
    yield
    for constraint in keeper.constraints():
        keeper.drop_constraint(constraint.name)


def make(keeper: vk.Keeper, name: str, columns: str, rows: str = "") -> None:
    keeper.spark.sql(f"CREATE TABLE guard.{name} ({columns}) USING delta")
    if rows:
        keeper.spark.sql(f"INSERT INTO guard.{name} VALUES {rows}")


def insert(keeper: vk.Keeper, name: str, *values: Any) -> Any:
    with keeper.transaction() as t:
        t.insert(f"guard.{name}", [(v,) for v in values])
    return t.report


def test_own_tables_by_any_name(keeper: vk.Keeper) -> None:
    make(keeper, "plain", "a INT", "(1)")
    keeper.create_view("guard.plain_view", "SELECT a FROM guard.plain")
    (record,) = (v.record for v in keeper.views() if v.name == "guard.plain_view")
    store = record.store.split(".")[-1].strip("`")
    spark = keeper.spark
    folder = find(spark, f"{HOME}.history").location
    names = [
        f"{HOME.upper()}.history",
        f"spark_catalog.{HOME.title()}.{store}",
        f"{HOME}.{store.upper()}",
        f"delta.`{folder}`",
        f"delta.`{folder.removeprefix('file:').replace('history', store)}/`",
    ]
    for name in names:
        with keeper.transaction() as t:
            fails("UNSUPPORTED_TABLE", lambda name=name, t=t: t.delete(name, "1 = 0"))
    place = find(spark, "guard.plain").location
    with keeper.transaction() as t:
        t.insert(f"delta.`{place}`", [(2,)])
    assert keeper.spark.table("guard.plain").count() == 2
    keeper.drop_view("guard.plain_view")


def test_a_spark_view_in_a_constraint_is_redefined(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    make(keeper, "va", "x INT")
    make(keeper, "vb", "x INT")
    spark.sql("CREATE VIEW guard.sv AS SELECT * FROM guard.va")
    keeper.add_constraint("through", "SELECT x FROM guard.sv WHERE x < 0")
    fails("CONSTRAINT_VIOLATED", lambda: insert(keeper, "va", -1))
    spark.sql("CREATE OR REPLACE VIEW guard.sv AS SELECT * FROM guard.vb")
    fails("CONSTRAINT_VIOLATED", lambda: insert(keeper, "vb", -1))
    assert insert(keeper, "va", -1).constraints == {"through": "untouched"}
    (kept,) = keeper.constraints()
    assert [r.split(".")[-1] for r in kept.reads] == ["`vb`"]
    assert keeper.check() == []
    # the same table, another query: what held is no longer known to hold
    insert(keeper, "vb", 5)
    assert keeper.check() == []
    spark.sql("CREATE OR REPLACE VIEW guard.sv AS SELECT -x AS x FROM guard.vb")
    fails("CONSTRAINT_VIOLATED", lambda: insert(keeper, "vb", 1))
    insert(keeper, "vb", -7)
    (found,) = keeper.check()
    assert found.rows == [(-5,)]
    spark.sql("CREATE OR REPLACE VIEW guard.sv AS SELECT x FROM guard.vb WHERE rand() < 0.5")
    fails("NOT_INCREMENTAL", lambda: insert(keeper, "vb", 1))
    assert [type(v.error).__name__ for v in keeper.check()] == ["NotIncrementalError"]
    spark.sql("DROP VIEW guard.sv")
    assert insert(keeper, "va", 1).entry
    fails("SOURCE_CHANGED", lambda: insert(keeper, "vb", 1))


def test_a_key_over_a_spark_view_and_deletions(keeper: vk.Keeper) -> None:
    """Rows that go from the one table come into the view."""
    make(keeper, "held", "a INT", "(1), (1)")
    make(keeper, "but", "a INT", "(1)")
    keeper.spark.sql(
        "CREATE VIEW guard.rest AS SELECT a FROM guard.held EXCEPT ALL SELECT a FROM guard.but"
    )
    keeper.add_constraint("rest_key", vk.key("guard.rest", "a"))
    with keeper.transaction() as t:
        t.delete("guard.but")
        fails("CONSTRAINT_VIOLATED", t.commit)


def test_constraints_keep_their_settings(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    before = spark.conf.get(ZONE)
    try:
        spark.conf.set(ZONE, "UTC")
        make(keeper, "times", "ts TIMESTAMP", "(TIMESTAMP'2024-01-01 12:00:00')")
        keeper.add_constraint("night", "SELECT ts FROM guard.times WHERE hour(ts) = 3")
        spark.conf.set(ZONE, "Asia/Tokyo")
        noon = "TIMESTAMP'2024-01-01 12:00:00'"  # 03:00 in UTC
        with keeper.transaction() as t:
            t.sql(f"INSERT INTO guard.times VALUES ({noon})")
            fails("CONSTRAINT_VIOLATED", t.commit)
        with keeper.transaction() as t:
            t.sql("INSERT INTO guard.times VALUES (TIMESTAMP'2024-01-01 03:00:00')")
        assert keeper.check() == []
        spark.sql(f"INSERT INTO guard.times VALUES ({noon})")
        (found,) = keeper.check()
        assert len(found.rows) == 1 and found.version == 3
        keeper.drop_constraint("night")
        fails(
            "CONSTRAINT_VIOLATED",
            lambda: keeper.add_constraint(
                "now", "SELECT ts FROM guard.times WHERE hour(ts) = 12 AND day(ts) = 1"
            ),
        )
    finally:
        spark.conf.set(ZONE, before)


def test_constraints_of_earlier_versions(keeper: vk.Keeper) -> None:
    make(keeper, "early", "a INT")
    made = keeper.add_constraint("early", "SELECT a FROM guard.early WHERE a < 0")
    shelf = keeper._transactions.shelf
    kept = {k: v for k, v in shelf.all()["early"].items() if k not in ("settings", "names")}
    shelf.put("early", kept)
    (found,) = keeper.constraints()
    assert found == dataclasses.replace(made, settings=(), names=None)
    assert Constraint.of(kept) == found
    fails("CONSTRAINT_VIOLATED", lambda: insert(keeper, "early", -1))
    assert insert(keeper, "early", 1).constraints == {"early": "checked"}
    assert keeper.check() == []


def test_a_source_that_is_gone(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    for name in ("gone", "still", "third"):
        make(keeper, name, "a INT", "(1)")
    keeper.create_view(
        "guard.gone_view", "SELECT count(*) AS n FROM guard.gone", maintain="immediate"
    )
    keeper.add_constraint(
        "broken", "SELECT a FROM guard.gone JOIN guard.third USING (a) WHERE a < 0"
    )
    keeper.add_constraint("whole", "SELECT a FROM guard.still WHERE a < 0")
    spark.sql("DROP TABLE guard.gone")
    spark.sql("INSERT INTO guard.still VALUES (-3)")
    fresh = vk.Keeper(spark, schema=HOME)
    assert insert(fresh, "still", 2).constraints == {"broken": "untouched", "whole": "checked"}
    fails("SOURCE_CHANGED", lambda: insert(fresh, "third", 2))
    broken, whole = fresh.check()
    assert broken.error is not None and "cannot be checked" in str(broken) and not broken.rows
    assert whole.rows == [(-3,)] and whole.version == 2
    fails("SOURCE_CHANGED", lambda: fresh.check("broken"))
    keeper.drop_view("guard.gone_view")


def test_no_temporary_views_in_constraints(keeper: vk.Keeper) -> None:
    make(keeper, "base", "a INT")
    keeper.spark.sql("CREATE OR REPLACE TEMP VIEW guard_temp AS SELECT * FROM guard.base")
    keeper.spark.sql("CREATE OR REPLACE GLOBAL TEMP VIEW guard_temp AS SELECT * FROM guard.base")
    keeper.spark.table("guard.base").createOrReplaceTempView("guard_frame")
    for name in ("guard_temp", "global_temp.guard_temp", "guard_frame"):
        sql = f"SELECT a FROM {name} WHERE a < 0"
        error = fails("INVALID_OPTION", lambda sql=sql: keeper.add_constraint("t", sql))
        assert "only this session" in error.what


def test_temporary_views_hide_no_tables(keeper: vk.Keeper) -> None:
    """Constraints and views are about what their queries named when they were made."""
    spark = keeper.spark
    make(keeper, "hidden", "a INT")
    before = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase("guard")
    try:
        keeper.add_constraint("hidden_few", "SELECT a FROM hidden WHERE a < 0")
        keeper.create_view("guard.hidden_rows", "SELECT a FROM hidden")
        spark.sql("INSERT INTO guard.hidden VALUES (1)")
        spark.table("guard.hidden").where("a > 5").createOrReplaceTempView("hidden")
        other = vk.Keeper(spark, schema=HOME)  # as another process with such a view
        assert other.refresh("guard.hidden_rows")[0].inserted == 1
        for rows in (spark.sql("SELECT 1 AS other"), spark.table("guard.hidden").where("a > 5")):
            rows.createOrReplaceTempView("hidden")
            other = vk.Keeper(spark, schema=HOME)
            fails("CONSTRAINT_VIOLATED", lambda other=other: insert(other, "hidden", -1))
    finally:
        spark.catalog.dropTempView("hidden")
        spark.catalog.setCurrentDatabase(before)
        keeper.drop_constraint("hidden_few", if_exists=True)


def test_what_spark_cannot_compute(keeper: vk.Keeper) -> None:
    make(keeper, "ratio", "v INT", "(1)")
    keeper.add_constraint("ratio", "SELECT v FROM guard.ratio WHERE 1 / v > 5")
    error = fails("QUERY_FAILED", lambda: insert(keeper, "ratio", 0))
    assert "the constraint ratio" in error.what and "Nothing was written" in str(error)
    words = "ALWAYS (SELECT 'x' FROM guard.ratio)"
    fails("QUERY_FAILED", lambda: keeper.add_constraint("words", words))
    keeper.spark.sql("INSERT INTO guard.ratio VALUES (0)")
    assert [str(v.error)[:14] for v in keeper.check()] == ["[QUERY_FAILED]"]
    keeper.drop_constraint("ratio")
    keeper.spark.sql("DELETE FROM guard.ratio WHERE v = 0")
    keeper.create_view("guard.ratios", "SELECT 1 / v AS r FROM guard.ratio", maintain="immediate")
    fails("QUERY_FAILED", lambda: insert(keeper, "ratio", 0))
    assert keeper.spark.table("guard.ratio").count() == 1
    keeper.drop_view("guard.ratios")


def test_reads_conflict(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    make(keeper, "ra", "a INT")
    make(keeper, "rb", "a INT", "(1)")
    make(keeper, "rc", "a INT", "(1)")
    with keeper.transaction() as t:  # through a statement
        t.sql("INSERT INTO guard.ra SELECT a FROM guard.rb")
        assert t.read("SELECT count(*) FROM guard.ra").first()[0] == 1
        spark.sql("INSERT INTO guard.rb VALUES (2)")
        fails("CONFLICT", t.commit)
    with keeper.transaction() as t:  # without a statement
        t.read("guard.rb")
        spark.sql("INSERT INTO guard.rb VALUES (3)")
        fails("CONFLICT", t.commit)
    with keeper.transaction() as t:  # another table at the same version
        t.read("guard.rc")
        spark.sql("DROP TABLE guard.rc")
        make(keeper, "rc", "a INT", "(500)")
        t.insert("guard.ra", [(1,)])
        fails("CONFLICT", t.commit)
    with keeper.transaction() as t:  # what is only written may change
        t.insert("guard.ra", [(7,)])
        t.read("guard.rc")
        spark.sql("INSERT INTO guard.ra VALUES (8)")
    assert spark.table("guard.ra").count() == 2
    with keeper.transaction() as t:
        t.read("guard.rc")
    assert t.report is not None and t.report.entry == 0


def test_the_commit_that_is_to_blame(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    make(keeper, "blame", "a INT", "(1)")
    keeper.add_constraint("positive", "SELECT a FROM guard.blame WHERE a < 0")
    for sql in (
        "INSERT INTO guard.blame VALUES (-1)",  # version 2
        "INSERT INTO guard.blame VALUES (2)",
        "DELETE FROM guard.blame WHERE a = -1",
        "INSERT INTO guard.blame VALUES (-2)",  # version 5
        "INSERT INTO guard.blame VALUES (3)",
    ):
        spark.sql(sql)
    (found,) = keeper.check()
    assert found.rows == [(-2,)] and found.version == 5
    keeper.drop_constraint("positive")
    keeper.add_constraint("blame_key", vk.key("guard.blame", "a"))
    for _ in range(3):  # the first of them is the one, though it is there thrice more
        spark.sql("INSERT INTO guard.blame VALUES (3)")
    (found,) = keeper.check()
    assert found.rows == [(3, 4)] and found.version == 7


def test_an_entry_that_a_table_refuses(keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = keeper.spark
    make(keeper, "stuck", "a INT", "(1)")
    make(keeper, "other", "a INT")
    add = Journal.add

    def early(*given: Any) -> Any:
        made = add(*given)
        spark.sql("ALTER TABLE guard.stuck ADD CONSTRAINT small CHECK (a < 10)")
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", early)
        error = fails("INVALID_TRANSACTION", lambda: insert(keeper, "stuck", 50))
    assert "`stuck`" in error.what and "CHECK constraint small" in error.what
    for run in (
        lambda: insert(keeper, "other", 1),
        lambda: keeper.snapshot("guard.other"),
        keeper.recover,
    ):
        fails("INVALID_TRANSACTION", run)
    with pytest.warns(RuntimeWarning, match="cannot be carried out"):
        again = vk.Keeper(spark, schema=HOME)
    spark.sql("ALTER TABLE guard.stuck DROP CONSTRAINT small")
    assert again.recover() == 1
    assert sorted(r.a for r in spark.table("guard.stuck").collect()) == [1, 50]
    assert insert(keeper, "other", 1).entry


def test_snapshots_and_comments(keeper: vk.Keeper) -> None:
    make(keeper, "news", "a INT", "(1)")
    make(keeper, "elsewhere", "a INT")
    moment = keeper.snapshot("guard.NEWS")
    insert(keeper, "elsewhere", 1)
    insert(keeper, "news", 2)
    assert moment.table("guard.news").count() == 1
    assert moment.table("Guard.news").count() == 1
    fails("CONFLICT", lambda: moment.table("guard.elsewhere"))
    for i, text in enumerate(
        (
            "ALWAYS (SELECT count(*) < 3 FROM guard.news -- few\n)",
            "/* few */ ALWAYS (SELECT count(*) < 3 FROM guard.news); -- few",
            "SELECT a FROM guard.news WHERE a > 2 -- small",
        )
    ):
        keeper.add_constraint(f"few{i}", text)
        fails("CONSTRAINT_VIOLATED", lambda: insert(keeper, "news", 3))
        keeper.drop_constraint(f"few{i}")


def test_bad_input(keeper: vk.Keeper) -> None:
    from pyspark.sql import functions as F

    make(keeper, "e", "a INT", "(1)")
    given: Any
    for given in ("my table", "", "guard.e AS x"):
        with keeper.transaction() as t:
            fails("UNKNOWN_TABLE", lambda given=given, t=t: t.insert(given, [(1,)]))
            fails("UNKNOWN_TABLE", lambda given=given, t=t: t.delete(given, "a = 1"))
            fails("UNKNOWN_TABLE", lambda given=given: keeper.snapshot(given))
    with keeper.transaction() as t:
        wrong: Any = t
        for run in (
            lambda: wrong.insert(5, [(1,)]),
            lambda: wrong.delete("guard.e", F.col("a") == 1),
            lambda: wrong.update("guard.e", {"a": "1"}, F.col("a") == 1),
            lambda: wrong.merge("guard.e", "guard.e", F.col("a") == 1, update="*"),
            lambda: wrong.sql(5),
            lambda: wrong.read(5),
        ):
            fails("INVALID_STATEMENT", run)
    odd: Any = keeper
    for run in (
        lambda: odd.add_constraint("x", None),
        lambda: odd.add_constraint("x", keeper.spark.table("guard.e")),
        lambda: odd.drop_constraint(None),
        lambda: odd.check(5),
        lambda: odd.explain(None),
        lambda: odd.snapshot(5),
    ):
        fails("INVALID_OPTION", run)


def test_names_of_subscriptions(keeper: vk.Keeper) -> None:
    make(keeper, "subscribed", "a INT", "(1)")
    for name in ("first", "second"):
        keeper.create_view(f"guard.{name}", "SELECT a FROM guard.subscribed", maintain="immediate")
    odd: Any = keeper
    fails("INVALID_OPTION", lambda: odd.on_change("guard.first", None))
    fails("INVALID_OPTION", lambda: odd.on_change("guard.first", print, name=5))
    fails("INVALID_OPTION", lambda: odd.on_change("guard.first", print, name=" "))
    told: list[str] = []
    one = keeper.on_change("guard.first", lambda change: told.append("one"), name="cell")
    two = keeper.on_change("guard.first", lambda change: told.append("two"), name="cell")
    assert told == ["one"] and not one.active and two.active
    insert(keeper, "subscribed", 2)
    assert told == ["one", "two"]
    fails("INVALID_OPTION", lambda: keeper.on_change("guard.second", print, name="cell"))
    keeper.drop_view("guard.first")
    told.clear()
    three = keeper.on_change("guard.second", lambda c: told.append(str(c.snapshot)), name="cell")
    assert told == ["True"] and not two.active
    three.cancel()
    keeper.drop_view("guard.second")

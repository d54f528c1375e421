"""Transactions on Spark: statements that see one another, constraints, immediate views."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

import viewkeeper as vk
from keeper_checks import FEED, bag, fails, make, table

HOME = "vk_transaction_tests"
DEFAULTS = FEED.replace("(", "('delta.feature.allowColumnDefaults' = 'supported', ", 1)


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS bank")
    yield vk.Keeper(spark, schema=HOME)


def test_later_statements_see_earlier_ones(keeper: vk.Keeper) -> None:
    make(keeper, "r", "a INT, b STRING", "(1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), (NULL, 'z')")
    make(keeper, "s", "a INT, b STRING")
    with keeper.transaction() as t:
        t.insert("bank.r", [(5, "five"), (1, "x")])
        t.sql("INSERT INTO bank.s SELECT a, b FROM bank.r WHERE a IN (1, 5)")
        t.delete("bank.r", "a = 1")
        t.sql("INSERT INTO bank.s SELECT (SELECT count(*) FROM bank.r WHERE a = 1), 'left'")
        t.insert("bank.r", [{"b": "x", "a": 1}])
        t.update("bank.r", {"a": "a + 1", "b": "concat(b, '!')"}, where="a = 5")
        t.sql("UPDATE bank.s AS u SET b = 'n' || u.a WHERE a = (SELECT max(a) - 1 FROM bank.r)")
        assert bag(t.read("SELECT a, count(*) FROM bank.r GROUP BY a")) == Counter(
            [(1, 1), (2, 1), (None, 1), (6, 1)]
        )
        shown = t.preview()
        assert shown.tables["bank.r"].sizes == (1, 2), str(shown)
        assert bag(shown.tables["bank.r"].removed) == Counter({(1, "x"): 2})
        before = table(keeper, "r")
    assert before == Counter({(1, "x"): 3, (2, None): 1, (None, "z"): 1}), "nothing before the end"
    assert table(keeper, "r") == Counter([(1, "x"), (2, None), (None, "z"), (6, "five!")])
    assert table(keeper, "s") == Counter({(1, "x"): 4, (5, "n5"): 1, (0, "left"): 1})
    assert t.report is not None and t.report.tables == {"bank.r": (1, 2), "bank.s": (6, 0)}


def test_chance_that_was_read_is_committed(keeper: vk.Keeper) -> None:
    make(keeper, "dice", "k INT, v STRING", "(1, NULL), (2, NULL)")
    with keeper.transaction() as t:
        t.sql("INSERT INTO bank.dice SELECT k + 10, uuid() FROM bank.dice")
        t.update("bank.dice", {"v": "uuid()"}, "k = 1")
        t.sql(
            "MERGE INTO bank.dice AS d USING (SELECT k FROM bank.dice WHERE k < 3) AS s"
            " ON d.k = s.k WHEN MATCHED AND d.k = 2 THEN UPDATE SET v = uuid()"
        )
        seen = bag(t.read("bank.dice"))
        t.sql("INSERT INTO bank.dice SELECT 20, max(v) FROM bank.dice")
    assert table(keeper, "dice") - seen == Counter([(20, max(v for _, v in seen))])
    assert len(seen) == 4 and not seen - table(keeper, "dice")


def test_an_exception_leaves_everything(keeper: vk.Keeper) -> None:
    before = table(keeper, "r")
    with pytest.raises(ZeroDivisionError), keeper.transaction() as t:
        t.delete("bank.r")
        _ = 1 / 0
    with keeper.transaction() as t:
        t.delete("bank.r")
        t.abort()
    with keeper.transaction() as t:
        t.insert("bank.r", [(9, "q")])
        t.delete("bank.r", "a = 9")
    assert t.report is not None and t.report.entry == 0, "no net change, nothing written"
    assert table(keeper, "r") == before


def test_names_in_conditions(keeper: vk.Keeper) -> None:
    """Columns may be named with their table, in each of the ways that Spark knows."""
    make(keeper, "columns", "a INT, `odd-name` INT", "(1, 1), (2, 2), (3, 3), (4, 4)")
    with keeper.transaction() as t:
        t.delete("bank.columns", "columns.a = 1")
        t.delete("bank.columns", "bank.columns.a = 2")
        t.update("bank.columns", {"odd-name": "columns.`odd-name` + 10"}, "A = 3")
        t.sql(
            "UPDATE bank.columns AS n SET a = n.a * 2 WHERE n.a = (SELECT max(a) FROM bank.columns)"
        )
    assert table(keeper, "columns") == Counter([(3, 13), (8, 4)])
    keeper.spark.sql("ALTER TABLE bank.columns ADD COLUMN c STRING")
    with keeper.transaction() as t:
        t.update("bank.columns", {"c": "'new'"}, "c IS NULL AND a = 8")
    assert table(keeper, "columns") == Counter([(3, 13, None), (8, 4, "new")])
    temporary = keeper.spark.catalog.listTables()
    assert not [v.name for v in temporary if v.name.startswith("__vk")]


def test_merge(keeper: vk.Keeper) -> None:
    make(
        keeper, "m", "k INT, v STRING, n INT", "(1, 'a', 1), (2, 'b', 1), (2, 'b', 1), (3, 'c', 1)"
    )
    make(keeper, "news", "k INT, v STRING", "(2, 'B'), (4, 'D'), (3, NULL)")
    with keeper.transaction() as t:
        t.sql(
            "MERGE INTO bank.m AS m USING (SELECT * FROM bank.news) AS s ON m.k = s.k"
            " WHEN MATCHED AND s.v IS NULL THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET v = s.v, n = CASE WHEN m.n = 1 THEN 7 ELSE 0 END"
            " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
            " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 100"
        )
    assert table(keeper, "m") == Counter({(1, "a", 100): 1, (2, "B", 7): 2, (4, "D", None): 1})
    frame = keeper.spark.createDataFrame([(1, "one"), (9, "nine")], "k INT, v STRING")
    with keeper.transaction() as t:
        t.merge("bank.m", frame, "t.k = s.k", update={"v": "s.v"}, insert="*")
        t.delete("bank.m", "k = 2")
    assert table(keeper, "m") == Counter([(1, "one", 100), (4, "D", None), (9, "nine", None)])

    def twice() -> None:
        with keeper.transaction() as t:
            t.insert("bank.news", [(4, "E")])
            t.merge("bank.m", "bank.news", "t.k = s.k", update={"v": "s.v"})

    error = fails("INVALID_STATEMENT", twice)
    assert "several rows" in str(error)
    assert (4, "E") not in table(keeper, "news")


def test_a_merge_makes_a_row_that_it_also_takes_away(keeper: vk.Keeper) -> None:
    make(keeper, "moved", "k INT, v STRING", "(1, 'a'), (2, 'b'), (2, 'b')")
    with keeper.transaction() as t:
        t.sql(
            "MERGE INTO bank.moved AS m USING (SELECT 1 AS k) AS s ON m.k = s.k"
            " WHEN MATCHED THEN UPDATE SET k = 2, v = 'b' WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )
    assert table(keeper, "moved") == Counter([(2, "b")]), "two of three (2, b) go, and one comes"


def test_rows_by_name(keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dicts and Spark's rows go by name; what they lack gets its default; times are local."""
    make(keeper, "named_rows", "a INT, b STRING DEFAULT 'b', c TIMESTAMP", "", DEFAULTS)
    at = datetime(2024, 7, 1, 12)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    zone = keeper.spark.conf.get("spark.sql.session.timeZone")
    keeper.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with keeper.transaction() as t:
            t.insert("bank.named_rows", [(1, "one", at)])
            t.insert("bank.named_rows", [Row(b="two", a=2)])
            t.insert("bank.named_rows", [{"a": 3}, {"A": 4}])
            t.insert("bank.named_rows", pa.table({"c": pa.array([at], pa.timestamp("us"))}))
        rows = keeper.spark.sql("SELECT a, b, CAST(c AS STRING) FROM bank.named_rows")
        noon = "2024-07-01 12:00:00"
        assert bag(rows) == Counter(
            [(1, "one", noon), (2, "two", None), (3, "b", None), (4, "b", None), (None, "b", noon)]
        )
    finally:
        keeper.spark.conf.set("spark.sql.session.timeZone", zone)
        monkeypatch.undo()
        time.tzset()

    def insert(*rows: Any) -> None:
        with keeper.transaction() as t:
            t.insert("bank.named_rows", rows)

    fails("INVALID_ROWS", lambda: insert((1.5, "b", None)))  # not 1
    fails("INVALID_ROWS", lambda: insert({"a": 1, "b": "x"}, {"a": 2}))
    fails("UNKNOWN_COLUMN", lambda: insert(Row(z=1)))


def test_tables_that_deltalake_cannot_write(keeper: vk.Keeper) -> None:
    """Defaults and clustering: Spark writes them, and no entry stays behind in the journal."""
    make(keeper, "filled", "a INT, b STRING DEFAULT 'b'", "(0, 'z'), (9, 'nine')", DEFAULTS)
    make(keeper, "clustered", "a INT, b STRING", "(1, 'x'), (2, 'y')", f"{FEED} CLUSTER BY (a)")
    with keeper.transaction() as t:
        t.sql("INSERT INTO bank.filled VALUES (1, DEFAULT), (2, 'DEFAULT')")
        t.sql("WITH q AS (SELECT 3 AS a) INSERT INTO bank.filled (a) SELECT a FROM q")
        t.sql("UPDATE bank.filled SET b = DEFAULT WHERE a = 0")
        t.delete("bank.clustered", "a = 1")
        t.insert("bank.clustered", [(3, "z")])
    rows = [(0, "b"), (1, "b"), (2, "DEFAULT"), (3, "b"), (9, "nine")]
    assert table(keeper, "filled") == Counter(rows)
    assert table(keeper, "clustered") == Counter([(2, "y"), (3, "z")])
    with keeper.transaction() as t:
        t.insert("bank.clustered", [(4, "q")])
        t.sql("DELETE FROM bank.filled WHERE a < 9")
    assert table(keeper, "clustered") == Counter([(2, "y"), (3, "z"), (4, "q")])
    assert table(keeper, "filled") == Counter([(9, "nine")])
    assert keeper.recover() == 0


def test_constraints(keeper: vk.Keeper) -> None:
    make(keeper, "p", "id INT, name STRING", "(1, 'one'), (2, 'two')")
    make(keeper, "c", "k INT, what STRING", "(1, 'x'), (NULL, 'none')")
    make(keeper, "aside", "a INT, b STRING")
    keeper.add_constraint("fk", vk.foreign_key("bank.c", "k", "bank.p", "id"))
    keeper.add_constraint("pk", vk.key("bank.p", "id"))
    assert {c.name for c in keeper.constraints()} == {"fk", "pk"}
    for order in ("parent first", "child first"):
        n = 10 if order == "parent first" else 11
        with keeper.transaction() as t:  # either order, for only the end counts
            for which in ("p", "c") if order == "parent first" else ("c", "p"):
                t.insert(f"bank.{which}", [(n, order)])
        assert t.report is not None and t.report.constraints == {"fk": "checked", "pk": "checked"}
    before = table(keeper, "p"), table(keeper, "c")

    def orphan() -> None:
        with keeper.transaction() as t:
            t.insert("bank.c", [(77, "orphan")])
            t.delete("bank.p", "id = 1")
            assert not t.preview().allowed

    with pytest.raises(vk.ConstraintViolation) as caught:
        orphan()
    assert caught.value.constraint == "fk"
    assert Counter(map(tuple, caught.value.rows)) == Counter([(77, "orphan"), (1, "x")])

    def double() -> None:
        with keeper.transaction() as t:
            t.insert("bank.p", [(2, "again")])

    error = fails("CONSTRAINT_VIOLATED", double)
    assert isinstance(error, vk.ConstraintViolation) and error.constraint == "pk"
    assert (table(keeper, "p"), table(keeper, "c")) == before, "nothing was written"
    with keeper.transaction() as t:
        t.delete("bank.c", "k = 10")
        t.insert("bank.aside", [(3, "three")])
    assert t.report is not None and t.report.constraints == {"fk": "proved", "pk": "untouched"}
    text = str(keeper.explain("fk"))
    assert "free       INSERT INTO `spark_catalog`.`bank`.`p`" in text
    assert "checked    DELETE FROM `spark_catalog`.`bank`.`p`" in text

    assert keeper.check() == []
    keeper.spark.sql("INSERT INTO bank.p VALUES (12, 'outside')")
    keeper.spark.sql("INSERT INTO bank.c VALUES (12, 'fine'), (13, 'not so')")
    guilty = keeper.spark.sql("DESCRIBE HISTORY bank.c LIMIT 1").first()
    keeper.spark.sql("INSERT INTO bank.c VALUES (12, 'fine too')")
    (found,) = keeper.check()
    assert found.constraint == "fk" and [tuple(r) for r in found.rows] == [(13, "not so")]
    assert guilty is not None and found.version == guilty.version and "bank" in (found.table or "")
    fails("CONSTRAINT_VIOLATED", lambda: keeper.add_constraint("fk2", keeper.constraints()[0].sql))
    keeper.spark.sql("DELETE FROM bank.c WHERE k = 13")
    assert keeper.check() == []
    keeper.drop_constraint("fk")
    keeper.drop_constraint("pk")
    assert keeper.constraints() == []


def test_the_papers_safe_transactions(keeper: vk.Keeper) -> None:
    """GL95: each x of R1 has x.a = count of its z in R2. GLT97: size(S) = size(T)."""
    make(keeper, "r1", "id INT, a INT", "(1, 2), (2, 0)")
    make(keeper, "r2", "x INT, z STRING", "(1, 'p'), (1, 'q')")
    keeper.add_constraint(
        "counts",
        "SELECT id, a FROM bank.r1 u WHERE a <> (SELECT count(*) FROM bank.r2 v WHERE v.x = u.id)",
    )
    keeper.add_constraint(
        "sizes", "ALWAYS (SELECT (SELECT sum(a) FROM bank.r1) = (SELECT count(*) FROM bank.r2))"
    )
    with keeper.transaction() as t:
        t.insert("bank.r2", [(2, "r")])
        t.update("bank.r1", {"a": "a + 1"}, where="id = 2")
        t.sql("DELETE FROM bank.r2 WHERE z = 'q'")
        t.sql("UPDATE bank.r1 SET a = 1 WHERE id = 1")

    def unsafe() -> None:
        with keeper.transaction() as t:
            t.insert("bank.r2", [(2, "s")])

    error = fails("CONSTRAINT_VIOLATED", unsafe)
    assert isinstance(error, vk.ConstraintViolation)
    assert error.constraint == "counts" and [tuple(r) for r in error.rows] == [(2, 1)]
    keeper.drop_constraint("counts")
    error = fails("CONSTRAINT_VIOLATED", unsafe)
    assert isinstance(error, vk.ConstraintViolation) and error.constraint == "sizes"
    keeper.drop_constraint("sizes")
    unsafe()
    assert table(keeper, "r2") == Counter([(1, "p"), (2, "r"), (2, "s")])


def test_immediate_views(keeper: vk.Keeper) -> None:
    make(keeper, "acc", "id INT, n INT", "(1, 10), (2, -10)")
    make(keeper, "who", "id INT, name STRING", "(1, 'ann'), (2, 'bob')")
    spark = keeper.spark
    named = "SELECT name, n FROM bank.acc JOIN bank.who USING (id)"
    keeper.create_view("bank.named", named, maintain="immediate")
    keeper.create_view(
        "bank.total", "SELECT sum(n) AS s, count(*) AS c FROM bank.named", maintain="immediate"
    )
    keeper.add_constraint("zero", "SELECT s FROM bank.total WHERE s <> 0")
    with keeper.transaction() as t:
        t.update("bank.acc", {"n": "n - 3"}, where="id = 1")
        t.update("bank.acc", {"n": "n + 3"}, where="id = 2")
        t.insert("bank.who", [(3, "cy")])
        t.insert("bank.acc", [(3, 0)])
        shown = t.preview()
        assert bag(shown.views["bank.named"].added) == Counter([("ann", 7), ("bob", -7), ("cy", 0)])
        assert bag(shown.views["bank.total"].removed) == Counter([(0, 2)])
    assert bag(spark.table("bank.named")) == bag(spark.sql(named))
    assert bag(spark.table("bank.total")) == Counter([(0, 3)])
    assert {r.strategy for r in keeper.refresh()} == {"none"}, "the commit had the views in it"

    def unbalanced() -> None:
        with keeper.transaction() as t:
            t.update("bank.acc", {"n": "n + 1"}, where="id = 3")

    fails("CONSTRAINT_VIOLATED", unbalanced)
    assert bag(spark.table("bank.total")) == Counter([(0, 3)])
    spark.sql("INSERT INTO bank.acc VALUES (1, 5), (2, -5)")  # around viewkeeper
    with keeper.transaction() as t:
        t.delete("bank.acc", "n IN (5, -5)")
        t.delete("bank.who", "name = 'cy'")
    assert (
        bag(spark.table("bank.named"))
        == bag(spark.sql(named))
        == Counter([("ann", 7), ("bob", -7)])
    )
    assert bag(spark.table("bank.total")) == Counter([(0, 2)])
    moment = keeper.snapshot()
    with keeper.transaction() as t:
        t.delete("bank.acc")
        t.delete("bank.who")
    assert bag(moment.table("bank.total")) == Counter([(0, 2)])
    assert bag(moment.sql("SELECT count(*) FROM bank.acc a JOIN bank.who w USING (id)")) == Counter(
        [(2,)]
    )
    assert bag(spark.table("bank.total")) == Counter([(None, 0)])
    fails("VIEW_IN_USE", lambda: keeper.drop_view("bank.total"))
    # another query, or a deferred view, would take the constraint away
    for name in ("bank.total", "bank.named"):
        fails("VIEW_IN_USE", lambda name=name: keeper.create_view(name, named, replace=True))
    spark.sql("INSERT INTO bank.who VALUES (8, 'dan')")
    spark.sql("INSERT INTO bank.acc VALUES (8, 4)")  # around viewkeeper, and not zero
    (found,) = keeper.check("zero")
    assert found.rows == [Row(s=4)] and found.operation == "WRITE"
    assert found.table == "`spark_catalog`.`bank`.`acc`" and found.others == 1, str(found)
    assert found.version == spark.sql("DESCRIBE HISTORY bank.acc").first().version
    spark.sql("DELETE FROM bank.acc")
    assert keeper.check() == []
    keeper.drop_constraint("zero")
    keeper.drop_view("bank.total")
    keeper.drop_view("bank.named")


def test_statements_see_immediate_views_as_they_are_by_then(keeper: vk.Keeper) -> None:
    make(keeper, "seen", "a INT", "(1)")
    make(keeper, "noted", "n BIGINT")
    count = "SELECT count(*) AS n FROM bank.seen"
    keeper.create_view("bank.many", count, maintain="immediate")
    more = "SELECT n + 100 AS n FROM bank.many"
    keeper.create_view("bank.more", more, maintain="immediate")
    with keeper.transaction() as t:
        t.insert("bank.seen", [(5,), (6,)])
        assert bag(t.read("bank.many")) == Counter([(3,)])
        t.sql("INSERT INTO bank.noted SELECT n FROM bank.many")
        t.delete("bank.seen", "a >= 5")
        t.sql("INSERT INTO bank.noted SELECT n FROM bank.more")
    assert table(keeper, "noted") == Counter([(3,), (101,)])
    assert t.report is not None and t.report.tables == {"bank.noted": (2, 0)}
    keeper.spark.sql("INSERT INTO bank.seen VALUES (7)")  # around viewkeeper
    with keeper.transaction() as t:
        t.insert("bank.seen", [(8,)])
        assert bag(t.read("bank.more")) == Counter([(103,)])
    assert bag(keeper.spark.table("bank.more")) == bag(keeper.spark.sql(more)) == Counter([(103,)])
    keeper.spark.sql("INSERT INTO bank.seen VALUES (9)")
    fails(
        "CONSTRAINT_VIOLATED",
        lambda: keeper.add_constraint("few", "SELECT n FROM bank.many WHERE n > 3"),
    )
    keeper.drop_view("bank.more")
    keeper.drop_view("bank.many")


def test_bad_input(keeper: vk.Keeper) -> None:
    spark = keeper.spark
    make(keeper, "strict", "a INT NOT NULL, b STRING", "(1, 'x')")
    spark.sql("ALTER TABLE bank.strict ADD CONSTRAINT small CHECK (a < 10)")
    make(keeper, "nested", "a INT, m ARRAY<MAP<INT, INT>>")
    make(keeper, "inside", "a INT, m STRUCT<x: INT NOT NULL>")
    keeper.create_view("bank.v", "SELECT a FROM bank.strict")
    before = table(keeper, "strict")

    def within(do: Any) -> Any:
        def run() -> None:
            with keeper.transaction() as t:
                t.insert("bank.strict", [(2, "fine")])
                do(t)

        return run

    fails("UNKNOWN_TABLE", within(lambda t: t.insert("bank.nowhere", [(1,)])))
    make(keeper, "tick", "a INT, `b``c` INT")
    fails("UNSUPPORTED_TABLE", within(lambda t: t.insert("bank.tick", [(1, 2)])))
    fails("INVALID_STATEMENT", within(lambda t: t.delete("bank.strict", "nope = 1")))
    fails("INVALID_STATEMENT", within(lambda t: t.delete("bank.strict", "a = = 1")))
    fails("INVALID_STATEMENT", within(lambda t: t.sql("TRUNCATE TABLE bank.strict")))
    fails("INVALID_STATEMENT", within(lambda t: t.update("bank.strict", {})))
    for wrong in (
        "DELETE FROM bank.strict WHERE rand() < 0.5",  # of two equal rows perhaps one
        "INSERT INTO bank.strict (a, a) VALUES (1, 2)",
        "INSERT INTO bank.strict VALUES ('one', 'x')",
        "INSERT INTO bank.strict SELECT a / 0, b FROM bank.strict",
        "UPDATE bank.strict SET a = a + 2147483647",
    ):
        error = fails("INVALID_STATEMENT", within(lambda t, wrong=wrong: t.sql(wrong)))
        assert wrong in str(error)
    fails("UNKNOWN_COLUMN", within(lambda t: t.update("bank.strict", {"z": "1"})))
    fails("INVALID_ROWS", within(lambda t: t.insert("bank.strict", [(1, "x", 3)])))
    fails("INVALID_ROWS", within(lambda t: t.insert("bank.strict", [("one", "x")])))
    fails("INVALID_ROWS", within(lambda t: t.insert("bank.strict", [(None, "x")])))
    fails("INVALID_ROWS", within(lambda t: t.insert("bank.strict", [(11, "x")])))
    fails("UNSUPPORTED_TABLE", within(lambda t: t.insert("bank.nested", [(1, [{2: 2}])])))
    fails("UNSUPPORTED_TABLE", within(lambda t: t.insert("bank.inside", [(1, (2,))])))
    fails("NOT_A_DELTA_TABLE", within(lambda t: t.insert("bank.v", [(1,)])))
    fails("INVALID_TRANSACTION", within(lambda t: keeper.transaction()))
    for own in ("journal", "views"):
        fails("UNSUPPORTED_TABLE", within(lambda t, own=own: t.delete(f"{HOME}.{own}")))
    assert table(keeper, "strict") == before
    with keeper.transaction() as t:
        t.insert("bank.strict", [(3, None)])
    fails("INVALID_TRANSACTION", lambda: t.insert("bank.strict", [(4, "late")]))
    fails("INVALID_TRANSACTION", t.commit)
    fails("UNKNOWN_TABLE", lambda: keeper.transaction().delete("bank.nowhere"))
    keeper.transaction().abort()  # the one that failed is no longer open
    fails("UNKNOWN_CONSTRAINT", lambda: keeper.drop_constraint("nothing"))
    fails("UNKNOWN_CONSTRAINT", lambda: keeper.check("nothing"))
    fails("CONSTRAINT_VIOLATED", lambda: keeper.add_constraint("no", "SELECT a FROM bank.strict"))
    fails("INVALID_QUERY", lambda: keeper.add_constraint("no", "SELECT nope FROM bank.strict"))
    fails("INVALID_OPTION", lambda: keeper.add_constraint("no", "SELECT a FROM bank.v"))
    keeper.create_view("bank.vv", "SELECT a FROM bank.v", maintain="immediate")
    error = fails("INVALID_OPTION", lambda: keeper.add_constraint("no", "SELECT a FROM bank.vv"))
    assert "reads bank.v," in str(error), "a deferred view in between"
    keeper.drop_view("bank.vv")
    fails(
        "NOT_INCREMENTAL",
        lambda: keeper.create_view(
            "bank.x", "SELECT current_date() AS d FROM bank.strict", maintain="immediate"
        ),
    )
    assert table(keeper, "strict") == before + Counter([(3, None)])
    keeper.drop_view("bank.v")


def test_other_writers(keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the entry: evaluated again. After it: both changes stand, and the view catches up."""
    from viewkeeper.transactions.journal import Journal

    spark = keeper.spark
    make(keeper, "o", "a INT, b STRING", "(1, 'x'), (1, 'x'), (2, 'y'), (3, 'z')")
    counts = "SELECT a, count(*) AS n FROM bank.o GROUP BY a"
    keeper.create_view("bank.counts", counts, maintain="immediate")
    evaluate, add = keeper._transactions._evaluate, Journal.add
    done = []

    def evaluate_late(*args: Any, **options: Any) -> Any:
        found = evaluate(*args, **options)
        if not done:
            done.append("between")
            spark.sql("INSERT INTO bank.o VALUES (2, 'late')")
        return found

    monkeypatch.setattr(keeper._transactions, "_evaluate", evaluate_late)
    with keeper.transaction() as t:
        t.delete("bank.o", "a = 2")
    monkeypatch.undo()
    assert done and table(keeper, "o") == Counter({(1, "x"): 2, (3, "z"): 1})
    assert bag(spark.table("bank.counts")) == Counter([(1, 2), (3, 1)])

    def add_early(*args: Any) -> Any:
        made = add(*args)
        spark.sql("INSERT INTO bank.o VALUES (1, 'x'), (5, 'new')")
        spark.sql("DELETE FROM bank.o WHERE a = 3")
        return made

    monkeypatch.setattr(Journal, "add", add_early)
    with keeper.transaction() as t:
        t.delete("bank.o", "a IN (1, 3)")
        t.insert("bank.o", [(1, "x"), (6, "six")])
    monkeypatch.undo()
    after = Counter({(1, "x"): 2, (5, "new"): 1, (6, "six"): 1})
    assert table(keeper, "o") == after, "one of three is taken, what came stays"
    assert keeper.recover() == 0
    keeper.refresh()
    assert bag(spark.table("bank.counts")) == bag(spark.sql(counts))

    def decided() -> None:
        with keeper.transaction() as t:
            (row,) = t.read("SELECT count(*) AS n FROM bank.o").collect()
            spark.sql("INSERT INTO bank.o VALUES (7, 'meanwhile')")
            t.insert("bank.o", [(row.n, "counted")])

    fails("CONFLICT", decided)
    assert table(keeper, "o") == after + Counter([(7, "meanwhile")])
    keeper.drop_view("bank.counts")


def test_the_journal_forgets(keeper: vk.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that were done long ago are deleted now and then, and all goes on."""
    from viewkeeper.transactions import journal

    make(keeper, "counted", "a INT")
    monkeypatch.setattr(journal, "_KEPT", 2)
    monkeypatch.setattr(journal, "_TIDY_EVERY", 1)
    for n in range(4):
        with keeper.transaction() as t:
            t.insert("bank.counted", [(n,)])
    assert t.report is not None
    kept = keeper.spark.table(f"{HOME}.journal").select("number").distinct()
    assert bag(kept) == Counter([(t.report.entry - 1,), (t.report.entry,)])
    assert table(keeper, "counted") == Counter([(n,) for n in range(4)])
    assert keeper.recover() == 0

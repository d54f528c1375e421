"""Closures that are kept within transactions, and constraints over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import viewkeeper as vk
from test_closure_spark import components, insert, on_spark, reach, seen, table, together
from viewkeeper.errors import ViewKeeperError


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS roads")
    yield vk.Keeper(spark, schema="vk_closure_transaction_tests")


def edges(keeper: vk.Keeper, name: str) -> list[Any]:
    return [tuple(row) for row in keeper.spark.table(name).collect()]


def test_no_cycles_as_a_constraint(keeper: vk.Keeper) -> None:
    table(keeper, "roads.parts", [(1, 2), (2, 3)])
    keeper.create_closure("roads.within", "roads.parts", "src", "dst", maintain="immediate")
    keeper.add_constraint("no_cycles", "SELECT src FROM roads.within WHERE src = dst")
    with keeper.transaction() as t:
        t.insert("roads.parts", [(3, 4)])
        shown = t.preview()
    assert shown.allowed
    assert {tuple(r) for r in shown.views["roads.within"].added.collect()} == {
        (1, 4), (2, 4), (3, 4),
    }  # fmt: skip
    assert t.report is not None and t.report.views == {"roads.within": (3, 0)}
    assert seen(keeper, "roads.within") == reach([(1, 2), (2, 3), (3, 4)])
    with pytest.raises(vk.ConstraintViolation) as caught, keeper.transaction() as t:
        t.insert("roads.parts", [(9, 9), (4, 1)])
        t.delete("roads.parts", "src = 9")
    assert caught.value.constraint == "no_cycles"
    assert {tuple(r) for r in caught.value.rows} == {(1,), (2,), (3,), (4,)}
    assert Counter(edges(keeper, "roads.parts")) == Counter([(1, 2), (2, 3), (3, 4)])
    with keeper.transaction() as t:  # the cycle is broken by the same transaction
        t.insert("roads.parts", [(4, 1)])
        t.delete("roads.parts", "src = 2")
    now = edges(keeper, "roads.parts")
    assert seen(keeper, "roads.within") == reach(now) == {(1, 2), (3, 4), (4, 1), (3, 1), (3, 2),
        (4, 2)}  # fmt: skip
    assert keeper.check() == []
    keeper.drop_constraint("no_cycles")


def test_an_edge_that_closes_a_cycle_ends_the_transaction(keeper: vk.Keeper) -> None:
    table(keeper, "roads.tree", [(1, 2), (2, 3)])
    keeper.create_closure("roads.below", "roads.tree", "src", "dst", "acyclic", "auto", "immediate")
    with pytest.raises(ViewKeeperError) as caught, keeper.transaction() as t:
        t.insert("roads.tree", [(3, 1)])
    assert caught.value.code == "CYCLE"
    assert seen(keeper, "roads.tree") == {(1, 2), (2, 3)}
    assert seen(keeper, "roads.below") == {(1, 2), (2, 3), (1, 3)}


def test_changes_of_closures_are_told(keeper: vk.Keeper) -> None:
    """Pairs and nothing else, of a deferred directed graph and an immediate undirected one."""
    table(keeper, "roads.told", [(1, 2), (2, 3)])
    keeper.create_closure("roads.told_to", "roads.told", "src", "dst")
    how = {"graph": "undirected", "maintain": "immediate"}
    keeper.create_closure("roads.told_all", "roads.told", "src", "dst", **how)
    told: list[Any] = []

    def listen(change: Any) -> None:
        gone, come = ({tuple(r) for r in f.collect()} for f in (change.removed, change.added))
        told.append((change.view, change.snapshot, gone, come))

    first = keeper.on_change("roads.told_to", listen, name="closure")
    keeper.on_change("roads.told_all", listen)
    assert told == [("roads.told_to", True, set(), {(1, 2), (2, 3), (1, 3)})]
    with keeper.transaction() as t:
        t.insert("roads.told", [(3, 4), (1, 2)])
        t.delete("roads.told", "src = 2")
    gone, come = {(1, 3), (2, 3), (3, 1), (3, 2)}, {(3, 4), (4, 3)}
    assert told[1:] == [("roads.told_all", False, gone, come)]
    keeper.refresh("roads.told_to")
    assert told[2:] == [("roads.told_to", False, {(1, 3), (2, 3)}, {(3, 4)})]
    with keeper.transaction() as t:
        t.insert("roads.told", [(1, 2)])  # an edge that is there already
    keeper.refresh("roads.told_to")
    assert len(told) == 3, "no alarm without a net change"
    first.cancel()
    keeper._subscriptions._all.clear()


def test_programs_for_one_row_are_not_immediate(keeper: vk.Keeper) -> None:
    table(keeper, "roads.few", [(1, 2)])
    with pytest.raises(ViewKeeperError) as caught:
        keeper.create_program("roads.even", "roads.few", "even", maintain="immediate")
    assert caught.value.code == "INVALID_OPTION"


TALLY = """
-- SYSTEM tally: how many rows each value has
-- INPUT R (x NODE)
-- INPUT CHANGES (x NODE, Weight BIGINT)
-- TABLE N (x NODE, n BIGINT)
-- OUTPUT counts
SELECT k.x, k.n FROM N AS k;
-- ON BUILD
-- INSERT INTO N
SELECT r.x, COUNT(*) AS n FROM R AS r WHERE r.x IS NOT NULL GROUP BY r.x;
-- ON BATCH
-- STEP D: the values whose number changed
SELECT c.x, SUM(c.Weight) AS w FROM CHANGES AS c WHERE c.x IS NOT NULL
GROUP BY c.x HAVING SUM(c.Weight) <> 0;
-- DELETE FROM N
SELECT k.x, k.n FROM N AS k JOIN D AS d ON d.x = k.x;
-- INSERT INTO N
SELECT d.x, COALESCE(k.n, 0) + d.w AS n FROM D AS d LEFT JOIN N AS k ON k.x = d.x
WHERE COALESCE(k.n, 0) + d.w > 0;
"""


BOLD = """
-- DELETE FROM N
SELECT k.x, k.n FROM N AS k UNION ALL SELECT 'not there' AS x, 1 AS n;
-- INSERT INTO N
SELECT r.x, COUNT(*) OVER (PARTITION BY r.x) AS n FROM R AS r WHERE r.x IS NOT NULL;
"""


def test_a_program_of_ones_own_is_immediate(keeper: vk.Keeper) -> None:
    table(keeper, "roads.values", [("a",), ("a",), (None,)], "x STRING")
    keeper.create_program("roads.tally", "roads.values", TALLY, maintain="immediate")
    keeper.add_constraint("at_most_three", "SELECT x FROM roads.tally WHERE n > 3")
    with keeper.transaction() as t:
        t.insert("roads.values", [("b",), ("a",), (None,)])
    assert t.report is not None and t.report.views == {"roads.tally": (2, 1)}
    assert seen(keeper, "roads.tally") == {("a", 3), ("b", 1)}
    with pytest.raises(vk.ConstraintViolation) as caught, keeper.transaction() as t:
        t.insert("roads.values", [("a",), ("c",)])
    assert [tuple(r) for r in caught.value.rows] == [("a",)]
    assert seen(keeper, "roads.tally") == {("a", 3), ("b", 1)}
    with keeper.transaction() as t:
        t.insert("roads.values", [("b",)])
        t.delete("roads.values", "x = 'b'")
    assert t.report is not None and t.report.views == {"roads.tally": (0, 1)}
    assert seen(keeper, "roads.tally") == {("a", 3)}
    # a program that takes all rows out and puts all in, some of them twice: a table is a set
    bold = TALLY[: TALLY.index("-- STEP D")] + BOLD
    keeper.create_program("roads.bold", "roads.values", bold, maintain="immediate")
    keeper.spark.sql("DELETE FROM roads.values WHERE x = 'a'")  # around the keeper: caught up
    insert(keeper, "roads.values", [("b",), ("b",), ("z",)])
    keeper.refresh(["roads.tally", "roads.bold"])
    assert seen(keeper, "roads.tally") == seen(keeper, "roads.bold") == {("b", 2), ("z", 1)}
    insert(keeper, "roads.values", [("z",)])
    (report,) = keeper.refresh("roads.bold")
    assert (report.inserted, report.deleted) == (1, 1)
    assert seen(keeper, "roads.bold") == {("b", 2), ("z", 2)}
    keeper.drop_constraint("at_most_three")
    wrong = TALLY.replace("CHANGES (x NODE, W", "CHANGES (y NODE, W")
    with pytest.raises(ViewKeeperError, match="columns of the first and a Weight"):
        keeper.create_program("roads.wrong", "roads.values", wrong)


@pytest.mark.parametrize(
    "driver", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["driver", "spark"]
)
@pytest.mark.parametrize("graph", ["directed", "acyclic", "undirected"])
def test_random_transactions(keeper: vk.Keeper, graph: str, driver: bool) -> None:
    seed = 7
    print(f"seed {seed}")
    chance = random.Random(seed)
    name = f"roads.{graph}_{driver}"
    table(keeper, name, [(0, 1), (1, 2), (0, 1)])
    closure = f"{name}_closure"
    keeper.create_closure(closure, f"SELECT * FROM {name} WHERE src < 90", "src", "dst", graph,
                          maintain="immediate")  # fmt: skip
    keeper.create_view(
        f"{closure}_sizes", f"SELECT src, count(*) AS n FROM {closure} GROUP BY src",
        maintain="immediate",
    )  # fmt: skip
    want = together if graph == "undirected" else reach

    def some() -> tuple[int, int]:
        a, b = chance.sample(range(9), 2)
        return (min(a, b), max(a, b)) if graph == "acyclic" else (a, b)

    for _ in range(4 if driver else 2):
        before = seen(keeper, closure)
        with keeper.transaction() as t:
            t.insert(name, [some() for _ in range(chance.randint(0, 3))] + [(99, 1)])
            if chance.random() < 0.7:
                a, b = some()
                t.delete(name, f"src = {a} OR dst = {b}")
            if driver:
                t.preview()
            else:
                with on_spark(keeper):
                    t.commit()
        now = [e for e in edges(keeper, name) if e[0] < 90]
        after = seen(keeper, closure)
        assert after == want(now)
        assert t.report is not None
        sizes = t.report.views.get(closure, (0, 0))
        assert sizes == (len(after - before), len(before - after))
        assert seen(keeper, f"{closure}_sizes") == set(Counter(a for a, _ in after).items())
        if graph == "undirected":
            assert seen(keeper, f"{closure}_components") == components(now)
    assert keeper.refresh(closure)[0].strategy == "none"

"""Closures and programs through the keeper: kept equal to what a graph library says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx
import pytest

import viewkeeper as vk
from viewkeeper.errors import ViewKeeperError

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
DRIVER = "spark.viewkeeper.driver"
Edges = list[tuple[Any, Any]]


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS graphs")
    yield vk.Keeper(spark, schema="vk_closure_tests")


@contextmanager
def on_spark(keeper: vk.Keeper) -> Iterator[None]:
    keeper.spark.conf.set(DRIVER, "false")
    try:
        yield
    finally:
        keeper.spark.conf.unset(DRIVER)


def table(keeper: vk.Keeper, name: str, rows: list[Any], types: str = "src INT, dst INT") -> None:
    keeper.spark.sql(f"CREATE OR REPLACE TABLE {name} ({types}) {FEED}")
    insert(keeper, name, rows)


def insert(keeper: vk.Keeper, name: str, rows: list[Any]) -> None:
    if rows:
        values = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in rows)
        keeper.spark.sql(f"INSERT INTO {name} VALUES {values}")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "\\'") + "'" if isinstance(value, str) else str(value)


def seen(keeper: vk.Keeper, name: str) -> set[Any]:
    rows = [tuple(row) for row in keeper.spark.table(name).collect()]
    assert len(rows) == len(set(rows)), f"{name} has a row twice"
    return set(rows)


def reach(edges: Edges) -> set[Any]:
    """The pairs with a path of one edge or more."""
    whole = [(a, b) for a, b in edges if a is not None and b is not None]
    graph = nx.DiGraph(whole)
    return {(a, c) for a, b in whole for c in nx.descendants(graph, b) | {b}} | {
        (x, z) for x in graph for y in nx.descendants(graph, x) for z in graph.successors(y)
    }


def together(edges: Edges) -> set[Any]:
    whole = [(a, b) for a, b in edges if a is not None and b is not None]
    parts = nx.connected_components(nx.Graph(whole))
    return {(x, y) for part in parts for x in part for y in part if x != y}


def components(edges: Edges) -> set[Any]:
    whole = [(a, b) for a, b in edges if a is not None and b is not None]
    parts = nx.connected_components(nx.Graph(whole))
    return {(x, min(part)) for part in parts for x in part}


def test_an_acyclic_graph(keeper: vk.Keeper) -> None:
    """The paper's example of section 2, with its deletion; a change is one small commit."""
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("b", "e")]
    table(keeper, "graphs.dag", edges, "src STRING, dst STRING")
    made = keeper.create_closure("graphs.tc", "graphs.dag", "src", "dst", graph="acyclic")
    assert made.strategy == "full" and made.inserted == len(reach(edges))
    assert keeper.spark.table("graphs.tc").columns == ["src", "dst"]
    assert seen(keeper, "graphs.tc") == reach(edges)
    (view,) = [v for v in keeper.views() if v == "graphs.tc"]
    assert view.columns == (("src", "string"), ("dst", "string"))
    assert "acyclic" in view.sql

    keeper.spark.sql("DELETE FROM graphs.dag WHERE src = 'c'")
    edges.remove(("c", "d"))
    before = reach([*edges, ("c", "d")])
    (report,) = keeper.refresh("graphs.tc")
    assert (report.strategy, report.lane) == ("incremental", "native"), str(report)
    assert report.inserted == 0 and report.deleted == len(before - reach(edges))
    assert "on the driver" in report.reason
    assert seen(keeper, "graphs.tc") == reach(edges)
    changed = {tuple(r) for r in keeper.changes("graphs.tc", since=made.version).collect()}
    assert changed == {(*pair, -1) for pair in before - reach(edges)}

    insert(keeper, "graphs.dag", [("e", "f"), ("e", "f")])
    edges += [("e", "f"), ("e", "f")]
    (report,) = keeper.refresh("graphs.tc")
    assert (report.strategy, report.lane) == ("incremental", "append")
    assert seen(keeper, "graphs.tc") == reach(edges)
    (none,) = keeper.refresh("graphs.tc")
    assert none.strategy == "none"

    text = str(keeper.explain("graphs.tc"))
    assert "closure, acyclic graph" in text and "joins" in text and "SUSPECT" in text
    strategies = [r.strategy for r in keeper.history("graphs.tc").collect()]
    assert strategies == ["incremental", "incremental", "full"]

    insert(keeper, "graphs.dag", [("f", "a")])
    with pytest.raises(ViewKeeperError) as caught:
        keeper.refresh("graphs.tc")
    assert caught.value.code == "CYCLE"
    assert set(caught.value.cycle) == {"a", "b", "e", "f"}  # type: ignore[attr-defined]
    assert seen(keeper, "graphs.tc") == reach(edges)
    keeper.spark.sql("DELETE FROM graphs.dag WHERE src = 'f'")
    keeper.refresh("graphs.tc")
    assert seen(keeper, "graphs.tc") == reach(edges)
    keeper.drop_view("graphs.tc")
    assert not keeper.spark.catalog.tableExists("graphs.tc")


def test_an_undirected_graph_and_views_over_it(keeper: vk.Keeper) -> None:
    edges: Edges = [(1, 2), (2, 3), (4, 5), (6, 6), (None, 1), (7, None)]
    table(keeper, "graphs.un", edges)
    made = keeper.create_closure("graphs.same", "graphs.un", "src", "dst", graph="undirected")
    assert made.inserted == len(together(edges))
    assert keeper.spark.table("graphs.same_components").columns == ["src", "component_src"]
    keeper.create_view(
        "graphs.sizes", "SELECT component_src AS c, count(*) AS n FROM graphs.same_components"
        " GROUP BY component_src",
    )  # fmt: skip
    keeper.create_view("graphs.of_one", "SELECT dst FROM graphs.same WHERE src = 1")

    def check() -> None:
        assert seen(keeper, "graphs.same") == together(edges)
        assert seen(keeper, "graphs.same_components") == components(edges)
        sizes = {(c, sum(d == c for _, d in components(edges))) for _, c in components(edges)}
        assert seen(keeper, "graphs.sizes") == sizes
        assert seen(keeper, "graphs.of_one") == {(y,) for x, y in together(edges) if x == 1}

    check()
    told: list[Any] = []
    keeper.on_change("graphs.same_components", told.append)
    for gone, come in [([], [(3, 4), (8, 9)]), ([(8, 9), (1, 2)], [(5, 1), (5, 1)])]:
        before = together(edges)
        for a, b in gone:
            keeper.spark.sql(f"DELETE FROM graphs.un WHERE src = {a} AND dst = {b}")
            edges.remove((a, b))
        insert(keeper, "graphs.un", come)
        edges += come
        reports = {r.view: r for r in keeper.refresh()}
        report = reports["graphs.same"]
        assert report.strategy == "incremental", str(report)
        after = together(edges)
        assert (report.inserted, report.deleted) == (len(after - before), len(before - after))
        assert reports["graphs.of_one"].strategy == "incremental"
        check()
    # the components have a name of their own, and come and go with the pairs
    parts = [Counter(tuple(r) for r in f.collect()) for c in told for f in (c.added, c.removed)]
    assert len(told) == 2 and told[0].view == "graphs.same_components"
    was = components([(1, 2), (2, 3), (4, 5), (6, 6)])
    assert set(parts[0]) - was == set(parts[0]) and set(parts[1]) <= was
    net = {tuple(r) for r in keeper.changes("graphs.same_components", made.version).collect()}
    now = components(edges)
    assert net == {(*r, 1) for r in now - was} | {(*r, -1) for r in was - now}
    assert keeper.refresh("graphs.same_components")[0].view == "graphs.same"
    assert "undirected" in str(keeper.explain("graphs.same_components"))
    with pytest.raises(ViewKeeperError, match="comes and goes with"):
        keeper.drop_view("graphs.same_components")
    with pytest.raises(ViewKeeperError, match="is read by"):
        keeper.create_closure("graphs.same", "graphs.un", "src", "dst", replace=True)
    with pytest.raises(ViewKeeperError, match="VIEW_IN_USE"):
        keeper.drop_view("graphs.same")
    keeper._subscriptions._all.clear()
    keeper.drop_view("graphs.of_one")
    keeper.drop_view("graphs.sizes")
    keeper.drop_view("graphs.same")
    assert not keeper.spark.catalog.tableExists("graphs.same_components")


@pytest.mark.parametrize(
    "graph",
    [
        "acyclic",
        pytest.param("directed", marks=pytest.mark.slow),
        pytest.param("undirected", marks=pytest.mark.slow),
    ],
)
def test_spark_agrees_with_the_driver(keeper: vk.Keeper, graph: str) -> None:
    """The same batch by the two engines: insertions, deletions, parallel edges, NULL ends."""
    edges: Edges = [(1, 2), (2, 3), (3, 4), (1, 4), (4, 5), (5, 6), (2, 3), (None, 1), (9, None)]
    if graph == "directed":
        edges += [(4, 1), (6, 6)]
    table(keeper, "graphs.two", edges)
    expected = together if graph == "undirected" else reach
    with on_spark(keeper):
        keeper.create_closure("graphs.twice", "graphs.two", "src", "dst", graph=graph)
        assert seen(keeper, "graphs.twice") == expected(edges)
        keeper.spark.sql("DELETE FROM graphs.two WHERE src = 3 OR src IS NULL")
        insert(keeper, "graphs.two", [(6, 7), (7, 8), (1, 2)])
        edges = [(a, b) for a, b in edges if a not in (3, None)] + [(6, 7), (7, 8), (1, 2)]
        (report,) = keeper.refresh("graphs.twice", strategy="incremental")
        assert "on Spark" in report.reason
        assert seen(keeper, "graphs.twice") == expected(edges)
    (report,) = keeper.refresh("graphs.twice", strategy="full")
    assert "on the driver" in report.reason
    assert seen(keeper, "graphs.twice") == expected(edges)
    keeper.drop_view("graphs.twice")


def test_nodes_of_two_columns_and_edges_from_a_query(keeper: vk.Keeper) -> None:
    rows = [("x", 1, "x", 2, True), ("x", 2, "y", 1, True), ("y", 1, "y", 2, False)]
    types = "a STRING, b INT, c STRING, d INT, live BOOLEAN"
    table(keeper, "graphs.wide", rows, types)
    query = "SELECT a, b, c, d FROM graphs.wide WHERE live"
    keeper.create_closure("graphs.pairs", query, ["a", "b"], ["c", "d"], graph="acyclic")

    def check(live: list[Any]) -> None:
        found = {(p[:2], p[2:]) for p in seen(keeper, "graphs.pairs")}
        assert found == reach([(r[:2], r[2:4]) for r in live])

    check(rows[:2])
    keeper.spark.sql("UPDATE graphs.wide SET live = true WHERE a = 'y'")
    (report,) = keeper.refresh("graphs.pairs")
    assert report.strategy == "incremental" and "on the driver" in report.reason
    check(rows)
    frame = keeper.spark.table("graphs.wide").where("b = 1")
    keeper.create_closure(
        "graphs.pairs", frame, ["a", "b"], ["c", "d"], graph="undirected", replace=True
    )
    assert len(seen(keeper, "graphs.pairs")) == 4
    assert len(seen(keeper, "graphs.pairs_components")) == 4
    keeper.drop_view("graphs.pairs")


RECURSIVE = """
    WITH RECURSIVE tc(x, y) AS (
        SELECT src, dst FROM graphs.rec{filter}
        UNION
        SELECT tc.x, e.dst FROM tc JOIN graphs.rec AS e ON tc.y = e.src{more}
    ) SELECT x AS from_node, y AS to_node FROM tc"""


def test_with_recursive(keeper: vk.Keeper) -> None:
    edges: Edges = [(1, 2), (2, 3), (3, 1), (3, 4)]
    table(keeper, "graphs.rec", edges)
    sql = RECURSIVE.format(filter="", more="")
    assert "closure, directed graph" in str(keeper.explain(sql))
    keeper.sql(f"CREATE MATERIALIZED VIEW graphs.r AS {sql}")
    assert keeper.spark.table("graphs.r").columns == ["from_node", "to_node"]
    assert seen(keeper, "graphs.r") == reach(edges)
    keeper.spark.sql("DELETE FROM graphs.rec WHERE src = 2")
    keeper.refresh("graphs.r")
    edges.remove((2, 3))
    assert seen(keeper, "graphs.r") == reach(edges)
    insert(keeper, "graphs.rec", [(4, None)])  # the query would keep it
    with pytest.raises(ViewKeeperError, match="NULL_END"):
        keeper.refresh("graphs.r")
    assert seen(keeper, "graphs.r") == reach(edges)
    whole = RECURSIVE.format(
        filter=" WHERE src IS NOT NULL AND dst IS NOT NULL", more=" WHERE e.dst IS NOT NULL"
    )
    keeper.create_view("graphs.r", whole, replace=True)
    assert seen(keeper, "graphs.r") == reach(edges)
    keeper.drop_view("graphs.r")
    other = sql.replace("e.dst FROM", "e.dst + 1 FROM")
    with pytest.raises(ViewKeeperError, match="no plain closure") as caught:
        keeper.create_view("graphs.r", other)
    assert caught.value.code == "INVALID_QUERY"


def test_a_program(keeper: vk.Keeper) -> None:
    """The paper's even (section 6), and one of the user's own with two stored tables."""
    table(keeper, "graphs.set", [("a",), ("b",), ("b",), (None,)], "x STRING")
    keeper.create_program("graphs.is_even", "graphs.set", "even")
    assert seen(keeper, "graphs.is_even") == {(1,)}
    keeper.create_program("graphs.counted", "graphs.set", COUNTED)
    assert seen(keeper, "graphs.counted") == {(2, "b")}
    insert(keeper, "graphs.set", [("c",), ("b",)])
    reports = {r.view: r for r in keeper.refresh(["graphs.is_even", "graphs.counted"])}
    assert reports["graphs.is_even"].strategy == "incremental"
    assert (reports["graphs.is_even"].inserted, reports["graphs.is_even"].deleted) == (0, 1)
    assert "on Spark" in reports["graphs.counted"].reason
    assert seen(keeper, "graphs.is_even") == set()
    assert seen(keeper, "graphs.counted") == {(3, "c")}
    keeper.spark.sql("DELETE FROM graphs.set WHERE x IN ('a', 'c', 'b')")
    keeper.refresh(["graphs.is_even", "graphs.counted"])
    assert seen(keeper, "graphs.is_even") == {(1,)}
    assert seen(keeper, "graphs.counted") == {(0, None)}
    assert "program counted" in str(keeper.explain("graphs.counted"))
    # values that have no plain literal, in a node of two columns
    table(keeper, "graphs.odd", [], "x DOUBLE, y BINARY")
    keeper.spark.sql("INSERT INTO graphs.odd VALUES (double('NaN'), X'00FF'), (1.5, X'')")
    keeper.create_program("graphs.is_even", "graphs.odd", "even", replace=True)
    assert seen(keeper, "graphs.is_even") == {(1,)}
    keeper.spark.sql("DELETE FROM graphs.odd WHERE isnan(x)")
    keeper.refresh("graphs.is_even")
    assert seen(keeper, "graphs.is_even") == set()
    keeper.spark.sql("INSERT INTO graphs.odd VALUES (double('-Infinity'), X'01')")
    keeper.refresh("graphs.is_even")
    assert seen(keeper, "graphs.is_even") == {(1,)}
    keeper.drop_view("graphs.is_even")
    keeper.drop_view("graphs.counted")


COUNTED = """
-- SYSTEM counted: how many different rows there are, and the largest one
-- INPUT R (x NODE)
-- TABLE N (n BIGINT)
-- TABLE ALL_ROWS (x NODE)
-- OUTPUT n
SELECT COALESCE(MAX(k.n), 0) AS n, MAX(a.x) AS largest FROM N AS k FULL JOIN ALL_ROWS AS a ON TRUE;
-- ON INSERT (t NODE)
-- DELETE FROM N
SELECT k.n FROM N AS k;
-- INSERT INTO N
SELECT COALESCE(MAX(k.n), 0) + 1 AS n FROM N AS k;
-- INSERT INTO ALL_ROWS
SELECT :t AS x;
-- ON DELETE (t NODE)
-- DELETE FROM N
SELECT k.n FROM N AS k;
-- INSERT INTO N
SELECT MAX(k.n) - 1 AS n FROM N AS k HAVING MAX(k.n) > 1;
-- DELETE FROM ALL_ROWS
SELECT a.x FROM ALL_ROWS AS a WHERE a.x = :t;
"""


def test_bad_input(keeper: vk.Keeper) -> None:
    table(keeper, "graphs.bad", [(1, "a")], "src INT, dst STRING")

    def fails(code: str, *args: Any, **more: Any) -> None:
        with pytest.raises(ViewKeeperError) as caught:
            keeper.create_closure("graphs.x", *args, **more)
        assert caught.value.code == code, str(caught.value)
        assert caught.value.hint

    fails("INVALID_OPTION", "graphs.bad", "src", "dst", graph="cyclic")
    fails("MALFORMED_PROGRAM", "graphs.bad", "src", ["dst", "src"])
    fails("MALFORMED_PROGRAM", "graphs.bad", "src", "dst")  # of two types
    fails("MALFORMED_PROGRAM", "graphs.bad", None, "dst")
    fails("INVALID_QUERY", "graphs.bad", "src", "nope")
    fails("UNKNOWN_TABLE", "graphs.nowhere", "src", "dst")
    fails("CYCLE", "SELECT 1 AS src, 1 AS dst", "src", "dst", graph="acyclic")
    with pytest.raises(ViewKeeperError):
        keeper.create_program("graphs.x", "graphs.bad", "-- SYSTEM x")
    late = COUNTED.replace("SELECT MAX(k.n) - 1 AS n", "SELECT MAX(k.nope) - 1 AS n")
    with pytest.raises(
        ViewKeeperError, match="N_COME cannot be computed"
    ):  # though no row goes yet
        keeper.create_program("graphs.x", "SELECT src FROM graphs.bad", late)
    for text in ("SELECT :t + nope AS x", "SELECT 1 / 0 AS x"):
        wrong = COUNTED.replace("SELECT :t AS x", text)
        assert wrong != COUNTED
        with pytest.raises(ViewKeeperError, match="cannot be computed"):
            keeper.create_program("graphs.x", "SELECT src FROM graphs.bad", wrong)
    assert not keeper.spark.catalog.tableExists("graphs.x")


def random_batches(keeper: vk.Keeper, graph: str, seed: int, batches: int) -> None:
    chance = random.Random(seed)
    nodes = chance.choice([6, 12, 25])
    name = f"graphs.rnd_{graph}_{seed}"

    def edge() -> tuple[int, int]:
        a, b = chance.randrange(nodes), chance.randrange(nodes)
        return (min(a, b), max(a, b) + (a == b)) if graph == "acyclic" else (a, b)

    edges = [edge() for _ in range(chance.randrange(2 * nodes))]
    table(keeper, name, edges)
    keeper.create_closure(f"{name}_tc", name, "src", "dst", graph=graph)
    expected = together if graph == "undirected" else reach
    assert seen(keeper, f"{name}_tc") == expected(edges)
    for _ in range(batches):
        gone = {edge() for _ in range(chance.randrange(4))} | set(
            chance.sample(edges, min(len(edges), chance.randrange(4)))
        )
        if gone:
            some = " OR ".join(f"(src = {a} AND dst = {b})" for a, b in gone)
            keeper.spark.sql(f"DELETE FROM {name} WHERE {some}")
            edges = [e for e in edges if e not in gone]
        come = [edge() for _ in range(chance.randrange(5))]
        insert(keeper, name, come)
        edges += come
        keeper.refresh(f"{name}_tc")
        assert seen(keeper, f"{name}_tc") == expected(edges), f"{graph}, seed {seed}"
    keeper.drop_view(f"{name}_tc")


@pytest.mark.parametrize(
    "graph",
    [
        "directed",
        pytest.param("acyclic", marks=pytest.mark.slow),
        pytest.param("undirected", marks=pytest.mark.slow),
    ],
)
def test_random_batches(keeper: vk.Keeper, graph: str) -> None:
    random_batches(keeper, graph, seed=1, batches=3)


@pytest.mark.slow
@pytest.mark.parametrize("driver", [True, False], ids=["driver", "spark"])
@pytest.mark.parametrize("graph", ["directed", "acyclic", "undirected"])
def test_many_random_batches(keeper: vk.Keeper, graph: str, driver: bool) -> None:
    for seed in range(2, 7):
        if driver:
            random_batches(keeper, graph, seed, batches=10)
        else:
            with on_spark(keeper):
                random_batches(keeper, graph, seed, batches=3)

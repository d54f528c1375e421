"""Random batches on random graphs: the programs, one edge at a time, and a graph library."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from recursive_checks import check_batches, check_singles
from recursive_duckdb import Kept
from recursive_graphs import batches, closure, components, connected
from viewkeeper.recursive import CycleError

NEVER = {"share": 10**9}  # follow all ways over deleted edges, do not build anew


@pytest.mark.parametrize("graph", ["acyclic", "directed", "undirected"])
def test_batches_agree_with_the_oracle(graph: str) -> None:
    """70 graphs beside each other, 4 batches each."""
    check_batches(graph, 1, graphs=70, count=3, settings=NEVER)


@pytest.mark.parametrize("graph", ["acyclic", "directed", "undirected"])
def test_small_batches_agree_with_the_oracle(graph: str) -> None:
    """One graph, so that loops end early; with the setting that sometimes builds anew."""
    for seed in (100, 103):
        check_batches(graph, seed, graphs=1, count=2, settings={"few": seed % 2, "far": 2})


@pytest.mark.parametrize("types", [("VARCHAR",), ("INTEGER", "VARCHAR")])
@pytest.mark.parametrize("graph", ["acyclic", "directed", "undirected"])
def test_other_nodes_agree_with_the_oracle(graph: str, types: tuple[str, ...]) -> None:
    """Strings, and nodes of two columns."""
    check_batches(graph, 7, graphs=21, count=2, types=types, settings=NEVER)


@pytest.mark.parametrize("graph", ["acyclic", "undirected", "directed"])
def test_one_by_one_agrees_with_batches(graph: str) -> None:
    """The paper's programs, edge by edge, give what a batch gives."""
    check_singles(graph, 0, count=4)


def test_one_by_one_with_nodes_of_two_columns() -> None:
    for graph in ("acyclic", "undirected", "directed"):
        check_singles(graph, 5, count=2, types=("INTEGER", "VARCHAR"))


# ── by hand ──


def test_chain_of_deleted_edges() -> None:
    """Each second edge of a path is deleted, beside which there was a longer way."""
    kept = Kept("acyclic", settings=NEVER)
    edges = [(i, i + 1) for i in range(0, 60, 2)] + [(i, 100 + i) for i in range(1, 60, 2)]
    ways = [(i, i + 1) for i in range(1, 60, 2)]
    edges += [(100 + i, 200 + i) for i in range(1, 60, 2)]
    edges += [(200 + i, i + 1) for i in range(1, 60, 2)]
    kept.change([], edges + ways)
    outcome = kept.change(ways, [])
    assert outcome.steps < 12 and outcome.recompute is None  # all of them were redundant
    assert kept.output() == closure(edges)
    cut = [(100 + i, 200 + i) for i in range(1, 60, 4)]
    kept.change(cut, ways)
    assert kept.output() == closure([*(set(edges) - set(cut)), *ways])


def test_rounds_are_bounded_by_the_chain_of_deleted_edges() -> None:
    """A ladder of diamonds: in each, one of two ways is cut; the last edges of the ways remain."""
    kept = Kept("acyclic", settings=NEVER)
    edges = []
    for i in range(0, 80, 4):
        edges += [(i, i + 1), (i + 1, i + 3), (i, i + 2), (i + 2, i + 3), (i + 3, i + 4)]
    kept.change([], edges)
    one = kept.change([(0, 1)], [])
    two = kept.change([(20, 21), (40, 41), (60, 61)], [])
    assert one.rounds == 0 and two.rounds <= 3
    gone = {(0, 1), (20, 21), (40, 41), (60, 61)}
    assert kept.output() == closure(set(edges) - gone)


def test_a_deletion_inside_a_component_that_stays_one() -> None:
    kept = Kept("directed", settings=NEVER)
    edges = [(i, (i + 1) % 10) for i in range(10)] + [((i + 2) % 10, i) for i in range(10)]
    edges += [(20 + i, 0) for i in range(5)] + [(5, 30 + i) for i in range(5)]
    kept.change([], edges)
    outcome = kept.change([(3, 4)], [])
    assert [kept.runner.rows(c.deleted) for c in outcome.changes if c.deleted] == [[]]
    assert kept.runner.is_empty("CUT")
    assert kept.output() == closure(set(edges) - {(3, 4)})


def test_far_ends_are_built_anew() -> None:
    """A long cycle cut open: the search from both ends gives up, with the reason."""
    n = 300
    kept = Kept("undirected")
    edges = [(i, (i + 1) % n) for i in range(n)]
    kept.change([], edges)
    outcome = kept.change([(5, 6)], [], gives_up=False)  # asked to follow it nevertheless
    assert outcome.recompute is None and not outcome.replace
    assert dict(kept.output("components")) == dict.fromkeys(range(n), 0)
    kept.change([], [(5, 6)])
    outcome = kept.change([(5, 6)], [])
    assert outcome.recompute == "the ends of deleted edges are far from each other"
    assert outcome.replace and dict(kept.output("components")) == dict.fromkeys(range(n), 0)


def test_a_side_with_many_neighbours_waits_for_the_other() -> None:
    """Leaves of a star are cut off, then a twig; the star itself is not walked."""
    kept = Kept("undirected", settings={"few": 5})
    star = [(0, i) for i in range(1, 200)]
    twig = [(7, 300), (300, 301), (301, 302)]
    kept.change([], star + twig)
    for gone in ([(0, i) for i in range(20, 60)], [(0, 7)]):
        kept.change(gone, [])
        star = [e for e in star if e not in gone]
        assert dict(kept.output("components")) == components(star + twig)
        assert len(kept.runner.rows("REACHED")) < 250


@pytest.mark.parametrize("far", [1, 2, 3])
def test_long_paths_are_found_by_doubling(far: int) -> None:
    """Chains, a ring, a ladder; the rounds grow with the logarithm of their length."""
    chain = [(i, i + 1) for i in range(50)]
    ladder = [(100 + i, 101 + i) for i in range(40)] + [(200 + i, 201 + i) for i in range(40)]
    ladder += [(100 + i, 200 + i) for i in range(0, 40, 3)] + [(230, 125)]
    for edges in (chain, [*chain, (50, 0)], ladder, [*chain, *ladder, (20, 3), (7, 7)]):
        kept = Kept("directed", settings={"far": far})
        rows = ", ".join(map(str, edges))
        kept.db.execute(f"INSERT INTO edges VALUES {rows}")
        assert kept.build().rounds <= far + 7
        assert kept.output() == closure(edges)


@pytest.mark.parametrize("graph", ["acyclic", "directed"])
def test_edges_into_a_hub_are_deleted_without_looking_at_the_others(graph: str) -> None:
    kept = Kept(graph, settings=NEVER)
    star = [(i, 0) for i in range(1, 100)] + [(0, -1), (0, -2)]
    kept.change([], star)
    kept.change([(i, 0) for i in range(20, 60)], [])
    assert kept.output() == closure([(a, b) for a, b in star if not 20 <= a < 60])
    assert len(kept.runner.rows("ARRIVING")) == 2


def test_a_node_between_two_halves_is_cut_off() -> None:
    """Both edges of the middle node go; each end finds it alone, and the halves fall apart."""
    kept = Kept("undirected")
    left = [(i, j) for i in range(6) for j in range(i)]
    right = [(10 + i, 10 + j) for i in range(6) for j in range(i)]
    kept.change([], [*left, *right, (3, 99), (99, 13)])
    kept.change([(3, 99), (99, 13)], [])
    assert dict(kept.output("components")) == components(left + right)
    kept.change([], [(3, 99), (99, 98), (98, 13)])
    kept.change([(3, 99), (99, 98), (98, 13)], [])  # and a middle of two parts
    assert kept.output() == connected(left + right)


def test_parallel_edges_self_loops_nulls() -> None:
    """An edge is there as long as a copy is, turned or not; NULL ends join nothing."""
    for graph in ("directed", "undirected"):
        kept = Kept(graph)
        kept.change(
            [], [(1, 2), (1, 2), (2, 3), (3, 3), (None, 3), (3, None), (None, None), (4, 4)]
        )
        straight = {(1, 2), (2, 3), (1, 3)}
        if graph == "directed":
            assert kept.output() == straight | {(3, 3), (4, 4)}
        else:
            assert kept.output() == straight | {(b, a) for a, b in straight}
            assert dict(kept.output("components")) == {1: 1, 2: 1, 3: 1, 4: 4}
        kept.change([(1, 2), (3, None)], [(2, 1)] if graph == "undirected" else [])
        assert (1, 3) in kept.output()
        kept.change([(1, 2), (3, 3), (None, 3), (4, 4)], [])
        assert kept.output() == (
            {(2, 3)} if graph == "directed" else straight | {(2, 1), (3, 2), (3, 1)}
        )


def test_nodes_appear_and_disappear() -> None:
    kept = Kept("undirected")
    kept.change([], [(5, 6)])
    kept.change([(5, 6)], [(6, 7)])
    assert dict(kept.output("components")) == {6: 6, 7: 6}
    kept.change([(6, 7)], [(9, 9)])
    assert kept.output() == set() and dict(kept.output("components")) == {9: 9}
    kept.change([(9, 9)], [])
    assert kept.output("components") == set()


def test_the_larger_component_keeps_its_number() -> None:
    kept = Kept("undirected")
    kept.change([], [(i, i + 1) for i in range(10, 60)])
    kept.change([], [(1, 2)])
    outcome = kept.change([], [(2, 30)])
    (nodes, names) = outcome.changes
    assert len(kept.runner.rows(str(nodes.inserted))) == 2
    assert {r[1] for r in kept.output("components")} == {1}
    assert names.table == "COMPONENTS"


def test_a_cycle_is_named_and_nothing_changes() -> None:
    kept = Kept("acyclic", types=("VARCHAR",))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d")]
    kept.change([], edges)
    before = kept.output()
    with pytest.raises(CycleError) as caught:
        kept.change([], [("d", "e"), ("e", "a")])
    cycle = caught.value.cycle
    every = {*edges, ("d", "e"), ("e", "a")}
    assert set(zip(cycle, cycle[1:] + cycle[:1], strict=True)) <= every
    assert len(cycle) == 4
    assert kept.output() == before
    with pytest.raises(CycleError, match="'x' → 'x'"):
        kept.change([], [("x", "x")])
    with pytest.raises(CycleError):
        kept.change([("a", "b")], [("d", "b")])
    assert kept.output() == before
    kept.change([("a", "b")], [("b", "a")])  # an edge turned round is none
    assert kept.output() == closure([("b", "a"), *edges[1:]])


def test_a_cycle_is_named_when_built() -> None:
    kept = Kept("acyclic", types=("INTEGER", "VARCHAR"))
    kept.db.execute("INSERT INTO edges VALUES (1, 'a', 2, 'b'), (2, 'b', 1, 'a'), (2, 'b', 3, 'c')")
    with pytest.raises(CycleError) as caught:
        kept.build()
    assert set(caught.value.cycle) == {(1, "a"), (2, "b")}
    assert kept.output() == set()


def test_built_is_what_is_kept() -> None:
    r = random.Random(3)
    for graph in ("acyclic", "directed", "undirected"):
        kept: Any = Kept(graph)
        now: Counter[Any] = Counter()
        for gone, come in batches(r, "grid", 3, acyclic=graph == "acyclic"):
            now = now - Counter(gone) + Counter(come)
            kept.change(gone, come)
        before = kept.output()
        kept.build()
        assert kept.output() == before

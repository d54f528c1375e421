"""Checks that the fast tests and the long run share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from recursive_duckdb import Kept, Single
from recursive_graphs import SHAPES, Edge, batches, closure, components, connected, many
from viewkeeper.recursive import load


def node(n: int, types: Sequence[str]) -> tuple[Any, ...]:
    """A node by its number, as values of the given types; their order is that of the numbers."""
    if len(types) == 1:
        return (n,) if types[0] == "INTEGER" else (f"n{n:05}",)
    return (n // 7, f"n{n:05}")


def row(edge: Edge, types: Sequence[str]) -> tuple[Any, ...]:
    return node(edge[0], types) + node(edge[1], types)


def expected(graph: str, edges: Counter[Edge]) -> set[Edge]:
    return connected(edges) if graph == "undirected" else closure(edges)


def check_batches(
    graph: str,
    seed: int,
    *,
    graphs: int,
    count: int,
    types: Sequence[str] = ("INTEGER",),
    settings: dict[str, Any] | None = None,
) -> int:
    """Follows random batches; after each, the output is that of the graph library."""
    said = f"{graph}, seed {seed}, {graphs} graphs, {types}"
    print(said)
    r = random.Random(seed)
    known = load(graph).settings
    kept = Kept(graph, types, {k: v for k, v in (settings or {}).items() if k in known})
    now: Counter[Edge] = Counter()
    for gone, come in many(r, graphs, count, first=seed, acyclic=graph == "acyclic"):
        now = now - Counter(gone) + Counter(come)
        kept.change([row(e, types) for e in gone], [row(e, types) for e in come])
        want = {row(e, types) for e in expected(graph, now)}
        got = kept.output()
        assert got == want, f"{said}: {gone=} {come=} wrong {got - want}, missing {want - got}"
        if graph == "undirected":
            named = {node(n, types) + node(c, types) for n, c in components(now).items()}
            assert kept.output("components") == named, f"{said}: {gone=} {come=}"
    return graphs * (count + 1)


def check_singles(graph: str, seed: int, *, count: int, types: Sequence[str] = ("INTEGER",)) -> int:
    """The paper's program edge by edge, the batch program, and the graph library agree."""
    said = f"{graph}, one by one, seed {seed}, {types}"
    print(said)
    r = random.Random(seed)
    single = Single(f"{graph}_single", types)
    kept = Kept(graph, types, {"share": 10**9} if graph != "undirected" else None)
    now: set[Edge] = set()
    steps = 0
    kind = SHAPES[seed % len(SHAPES)]
    if graph == "directed":
        plan = _few(r, count)
    else:
        plan = batches(r, kind, count, acyclic=graph == "acyclic", copies=False)
    wide = len(types) > 1
    for gone, come in plan:
        ways = {tuple(sorted(e)) if graph == "undirected" else e for e in gone} & now
        news = {tuple(sorted(e)) if graph == "undirected" else e for e in come} - (now - ways)
        if graph == "undirected":  # the paper's graphs have no self loops
            news = {e for e in news if e[0] != e[1]}
        for event, edges in (("DELETE", sorted(ways)), ("INSERT", sorted(news))):
            for edge in edges:
                ends = [node(n, types) for n in edge]
                single.change(event, *(ends if wide else [e[0] for e in ends]))
                steps += 1
        kept.change([row(e, types) for e in ways], [row(e, types) for e in news])
        now = (now - ways) | news
        want = {row(e, types) for e in expected(graph, Counter(now))}
        assert single.output() == want, f"{said}: {now}"
        assert kept.output() == want, f"{said}: {now}"
    return steps


def _few(r: random.Random, count: int) -> list[tuple[list[Edge], list[Edge]]]:
    """Batches for a graph of few nodes and edges: the program for any graph stores all paths."""
    n = r.choice([3, 4])
    now: set[Edge] = set()
    found = []
    for _ in range(count):
        gone = r.sample(sorted(now), min(len(now), r.choice([0, 1, 2])))
        now -= set(gone)
        free = [(a, b) for a in range(n) for b in range(n) if (a, b) not in now]
        come = r.sample(free, min(len(free), max(0, 4 - len(now)), 2))
        now |= set(come)
        found.append((gone, come))
    return found

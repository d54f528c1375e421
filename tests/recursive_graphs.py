"""Random graphs and batches, and what their closure is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import networkx as nx

Edge = tuple[Any, Any]
SHAPES = ("sparse", "dense", "tree", "cycles", "grid", "dag", "loops")


def shape(kind: str, r: random.Random) -> tuple[int, list[Edge]]:
    """The number of nodes and some edges of a random graph."""
    n = r.randint(3, 12)
    every = [(a, b) for a in range(n) for b in range(n)]
    match kind:
        case "sparse":
            return n, r.sample(every, min(len(every), n))
        case "dense":
            n = r.randint(3, 6)
            every = [(a, b) for a in range(n) for b in range(n)]
            return n, r.sample(every, r.randint(len(every) // 2, len(every)))
        case "tree":
            return n, [(r.randrange(i), i) for i in range(1, n)]
        case "cycles":
            length = r.randint(2, 4)
            edges = [
                (i, i + 1 if (i + 1) % length else i + 1 - length) for i in range(n - n % length)
            ]
            return n, edges + [(r.randrange(n), r.randrange(n)) for _ in range(r.randint(0, 3))]
        case "grid":
            w = r.randint(2, 4)
            right = [(i, i + 1) for i in range(3 * w) if (i + 1) % w]
            return 3 * w, right + [(i, i + w) for i in range(2 * w)]
        case "dag":
            forward = [(a, b) for a, b in every if a < b]
            return n, r.sample(forward, r.randint(1, min(len(forward), 2 * n)))
    edges = r.sample(every, min(len(every), n))
    return n, edges + [(r.randrange(n),) * 2 for _ in range(3)]


def batches(
    r: random.Random, kind: str, count: int, *, acyclic: bool = False, copies: bool = True
) -> list[tuple[list[Edge], list[Edge]]]:
    """Rows to remove and to add, batch by batch; the first one adds a whole graph.

    If ``acyclic``, the graph stays so, while edges may be turned round within a batch.
    """
    n, edges = shape(kind, r)
    rank = list(range(n))
    if acyclic:
        edges = [(min(e), max(e)) for e in edges if e[0] != e[1]]
    now: Counter[Edge] = Counter(edges)
    found: list[tuple[list[Edge], list[Edge]]] = [([], list(now.elements()))]
    for _ in range(count):
        size = r.choice([1, 1, 2, 3, 6])
        present = list(now.elements())
        gone = r.sample(present, min(len(present), r.randint(0, size)))
        if acyclic and r.random() < 0.2:
            r.shuffle(rank)  # another order: what does not fit it has to go
            gone = [e for e in present if rank[e[0]] >= rank[e[1]]]
        now -= Counter(gone)
        come: list[Edge] = []
        for _ in range(r.randint(0, size)):
            edge = (r.randrange(n), r.randrange(n))
            if acyclic and rank[edge[0]] >= rank[edge[1]]:
                edge = edge[::-1]
            if acyclic and rank[edge[0]] >= rank[edge[1]]:
                continue
            if copies or not now[edge]:
                come.append(edge)
                now[edge] += 1
        if copies and r.random() < 0.1 and now:
            come.append(r.choice(list(now)))
            now[come[-1]] += 1
        found.append((gone, come))
    return found


def closure(edges: Iterable[Edge]) -> set[Edge]:
    """Pairs that a path of one edge or more connects."""
    graph = nx.DiGraph(list(edges))
    return set(nx.transitive_closure(graph, reflexive=False).edges)


def components(edges: Iterable[Edge]) -> dict[Any, Any]:
    """The smallest node of each node's component."""
    graph = nx.Graph(list(edges))
    return {node: min(part) for part in nx.connected_components(graph) for node in part}


def connected(edges: Iterable[Edge]) -> set[tuple[Hashable, Hashable]]:
    """Pairs of different nodes in one component."""
    of = components(edges)
    return {(a, b) for a in of for b in of if a != b and of[a] == of[b]}


def many(
    r: random.Random, graphs: int, count: int, *, first: int = 0, **how: Any
) -> list[tuple[list[Edge], list[Edge]]]:
    """Batches for several graphs beside each other, with nodes of their own, all shapes."""
    each = [batches(r, SHAPES[(first + i) % len(SHAPES)], count, **how) for i in range(graphs)]
    return [
        (
            [(a + 100 * i, b + 100 * i) for i, one in enumerate(each) for a, b in one[k][0]],
            [(a + 100 * i, b + 100 * i) for i, one in enumerate(each) for a, b in one[k][1]],
        )
        for k in range(count + 1)
    ]

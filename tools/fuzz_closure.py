"""Random batches of edges on random graphs, kept by the shipped programs, against a graph library.

    python tools/fuzz_closure.py --batches 5000

A failure prints its seed; ``--seed`` and ``--graph`` run that case again. Needs no JVM.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from recursive_checks import check_batches, check_singles

GRAPHS = ("acyclic", "directed", "undirected")
TYPES = (("INTEGER",), ("VARCHAR",), ("INTEGER", "VARCHAR"))


def case(graph: str, seed: int) -> int:
    """One case: its size, its nodes and its settings follow from the seed."""
    r = random.Random(f"case {seed}")
    types = TYPES[r.choice([0, 0, 1, 2])]
    if r.random() < 0.1:
        return check_singles(graph, seed, count=r.randint(2, 8), types=types)
    settings = {
        "share": r.choice([1, 4, 10**9, 10**9]),
        "far": r.choice([1, 2, 3, 24]),
        "few": r.choice([0, 1, 2, 1000]),
    }
    return check_batches(
        graph,
        seed,
        graphs=r.choice([1, 1, 3, 15, 40]),
        count=r.randint(3, 12),
        types=types,
        settings=settings,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=5000, help="batches of one graph each")
    parser.add_argument("--seed", type=int, help="only this case")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--graph", choices=GRAPHS, help="only this kind of graph")
    options = parser.parse_args()
    graphs = (options.graph,) if options.graph else GRAPHS
    if options.seed is not None:
        for graph in graphs:
            case(graph, options.seed)
        return
    done = dict.fromkeys(graphs, 0)
    start, seed = time.perf_counter(), options.first
    while sum(done.values()) < options.batches:
        for graph in graphs:
            done[graph] += case(graph, seed)
        seed += 1
    seconds = time.perf_counter() - start
    print(f"{done}, seeds {options.first} to {seed - 1}, {seconds:.0f} s: all agree")


if __name__ == "__main__":
    main()

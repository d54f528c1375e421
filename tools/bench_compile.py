"""How long it takes to compile and simplify changes, and their sizes. `make bench-compile`."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time

from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import Query


def join_of(n: int) -> Query:
    """R1 ⋈ R2 ⋈ … ⋈ Rn along a chain of keys."""
    q: Query = al.table("R1", ["k1", "v1", "k2"])
    for i in range(2, n + 1):
        t = al.table(f"R{i}", [f"k{i}", f"v{i}", f"k{i + 1}"])
        q = q.join(t, f"left.k{i} = right.k{i}")
    return q


def query_of(operators: int, seed: int = 1) -> Query:
    """A random query of so many operators, as one deep chain with many side branches."""
    r = random.Random(seed)
    tables = [al.table(f"T{i}", ["a", "b"]) for i in range(20)]
    q: Query = tables[0]
    while al.size(q) < operators:
        t = r.choice(tables)
        side = r.choice((t, t.select("a > 1"), t.project({"a": "b", "b": "a"}), t.distinct()))
        choices = (
            lambda q=q, s=side: q + s,
            lambda q=q, s=side: q - s,
            lambda q=q, s=side: q & s,
            lambda q=q, s=side: q | s,
            lambda q=q: q.distinct(),
            lambda q=q: q.select(f"a < {r.randint(1, 9)} or b is null"),
            lambda q=q: q.project({"a": "a + b", "b": "a"}),
            lambda q=q, s=side: q.semi(s, "left.a = right.a"),
            lambda q=q, s=side: q.anti(s, "left.b = right.b"),
            lambda q=q, s=side: q.left(s, "left.a = right.b").project({"a": "#0", "b": "#3"}),
            lambda q=q: q.group_by(["a"], {"b": "count(*)"}),
        )
        q = r.choice(choices)()
    return q


def measure(q: Query, changed: list[str], rounds: int = 7) -> dict[str, float]:
    """Median seconds of compiling and of simplifying the change, and its size in nodes."""
    compiled, simplified = [], []
    size = small = 0
    for _ in range(rounds):
        start = time.perf_counter()
        c = al.change(q, changed)
        middle = time.perf_counter()
        parts = al.simplify_all((c.removed, c.added))
        end = time.perf_counter()
        compiled.append(middle - start)
        simplified.append(end - middle)
        size, small = al.size(c.removed, c.added), al.size(*parts)
    return {
        "operators": al.size(q),
        "nodes": size,
        "simplified nodes": small,
        "compile s": round(statistics.median(compiled), 4),
        "simplify s": round(statistics.median(simplified), 4),
        "total s": round(
            statistics.median(a + b for a, b in zip(compiled, simplified, strict=True)), 4
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    rows: dict[str, dict[str, float]] = {}
    for n in (15, 30, 60):
        q = join_of(n)
        rows[f"{n}-way join, all tables change"] = measure(q, [f"R{i}" for i in range(1, n + 1)])
        rows[f"{n}-way join, one table changes"] = measure(q, ["R1"])
    for n in (250, 500, 1000):
        q = query_of(n)
        rows[f"{n} operators, 20 tables change"] = measure(q, [f"T{i}" for i in range(20)])
    names = list(next(iter(rows.values())))
    print(f"{'':34}" + "".join(f"{n:>18}" for n in names))
    for name, row in rows.items():
        print(f"{name:34}" + "".join(f"{row[n]:>18,}" for n in names))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=2)


if __name__ == "__main__":
    main()

"""Closures kept by programs, against computing them again on Spark. `make bench-closure`.

An acyclic graph with a closure of about a million pairs, a directed one with cycles, an undirected
one with a million edges. Batches of one edge and of a hundred, inserted and deleted; after each,
the view is refreshed, and the closure is computed again by iteration into a Delta table (cached and
checkpointed, few partitions; `--double` also tries squaring, and goes on with the faster of the
two). All answers are compared.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import viewkeeper as vk
from viewkeeper.recursive import count_joins, load

ROOT = Path(__file__).parent.parent
FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
Edge = tuple[int, int]


# ── graphs ──


def layered(chance: random.Random, size: int) -> list[Edge]:
    """Ten layers; each node has one or two edges to the next one: about 35 pairs a node."""
    width = size // 10
    edges = set()
    for i in range(9 * width):
        for _ in range(1 + (chance.random() < 0.5)):
            edges.add((i, (i // width + 1) * width + chance.randrange(width)))
    return sorted(edges)


def cyclic(chance: random.Random, size: int) -> list[Edge]:
    """A random graph with 1.6 edges a node: one large strong component, much around it."""
    edges = {(chance.randrange(size), chance.randrange(size)) for _ in range(int(1.6 * size))}
    return sorted(edges)


def ring(chance: random.Random, size: int) -> list[Edge]:
    """One cycle: a deleted edge breaks it, and no pair is left that was connected backwards."""
    return [(i, (i + 1) % size) for i in range(size)]


def rings(chance: random.Random, size: int) -> list[Edge]:
    """Cycles of 20 nodes, each with an edge to the next one."""
    edges = [(i, i + 1 if (i + 1) % 20 else i - 19) for i in range(size // 20 * 20)]
    return edges + [(i, i + 20 + chance.randrange(20)) for i in range(0, size // 20 * 20 - 40, 20)]


def torus(chance: random.Random, size: int) -> list[Edge]:
    """A grid whose ends are joined: one strong component with many ways."""
    n = int(size**0.5)
    right = [(i * n + j, i * n + (j + 1) % n) for i in range(n) for j in range(n)]
    return right + [(i * n + j, (i + 1) % n * n + j) for i in range(n) for j in range(n)]


def sparse(chance: random.Random, size: int) -> list[Edge]:
    """A random graph: a large component with cycles, trees that hang from it, small ones."""
    nodes = int(size / 1.3)
    return [(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(size)]


SHAPES = {"random": cyclic, "ring": ring, "rings": rings, "torus": torus}


# ── recomputing ──


def iterate(spark: Any, edges: str) -> Any:
    """Semi-naive: each round adds one edge to the pairs that the last one found."""
    g = spark.table(edges).distinct().toDF("s", "e").localCheckpoint()
    found, parts = g, [g]
    while True:
        longer = found.alias("f").join(g.alias("g"), spark_equal("f.e", "g.s")).selectExpr(
            "f.s AS s", "g.e AS e"
        )  # fmt: skip
        known = parts[0]
        for part in parts[1:]:
            known = known.unionAll(part)
        found = longer.distinct().join(known, ["s", "e"], "left_anti").localCheckpoint()
        if found.isEmpty():
            return known
        parts.append(found)


def double(spark: Any, edges: str) -> Any:
    """Squaring: each round doubles the length of the paths."""
    pairs = spark.table(edges).distinct().toDF("s", "e").localCheckpoint()
    size = pairs.count()
    while True:
        joined = pairs.alias("a").join(pairs.alias("b"), spark_equal("a.e", "b.s"))
        more = pairs.unionAll(joined.selectExpr("a.s AS s", "b.e AS e")).distinct()
        pairs = more.localCheckpoint()
        now = pairs.count()
        if now == size:
            return pairs
        size = now


def spark_equal(a: str, b: str) -> Any:
    from pyspark.sql import functions as F

    return F.col(a) == F.col(b)


def labels(spark: Any, edges: str) -> Any:
    """The smallest node of each component, by passing labels and following them."""
    from pyspark.sql import functions as F

    e = spark.table(edges).toDF("a", "b")
    both = e.unionAll(e.selectExpr("b AS a", "a AS b")).distinct().localCheckpoint()
    now = both.groupBy("a").agg(F.least(F.col("a"), F.min("b")).alias("l")).localCheckpoint()
    while True:
        near = both.join(now.toDF("b", "m"), "b").groupBy("a").agg(F.min("m").alias("m"))
        step = now.join(near, "a").select("a", "l", F.least("l", "m").alias("m"))
        jump = step.join(now.toDF("m", "n"), "m").select(
            "a", F.least("m", "n").alias("n"), (F.least("m", "n") < F.col("l")).alias("moved")
        )
        new = jump.localCheckpoint()
        if new.where("moved").isEmpty():
            return now
        now = new.select("a", F.col("n").alias("l"))


# ── the run ──


class Bench:
    def __init__(self, name: str, graph: str, edges: list[Edge], ways: list[Any], options: Any):
        self.name, self.graph, self.edges, self.options = name, graph, edges, options
        self.ways = ways
        self.there = set(edges)
        self.chance = random.Random(2)
        self.rows: list[dict[str, Any]] = []
        lake = options.data / "bench-closure-lake"
        shutil.rmtree(lake, ignore_errors=True)
        self.keeper = vk.connect(lake, {"spark.sql.shuffle.partitions": "4"})
        self.spark = self.keeper.spark

    def frame(self, edges: list[Edge]) -> Any:
        starts, ends = [a for a, _ in edges], [b for _, b in edges]
        return self.spark.createDataFrame(pa.table({"src": starts, "dst": ends}))

    def setup(self) -> None:
        self.spark.sql(f"CREATE TABLE edges (src BIGINT, dst BIGINT) USING delta {FEED}")
        self.frame(self.edges).coalesce(1).write.insertInto("edges")
        report = self.keeper.create_closure("tc", "edges", "src", "dst", graph=self.graph)
        shown = "tc_components" if self.graph == "undirected" else "tc"
        self.shown = shown
        size = self.spark.table(shown).count()
        print(f"{self.name}: {len(self.edges):,} edges, {size:,} rows, built in", end=" ")
        print(f"{report.seconds:.1f} s", flush=True)
        self.again: Callable[..., Any] | None = None
        self.size = size

    def change(self, gone: list[Edge], come: list[Edge]) -> None:
        if gone:
            self.frame(gone).createOrReplaceTempView("gone")
            self.spark.sql(
                "MERGE INTO edges t USING gone s ON t.src = s.src AND t.dst = s.dst"
                " WHEN MATCHED THEN DELETE"
            )
            self.there -= set(gone)
        if come:
            self.frame(come).coalesce(1).write.insertInto("edges")
            self.there |= set(come)

    def recompute(self) -> float:
        """The closure again, into a table; the first time all ways, then the fastest."""
        best: tuple[float, Any] | None = None
        for way in [self.again] if self.again else self.ways:
            start = time.perf_counter()
            found = way(self.spark, "edges")
            found.write.format("delta").mode("overwrite").saveAsTable("again")
            took = time.perf_counter() - start
            if best is None or took < best[0]:
                best = took, way
        assert best is not None
        self.again = best[1]
        return best[0]

    def round(self, what: str, gone: list[Edge], come: list[Edge], *, counts: bool) -> None:
        self.change(gone, come)
        start = time.perf_counter()
        (report,) = self.keeper.refresh("tc")
        refreshed = time.perf_counter() - start
        again = self.recompute()
        view, other = self.spark.table(self.shown).toDF("x", "y"), self.spark.table("again")
        other = other.toDF("x", "y")
        assert view.count() == other.count() and view.exceptAll(other).isEmpty(), what
        print(f"  {what}: {refreshed:.2f} s against {again:.2f} s; {report}", flush=True)
        if counts:
            self.rows.append({
                "graph": self.name, "batch": what, "refresh": refreshed, "recompute": again,
                "strategy": report.strategy, "lane": report.lane, "reason": report.reason,
                "rows": self.size,
            })  # fmt: skip

    def new(self, n: int) -> list[Edge]:
        found: list[Edge] = []
        while len(found) < n:
            edge = self.fresh()
            if edge not in self.there and edge not in found:
                found.append(edge)
        return found

    def fresh(self) -> Edge:
        (a, _), (_, d) = self.chance.sample(self.edges, 2)
        if self.graph == "acyclic":  # from a layer to the next one
            width = self.options.size // 10
            return a, (a // width + 1) * width + d % width
        return a, d

    def run(self) -> list[dict[str, Any]]:
        self.setup()
        self.round("to warm up", [], self.new(1), counts=False)
        for n in range(self.options.rounds):
            for size in (1, 100):
                more = self.new(size)
                self.round(f"insert {size}", [], more, counts=True)
                old = self.chance.sample(sorted(self.there), size)
                self.round(f"delete {size}", old, [], counts=True)
            if self.graph == "undirected":
                self.splits(n)
        self.keeper.stop()
        return self.rows

    def splits(self, n: int) -> None:
        """An edge to a new node splits its component when it goes."""
        leaf = (self.edges[n][0], 10**9 + n)
        self.round("insert 1 that merges", [], [leaf], counts=True)
        self.round("delete 1 that splits", [leaf], [], counts=True)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The medians of each kind of batch."""
    kinds = dict.fromkeys((r["graph"], r["batch"]) for r in rows)
    found = []
    for graph, batch in kinds:
        some = [r for r in rows if (r["graph"], r["batch"]) == (graph, batch)]
        fast, slow = (statistics.median(r[k] for r in some) for k in ("refresh", "recompute"))
        found.append({
            "graph": graph, "batch": batch, "refresh": round(fast, 2), "recompute": round(slow, 1),
            "times": round(slow / fast, 1), "strategies": [r["strategy"] for r in some],
        })  # fmt: skip
    return found


def joins() -> dict[str, Any]:
    """The joins of a batch of either kind, and the paper's."""
    found: dict[str, Any] = {"paper": {"acyclic": [2, 6], "undirected": [8, 14]}}
    for graph in ("acyclic", "directed", "undirected"):
        system = load(graph)
        insert = count_joins(system, "BATCH", skip=["DELETED"]).joins
        delete = count_joins(system, "BATCH", skip=["INSERTED"]).joins
        found[graph] = [insert, delete]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=30_000, help="nodes of the acyclic graph")
    parser.add_argument("--directed", type=int, default=1_600, help="nodes of the directed graph")
    parser.add_argument("--undirected", type=int, default=1_000_000, help="edges of the third")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["acyclic", "directed", "undirected"])
    parser.add_argument("--shape", choices=SHAPES, default="random", help="of the directed graph")
    parser.add_argument("--double", action="store_true", help="also recompute by squaring")
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    ways = [iterate, double] if options.double else [iterate]
    graphs = {
        "acyclic": lambda: (layered(chance, options.size), ways),
        "directed": lambda: (SHAPES[options.shape](chance, options.directed), ways),
        "undirected": lambda: (sparse(chance, options.undirected), [labels]),
    }
    rows: list[dict[str, Any]] = []
    for name, make in graphs.items():
        if options.only in (None, name):
            edges, how = make()
            rows += Bench(name, name, edges, how, options).run()
    found = {"median": summary(rows), "joins": joins(), "all": rows}
    print(f"{'graph':12}{'batch':24}{'refresh':>9}{'again':>9}{'times':>8}")
    for r in found["median"]:
        print(f"{r['graph']:12}{r['batch']:24}{r['refresh']:9.2f}{r['recompute']:9.1f}", end="")
        print(f"{r['times']:8.1f}  {', '.join(sorted(set(r['strategies'])))}")
    print(f"joins on insert and delete: {found['joins']}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"median": found["median"], "joins": found["joins"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many rows readers of a program's outputs gained and lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from viewkeeper.engine.runner import Runner
from viewkeeper.lake.sources import Source, at
from viewkeeper.lake.stores import OP, Patch
from viewkeeper.recursive.layout import TAG
from viewkeeper.recursive.task import Task

Sizes = tuple[int, int]
_LEFT, _RIGHT = "__vk_before", "__vk_after"


def sizes_between(
    spark: SparkSession, store: Source, task: Task, before: int, after: int, patch: Patch | None
) -> Sizes | Callable[[], Sizes]:
    """The sizes of Δ and ∇ of the first output: from the patch if the stored table is what
    readers see, else by comparing the two versions when first asked for."""
    found = sizes_of_patch(task, patch) if patch is not None else None
    if found is not None:
        return found
    compare = _pairs if task.graph == "undirected" else _rows
    return lambda: compare(spark, store, task, before, after)


def sizes_of_patch(task: Task, patch: Patch) -> Sizes | None:
    """The same from the patch alone; None if it does not say."""
    rows = patch.rows
    if not isinstance(rows, pa.Table):
        return None
    if task.graph == "undirected" and rows.num_rows:
        return _pairs_of_patch(task, rows)
    if not task.graph and rows.num_rows:
        return None
    come = int(pc.sum(pc.equal(rows.column(OP), "I")).as_py() or 0)
    return come, rows.num_rows - come


def _pairs_of_patch(task: Task, rows: pa.Table) -> Sizes | None:
    """Connected pairs that are new and gone, from the components that change."""
    sizes: dict[str, dict[Any, int]] = {"D": {}, "I": {}}  # nodes by component, before and after
    homes: dict[str, dict[Any, Any]] = {"D": {}, "I": {}}  # components by node
    layout, ops = task.layout, rows.column(OP).to_pylist()

    def held(table: str) -> dict[str, list[Any]]:
        names = [name for name, _ in layout.held(table)]
        return {n: rows.column(layout.place(table, n)).to_pylist() for n in names}

    tags = rows.column(TAG).to_pylist()
    every, each = held("COMPONENTS"), held("COMPONENT")
    nodes = list(zip(*(v for n, v in each.items() if n != "Comp"), strict=True))
    for i, (tag, op) in enumerate(zip(tags, ops, strict=True)):
        if tag == "COMPONENTS":
            sizes[op][every["Comp"][i]] = every["Nodes"][i]
        else:
            homes[op][nodes[i]] = each["Comp"][i]
    known = {*sizes["D"], *sizes["I"]}
    if not {*homes["D"].values(), *homes["I"].values()} <= known:
        return None  # a component that changes and has as many nodes as before
    together: Counter[tuple[Any, Any]] = Counter()
    for c in known:
        together[c, c] += sizes["D"].get(c, 0)
    for node, old in homes["D"].items():
        together[old, old] -= 1
        if node in homes["I"]:
            together[old, homes["I"][node]] += 1
    stay = sum(n * (n - 1) for n in together.values())
    before, after = (sum(n * (n - 1) for n in sizes[op].values()) for op in "DI")
    return after - stay, before - stay


def size_of(spark: SparkSession, store: Source, task: Task) -> Sizes:
    """How many rows the first output of a new store has."""
    with _versions(spark, store, 0, 0) as own:
        if task.graph == "undirected":  # without listing the pairs
            nodes = "CAST(Nodes AS DECIMAL(19, 0))"
            stored = task.layout.select("COMPONENTS", _RIGHT)
            text = f"SELECT SUM({nodes} * ({nodes} - 1)) AS n FROM ({stored})"
        else:
            text = f"SELECT COUNT(*) AS n FROM ({next(iter(task.outputs(_RIGHT).values()))})"
        row = own.sql(text).first()
        return int((row[0] if row else 0) or 0), 0


def _pairs(spark: SparkSession, store: Source, task: Task, before: int, after: int) -> Sizes:
    """Connected pairs that are new and gone, without listing them: a component of n nodes has
    n(n - 1), and nodes that stay together keep theirs."""
    with _versions(spark, store, before, after) as own:
        layout = task.layout
        old = layout.select("COMPONENT", _LEFT)
        new = layout.select("COMPONENT", _RIGHT)
        nodes = [name for name, _ in layout.held("COMPONENT") if name != "Comp"]
        on = " AND ".join(f"a.`{n}` = b.`{n}`" for n in nodes)
        text = (
            f"SELECT a.Comp AS A, b.Comp AS B, CAST(COUNT(*) AS DECIMAL(38, 0)) AS N"
            f" FROM ({old}) AS a FULL JOIN ({new}) AS b ON {on} GROUP BY a.Comp, b.Comp"
        )
        groups = own.sql(text).persist()
        try:
            sums = []
            for keys in (["A"], ["B"], ["A", "B"]):
                there = groups.dropna(subset=keys)
                each = there.groupBy(*keys).agg(F.sum("N").alias("N"))
                row = each.agg(F.sum(F.col("N") * (F.col("N") - 1))).first()
                sums.append(int((row[0] if row else 0) or 0))
        finally:
            groups.unpersist()
    return sums[1] - sums[2], sums[0] - sums[2]


def _rows(spark: SparkSession, store: Source, task: Task, before: int, after: int) -> Sizes:
    with _versions(spark, store, before, after) as own:
        old, new = (own.sql(next(iter(task.outputs(name).values()))) for name in (_LEFT, _RIGHT))
        return new.exceptAll(old).count(), old.exceptAll(new).count()


@contextmanager
def _versions(
    spark: SparkSession, store: Source, before: int, after: int
) -> Iterator[SparkSession]:
    """A session in which two versions of a store have names."""
    with Runner(spark) as runner:
        for name, version in ((_LEFT, before), (_RIGHT, after)):
            at(runner.spark, store, version).createOrReplaceTempView(name)
        yield runner.spark

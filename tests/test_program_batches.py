"""Random batches on the driver, committed to a store by deltalake, without a JVM."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from viewkeeper.algebra.nodes import Table
from viewkeeper.engine.program_driver import DriverDesk
from viewkeeper.engine.program_place import build, difference_sql, follow, patch_sql, whole_sql
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import stores, tips
from viewkeeper.lake.sources import Source
from viewkeeper.lake.stores import OP, PROPERTIES, WHOLE_FILES, Patch
from viewkeeper.recursive import CycleError
from viewkeeper.recursive.layout import TAG
from viewkeeper.recursive.task import Task

TYPES = {"int": pa.int32(), "string": pa.string()}


def _tip(spark: Any, location: str, folder: str) -> tips.Tip:
    """What Spark says of a log, from deltalake."""
    table = DeltaTable(folder)
    metadata = {
        "id": str(table.metadata().id),
        "configuration": table.metadata().configuration,
        "schemaString": table.schema().to_json(),
        "partitionColumns": table.metadata().partition_columns,
    }
    return tips.Tip(table.version(), metadata, None)


class Kept:
    """A table of edges and a store, each a Delta table."""

    def __init__(self, folder: Path, graph: str, kind: str) -> None:
        self.task = Task(graph, ("src",), ("dst",), inputs=(("src", kind), ("dst", kind)))
        self.kind, self.graph = kind, graph
        self.edges, self.store = folder / "edges", folder / "store"
        self.commits = 0
        self.rows: list[tuple[Any, Any]] = []
        self.write([])
        desk = self.desk([], None)
        rows = desk.result(whole_sql(self.task, desk, build(self.task, desk)))
        by = [TAG] if self.task.layout.tagged else None
        write_deltalake(
            self.store, rows, partition_by=by, configuration={**PROPERTIES, **WHOLE_FILES}
        )
        desk.close()

    def write(self, rows: list[tuple[Any, Any]]) -> None:
        kind = TYPES[self.kind]
        held = {"src": pa.array([a for a, _ in rows], kind)}
        held["dst"] = pa.array([b for _, b in rows], kind)
        write_deltalake(self.edges, pa.table(held), mode="overwrite")

    def pin(self, path: Path) -> Pin:
        table = DeltaTable(path)
        source = Source(f"delta.`{path}`", str(table.metadata().id), str(path))
        return Pin(source, table.version(), {"schemaString": table.schema().to_json()})

    def desk(self, changes: list[tuple[Any, Any, int]], store: Pin | None) -> DriverDesk:
        desk = DriverDesk(SimpleNamespace(spark=None))  # type: ignore[arg-type]
        leaf = Table("t", ("src", "dst"), "")
        desk.bind_query("EDGES", leaf, {"t": self.pin(self.edges)}, self.task.input_columns)
        kinds = [TYPES[self.kind], TYPES[self.kind], pa.int64()]
        columns = [pa.array([c[i] for c in changes], kinds[i]) for i in range(3)]
        given = (*self.task.input_columns, ("Weight", "BIGINT"))
        desk.bind_rows("CHANGES", pa.table(columns, names=["a", "b", "w"]), given)
        desk.bind_store(self.task.layout, store)
        return desk

    def change(self, gone: list[Any], come: list[Any], *, anew: bool = False) -> None:
        """A batch; the store changes in one commit, or not at all."""
        rows = list(self.rows)
        for edge in gone:
            rows.remove(edge)
        self.write(rows + come)
        store = self.pin(self.store)
        desk = self.desk([(*e, -1) for e in gone] + [(*e, 1) for e in come], store)
        try:
            outcome = build(self.task, desk) if anew else follow(self.task, desk)
            sql = (difference_sql if outcome.replace else patch_sql)(self.task, desk, outcome)
            found = desk.result(sql) if sql else None
        except CycleError:
            self.write(self.rows)
            raise
        finally:
            desk.close()
        self.rows = rows + come
        if found is None or not found.num_rows:  # type: ignore[union-attr]
            return
        assert isinstance(found, pa.Table)
        only = set(pc.unique(found.column(OP)).to_pylist()) == {"I"}
        keys = [name for name, _ in self.task.layout.columns]
        self.commits += 1
        done = stores.apply(
            None,
            store.source,
            Patch(found, keys, only_inserts=only),
            lane="append" if only else "native",
            app_id="view",
            txn=self.commits,
            metadata={},
        )
        assert done == store.version + 1, "one commit"

    def output(self, name: str = "pairs") -> set[Any]:
        desk = self.desk([], self.pin(self.store))
        sql = self.task.closure("duckdb").output(name)
        rows = desk.db.execute(sql).fetchall()
        desk.close()
        assert len(rows) == len(set(rows))
        return set(rows)

    def check(self) -> None:
        whole = [(a, b) for a, b in self.rows if a is not None and b is not None]
        if self.graph == "undirected":
            parts = list(nx.connected_components(nx.Graph(whole)))
            want = {(x, y) for part in parts for x in part for y in part if x != y}
            assert self.output("components") == {(x, min(part)) for part in parts for x in part}
        else:
            graph = nx.DiGraph(whole)
            want = {(a, c) for a, b in whole for c in nx.descendants(graph, b) | {b}}
            want |= {(a, c) for a in graph for b, c in whole if b in nx.descendants(graph, a)}
        assert self.output() == want


def batches(folder: Path, graph: str, kind: str, seed: int, many: int) -> None:
    chance = random.Random(seed)
    names: list[Any] = list(range(9)) if kind == "int" else ["ä", "b", "", "Z", "a", "zz", "é", "0"]

    def edge() -> tuple[Any, Any]:
        a, b = chance.choice(names), chance.choice(names)
        if chance.random() < 0.05:
            return (None, b) if chance.random() < 0.5 else (a, None)
        if graph == "acyclic" and chance.random() < 0.98:
            a, b = sorted(chance.sample(range(len(names)), 2))
            return names[a], names[b]
        return a, b

    kept = Kept(folder, graph, kind)
    for n in range(many):
        gone = chance.sample(kept.rows, min(len(kept.rows), chance.choice([0, 0, 1, 2, 5])))
        come = [edge() for _ in range(chance.choice([0, 1, 1, 2, 6]))]
        try:
            kept.change(gone, come, anew=n % 7 == 6)
        except CycleError:
            after = [e for e in kept.rows if e not in gone] + come + kept.rows
            assert not nx.is_directed_acyclic_graph(nx.DiGraph([e for e in after if None not in e]))
        kept.check()


@pytest.mark.parametrize(
    ("graph", "kind"), [("directed", "int"), ("acyclic", "string"), ("undirected", "int")]
)
def test_random_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, kind: str
) -> None:
    monkeypatch.setattr(tips, "tip", _tip)
    batches(tmp_path, graph, kind, seed=1, many=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("graph", ["directed", "acyclic", "undirected"])
def test_many_random_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, seed: int
) -> None:
    monkeypatch.setattr(tips, "tip", _tip)
    batches(tmp_path, graph, "int" if seed % 2 else "string", seed, many=60)

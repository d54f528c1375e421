"""Programs on the driver: over the files of Delta tables, without a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from viewkeeper.algebra.nodes import Table
from viewkeeper.engine import program_driver
from viewkeeper.engine.program_driver import DriverDesk, check, suits
from viewkeeper.engine.program_place import follow
from viewkeeper.engine.sure_text import UnsureError
from viewkeeper.engine.vector import Pin
from viewkeeper.lake.sources import Source
from viewkeeper.recursive import closure as closures
from viewkeeper.recursive.layout import TAG, in_dialect
from viewkeeper.recursive.task import PREFIX, Task

INPUTS = (("src", "int"), ("dst", "int"))
UNDIRECTED = Task("undirected", ("src",), ("dst",), inputs=INPUTS)


def pin(path: Path) -> Pin:
    table = DeltaTable(path)
    metadata = {"schemaString": table.schema().to_json()}
    source = Source(f"delta.`{path}`", str(table.metadata().id), str(path))
    return Pin(source, table.version(), metadata)


def edges(path: Path, rows: list[tuple[Any, Any]]) -> Pin:
    held = pa.table(
        {"src": [a for a, _ in rows], "dst": [b for _, b in rows], "more": ["x"] * len(rows)},
        schema=pa.schema([("src", pa.int32()), ("dst", pa.int32()), ("more", pa.string())]),
    )
    write_deltalake(path, held, mode="append")
    return pin(path)


def desk_over(found: Pin, changes: list[tuple[Any, Any, int]], store: Pin | None) -> DriverDesk:
    desk = DriverDesk(SimpleNamespace(spark=None))  # type: ignore[arg-type]
    leaf = Table("t", ("src", "dst"), "")
    desk.bind_query("EDGES", leaf, {"t": found}, UNDIRECTED.input_columns)
    columns = (*UNDIRECTED.input_columns, ("Weight", "BIGINT"))
    names = [name for name, _ in columns]
    rows = pa.table({n: [c[i] for c in changes] for i, n in enumerate(names)})
    desk.bind_rows("CHANGES", rows, columns)
    desk.bind_store(UNDIRECTED.layout, store)
    return desk


def test_a_store_of_two_tables_is_read_and_written(tmp_path: Path) -> None:
    graph = edges(tmp_path / "e", [(1, 2), (2, 3), (4, 5), (None, 4)])
    desk = desk_over(graph, [], None)
    outcome = closures.build(UNDIRECTED.closure("duckdb"), desk)
    parts = [UNDIRECTED.layout.rows(c.table, PREFIX + str(c.inserted)) for c in outcome.changes]
    rows = desk.result(in_dialect(" UNION ALL ".join(parts), "duckdb"))
    assert isinstance(rows, pa.Table)
    assert rows.schema.names == [name for name, _ in UNDIRECTED.layout.columns]
    write_deltalake(tmp_path / "s", rows, partition_by=[TAG])
    desk.close()

    graph = edges(tmp_path / "e", [(3, 4)])
    desk = desk_over(graph, [(3, 4, 1)], pin(tmp_path / "s"))
    outcome = closures.refresh(UNDIRECTED.closure("duckdb"), desk)
    assert not outcome.replace
    changed = {c.table: c for c in outcome.changes}
    moved = desk.rows(changed["COMPONENT"].inserted or "")
    assert {row[0] for row in moved} == {4, 5}  # the smaller component moves
    names = desk.rows(changed["COMPONENTS"].inserted or "")
    assert [(row[1], row[2]) for row in names] == [(1, 5)]
    desk.close()


def test_what_is_left_to_spark(tmp_path: Path) -> None:
    on = SimpleNamespace(spark=SimpleNamespace(conf={"spark.viewkeeper.driver": "true"}))
    off = SimpleNamespace(spark=SimpleNamespace(conf={"spark.viewkeeper.driver": "false"}))
    found = edges(tmp_path / "e", [(1, 2)])
    check(on, UNDIRECTED, [found])  # type: ignore[arg-type]
    with pytest.raises(UnsureError, match="off"):
        check(off, UNDIRECTED, [found])  # type: ignore[arg-type]
    for kind in ("double", "timestamp", "string collate UNICODE", "binary"):
        assert not suits(Task("directed", ("a",), ("b",), inputs=(("a", kind), ("b", kind))))
    assert not suits(Task(text="-- SYSTEM mine", inputs=INPUTS))
    desk = DriverDesk(SimpleNamespace(spark=None))  # type: ignore[arg-type]
    with pytest.raises(UnsureError):  # no Delta table
        desk.bind_query("EDGES", Table("t", ("src", "dst"), ""), {}, UNDIRECTED.input_columns)
    desk.close()


def test_a_program_that_needs_too_much_ends_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewkeeper.engine.program_driver.MOST_ROWS", 3)
    desk = desk_over(edges(tmp_path / "e", [(i, i + 1) for i in range(9)]), [], None)
    with pytest.raises(UnsureError):
        closures.build(UNDIRECTED.closure("duckdb"), desk)
    desk.close()


def test_what_cannot_be_followed_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many links between inserted edges that they are no small change any more."""
    task = Task("directed", ("src",), ("dst",), inputs=INPUTS)
    far = [(100 * i + 1, 100 * i + 2) for i in range(30)]
    joined = [(100 * i + 2, 100 * i + 101) for i in range(29)]
    desk = desk_over(edges(tmp_path / "e", [*far, *joined]), [(*e, 1) for e in joined], None)
    desk.define("TC", "SELECT 100 * i + 1 AS Start, 100 * i + 2 AS End FROM range(30) AS r(i)",
                lazy=False)  # fmt: skip
    desk.keep()
    held = program_driver.DriverDesk.define

    def define(self: DriverDesk, name: str, sql: str, *, lazy: bool) -> None:
        held(self, name, sql, lazy=lazy)
        if name == "LINK" and self._rows[name] > 100:
            raise UnsureError("too much")

    monkeypatch.setattr(DriverDesk, "define", define)
    outcome = follow(task, desk)
    assert outcome.replace and "more than the driver has" in str(outcome.recompute)
    assert len(desk.rows(outcome.changes[0].inserted or "")) == 60 * 59 // 2
    with pytest.raises(UnsureError):  # asked to follow it nevertheless: by Spark
        follow(task, desk, gives_up=False)
    desk.close()


def test_the_task_is_kept_as_text() -> None:
    assert Task.from_json(json.dumps(json.loads(UNDIRECTED.to_json()))) == UNDIRECTED

"""Programs for one row at a time, run for batches: they agree with building anew."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pytest

from recursive_duckdb import DuckRunner, connect
from viewkeeper.recursive import Outcome
from viewkeeper.recursive.layout import in_dialect
from viewkeeper.recursive.rowwise import CHANGES, ROWS, build, follow
from viewkeeper.recursive.task import PREFIX, Task


class Batches:
    """Rows, and a task over them whose tables DuckDB keeps."""

    def __init__(self, text: str, inputs: tuple[tuple[str, str], ...]) -> None:
        self.task = Task(text=text, inputs=inputs)
        self.db = connect()
        self.runner = DuckRunner(self.db, PREFIX)
        self.columns = ", ".join(f'"{n}" {kind}' for n, kind in self.task.input_columns)
        for table, held in self.task.layout.tables:
            listed = ", ".join(f'"{n}" {kind}' for n, kind in held)
            self.db.execute(f'CREATE TEMP TABLE "{PREFIX}{table}" ({listed})')
            self.runner.kinds[table] = "TABLE"
        self.rows: list[Any] = []

    def give(self, name: str, rows: list[Any], more: str = "") -> None:
        self.db.execute(f'CREATE OR REPLACE TEMP TABLE "{PREFIX}{name}" ({self.columns}{more})')
        for row in rows:
            marks = ", ".join("?" for _ in row)
            self.db.execute(f'INSERT INTO "{PREFIX}{name}" VALUES ({marks})', list(row))

    def change(self, gone: list[Any], come: list[Any]) -> Outcome:
        for row in gone:
            self.rows.remove(row)
        self.rows += come
        self.give(ROWS, self.rows)
        weighed = [(*r, -1) for r in gone] + [(*r, 1) for r in come]
        self.give(CHANGES, weighed, ', "Weight" BIGINT')
        before = {table: self.table(table) for table, _ in self.task.layout.tables}
        outcome = follow(self.task, self.runner, "duckdb")
        for change in outcome.changes:  # the runner's tables are those after the batch
            told = set(self.runner.rows(change.inserted or ""))
            lost = set(self.runner.rows(change.deleted or ""))
            assert (before[change.table] - lost) | told == self.table(change.table)
            assert not told & before[change.table] and lost <= before[change.table]
        return outcome

    def table(self, name: str) -> set[Any]:
        rows = self.runner.rows(name)
        assert len(rows) == len(set(rows))
        return set(rows)

    def output(self) -> set[Any]:
        return set(self.db.execute(self.task.system("duckdb").outputs[0].sql).fetchall())


def test_even_counts_different_rows_without_null() -> None:
    kept = Batches("even", (("x", "VARCHAR"),))
    kept.give(ROWS, [])
    assert build(kept.task, kept.runner, "duckdb").replace
    kept.db.execute(f'INSERT INTO "{PREFIX}EVEN" SELECT * FROM "{PREFIX}EVEN_COME"')
    assert kept.output() == {(1,)}
    kept.change([], [("a",), ("a",), (None,)])
    assert kept.output() == set()
    kept.change([("a",)], [("b",)])
    assert kept.output() == {(1,)}
    kept.change([("a",), ("b",)], [("c",), ("d",), ("e",)])
    assert kept.output() == set()


@pytest.mark.parametrize("seed", range(4))
def test_random_batches_by_the_papers_programs(seed: int) -> None:
    chance = random.Random(seed)
    types = (("a", "INTEGER"), ("b", "INTEGER"))
    kept = Batches("acyclic_single" if seed % 2 else "directed_single", types)
    for _ in range(6):
        gone = chance.sample(kept.rows, min(len(kept.rows), chance.randrange(3)))
        come = []
        for _ in range(chance.randrange(1, 4)):
            a, b = sorted(chance.sample(range(6), 2))
            come.append((a, b))
        kept.change(gone, come)
        graph = nx.DiGraph(kept.rows)
        want = {(x, y) for x in graph for y in nx.descendants(graph, x)}
        assert kept.output() == want


def test_without_a_program_to_build_rows_are_inserted_one_by_one() -> None:
    kept = Batches("acyclic_single", (("a", "INTEGER"), ("b", "INTEGER")))
    kept.give(ROWS, [(1, 2), (2, 3), (2, 3), (3, None)])
    outcome = build(kept.task, kept.runner, "duckdb")
    assert outcome.replace
    assert set(kept.runner.rows("TC__COME")) == {(1, 2), (2, 3), (1, 3)}


def test_text_of_another_dialect() -> None:
    assert in_dialect("SELECT `a` FROM t", "duckdb") == 'SELECT "a" FROM t'

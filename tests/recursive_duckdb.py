"""Runs programs on DuckDB: the runner that tests use, and graphs kept by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from viewkeeper.recursive import Closure, Outcome, bind, build, columns, load, prepare, refresh, run
from viewkeeper.recursive.model import System
from viewkeeper.recursive.nodes import column_names

# Planning is most of the time of small queries.
_NOT_NEEDED = (
    "join_order,statistics_propagation,column_lifetime,compressed_materialization,reorder_filter,"
    "join_filter_pushdown,late_materialization,common_aggregate,build_side_probe_side"
)


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory, on one core, for small tables."""
    db = duckdb.connect(":memory:")
    db.execute("SET threads = 1")
    db.execute(f"SET disabled_optimizers = '{_NOT_NEEDED}'")
    return db


class DuckRunner:
    """Names are temporary tables, or views if lazy; changes are committed in one transaction."""

    def __init__(self, db: duckdb.DuckDBPyConnection, prefix: str = "") -> None:
        self.db = db
        self.prefix = prefix
        self.kinds: dict[str, str] = {}
        self.log: list[tuple[str, int]] = []

    def name(self, name: str) -> str:
        return f'"{self.prefix}{name}"'

    def define(self, name: str, sql: str, *, lazy: bool) -> None:
        kind = "VIEW" if lazy else "TABLE"
        if self.kinds.get(name, kind) != kind:
            self.drop(name)
        self.db.execute(f"CREATE OR REPLACE TEMP {kind} {self.name(name)} AS {sql}")
        self.kinds[name] = kind

    def define_empty(self, name: str, sql: str) -> None:
        if self.kinds.get(name) == "TABLE":  # from a former run, with the same columns
            self.db.execute(f"DELETE FROM {self.name(name)}")
        else:
            self.define(name, f"SELECT * FROM ({sql}) AS q LIMIT 0", lazy=False)

    def drop(self, name: str) -> None:
        if name in self.kinds:
            self.db.execute(f"DROP {self.kinds.pop(name)} {self.name(name)}")

    def is_empty(self, name: str) -> bool:
        return not self.db.execute(f"SELECT 1 FROM {self.name(name)} LIMIT 1").fetchall()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return self.db.execute(f"SELECT * FROM {self.name(name)}").fetchall()

    def commit(self, outcome: Outcome, system: System, width: int = 1) -> None:
        """Applies the changes; checks that they are exact."""
        self.db.execute("BEGIN")
        if outcome.replace:
            for table in system.tables:
                self.db.execute(f"DELETE FROM {self.name(table.name)}")
        for change in outcome.changes:
            table = system.table(change.table)
            keys = [c for c, _ in columns(table, width, ["x"] * width)]
            target = self.name(change.table)
            if change.deleted and not outcome.replace:
                same = " AND ".join(f't."{c}" = d."{c}"' for c in keys)
                wanted = len(self.rows(change.deleted))
                gone = self.db.execute(
                    f"DELETE FROM {target} AS t USING {self.name(change.deleted)} AS d WHERE {same}"
                ).fetchall()
                assert gone == [(wanted,)], f"{change.deleted}: {wanted} rows, {gone} left"
            if change.inserted:
                self.db.execute(f"INSERT INTO {target} SELECT * FROM {self.name(change.inserted)}")
            total, distinct = self.db.execute(
                f"SELECT (SELECT COUNT(*) FROM {target}), "
                f"(SELECT COUNT(*) FROM (SELECT DISTINCT * FROM {target}))"
            ).fetchall()[0]
            assert total == distinct, f"{change.table} has duplicates"
        self.db.execute("COMMIT")

    def clear(self) -> None:
        """Forgets what a program defined."""
        for name in [n for n, kind in self.kinds.items() if kind == "VIEW"]:
            self.drop(name)


class Single:
    """A shipped system for one row at a time, with the rows so far."""

    def __init__(self, name: str, types: Sequence[str] = ("VARCHAR",)) -> None:
        self.width = len(types)
        self.db = connect()
        self.runner = DuckRunner(self.db)
        self.system = prepare(load(name), "duckdb", self.width)
        self.input = self.system.inputs[0]
        for relation in (*self.system.inputs, *self.system.tables):
            listed = ", ".join(f'"{c}" {t}' for c, t in columns(relation, self.width, types))
            self.db.execute(f'CREATE TABLE "{relation.name}" ({listed})')
        self.symmetric = name == "undirected_single"
        if "BUILD" in self.system.programs:
            self.apply("BUILD", {})

    def apply(self, event: Any, values: dict[str, Any]) -> Outcome:
        self.runner.clear()
        program = self.system.programs[event]
        bound = bind(self.system, program, values, dialect="duckdb", width=self.width)
        outcome = run(bound, self.runner, width=self.width)
        self.runner.commit(outcome, self.system, self.width)
        return outcome

    def change(self, event: Any, *row: Any) -> Outcome:
        """Runs the program for a row, then changes the input."""
        program = self.system.programs[event]
        values = dict(zip([p.name for p in program.parameters], row, strict=True))
        outcome = self.apply(event, values)
        ways = {row, row[::-1]} if self.symmetric else {row}
        for way in ways:
            flat = [x for node in way for x in (node if self.width > 1 else [node])]
            marks = ", ".join("?" for _ in flat)
            if event == "INSERT":
                self.db.execute(f'INSERT INTO "{self.input.name}" VALUES ({marks})', flat)
            else:
                names = [c for c, _ in columns(self.input, self.width, ["x"] * self.width)]
                where = " AND ".join(f'"{c}" = ?' for c in names)
                self.db.execute(f'DELETE FROM "{self.input.name}" WHERE {where}', flat)
        return outcome

    def insert(self, *row: Any) -> Outcome:
        return self.change("INSERT", *row)

    def delete(self, *row: Any) -> Outcome:
        return self.change("DELETE", *row)

    def table(self, name: str) -> set[tuple[Any, ...]]:
        return set(self.runner.rows(name))

    def output(self) -> set[tuple[Any, ...]]:
        return set(self.db.execute(self.system.outputs[0].sql).fetchall())


class Kept:
    """A table of edges and its closure, kept by the programs for batches."""

    def __init__(
        self,
        graph: Any,
        types: Sequence[str] = ("INTEGER",),
        settings: dict[str, Any] | None = None,
    ) -> None:
        width = len(types)
        start = [f"s{i}" for i in range(width)]
        end = [f"e{i}" for i in range(width)]
        self.closure = Closure(start, end, graph, dialect="duckdb", prefix="v_")
        self.db = connect()
        self.settings = settings
        self.runner = DuckRunner(self.db, "v_")
        listed = ", ".join(f"{c} {t}" for c, t in zip(start + end, [*types] * 2, strict=True))
        self.db.execute(f"CREATE TABLE edges ({listed})")
        self.db.execute(f"CREATE TABLE feed ({listed}, Weight BIGINT)")
        self.db.execute(f"CREATE VIEW v_EDGES AS {self.closure.edges('edges')}")
        self.db.execute(f"CREATE VIEW v_CHANGES AS {self.closure.edges('feed', 'Weight')}")
        for table in self.closure.system.tables:
            listed = ", ".join(f'"{c}" {t}' for c, t in columns(table, width, types))
            self.db.execute(f"CREATE TABLE v_{table.name} ({listed})")
        self.names = start + end

    def change(
        self, removed: Iterable[Sequence[Any]], added: Iterable[Sequence[Any]], **how: Any
    ) -> Outcome:
        """Changes rows of the edges, then refreshes; on an error the rows are put back."""
        listed = ", ".join(self.names)
        same = " AND ".join(f"x.{c} IS NOT DISTINCT FROM f.{c}" for c in self.names)
        self.db.execute("DELETE FROM feed")
        self.db.execute("CREATE OR REPLACE TEMP TABLE backup AS SELECT * FROM edges")
        rows = [(r, -1) for r in removed] + [(r, 1) for r in added]
        if rows:
            marks = ", ".join(["(" + ", ".join("?" for _ in [*self.names, 1]) + ")"] * len(rows))
            flat = [x for row, weight in rows for x in (*row, weight)]
            self.db.execute(f"INSERT INTO feed VALUES {marks}", flat)
        self.db.execute(
            f"""DELETE FROM edges WHERE rowid IN (
                SELECT x.id FROM (
                    SELECT rowid AS id, *, ROW_NUMBER() OVER (PARTITION BY {listed}) AS n FROM edges
                ) AS x JOIN (
                    SELECT {listed}, COUNT(*) AS c FROM feed WHERE Weight < 0 GROUP BY {listed}
                ) AS f ON {same} AND x.n <= f.c)"""
        )
        self.db.execute(f"INSERT INTO edges SELECT {listed} FROM feed WHERE Weight > 0")
        try:
            return self.refresh(**how)
        except Exception:
            self.db.execute("DELETE FROM edges")
            self.db.execute("INSERT INTO edges SELECT * FROM backup")
            raise

    def refresh(self, **how: Any) -> Outcome:
        self.runner.clear()
        outcome = refresh(self.closure, self.runner, self.settings, **how)
        self.runner.commit(outcome, self.closure.system, self.closure.width)
        return outcome

    def build(self) -> Outcome:
        self.runner.clear()
        outcome = build(self.closure, self.runner, self.settings)
        self.runner.commit(outcome, self.closure.system, self.closure.width)
        return outcome

    def output(self, name: str = "pairs") -> set[tuple[Any, ...]]:
        rows = self.db.execute(self.closure.output(name)).fetchall()
        assert len(rows) == len(set(rows))
        return set(rows)


__all__ = ["DuckRunner", "Kept", "Single", "column_names", "connect"]

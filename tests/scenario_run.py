"""Runs scenarios on Spark: each view is compared with its query after each refresh."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from scenario import Bag, Line, Scenario, ScenarioError, alike, bag, statements, table_statement
from spark_oracle import check_rows, compare_all, local_table, session
from viewkeeper.errors import ViewKeeperError


def check_types(spark: Any, name: str, sql: str, where: str) -> tuple[Any, Any]:
    """The view and its query as frames, after a comparison of their columns and types."""
    view = spark.table(name)
    query = spark.sql(sql)
    if len(query.columns) != len(view.columns):  # a source of SELECT * got a new column
        query = query.select(*(f"`{c}`" for c in view.columns))
    types = [[(f.name, f.dataType.simpleString()) for f in q.schema] for q in (view, query)]
    if types[0] != types[1]:
        raise ScenarioError(f"{where}: {name} has {types[0]}, its query {types[1]}")
    return view, query


def compare(spark: Any, name: str, sql: str, where: str) -> Bag:
    """The rows of a view, after a comparison with its query: rows and types."""
    view, query = check_types(spark, name, sql, where)
    have, want = bag(view.collect()), bag(query.collect())
    if not alike(have, want):
        missing, extra = list((want - have).items())[:5], list((have - want).items())[:5]
        raise ScenarioError(f"{where}: {name} lacks {missing} and has {extra} too many\n{sql}")
    return have


# ── running ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Moment:
    """The rows of all tables after a refresh, and the rows of all views, for the reference."""

    tables: dict[str, Bag]
    views: dict[str, Bag]
    columns: dict[str, tuple[str, ...]]  # of the tables


@dataclass
class Trace:
    """What a run saw: the queries of the views, the moments."""

    definitions: dict[str, Any] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    refreshes: int = 0


class Run:
    """One scenario on a session: a schema of its own, and a keeper with a schema of its own."""

    def __init__(self, spark: Any, scenario: Scenario, *, trace: bool = True) -> None:
        from viewkeeper.keeper import Keeper

        self.spark, self.scenario, self.tracing = spark, scenario, trace
        self.schema = f"sc_{scenario.name}"
        self.home = spark.catalog.currentDatabase()
        for suffix in ("", "_vk", "_late"):
            spark.sql(f"DROP SCHEMA IF EXISTS {self.schema}{suffix} CASCADE")
        spark.sql(f"CREATE SCHEMA {self.schema}")
        spark.catalog.setCurrentDatabase(self.schema)
        self.keeper = Keeper(spark, schema=f"{self.schema}_vk")
        self.late = Keeper(spark, schema=f"{self.schema}_late") if scenario.split else None
        self.queries: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self.rows: dict[str, Bag] = {}
        self.before: dict[str, Bag] = {}  # rows of the views when the copies were made
        self.reports: dict[str, Any] = {}
        self.full_allowed: dict[int, set[str]] = {}
        self.trace = Trace()
        self.tables: list[str] = []

    def run(self) -> Trace:
        """All steps; raises where an expectation is not met."""
        lines = self.scenario.lines
        try:
            for i, line in enumerate(lines):
                self.where = f"{self.scenario.name}, line {line.number}"
                self.next = lines[i + 1 :]
                try:
                    getattr(self, f"do_{line.verb}")(line)
                except ScenarioError:
                    raise
                except Exception as e:
                    raise ScenarioError(f"{self.where}: {type(e).__name__}: {e}") from e
            self.where = f"{self.scenario.name}, the copies refreshed once"
            self.finish_late()
        finally:
            self.spark.catalog.setCurrentDatabase(self.home)
            for suffix in ("", "_vk", "_late"):
                self.spark.sql(f"DROP SCHEMA IF EXISTS {self.schema}{suffix} CASCADE")
        return self.trace

    def do_split(self, line: Line) -> None:
        """Told to the constructor already."""

    do_slow = do_split

    def do_table(self, line: Line) -> None:
        name = line.words.split()[0].split("(")[0]
        create, properties = table_statement(line.words)
        self.spark.sql(f"{create} TBLPROPERTIES ({properties})")
        if line.rows:
            self.spark.sql(f"INSERT INTO {name} VALUES {', '.join(f'({r})' for r in line.rows)}")
        self.tables.append(name)

    def do_view(self, line: Line) -> None:
        name, mode = [*line.words.split(), "auto"][:2]
        self.keeper.create_view(name, line.text, refresh=mode, replace=name in self.queries)
        if self.late is not None:
            copy = self.renamed(line.text)
            self.late.create_view(f"{name}__late", copy, refresh=mode, replace=name in self.queries)
        self.queries[name], self.modes[name] = line.text, mode
        check_types(self.spark, name, line.text, self.where)
        if self.tracing:
            self.define(name)
        if not self.next or self.next[0].verb != "view":
            self.rows = self.compare_all()
            self.before = {n: self.before.get(n, rows) for n, rows in self.rows.items()}
            if self.tracing:
                self.snapshot()

    def renamed(self, sql: str) -> str:
        """The query over the copies of the views it reads."""
        for name in self.queries:
            sql = re.sub(rf"\b{name}\b", f"{name}__late", sql)
        return sql

    def do_change(self, line: Line) -> None:
        for statement in statements(line.text):
            self.keeper.sql(statement)

    def do_refresh(self, line: Line) -> None:
        mode = line.words or "incremental"
        reports = self.keeper.refresh(strategy=None if mode == "auto" else mode)
        self.reports = {r.view: r for r in reports}
        told = {s.words.split()[0] for s in self.expectations()}
        before, self.rows = self.rows, self.compare_all()
        for name in self.queries:
            report = self.reports[name]
            self.check_counts(report, before[name], self.rows[name])
            if mode == "incremental" and name not in told and report.strategy == "full":
                raise ScenarioError(f"{self.where}: {name} was refreshed in full: {report.reason}")
        self.trace.refreshes += len(reports)
        if self.tracing:
            self.snapshot()

    def compare_all(self) -> dict[str, Bag]:
        """The views against their queries; the last time, also as a reader of the lake has them."""
        try:
            found = compare_all(self.keeper, self.tables, self.queries, self.where)
        except ScenarioError:
            raise
        except Exception as e:  # names in full, tables that were dropped
            print(f"{self.where}: compared on the lake, {str(e).splitlines()[0][:100]}")
            queries = self.queries.items()
            return {name: compare(self.spark, name, sql, self.where) for name, sql in queries}
        if not any(line.verb == "refresh" for line in self.next):
            for name, rows in found.items():
                view, _ = check_types(self.spark, name, self.queries[name], self.where)
                check_rows(name, bag(view.collect()), rows, self.where)
        return found

    def expectations(self) -> list[Line]:
        """The expectations that follow this line."""
        found: list[Line] = []
        for line in self.next:
            if line.verb != "expect":
                break
            found.append(line)
        return found

    def check_counts(self, report: Any, old: Bag, new: Bag) -> None:
        want = (sum((new - old).values()), sum((old - new).values()))
        have = (report.inserted, report.deleted)
        if have != want:
            what = f"told of {have}, the least change is {want} (inserted, deleted)"
            raise ScenarioError(f"{self.where}: {report.view} {what}; {report}")

    def do_expect(self, line: Line) -> None:
        name, plus, minus, *strategy = line.words.split()
        report = self.reports[name]
        have = (f"+{report.inserted}", f"-{report.deleted}", report.strategy)
        if have != (plus, minus, *(strategy or [report.strategy])):
            raise ScenarioError(f"{self.where}: {name} was {have}: {report.reason}")

    def do_error(self, line: Line) -> None:
        try:
            self.keeper.sql(line.text)
        except ViewKeeperError as e:
            if e.code != line.words:
                raise ScenarioError(f"{self.where}: expected {line.words}, got {e}") from e
        else:
            raise ScenarioError(f"{self.where}: no error")
        for name, rows in self.rows.items():
            if bag(self.spark.table(name).collect()) != rows:
                raise ScenarioError(f"{self.where}: {name} was changed by a statement that failed")

    def do_drop(self, line: Line) -> None:
        self.keeper.drop_view(line.words)
        if self.late is not None:
            self.late.drop_view(f"{line.words}__late")
        for known in (self.queries, self.modes, self.rows):
            known.pop(line.words, None)

    def finish_late(self) -> None:
        """Batch-split invariance: one refresh after all changes, the same rows, the net counts."""
        if self.late is None:
            return
        reports = {r.view: r for r in self.late.refresh(strategy="incremental")}
        for name in self.queries:
            rows = bag(self.spark.table(f"{name}__late").collect())
            if not alike(rows, self.rows[name]):
                missing, extra = self.rows[name] - rows, rows - self.rows[name]
                raise ScenarioError(f"{self.where}: {name} lacks {missing}, has {extra} too many")
            self.check_counts(reports[f"{name}__late"], self.before[name], rows)

    # ── for the reference ──

    def define(self, name: str) -> None:
        """The view's query in the algebra, over the tables alone."""
        from viewkeeper.frontend import read

        names = list(self.queries)
        below = [f"{n} AS ({self.queries[n]})" for n in names[: names.index(name)]]
        inner = self.queries[name]
        whole = f"WITH {', '.join(below)} SELECT * FROM ({inner})" if below else inner
        self.trace.definitions[name] = read(self.spark, whole, check=False)

    def snapshot(self) -> None:
        tables, columns = {}, {}
        copy = session(self.spark)
        for t in self.tables:
            frame = local_table(self.spark, copy, t)
            columns[t] = tuple(frame.columns)
            tables[t] = bag(frame.collect())
        self.trace.moments.append(Moment(tables, dict(self.rows), columns))

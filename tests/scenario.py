"""Scenarios: plain text files of tables, views, changes and refreshes, read and run on Spark.

A scenario is lines of these forms; indented lines go on with the one above, ``#`` begins a comment:

    table r (a INT, b STRING) [feed off] [partitioned by (a)] [deletion vectors] [column mapping]
      1, 'x'                            one row per line, as in VALUES
    view v [incremental | full]: SELECT a FROM r      a name that is there already is replaced
    change: DELETE FROM r WHERE a = 1                 any statements, one per line ending in ;
    refresh [auto | full | incremental]               incremental if nothing is said
    expect v +1 -2 [incremental | full | none]        what the last refresh did to v
    error CODE: REFRESH MATERIALIZED VIEW v           it must fail so and change no view
    drop v
    split                               also keep copies of all views, refreshed once, at the end

After each refresh every view equals its query as a bag, the columns have the query's types, and the
report's ``inserted`` and ``deleted`` are the sizes of the least change.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.errors import ViewKeeperError

HERE = Path(__file__).parent / "scenarios"
Bag = Counter[tuple[Any, ...]]


class ScenarioError(Exception):
    """A line that cannot be read, or an expectation that was not met."""


@dataclass(frozen=True)
class Line:
    """One step: its first word, the words before the colon or the end, the text after the colon."""

    number: int
    verb: str
    words: str
    text: str
    rows: tuple[str, ...] = ()


@dataclass
class Scenario:
    """A named list of steps."""

    name: str
    lines: list[Line]

    @property
    def split(self) -> bool:
        return any(line.verb == "split" for line in self.lines)


_VERBS = ("table", "view", "change", "refresh", "expect", "error", "drop", "split")
_COLON = ("view", "change", "error")


def read_scenario(path: Path) -> Scenario:
    """The steps of a file."""
    return parse(path.stem, path.read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Scenario:
    """The steps of a text.

    >>> [(s.verb, s.words, s.rows) for s in parse("x", "table r (a INT)\\n  1\\nrefresh").lines]
    [('table', 'r (a INT)', ('1',)), ('refresh', '', ())]
    """
    lines: list[Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        plain = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        if not plain:
            continue
        if plain[0].isspace():
            if not lines:
                raise ScenarioError(f"{name}, line {number}: nothing to go on with")
            last = lines.pop()
            text_ = f"{last.text}\n{plain.strip()}".strip()
            rows = (*last.rows, plain.strip())
            lines.append(Line(last.number, last.verb, last.words, text_, rows))
            continue
        verb = re.match(r"\w+", plain)
        if verb is None or verb[0] not in _VERBS:
            raise ScenarioError(f"{name}, line {number}: expected one of {', '.join(_VERBS)}")
        rest = plain[len(verb[0]) :]
        words, _, after = rest.partition(":") if verb[0] in _COLON else (rest, "", "")
        lines.append(Line(number, verb[0], words.strip(), after.strip()))
    return Scenario(name, lines)


def statements(text: str) -> list[str]:
    """The statements of a change: each ends with ; at the end of a line."""
    return [s.strip() for s in re.split(r";\s*(?:\n|$)", text) if s.strip()]


def scenarios() -> list[Path]:
    """All files, in order."""
    return sorted(HERE.glob("*.txt"))


# ── values and bags ──────────────────────────────────────────────────────────────────────────────


def plain(value: Any) -> Any:
    """A value to compare and hash: NaN is NaN, 0.0 is -0.0, nested values are tuples."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, dict):
        return frozenset((plain(k), plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    return value


def rounded(value: Any) -> Any:
    """Floating point numbers to ten digits: Spark adds them up in no certain order."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return tuple(rounded(v) for v in value) if isinstance(value, tuple) else value


def bag(rows: Iterable[Any]) -> Bag:
    """Collected rows as a bag."""
    return Counter(plain(tuple(row)) for row in rows)


def alike(a: Bag, b: Bag) -> bool:
    """Are two bags equal, up to the last digits of floating point numbers?"""
    return a == b or _all_rounded(a) == _all_rounded(b)


def _all_rounded(rows: Bag) -> Bag:
    return Counter(rounded(row) for row in rows.elements())


def compare(spark: Any, name: str, sql: str, where: str) -> Bag:
    """The rows of a view, after a comparison with its query: rows and types."""
    view = spark.table(name)
    query = spark.sql(sql)
    if len(query.columns) != len(view.columns):  # a source of SELECT * got a new column
        query = query.select(*(f"`{c}`" for c in view.columns))
    types = [[(f.name, f.dataType.simpleString()) for f in q.schema] for q in (view, query)]
    if types[0] != types[1]:
        raise ScenarioError(f"{where}: {name} has {types[0]}, its query {types[1]}")
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


@dataclass
class Trace:
    """What a run saw: the columns of the tables, the queries of the views, the moments."""

    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
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
        self.rows[name] = compare(self.spark, name, line.text, self.where)
        self.before[name] = self.rows[name]
        if self.tracing:
            self.define(name)
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
        for name, sql in self.queries.items():
            report = self.reports[name]
            self.rows[name], old = compare(self.spark, name, sql, self.where), self.rows[name]
            self.check_counts(report, old, self.rows[name])
            if mode == "incremental" and name not in told and report.strategy == "full":
                raise ScenarioError(f"{self.where}: {name} was refreshed in full: {report.reason}")
        self.trace.refreshes += len(reports)
        if self.tracing:
            self.snapshot()

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
        tables = {}
        for t in self.tables:
            frame = self.spark.table(t)
            self.trace.columns[t] = tuple(frame.columns)
            tables[t] = bag(frame.collect())
        self.trace.moments.append(Moment(tables, dict(self.rows)))


def table_statement(words: str) -> tuple[str, str]:
    """CREATE TABLE and its properties, from the words of a scenario.

    >>> table_statement("r (a INT) feed off partitioned by (a)")[0]
    'CREATE TABLE r (a INT) USING delta PARTITIONED BY (a)'
    >>> table_statement("r (a INT)")[1]
    "'delta.enableChangeDataFeed'='true'"
    """
    properties = {"delta.enableChangeDataFeed": "true"}
    for mark, key, value in (
        ("feed off", "delta.enableChangeDataFeed", "false"),
        ("deletion vectors", "delta.enableDeletionVectors", "true"),
        ("column mapping", "delta.columnMapping.mode", "name"),
        ("type widening", "delta.enableTypeWidening", "true"),
    ):
        if mark in words:
            words = words.replace(mark, "")
            properties[key] = value
    words, _, by = words.partition("partitioned by")
    create = f"CREATE TABLE {words.strip()} USING delta"
    if by:
        create += f" PARTITIONED BY {by.strip()}"
    return create, ", ".join(f"'{k}'='{v}'" for k, v in properties.items())

"""One random world on Spark: tables, views, changes; each view is checked after each refresh."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from scenario import Bag, ScenarioError, table_statement
from scenario_run import check_types
from spark_corners import Corners
from spark_oracle import check_rows, recomputed, visible
from viewkeeper.errors import ViewKeeperError
from viewkeeper.records import NotIncrementalError

DRIVER = "spark.viewkeeper.driver"  # whether small queries may be run without Spark
SCANS = "spark.viewkeeper.scans"  # how many tables a query of Spark's reads before it is divided


@dataclass
class Tally:
    """What became of the cases."""

    passed: int = 0
    failed: int = 0
    invalid: int = 0  # queries that Spark itself refuses
    full: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.passed + self.failed

    def fail(self, text: str) -> None:
        self.failed += 1
        self.failures.append(text)
        print(f"FAILED {text}\n", flush=True)

    def __str__(self) -> str:
        full = sum(self.full.values())
        return f"{self.failed} failed, {self.invalid} refused by Spark, {full} in full"


def run_world(
    spark: Any, seed: int, tally: Tally, views: int = 6, rounds: int = 3, depth: int = 3
) -> None:
    """Everything from one seed."""
    home = spark.catalog.currentDatabase()
    names = (f"fuzz{seed}", f"fuzz{seed}_vk")
    for name in names:
        spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    spark.sql(f"CREATE SCHEMA {names[0]}")
    spark.catalog.setCurrentDatabase(names[0])
    try:
        _World(spark, seed, tally).run(views, rounds, depth)
    finally:
        spark.conf.unset(DRIVER)
        spark.conf.unset(SCANS)
        spark.catalog.setCurrentDatabase(home)
        for name in names:
            spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")


class _World:
    def __init__(self, spark: Any, seed: int, tally: Tally) -> None:
        from viewkeeper.keeper import Keeper

        self.spark, self.seed, self.tally = spark, seed, tally
        self.keeper = Keeper(spark, schema=f"fuzz{seed}_vk")
        self.g = Corners(seed)
        self.done: list[str] = []  # the statements so far, to repeat them by hand
        self.queries: dict[str, str] = {}
        self.rows: dict[str, Bag] = {}
        self.broken: set[str] = set()
        self.immediate: set[str] = set()  # views that change with each transaction

    def sql(self, text: str) -> None:
        self.done.append(text)
        self.spark.sql(text)

    def run(self, views: int, rounds: int, depth: int) -> None:
        tables = self.g.tables()
        self.tables = [table.name for table in tables]
        for table in tables:
            create, properties = table_statement(table.create)
            self.sql(f"{create} TBLPROPERTIES ({properties})")
            if self.g.random.random() < 0.9:
                self.sql(f"INSERT INTO {table.name} VALUES {self.g.rows(table, 5)}")
        for i in range(views):
            self.create(f"v{i}", depth)
        for n in range(rounds):
            changes = [self.g.change(self.g.random.choice(tables)) for _ in range(4)]
            changes = changes[: self.g.random.randint(1, 4)]
            if self.immediate and n % 2:
                self.commit(changes)
            else:
                for change in changes:
                    self.sql(change)
            self.spark.conf.set(DRIVER, "false" if n % 3 == 1 else "true")
            self.spark.conf.set(SCANS, "60" if self.seed % 2 else "3")
            self.refresh()

    def create(self, name: str, depth: int) -> None:
        known = len(self.g.sources)
        query = self.g.view(name, depth)
        try:
            rows = recomputed(self.spark, self.tables, {**self.queries, name: query})[name][0]
        except Exception as e:
            self.tally.invalid += 1
            self.done.append(f"-- refused: {str(e).splitlines()[0][:150]}: {query}")
            del self.g.sources[known:]
            return
        try:
            self.make(name, query)
            check_types(self.spark, name, query, f"seed {self.seed}, created")
            self.rows[name] = visible(self.keeper, [name])[name][0]
            check_rows(name, self.rows[name], rows, f"seed {self.seed}, created")
            self.queries[name] = query
        except Exception as e:
            del self.g.sources[known:]
            self.tally.fail(self.told(name, query, e))

    def make(self, name: str, query: str) -> None:
        """The view, immediate if it may be and reads nothing that is not."""
        others = set(self.queries) - self.immediate
        if self.g.random.random() < 0.3 and not any(f" {other} " in query for other in others):
            try:
                self.keeper.create_view(name, query, maintain="immediate")
                self.immediate.add(name)
                return
            except NotIncrementalError:
                pass
        self.keeper.create_view(name, query)

    def commit(self, changes: list[str]) -> None:
        """The changes as one transaction, as far as transactions take them."""
        self.done.append("BEGIN")
        try:
            with self.keeper.transaction() as t:
                for change in changes:
                    try:
                        t.sql(change)
                        self.done.append(change)
                    except ViewKeeperError as e:
                        self.done.append(f"-- no statement of a transaction: {e.code}: {change}")
        except Exception as e:
            self.tally.fail(self.told("transaction", "", e))
            return
        self.done.append("COMMIT")
        for name in sorted(self.immediate - self.broken):
            query = self.queries[name]
            try:
                want = recomputed(self.spark, self.tables, self.queries)[name][0]
                self.rows[name] = visible(self.keeper, [name])[name][0]
                check_rows(name, self.rows[name], want, f"seed {self.seed}, committed")
                self.tally.passed += 1
            except Exception as e:
                self.broken.add(name)
                self.tally.fail(self.told(name, query, e))

    def refresh(self) -> None:
        self.want = recomputed(self.spark, self.tables, self.queries)
        errors: dict[str, Exception] = {}
        reports = {}
        try:
            reports = {r.view: r for r in self.keeper.refresh(strategy="incremental")}
        except Exception as e:
            errors = {k.split("`")[-2]: v for k, v in getattr(e, "causes", {}).items()}
            reports = {r.view: r for r in getattr(e, "reports", [])}
            if not errors:
                one_by_one = self.one_by_one(reports)
                errors = one_by_one or dict.fromkeys(list(self.queries)[:1], e)
        for name, query in self.queries.items():
            if name in self.broken:
                continue
            if name in errors:
                self.broken.add(name)
                if "was not refreshed, because a view it reads" not in str(errors[name]):
                    self.tally.fail(self.told(name, query, errors[name]))
                continue
            try:
                self.check(name, query, reports.get(name))
                self.tally.passed += 1
            except Exception as e:
                self.broken.add(name)
                self.tally.fail(self.told(name, query, e))

    def one_by_one(self, reports: dict[str, Any]) -> dict[str, Exception]:
        """Which view the only error is about."""
        found: dict[str, Exception] = {}
        for name in self.queries:
            try:
                self.keeper.refresh(name, strategy="incremental")
            except Exception as e:
                found[name] = e
        return found

    def check(self, name: str, query: str, report: Any) -> None:
        old = self.rows[name]
        self.rows[name] = visible(self.keeper, [name])[name][0]
        check_rows(name, self.rows[name], self.want[name][0], f"seed {self.seed}")
        if report is None:
            return
        if report.strategy == "full":
            self.tally.full[report.reason[:100]] += 1
        new = self.rows[name]
        want = (sum((new - old).values()), sum((old - new).values()))
        if (report.inserted, report.deleted) != want:
            told = (report.inserted, report.deleted)
            raise ScenarioError(f"{name} told of {told}, the least change is {want}; {report}")

    def told(self, name: str, query: str, error: Exception) -> str:
        lines = [f"seed {self.seed}, view {name}: {type(error).__name__}: {str(error)[:1500]}"]
        if not isinstance(error, ScenarioError):
            lines += traceback.format_tb(error.__traceback__)[-3:]
        lines += [f"  {s};" for s in self.done if not s.startswith("--")]
        lines += [f"  {n}: {q}" for n, q in self.queries.items() if n in query and n != name]
        return "\n".join([*lines, f"  {name}: {query}"])

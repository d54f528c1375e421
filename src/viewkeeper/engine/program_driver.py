"""Runs programs on the driver: by DuckDB, over the files of the edges and of the store.

Only the programs of the package, whose answer does not depend on the engine, over types whose
equality and order do not either, and as long as all of it fits; else Spark runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp, parse_one

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.algebra.walk import tables
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.runner import DRIVER, Runner
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.sure import Kinds, kinds_of, translate
from viewkeeper.engine.sure_text import UnsureError
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import lookup
from viewkeeper.lake.arrow import WEIGHT, UnusualError
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.scan import duck_type, scan
from viewkeeper.recursive.layout import TAG, Columns, Layout
from viewkeeper.recursive.task import PREFIX, Task

MOST_STORED = 20_000_000  # rows of the edges and of the store together
MOST_ROWS = 20_000_000  # of a relation
MEMORY = "3GB"
_SAFE = {"boolean", "tinyint", "smallint", "int", "bigint", "string", "date"}

# What makes Spark take over.
NotHere = (UnsureError, UnusualError, duckdb.Error, MemoryError)


class DriverDesk:
    """A runner of programs: names are temporary tables, or views if lazy."""

    dialect = "duckdb"

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.db = duckdb.connect(":memory:")
        self.db.execute(f"SET memory_limit = '{MEMORY}'")
        self.db.execute("SET temp_directory = ''")
        self._kinds: dict[str, str] = {}
        self._kept: set[str] = set()
        self._rows: dict[str, int] = {}  # how many rows they have, if not lazy

    def close(self) -> None:
        """Forgets everything."""
        self.db.close()

    def define(self, name: str, sql: str, *, lazy: bool) -> None:
        kind = "VIEW" if lazy else "TABLE"
        known = self._kinds.get(name)
        if known is not None and known != kind:
            self._drop(name)
        more = None if lazy or known != kind else grown(_name(name), sql)
        if more is not None and self._columns(name) == more[0]:
            made = self.db.execute(f"INSERT INTO {_name(name)} {more[1]}").fetchall()
            rows = self._rows[name] + made[0][0]
        else:
            make = f"CREATE OR REPLACE TEMP {kind} {_name(name)} AS {sql}"
            made = self.db.execute(make).fetchall()
            rows = made[0][0] if made else 0
        self._kinds[name], self._rows[name] = kind, rows
        if not lazy and rows > MOST_ROWS:
            raise UnsureError(f"{name} has {rows} rows")

    def keep(self) -> None:
        """What is known now is not forgotten."""
        self._kept = set(self._kinds)

    def forget(self) -> None:
        """What was computed is known no more, and its memory is free."""
        for name in [n for n in self._kinds if n not in self._kept]:
            self._drop(name)

    def _columns(self, name: str) -> list[str]:
        return [d[0] for d in self.db.execute(f"SELECT * FROM {_name(name)} LIMIT 0").description]

    def _drop(self, name: str) -> None:
        self.db.execute(f"DROP {self._kinds.pop(name)} {_name(name)}")

    def define_empty(self, name: str, sql: str) -> None:
        self.define(name, f"SELECT * FROM ({sql}) AS q LIMIT 0", lazy=False)

    def is_empty(self, name: str) -> bool:
        return not self.db.execute(f"SELECT 1 FROM {_name(name)} LIMIT 1").fetchall()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return self.db.execute(f"SELECT * FROM {_name(name)}").fetchall()

    def bind_rows(self, name: str, rows: pa.Table, columns: Columns) -> None:
        """Makes rows on the driver known under a name, with these columns."""
        self.db.register("__given", rows.rename_columns([str(i) for i in range(len(columns))]))
        listed = ", ".join(
            f'CAST("{i}" AS {duck_type(kind)}) AS {_quoted(column)}'
            for i, (column, kind) in enumerate(columns)
        )
        try:
            self.define(name, f"SELECT {listed} FROM __given", lazy=False)
        finally:
            self.db.unregister("__given")

    def bind_query(
        self,
        name: str,
        query: Query,
        pins: dict[str, Pin],
        columns: Columns,
        overlays: Mapping[str, Overlay] | None = None,
    ) -> None:
        """Makes the rows of a query over tables known under a name, with these columns."""
        kinds: dict[Query, Kinds | None] = {
            leaf: kinds_of(_pin(pins, leaf).schema(list(leaf.names))) for leaf in tables(query)
        }

        def of_leaf(leaf: Table) -> Kinds:
            found = kinds[leaf]
            if found is None or not leaf.columns:
                raise UnsureError(leaf.name)
            return found

        made, _ = translate(query, of_leaf)
        names: dict[Query, str] = {}
        for i, leaf in enumerate(tables(made)):
            names[leaf] = f"__leaf{i}"
            files, overlay = _files(_pin(pins, leaf)), (overlays or {}).get(leaf.name)
            self._bind_leaf(f"__leaf{i}", leaf, files, overlay)
        text = to_sql(made, dialect="duckdb", tables=names)
        given = ", ".join(f'"{i}"' for i in range(len(columns)))
        cast = ", ".join(
            f'CAST(q."{i}" AS {duck_type(kind)}) AS {_quoted(column)}'
            for i, (column, kind) in enumerate(columns)
        )
        plain = len(names) == 1 and "JOIN" not in text and "GROUP" not in text and not overlays
        self.define(name, f"SELECT {cast} FROM ({text}) AS q ({given})", lazy=plain)

    def _bind_leaf(
        self, name: str, leaf: Table, files: lookup.Files, overlay: Overlay | None
    ) -> None:
        listed = ", ".join(_quoted(n) for n in unique_names(leaf.columns))
        if files.kept:  # deletion vectors
            rows = lookup.read(files, list(leaf.names), {}, MOST_ROWS)
            if rows is None:
                raise UnsureError(f"{leaf.name} has too many rows")
            self.db.register(f"{name}_rows", rows)
            sql = f"SELECT * FROM {name}_rows"
        else:
            sql = scan(files, list(leaf.names))
        if overlay is not None:
            sql = self._changed(name, leaf, sql, overlay)
        self.db.execute(f"CREATE OR REPLACE TEMP VIEW {name} ({listed}) AS {sql}")

    def _changed(self, name: str, leaf: Table, sql: str, overlay: Overlay) -> str:
        """The rows of a table as a transaction leaves them."""
        kinds = [f.dataType.simpleString() for f in overlay.pin.schema(list(leaf.names)).fields]
        if not all(kind in _SAFE or kind.startswith("decimal") for kind in kinds):
            raise UnsureError(f"{leaf.name} has columns whose equality is left to Spark")
        self.db.register(f"{name}_change", overlay.of_columns(list(leaf.names)))
        listed = ", ".join(
            f"CAST({_quoted(n)} AS {duck_type(k)})" for n, k in zip(leaf.names, kinds, strict=True)
        )
        come, gone = (
            f"SELECT {listed} FROM (SELECT *, unnest(range({sign}{WEIGHT})) FROM {name}_change)"
            for sign in ("", "-")
        )
        return f"(({sql}) UNION ALL ({come})) EXCEPT ALL ({gone})"

    def bind_store(self, layout: Layout, store: Pin | None) -> None:
        """Makes the stored tables known; without a store they are empty."""
        files = None if store is None else _files(store)
        for table, held in layout.tables:
            if files is None:
                listed = ", ".join(f"CAST(NULL AS {duck_type(k)}) AS {_quoted(n)}" for n, k in held)
                self.define(table, f"SELECT {listed} WHERE FALSE", lazy=False)
                continue
            places = [layout.place(table, name) for name, _ in held]
            sql = scan(files, places, {TAG: table} if layout.tagged else None)
            listed = ", ".join(
                f"{_quoted(p)} AS {_quoted(n)}" for p, (n, _) in zip(places, held, strict=True)
            )
            self.define(table, f"SELECT {listed} FROM ({sql}) AS s", lazy=True)

    def result(self, sql: str) -> pa.Table | DataFrame:
        """The rows of a query."""
        return self.db.sql(sql).to_arrow_table()

    def frame(self, sql: str) -> DataFrame:
        """The rows of a query as a frame."""
        return local_frame(self.runner.spark, self.result(sql))


@cache
def grown(name: str, sql: str) -> tuple[list[str], str] | None:
    """The columns of a relation and the query of its new rows, if a query adds rows to it: a loop
    that finds a few rows in each round does not write all of them again.

    >>> grown('"x"', 'SELECT "a"."n" FROM "x" AS "a" UNION ALL SELECT "b"."n" FROM "y" AS "b"')
    (['n'], 'SELECT "b"."n" FROM "y" AS "b"')
    >>> grown('"x"', 'SELECT "b"."n" FROM "y" AS "b"') is None
    True
    """
    if " UNION ALL " not in sql or f"FROM {name} AS" not in sql:
        return None
    tree = parse_one(sql, read="duckdb")
    if not isinstance(tree, exp.Union) or tree.args.get("distinct"):
        return None
    old = tree.this
    if not isinstance(old, exp.Select) or set(_given(old)) != {"expressions", "from_"}:
        return None
    table = old.args["from_"].this
    if not isinstance(table, exp.Table) or table.this.sql("duckdb") != name:
        return None
    if not all(isinstance(e, exp.Column) for e in old.expressions):
        return None
    more: str = tree.expression.sql("duckdb")
    return None if name in more else ([e.name for e in old.expressions], more)


def _given(tree: exp.Expr) -> list[str]:
    return [key for key, value in tree.args.items() if value]


def check(runner: Runner, task: Task, pins: Sequence[Pin]) -> None:
    """Whether the driver may run a task's programs.

    Raises
    ------
    UnsureError
        When Spark must run them.
    """
    if runner.spark.conf.get(DRIVER, "true") == "false":
        raise UnsureError("the driver is turned off")
    if not suits(task):
        raise UnsureError("a program or a type that is left to Spark")
    if sum(row_count(pin) for pin in pins) > MOST_STORED:
        raise UnsureError("too many rows")


def suits(task: Task) -> bool:
    """Whether a task's programs and types mean the same in both engines.

    >>> suits(Task("acyclic", ("a",), ("b",), inputs=(("a", "int"), ("b", "int"))))
    True
    >>> suits(Task("acyclic", ("a",), ("b",), inputs=(("a", "double"), ("b", "double"))))
    False
    """
    kinds = [kind for _, kind in task.inputs]
    return task.known and all(kind in _SAFE or kind.startswith("decimal") for kind in kinds)


def _pin(pins: dict[str, Pin], leaf: Table) -> Pin:
    found = pins.get(leaf.name)
    if found is None:
        raise UnsureError(f"{leaf.name} is not Delta's")
    return found


def _files(pin: Pin) -> lookup.Files:
    found = lookup.files(pin.source, pin.version)
    if found is None:
        raise UnusualError(f"{pin.source.name} is left to Spark")
    return found


def _name(relation: str) -> str:
    return _quoted(PREFIX + relation)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

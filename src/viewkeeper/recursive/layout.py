"""All stored tables of a system in one table of the lake, so that one commit changes them all.

A system with one table is stored as it is. With several, a row has its table's name in ``__table``
and values in that table's columns only; the lake keeps the tables in partitions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp, parse_one

from viewkeeper.recursive.model import System
from viewkeeper.recursive.rendering import columns

TAG = "__table"
OP = "__op"
Columns = tuple[tuple[str, str], ...]  # names and Spark's types


@dataclass(frozen=True)
class Layout:
    """Where the rows of each stored table are.

    Examples
    --------
    >>> from viewkeeper.recursive import load
    >>> one = Layout.of(load("acyclic"), 1, ["INT"])
    >>> one.columns
    (('Start', 'INT'), ('End', 'INT'))
    >>> two = Layout.of(load("undirected"), 1, ["INT"])
    >>> [name for name, _ in two.columns]
    ['__table', 'COMPONENT__Node', 'COMPONENT__Comp', 'COMPONENTS__Comp', 'COMPONENTS__Smallest', \
'COMPONENTS__Nodes']
    >>> print(two.select("COMPONENT", "store"))
    SELECT `COMPONENT__Node` AS `Node`, `COMPONENT__Comp` AS `Comp` FROM store \
WHERE `__table` = 'COMPONENT'
    """

    tables: tuple[tuple[str, Columns], ...]

    @staticmethod
    def of(system: System, width: int, node_types: Sequence[str]) -> Layout:
        """The layout of a system's tables, for nodes of these types."""
        return Layout(tuple((t.name, tuple(columns(t, width, node_types))) for t in system.tables))

    @property
    def tagged(self) -> bool:
        """Whether rows say which table they are of."""
        return len(self.tables) > 1

    @cached_property
    def columns(self) -> Columns:
        """The columns of the store."""
        found = [(TAG, "STRING")] if self.tagged else []
        for table, held in self.tables:
            found += [(self.place(table, name), kind) for name, kind in held]
        return tuple(found)

    def place(self, table: str, column: str) -> str:
        """The column of the store that holds a table's column."""
        return f"{table}__{column}" if self.tagged else column

    def held(self, table: str) -> Columns:
        """The columns of a table."""
        return dict(self.tables)[table]

    def select(self, table: str, store: str) -> str:
        """The rows of a table, from the store's."""
        listed = ", ".join(
            f"{quoted(self.place(table, name))} AS {quoted(name)}" for name, _ in self.held(table)
        )
        where = f" WHERE {quoted(TAG)} = '{table}'" if self.tagged else ""
        return f"SELECT {listed} FROM {store}{where}"

    def rows(self, table: str, relation: str, op: str | None = None) -> str:
        """Rows of a table as rows of the store, with an operation if one is given."""
        held = {self.place(table, name): name for name, _ in self.held(table)}
        items = []
        for name, kind in self.columns:
            if name == TAG and self.tagged:
                value = f"'{table}'"
            else:
                source = f"r.{quoted(held[name])}" if name in held else "NULL"
                value = f"CAST({source} AS {kind})"
            items.append(f"{value} AS {quoted(name)}")
        if op is not None:
            items.append(f"'{op}' AS {quoted(OP)}")
        return f"SELECT {', '.join(items)} FROM {quoted(relation)} AS r"

    def reader(self, output: str, store: str, prefix: str = "") -> str:
        """A query over the stored tables as one over the store."""
        tree = parse_one(output, read="spark")
        names = {prefix + name: name for name, _ in self.tables}
        for found in list(tree.find_all(exp.Table)):
            if found.name in names:
                inner = parse_one(self.select(names[found.name], store), read="spark")
                assert isinstance(inner, exp.Select)
                found.replace(inner.subquery(found.alias or found.name))
        return tree.sql("spark", identify=True)


def quoted(name: str) -> str:
    """A name in backquotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def in_dialect(sql: str, dialect: str) -> str:
    """Spark's SQL as another dialect's; a cast that fails is an error there too.

    >>> in_dialect("SELECT CAST(`a` AS INT) FROM t", "duckdb")
    'SELECT CAST("a" AS INT) FROM t'
    """
    if dialect == "spark":
        return sql
    tree = parse_one(sql, read="spark")
    for cast in list(tree.find_all(exp.TryCast)):
        cast.replace(exp.Cast(this=cast.this, to=cast.args["to"]))
    return tree.sql(dialect)

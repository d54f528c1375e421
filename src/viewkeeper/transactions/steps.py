"""The statements of a transaction: each is read when it is given, and done when it is needed.

A statement that is done changes the state: R ← (R ∸ removed) ⊎ added, both evaluated in the state
that it finds. The rest of the papers' composition is in ``engine.overlay``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.engine.overlay import counted_rows
from viewkeeper.errors import ViewKeeperError
from viewkeeper.frontend import DuplicateOutputColumnError
from viewkeeper.lake.errors import ConflictError
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import quoted
from viewkeeper.records import InvalidQueryError
from viewkeeper.transactions import reading
from viewkeeper.transactions.errors import RowError, StatementError
from viewkeeper.transactions.standins import stand_in
from viewkeeper.transactions.state import Reading, State, read_query, values_of
from viewkeeper.transactions.targets import (
    Target,
    cast,
    is_default,
    lost,
    may_lose,
    rows_from,
    selected,
    stored,
)

Find = Callable[[str], Target]
_LOCAL = ("LocalRelation", "LogicalRDD", "Range", "OneRowRelation")


class Step(Protocol):
    """A statement, read."""

    @property
    def target(self) -> Target:
        """The table that it changes."""

    def run(self, state: State) -> None:
        """Does it."""


def same_columns(step: Step, state: State) -> None:
    """The columns of the table must be those for which the statement was read."""
    pin = state.pin(step.target.pin.source.name)
    old = step.target.pin
    if (
        pin.source.table_id != old.source.table_id
        or pin.metadata["schemaString"] != (old.metadata["schemaString"])
    ):
        raise ConflictError(
            f"{step.target.name} was replaced, or got other columns, during the transaction",
            hint="Run the transaction again.",
        )


@dataclass(frozen=True)
class InsertRows:
    """Rows that are known."""

    target: Target
    rows: pa.Table

    def run(self, state: State) -> None:
        same_columns(self, state)
        state.put(state.overlay(self.target.pin.source.name).inserted(self.rows))


@dataclass(frozen=True)
class InsertQuery:
    """The rows of a query."""

    target: Target
    reading: Reading
    given: frozenset[str]  # the columns that the statement names
    checked: bool = False  # whether the reading's last column is that of ``_with_lost``

    def run(self, state: State) -> None:
        same_columns(self, state)
        text = self.reading.text
        found = _kept(state.answer_of(self.reading), self.checked, self.target, text)
        rows = arriving(state.spark, found, self.target, self.given, text)
        state.put(state.overlay(self.target.pin.source.name).inserted(rows))


@dataclass(frozen=True)
class Change:
    """Rows of the table taken away, and others put in for them: DELETE, UPDATE. The reading has the
    table's columns, and after them those that are set."""

    target: Target
    reading: Reading
    places: tuple[int, ...] | None = None  # where a column's new value is; None: deleted
    given: frozenset[str] = frozenset()  # as above
    checked: bool = False

    def run(self, state: State) -> None:
        same_columns(self, state)
        found = _kept(state.answer_of(self.reading), self.checked, self.target, self.reading.text)
        found = found.rename_columns([str(i) for i in range(found.num_columns)])
        old = fitted(found.select([str(i) for i in range(len(self.target.fields))]), self.target)
        overlay = state.overlay(self.target.pin.source.name).deleted(old)
        if self.places is not None:
            new = found.select([str(i) for i in self.places])
            text = self.reading.text
            overlay = overlay.inserted(
                arriving(state.spark, new, self.target, self.given, text),
            )
        state.put(overlay)


def fitted(rows: pa.Table, into: Target) -> pa.Table:
    """Rows in the types of a table's columns."""
    try:
        return counted_rows(rows, into.fields)
    except pa.ArrowException as error:
        raise RowError(
            f"rows that do not fit {into.name}: {str(error).splitlines()[0]}",
            hint="Cast the columns to the table's types.",
        ) from error


def arriving(
    spark: SparkSession, rows: pa.Table, into: Target, given: Collection[str], text: str
) -> pa.Table:
    """Rows that are put into a table, as it will keep them; columns that the table generates, and
    the statement does not give, are computed from the others."""
    rows = fitted(rows, into)
    computed = into.computed(given)
    if computed and rows.num_rows:
        frame = local_frame(spark, rows, into.pin.schema(into.columns))
        items = [f"{computed.get(n) or quoted(n)} AS {quoted(n)}" for n in into.columns]
        rows = fitted(asked(lambda: frame.selectExpr(*items).toArrow(), text), into)
    return stored(rows, into)


def _kept(rows: pa.Table, checked: bool, into: Target, text: str) -> pa.Table:
    """Rows without the column that says which value of theirs is lost, if none is."""
    if not checked:
        return rows
    last = rows.num_columns - 1
    check_kept(rows.column(last), into, text)
    return rows.select(list(range(last)))


def check_kept(places: pa.ChunkedArray, into: Target, text: str) -> None:
    """Raises where a value did not fit its column."""
    place = pc.max(places).as_py()
    if place is not None:
        f = into.fields[place]
        raise StatementError(
            f"a value does not fit the column {f.name} {f.dataType.simpleString()}",
            text=text,
            hint="Nothing was written. Cast the value, or use try_cast for NULL instead.",
        )


# ── reading ──


def insert_step(spark: SparkSession, into: Target, given: Any) -> Step:
    """INSERT of what the user gave: rows, or a DataFrame, by the names of its columns. Columns
    without a value get their defaults."""
    text = f"INSERT INTO {into.name}"
    if isinstance(given, DataFrame):
        _check_once([into.field(c).name for c in given.columns], "the DataFrame")
        named = {into.field(c).name: quoted(c) for c in given.columns}
    else:
        zone = str(spark.conf.get("spark.sql.session.timeZone"))
        rows, columns = rows_from(given, into, zone)
        if all(f.name in columns or into.default(f) == "NULL" for f in into.fields):
            return InsertRows(into, arriving(spark, rows, into, columns, text))
        given = local_frame(spark, rows, into.pin.schema(into.columns))
        named = {name: quoted(name) for name in columns}
    checked = may_lose(spark)
    items = _with_lost(into, _items(into, named), named, checked)
    frame = asked(lambda: given.selectExpr(*items), "the DataFrame")
    if is_local(given):
        rows = _kept(asked(frame.toArrow, "the DataFrame"), checked, into, "the DataFrame")
        return InsertRows(into, arriving(spark, rows, into, named, text))
    return InsertQuery(into, read_query(spark, frame, text), frozenset(named), checked)


def _items(into: Target, given: Mapping[str, str]) -> list[str]:
    """All columns of a table, from expressions for some of them, in SQL."""
    return [
        f"{cast(given.get(f.name) or into.default(f), f)} AS {quoted(f.name)}" for f in into.fields
    ]


def _with_lost(
    into: Target, items: list[str], given: Mapping[str, str], checked: bool
) -> list[str]:
    """Columns, and where that is to be checked one more: the place of a column whose value is lost
    by the cast to its type, or NULL."""
    if not checked:
        return items
    cases = lost([(e, into.field(n)) for n, e in given.items()], into)
    return [*items, f"CASE {' '.join(cases) or 'WHEN false THEN 0'} END AS `__lost`"]


def is_local(frame: DataFrame) -> bool:
    """Whether a frame reads no table, neither in its plan nor in a subquery of an expression."""
    plan = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    return bool(plan.subqueriesAll().isEmpty()) and all(
        str(leaves.apply(i).nodeName()) in _LOCAL for i in range(leaves.size())
    )


def insert_query_step(spark: SparkSession, s: reading.Insert, find: Find, text: str) -> Step:
    """INSERT INTO table [(columns)] query."""
    into = find(s.table)
    columns = [into.field(c).name for c in s.columns] if s.columns is not None else into.columns
    _check_once(columns, text)
    query = reading.with_defaults(s.query, [into.default(into.field(c)) for c in columns])
    given = asked(lambda: spark.sql(query).columns, text)
    if s.by_name:
        columns = [into.field(c).name for c in given]
        _check_once(columns, text)
    if len(given) != len(columns):
        raise RowError(
            f"{into.name} gets {len(columns)} columns, the query has {len(given)}",
            hint=f"Give {', '.join(columns)}.",
        )
    places = {name: f"`__c{i}`" for i, name in enumerate(columns)}
    checked = may_lose(spark)
    items = _with_lost(into, _items(into, places), places, checked)
    names = selected(f"__c{i}" for i in range(len(given)))
    sql = f"SELECT {', '.join(items)} FROM ({query}\n) AS `__q` ({names})"
    rows = asked(lambda: local_rows(spark, sql), text)
    if rows is not None:
        rows = _kept(rows, checked, into, text)
        return InsertRows(into, arriving(spark, rows, into, columns, text))
    return InsertQuery(into, _read(spark, sql, text), frozenset(columns), checked)


def _check_once(columns: list[str], text: str) -> None:
    if len(set(columns)) < len(columns):
        raise StatementError("a column is named twice", text=text, hint="Name each column once.")


def local_rows(spark: SparkSession, sql: str) -> pa.Table | None:
    """The rows of a query that reads no table; None for one that does."""
    frame = spark.sql(sql)
    return frame.toArrow() if is_local(frame) else None


def delete_step(spark: SparkSession, s: reading.Delete, find: Find, text: str) -> Step:
    """DELETE FROM table WHERE condition."""
    into = find(s.table)
    return Change(into, _over(spark, into, s, selected(into.columns), text))


def update_step(spark: SparkSession, s: reading.Update, find: Find, text: str) -> Step:
    """UPDATE table SET column = expression WHERE condition."""
    into = find(s.table)
    sets = [(into.field(name), expression) for name, expression in s.values]
    given = frozenset(f.name for f, e in sets if not is_default(e))
    places = {f.name: i for i, f in enumerate(into.fields)}
    if len({f.name for f, _ in sets}) < len(sets):
        raise StatementError("a column is set twice", text=text, hint="Set each column once.")
    items = [f"{cast(into.value(e, f), f)} AS `__set{i}`" for i, (f, e) in enumerate(sets)]
    width = len(into.fields)
    places |= {f.name: width + i for i, (f, _) in enumerate(sets)}
    checked = may_lose(spark)
    items = _with_lost(into, items, {f.name: into.value(e, f) for f, e in sets}, checked)
    columns = ", ".join([selected(into.columns), *items])
    order = tuple(places[f.name] for f in into.fields)
    return Change(into, _over(spark, into, s, columns, text), order, given, checked)


def _over(
    spark: SparkSession,
    into: Target,
    s: reading.Delete | reading.Update,
    columns: str,
    text: str,
) -> Reading:
    """Columns of the rows of a statement's table that meet its condition."""
    alias = s.alias or quoted(_last(s.table))
    with stand_in(spark, into) as name:
        try:
            chosen = f"FROM {name} AS {alias}" + _where(s.where)
            found = read_query(spark, f"SELECT {columns} {chosen}", text)
            if found.definition.volatile:
                check_deterministic(spark, f"SELECT 1 {chosen}", text)
            return found
        except StatementError:
            raise
        except ViewKeeperError:  # said of the table itself, if it is so there too
            pass
    chosen = f"FROM {_named(s.table, s.alias)}" + _where(s.where)
    found = _read(spark, f"SELECT {columns} {chosen}", text)
    if found.definition.volatile:
        check_deterministic(spark, f"SELECT 1 {chosen}", text)
    return found


def check_deterministic(spark: SparkSession, chosen: str, text: str) -> None:
    """Of rows that are equal a condition must choose all or none, as for Spark itself; ``chosen``
    is a query with the conditions, but without the values that a statement sets."""
    frame = asked(lambda: spark.sql(chosen), text)
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise StatementError(
            "the condition is not deterministic",
            text=text,
            hint="Choose the rows first, and name them by their values.",
        )


def _last(name: str) -> str:
    """The last part of a name.

    >>> _last("a.`b``.c`"), _last("t")
    ('b`.c', 't')
    """
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)[-1]
    return str(found[0] or found[1]).replace("``", "`")


def _named(table: str, alias: str | None) -> str:
    return table if alias is None else f"{table} AS {alias}"


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE ({condition}\n)"


def _read(spark: SparkSession, sql: str, text: str) -> Reading:
    try:
        return read_query(spark, sql, text)
    except (InvalidQueryError, DuplicateOutputColumnError) as error:
        raise StatementError(error.what, text=text, hint="Check the names and types in it.") from (
            error
        )


def asked(ask: Callable[[], Any], text: str) -> Any:
    """Spark's answer, with its complaints turned into ours."""
    with values_of(text):
        try:
            return ask()
        except (AnalysisException, ParseException) as error:
            first = next((line for line in str(error).splitlines() if line.strip()), "")
            raise StatementError(
                first, text=text, hint="Check the names and types in it."
            ) from error

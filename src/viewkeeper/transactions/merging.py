"""MERGE INTO, as Delta does it: which rows match, which clause is theirs, what they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import arrow_schema, repeated, summed
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import at, quoted
from viewkeeper.transactions.errors import StatementError
from viewkeeper.transactions.reading import Clause, Merge, parts_of, shortened, unquoted
from viewkeeper.transactions.state import Reading, State, read_query
from viewkeeper.transactions.steps import (
    Find,
    arriving,
    asked,
    check_deterministic,
    check_kept,
    fitted,
    local_rows,
    same_columns,
)
from viewkeeper.transactions.targets import Target, cast, is_default, lost, may_lose, selected

_ROW, _CLAUSE, _COPIES, _PAIRS = "__row", "__clause", "__copies", "__pairs"
_LOST = "__lost"


@dataclass(frozen=True)
class MergeStep:
    """A MERGE, read."""

    target: Target
    source: Reading | pa.Table
    schema: StructType
    merge: Merge
    text: str
    checked: bool = False  # whether values may be lost by the casts to their columns

    def run(self, state: State) -> None:
        same_columns(self, state)
        name = self.target.pin.source.name
        rows = self.source if isinstance(self.source, pa.Table) else state.answer_of(self.source)
        rows = rows.rename_columns(self.schema.names)
        rows = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
        with jvm.own_session(state.spark, {}) as own:
            self._views(own, state.frame(own, name), rows)
            matched, alone, missing = (
                state.answer((id(self), kind), partial(self._rows, own, kind))
                for kind in ("matched", "alone", "missing")
            )
        if matched is not None:
            matched = self._once(matched)
        changed = {"matched": matched, "alone": alone}
        overlay = state.overlay(name)
        # all that goes before anything comes: a row may become what another one was
        for rows in changed.values():
            if rows is not None:
                overlay = overlay.deleted(fitted(self._part(rows, "o"), self.target))
        for kind, rows in {**changed, "missing": missing}.items():
            if rows is not None:
                for new in self._arriving(state.spark, kind, rows):
                    overlay = overlay.inserted(new)
        state.put(overlay)

    def _arriving(self, spark: SparkSession, kind: str, rows: pa.Table) -> Iterator[pa.Table]:
        """What the rows become by those clauses that update or insert. Clauses that give the same
        of the columns that the table generates are taken together."""
        alike: dict[frozenset[str], list[int]] = {}
        for i, c in enumerate(self._clauses(kind)):
            if c.action != "delete":
                given = frozenset(self._given(c) & self.target.generated.keys())
                alike.setdefault(given, []).append(i)
        for given, clauses in alike.items():
            chosen = pc.is_in(rows.column(_CLAUSE), value_set=pa.array(clauses, pa.int32()))
            new = self._part(rows.filter(chosen), "n")
            yield arriving(spark, new, self.target, given, self.text)

    def _given(self, c: Clause) -> frozenset[str]:
        """The columns that a clause gives."""
        if c.values is None:
            given = {n.lower() for n in self.schema.names}
            return frozenset(n for n in self.target.columns if n.lower() in given)
        return frozenset(self.target.field(n).name for n, e in c.values if not is_default(e))

    def analyse(self, spark: SparkSession) -> None:
        """Lets Spark look at each clause."""
        pin = self.target.pin
        with jvm.own_session(spark, {}) as own:
            empty = arrow_schema(self.schema.fields).empty_table()
            empty = empty.append_column(_ROW, pa.array([], pa.int64()))
            self._views(own, at(own, pin.source, pin.version, self.target.columns), empty)
            for kind in ("matched", "alone", "missing"):
                text = self._sql(kind)
                if text is not None:
                    self._check(own, kind, text)

    def _check(self, own: SparkSession, kind: str, text: str) -> None:
        """What Delta refuses too; and subqueries in values, which would not see what the
        transaction did before."""
        plan = asked(lambda: own.sql(text), self.text)._jdf.queryExecution().analyzed()
        if not plan.subqueriesAll().isEmpty():
            raise StatementError(
                "a subquery in a condition or value of MERGE",
                text=self.text,
                hint="Put the query into USING, and name its columns in the clauses.",
            )
        if not plan.deterministic():  # a value may be so
            given = [c.condition for c in self._clauses(kind) if c.condition]
            conditions = " AND ".join(f"({c}\n)" for c in given) or "true"
            chosen = f"SELECT 1 FROM {self._tables(kind)} WHERE {conditions}"
            check_deterministic(own, chosen, self.text)

    # ── the three queries ──

    def _views(self, own: SparkSession, target: DataFrame, source: pa.Table) -> None:
        target.createOrReplaceTempView("__vk_target")
        schema = StructType(list(self.schema.fields)).add(_ROW, "long")
        local_frame(own, source, schema).createOrReplaceTempView("__vk_source")

    def _rows(self, own: SparkSession, kind: str) -> pa.Table | None:
        text = self._sql(kind)
        if text is None:
            return None
        rows = asked(lambda: own.sql(text).toArrow(), self.text)
        if self.checked:
            check_kept(rows.column(_LOST), self.target, self.text)
        return rows

    def _clauses(self, kind: str) -> list[Clause]:
        return [c for c in self.merge.clauses if c.kind == kind]

    def _sql(self, kind: str) -> str | None:
        clauses = self._clauses(kind)
        if not clauses:
            return None
        alias, s_name = _aliases(self.merge)
        fields = self.target.fields
        whens = " ".join(
            f"WHEN ({c.condition or 'true'}\n) THEN {i}" for i, c in enumerate(clauses)
        )
        items = [f"CASE {whens} END AS {_CLAUSE}"]
        bad: list[str] = []
        for i, f in enumerate(fields):
            old = f"{alias}.{quoted(f.name)}" if kind != "missing" else self.target.default(f)
            if kind != "missing":
                items.append(f"{old} AS o{i}")
            values = [(j, self._value(c, f.name, s_name)) for j, c in enumerate(clauses)]
            texts = [f"WHEN {j} THEN {cast(v, f)}" for j, v in values if v is not None]
            for j, v in values:
                if v is not None and self.checked:
                    bad += lost([(v, f)], self.target, f"{_CLAUSE} = {j}")
            case = f"CASE {_CLAUSE} {' '.join(texts)} ELSE {cast(old, f)} END" if texts else old
            items.append(f"{cast(case, f)} AS n{i}")
        if kind == "matched":
            items.append(f"{s_name}.{_ROW} AS {_ROW}")
        if self.checked:
            items.append(f"CASE {' '.join(bad) or 'WHEN false THEN 0'} END AS {_LOST}")
        rows = f"SELECT {', '.join(items)} FROM {self._tables(kind)}"
        return f"SELECT * FROM ({rows}) WHERE {_CLAUSE} IS NOT NULL"

    def _tables(self, kind: str) -> str:
        """The rows that the clauses of a kind are for."""
        target, source = _aliases(self.merge)
        t, s = f"__vk_target AS {target}", f"__vk_source AS {source}"
        first, second = (s, t) if kind == "missing" else (t, s)
        join = "JOIN" if kind == "matched" else "LEFT ANTI JOIN"
        return f"{first} {join} {second} ON ({self.merge.on}\n)"

    def _value(self, c: Clause, column: str, s: str) -> str | None:
        """What a column becomes by a clause; None: what it was, or its default."""
        if c.action == "delete":
            return None
        if c.values is None:
            given = {n.lower(): n for n in self.schema.names}
            found = given.get(column.lower())
            return None if found is None else f"{s}.{quoted(found)}"
        field = self.target.field(column)
        return next(
            (self.target.value(e, field) for n, e in c.values if n.lower() == column.lower()), None
        )

    # ── what they come to ──

    def _once(self, rows: pa.Table) -> pa.Table:
        """Each row of the target with the one row of the source that matches it."""
        width = len(self.target.fields)
        old = [f"o{i}" for i in range(width)]
        ones = pa.array([1] * rows.num_rows, pa.int64())
        pairs = rows.select([*old, _ROW]).append_column(_COPIES, ones)
        pairs = summed(pairs, 1)  # each pair of rows once
        ones = pa.array([1] * pairs.num_rows, pa.int64())
        each = summed(pairs.select(old).append_column(_COPIES, ones), 1)
        if each.num_rows == pairs.num_rows:
            return rows
        clauses = self._clauses("matched")
        if len(clauses) > 1 or clauses[0].action != "delete" or clauses[0].condition:
            raise StatementError(
                f"several rows of the source match one row of {self.target.name}",
                text=self.text,
                hint="Make the source's rows distinct in the columns of the ON condition.",
            )
        # a row has as many copies in each of its pairs as the table has of it
        each = summed(pairs.select([*old, _COPIES]).append_column(_PAIRS, ones), 2)
        taken = repeated(each.select(old), pc.divide(each.column(_COPIES), each.column(_PAIRS)))
        return taken.append_column(_CLAUSE, pa.array([0] * taken.num_rows, pa.int32()))

    def _part(self, rows: pa.Table, which: str) -> pa.Table:
        """The target's columns before ("o") or after ("n")."""
        return rows.select([f"{which}{i}" for i in range(len(self.target.fields))])


def merge_step(
    spark: SparkSession, s: Merge, find: Find, text: str, *, some: bool = False
) -> MergeStep:
    """MERGE INTO table USING source ON condition WHEN …; with ``some`` a star may stand for some of
    the table's columns."""
    into = find(s.table)
    allowed = {"matched": ("update", "delete"), "alone": ("update", "delete")}
    for c in s.clauses:
        if c.action not in allowed.get(c.kind, ("insert",)):
            raise StatementError(
                f"WHEN {c.kind.upper()} … THEN {c.action.upper()} is no clause of MERGE",
                text=text,
                hint="Matched rows are updated or deleted, others inserted.",
            )
        columns = [into.field(name).name for name, _ in c.values or ()]
        if len(set(columns)) < len(columns):
            raise StatementError("a column is set twice", text=text, hint="Set each column once.")
    if not s.clauses:
        raise StatementError("MERGE without a WHEN clause", text=text, hint="Add WHEN MATCHED ….")
    schema = asked(lambda: spark.sql(f"SELECT * FROM {s.source}").schema, text)
    if len({n.lower() for n in schema.names}) < len(schema.names):
        raise StatementError(
            f"the source has a column twice: {', '.join(schema.names)}",
            text=text,
            hint="Give each of its columns a name of its own.",
        )
    given = {n.lower() for n in schema.names}
    names = (f.name for f in into.fields if f.name not in into.generated)
    lacking = [name for name in names if name.lower() not in given]
    if lacking and not some and any(c.values is None and c.action != "delete" for c in s.clauses):
        raise StatementError(
            f"the source has no column {lacking[0]}, which the star sets",
            text=text,
            hint="Name the columns that are set instead of *.",
        )
    sql = f"SELECT {selected(schema.names)} FROM {s.source}"
    made = MergeStep(into, _source(spark, sql, text), schema, _short(s), text, may_lose(spark))
    made.analyse(spark)
    return made


def clauses_of(
    matched: Mapping[str, str] | str | None,
    delete: str | None,
    insert: Mapping[str, str] | str | None,
) -> tuple[Clause, ...]:
    """The clauses of ``Transaction.merge``."""
    found: list[Clause] = []
    if delete is not None:
        found.append(Clause("matched", "delete", None if delete == "*" else delete))
    if matched is not None:
        found.append(Clause("matched", "update", None, _pairs(matched)))
    if insert is not None:
        found.append(Clause("missing", "insert", None, _pairs(insert)))
    return tuple(found)


def _pairs(given: Any) -> tuple[tuple[str, str], ...] | None:
    """What is set; None for the star.

    >>> _pairs("*"), _pairs({"a": "s.a + 1", "b": 2, "c": None})
    (None, (('a', 's.a + 1'), ('b', '2'), ('c', 'NULL')))
    """
    if isinstance(given, str) and given.strip() == "*":
        return None
    if not isinstance(given, Mapping) or not given:
        raise StatementError(
            f"merge sets {given!r}", hint='Give "*", or a dict such as {"n": "t.n + s.n"}.'
        )
    return tuple((unquoted(str(n)), "NULL" if e is None else str(e)) for n, e in given.items())


def _aliases(s: Merge) -> tuple[str, str]:
    """What the target and the source are called in the queries."""
    return s.alias or _last(s.table), s.source_alias or _last(s.source)


def _short(s: Merge) -> Merge:
    """A MERGE in which tables without an alias are called by the last part of their names, for
    that is all that Spark knows of them in the queries here."""
    target, source = _aliases(s)
    long = [(parts_of(s.table), target)] if s.alias is None else []
    long += [(parts_of(s.source), source)] if s.source_alias is None else []

    def short(text: str) -> str:
        for table, alias in long:
            text = shortened(text, table, alias)
        return text

    clauses = [
        replace(
            c,
            condition=None if c.condition is None else short(c.condition),
            values=None if c.values is None else tuple((n, short(e)) for n, e in c.values),
        )
        for c in s.clauses
    ]
    return replace(s, on=short(s.on), clauses=tuple(clauses))


def _last(name: str) -> str:
    """The last part of a name; a source that is a query has the name ``__s``."""
    text = name.strip()
    if text.startswith("("):
        return "__s"
    if text.endswith("`"):
        return text[text.rindex("`", 0, -1) :]
    return text.rsplit(".", 1)[-1]


def _source(spark: SparkSession, sql: str, text: str) -> Reading | pa.Table:
    rows = asked(lambda: local_rows(spark, sql), text)
    return read_query(spark, sql, text) if rows is None else rows

"""The compiled queries of views: compiled once, and again when what they read looks different."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.errors import UnknownTableError, ViewKeeperError
from viewkeeper.lake import jvm
from viewkeeper.lake.sources import Source, find, is_same, quoted, tip
from viewkeeper.records import InvalidQueryError, Record, SourceError
from viewkeeper.statements import in_parentheses

Looks = dict[str, str]  # by source, its columns
# how the text of a temporary view or function begins: a name of one part, or of a schema of such
_TEMPORARY = re.compile(r"(`global_temp`\.)?`([^`]|``)*`: |(global_temp\.)?\w+: ")


class Definitions:
    """What each view's query compiles to, in this process.

    A query that uses views or functions of Spark's is compiled each time, as these may have been
    redefined by anyone.
    """

    def __init__(self, spark: SparkSession, known: dict[str, Source]) -> None:
        self.spark = spark
        self.known = known  # sources found earlier, by name
        self._held: dict[str, tuple[Compiled, Looks]] = {}

    def put(self, record: Record, compiled: Compiled) -> None:
        """A view that was just compiled."""
        self._held[record.id] = compiled, self._looks(compiled)

    def forget(self, record: Record) -> None:
        """The view is gone."""
        self._held.pop(record.id, None)

    def get(self, record: Record) -> Compiled:
        """The compiled query of a view.

        Raises
        ------
        SourceError
            When a source no longer has what the view's query needs.
        """
        held = self._held.get(record.id)
        if held is not None and not held[0].names and reads(held[0]) == record.reads:
            now = self._looks(held[0])
            if all(now.get(name, look) == look for name, look in held[1].items()):
                return held[0]
        compiled = self._compile(record)
        self._held[record.id] = compiled, self._looks(compiled)
        return compiled

    def _compile(self, record: Record) -> Compiled:
        with (
            self._in_schema_of(record),
            jvm.with_settings(self.spark, record.settings) as spark,
        ):
            hiding = _hiding(spark, record)
            if hiding:
                with jvm.own_session(spark, {}) as own:
                    for name in hiding:
                        own.catalog.dropTempView(name)
                    try:
                        meant = _compiled(own, record)
                    except SourceError:
                        if not record.store:
                            raise
                    else:
                        if reads(meant) == record.reads or not record.store:
                            return meant
            return _compiled(spark, record)

    def _looks(self, compiled: Compiled) -> Looks:
        """The columns of the sources now; a source that is gone is left out."""
        found: Looks = {}
        for ref in compiled.definition.sources.values():
            if ref.provider == "delta":
                try:
                    source = self.known.get(ref.sql)
                    if source is None or not is_same(self.spark, source):
                        source = self.known[ref.sql] = find(self.spark, ref.sql)
                    found[ref.sql] = tip(self.spark, source).metadata["schemaString"]
                except ViewKeeperError:
                    continue
        return found

    @contextmanager
    def _in_schema_of(self, record: Record) -> Iterator[None]:
        """While a view is compiled, names mean what they meant when it was defined."""
        catalog = self.spark.catalog
        before = catalog.currentCatalog(), catalog.currentDatabase()
        there = record.catalog, record.schema
        if before == there:
            yield
            return
        catalog.setCurrentCatalog(there[0])
        catalog.setCurrentDatabase(there[1])
        try:
            yield
        finally:
            catalog.setCurrentCatalog(before[0])
            catalog.setCurrentDatabase(before[1])


def _compiled(spark: SparkSession, record: Record) -> Compiled:
    """A view's query compiled by a session; its columns are those that the view has."""
    columns = record.inputs or record.columns
    try:
        compiled = compile_view(spark, record.sql)
        if compiled.columns != columns:  # SELECT *, and a source has more by now
            names = ", ".join(quoted(name) for name, _ in columns)
            text = f"SELECT {names} FROM {in_parentheses(record.sql)}"
            compiled = compile_view(spark, text)
    except (InvalidQueryError, UnknownTableError) as e:
        raise _no_longer(record, e.what) from e
    if compiled.columns != columns:
        new = dict(compiled.columns)
        changed = [f"{n} was {t}, is {new.get(n)}" for n, t in columns if new.get(n) != t]
        raise _no_longer(record, "; ".join(changed))
    return compiled


def _hiding(spark: SparkSession, record: Record) -> list[str]:
    """The session's temporary views that a query may name. What they hide may be what it means: it
    is, if that gives what the view reads; and a constraint (which has no store) is never about what
    only this session has."""
    session: Any = spark
    found = jvm.items(session._jsparkSession.sessionState().catalog().getTempViewNames())
    text = record.sql.lower()
    return [name for name in map(str, found) if name.lower() in text]


def temporary(compiled: Compiled) -> list[str]:
    """The views and functions in a query that only this session has, as texts."""
    return [text for text in compiled.definition.stands_for if _TEMPORARY.match(text)]


def reads(compiled: Compiled) -> tuple[str, ...]:
    """The sources of a query, as the registry names them."""
    return tuple(sorted(ref.sql for ref in compiled.definition.sources.values()))


def _no_longer(record: Record, why: str) -> SourceError:
    hint = "Restore the source, or replace the view; the view's rows are as they were."
    if not record.store:
        hint = "Restore the source, or drop the constraint."
    return SourceError(f"what {record.label} reads no longer fits its query: {why}", hint=hint)

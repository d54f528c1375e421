"""Views made, replaced and dropped.

A new view is complete before its name is given to it: first the store is filled, in one commit,
then the registry gets the record, then the catalog the name. Only then is an old view dropped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import re
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.closures import Asked
from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.definitions import reads
from viewkeeper.engine import programs
from viewkeeper.engine.failures import computing, with_room
from viewkeeper.engine.refresh import build_frame
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.situation import learn_build, source_names
from viewkeeper.engine.vector import Vector
from viewkeeper.errors import UnknownTableError
from viewkeeper.graph import check_cycle, downstream
from viewkeeper.lake import jvm, stores
from viewkeeper.lake.errors import ConflictError, NotDeltaError
from viewkeeper.lake.sources import Source, find, quoted
from viewkeeper.names import current, full_name
from viewkeeper.plan.choose import Timing
from viewkeeper.records import (
    MAINTAIN_MODES,
    REFRESH_MODES,
    InvalidOptionError,
    NameTakenError,
    NotIncrementalError,
    Record,
    RefreshReport,
    ViewInUseError,
    one_of,
)
from viewkeeper.views import Views


@dataclass(frozen=True)
class Wanted:
    """A view as the user wants it; ``asked`` is there if a program keeps it."""

    name: str
    query: str | DataFrame
    refresh: str = "auto"
    maintain: str = "deferred"
    replace: bool = False
    asked: Asked | None = None
    comment: str = ""

    def check(self) -> None:
        """Raises when the options have no such values, or do not go together.

        >>> Wanted("v", "SELECT 1", maintain="never").check()
        Traceback (most recent call last):
        viewkeeper.records.InvalidOptionError: [INVALID_OPTION] maintain is 'never'
        Use one of 'deferred', 'immediate'.
        """
        one_of("refresh", self.refresh, REFRESH_MODES)
        one_of("maintain", self.maintain, MAINTAIN_MODES)
        if self.asked is not None and self.asked.task.rowwise and self.maintain != "deferred":
            raise InvalidOptionError(
                f"{self.name} is kept by a program for one row at a time,"
                f" and maintain is {self.maintain!r}",
                hint='Use maintain="deferred", or write a program ON BATCH.',
            )

    def check_compiled(self, compiled: Compiled) -> None:
        """Raises when the query cannot be kept in the way that is wanted."""
        why = compiled.blocked or compiled.incomparable
        if self.refresh == "incremental" and why:
            raise NotIncrementalError(
                f"{self.name} cannot be kept incrementally: {why}",
                hint='Create it with refresh="full" or "auto", or take this part out of the query.',
            )
        if self.maintain != "immediate":
            return
        if self.refresh == "full":
            raise InvalidOptionError(
                f"{self.name} is to be immediate, and refreshed in full",
                hint='Use refresh="auto" or "incremental".',
            )
        if why:
            raise NotIncrementalError(
                f"{self.name} cannot be kept immediately: {why}",
                hint='Create it with maintain="deferred".',
            )

    def text(self, compiled: Compiled) -> str:
        """The query as SQL that any session understands."""
        found = compiled.definition
        if isinstance(self.query, str) and not (found.of_session and found.query):
            return self.query
        if compiled.definition.query is None:
            raise NotIncrementalError(
                f"the DataFrame of {self.name} cannot be written as SQL: {compiled.blocked}",
                hint="Give the query as SQL text.",
            )
        return compiled.definition.to_sql()


def create(views: Views, wanted: Wanted) -> RefreshReport:
    """Makes a view, or replaces the one of its name, and fills it.

    >>> create(views, Wanted("v", "SELECT c FROM t"))                     # doctest: +SKIP
    """
    wanted.check()
    start = datetime.datetime.now(datetime.timezone.utc)
    views.sync()
    name = full_name(views.spark, wanted.name)
    old = views.home.records().get(name)
    _check_name(views.spark, name, old, wanted.replace)
    compiled = compile_view(views.spark, wanted.query)
    wanted.check_compiled(compiled)
    text = wanted.text(compiled)
    if compiled.names and text != wanted.query:  # the text names no views of Spark's
        wanted = replace(wanted, query=text)
        compiled = compile_view(views.spark, text)
    record = _record(views, wanted, name, compiled, start)
    _check_others(views.spark, record, old)
    if old is not None:
        check_cycle(record, old, views.all())
        _check_unread(views, [n for n in old.names if n not in record.names], old)
    report = _build(views, record, compiled)
    try:
        views.home.save(record, after=old.id if old else None)
    except ConflictError:
        _drop_store(views, record)
        raise
    views.definitions.put(record, compiled)
    views.show(record)
    if old is not None:
        views.hide([n for n, _ in old.others if n not in dict(record.others)])
        _redirect(views, old, record)
        _drop_store(views, old)
    views.home.log([report], start)
    return report


def drop(views: Views, record: Record) -> None:
    """Drops a view and its rows.

    >>> drop(views, views.get("v"))                                       # doctest: +SKIP
    """
    views.hide(record.names)
    views.home.remove(record.name)
    _drop_store(views, record)


def _check_name(spark: SparkSession, name: str, old: Record | None, replace: bool) -> None:
    if old is not None and not replace:
        raise NameTakenError(
            f"a view {name} is there already",
            hint="Drop it first, or replace it (CREATE OR REPLACE, replace=True).",
        )
    if old is None:
        _check_free(spark, name)


def _check_others(spark: SparkSession, record: Record, old: Record | None) -> None:
    """The further names of a view must be free as well, or those of the view it replaces."""
    ours = dict(old.others) if old is not None else {}
    for name, _ in record.others:
        if name not in ours:
            _check_free(spark, name)


def _check_unread(views: Views, gone: list[str], old: Record) -> None:
    """Names that the new view does not have must not stand in the query of another one."""
    for name in gone:
        word = name.rsplit("`.`")[-1].strip("`")
        users = [
            r.label
            for r in downstream(old, views.all())
            if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", r.sql, re.IGNORECASE)
        ]
        if users:
            raise ViewInUseError(
                f"{old.seen_as(name).label} is read by {', '.join(users)}",
                hint=f"The new {old.label} has no such output. Drop these first.",
            )


def _check_free(spark: SparkSession, name: str) -> None:
    if spark.catalog.tableExists(name):
        raise NameTakenError(f"{name} is a table or view already", hint="Use another name.")


def _record(
    views: Views, wanted: Wanted, name: str, compiled: Compiled, start: datetime.datetime
) -> Record:
    """What the registry will know of the view."""
    sql = wanted.text(compiled)
    catalog, schema = current(views.spark)
    identity = uuid.uuid4().hex
    record = Record(
        id=identity,
        name=name,
        label=_label(views, wanted.name, name),
        sql=sql,
        catalog=catalog,
        schema=schema,
        store=f"{views.home.schema}.{quoted('store_' + identity[:16])}",
        refresh=wanted.refresh,
        maintain=wanted.maintain,
        created=start.isoformat(),
        columns=compiled.columns,
        reads=reads(compiled),
        settings=jvm.settings_of(views.spark),
        comment=wanted.comment,
    )
    if wanted.asked is not None:
        return wanted.asked.record(views.spark, record, compiled)
    return dataclasses.replace(record, reader=compiled.reader_sql(record.store))


def _label(views: Views, given: str, name: str) -> str:
    """The name as it was given; in full, if a view of another schema has been given it too."""
    return name if any(r.label == given and r.name != name for r in views.all()) else given


def _build(views: Views, record: Record, compiled: Compiled) -> RefreshReport:
    """Fills a new store, in one commit with the versions of the sources."""
    start, spark = datetime.datetime.now(), views.spark
    vector = Vector(spark, views.known)
    pins = {leaf: vector.pin(name) for leaf, name in source_names(compiled).items()}
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {views.home.schema}")
    sources = {
        leaf: {
            "id": p.source.table_id,
            "version": p.version,
            "name": p.source.name,
            "commit": p.commit,
        }
        for leaf, p in pins.items()
    }
    metadata = {"view": record.id, "refresh": 0, "strategy": "full", "sources": sources}
    metadata["names"] = compiled.names
    metadata["timing"] = Timing().as_dict()

    def fill(spark: SparkSession) -> Source:
        with Runner(spark) as runner:
            tag, properties = None, None
            if record.program:  # programs read whole tables
                frame, tag = programs.first_rows(runner, record, compiled, pins)
                properties = stores.WHOLE_FILES
            else:
                frame = build_frame(runner, compiled, pins, record.sql)
            return stores.create(
                spark, record.store, frame, metadata=metadata, properties=properties, partition=tag
            )

    with computing(record.label, "Nothing was made."):
        made = with_room(spark, fill)
    seconds = (datetime.datetime.now() - start).total_seconds()
    if not record.program:
        learn_build(record, pins, seconds)
    report = RefreshReport(record.label, "full", seconds, "created")
    report.lane, report.version = "create", 0
    report.sources = {leaf: (-1, p.version) for leaf, p in pins.items()}
    report.sizes = lambda: (views.spark.table(record.name).count(), 0)
    if record.program:
        report.sizes = programs.first_sizes(spark, record, made)
    views.known[record.store] = made
    return report


def _redirect(views: Views, old: Record, new: Record) -> None:
    """The views that read a view which was replaced read the new one from now on."""
    for record in downstream(old, views.all()):
        names = tuple(sorted(new.store if r == old.store else r for r in record.reads))
        views.home.save(dataclasses.replace(record, reads=names))


def _drop_store(views: Views, record: Record) -> None:
    with contextlib.suppress(UnknownTableError, NotDeltaError):
        stores.drop(views.spark, find(views.spark, record.store))
    views.known.pop(record.store, None)
    views.definitions.forget(record)

"""What one can ask about a view: how it is kept, what would help, what changed."""

from __future__ import annotations

from pyspark.sql import DataFrame

from viewkeeper.advice import Advice
from viewkeeper.advise import LEAST, USUAL_ROWS, advise
from viewkeeper.closures import ask_recursive
from viewkeeper.compiled import compile_view
from viewkeeper.engine import changes, program_changes
from viewkeeper.engine.vector import Vector
from viewkeeper.explain import Explanation, explain_query, explain_view
from viewkeeper.explain_program import explain_asked, explain_program
from viewkeeper.lake import jvm, sources
from viewkeeper.lake.sources import find
from viewkeeper.records import InvalidOptionError, Record
from viewkeeper.views import Views


def explain_record(views: Views, record: Record) -> Explanation:
    """How a view is kept.

    >>> print(explain_record(views, views.get("v")))                      # doctest: +SKIP
    """
    vector = Vector(views.spark, views.known)
    explain = explain_program if record.program else explain_view
    return explain(views.spark, record, views.compiled(record), vector)


def explain_text(views: Views, sql: str) -> Explanation:
    """How a query would be kept, if it was a view.

    >>> print(explain_text(views, "SELECT c FROM t"))                     # doctest: +SKIP
    """
    if len(sql.split()) == 1:
        raise views.unknown(sql)
    asked = ask_recursive(views.spark, sql)
    if asked is not None:
        return explain_asked(asked.task, compile_view(views.spark, asked.query))
    return explain_query(compile_view(views.spark, sql), sql)


def advise_record(
    views: Views, record: Record, rows: int | None = None, least: float = LEAST
) -> list[Advice]:
    """What would make the refreshes of a view cheaper.

    >>> advise_record(views, views.get("v"))                              # doctest: +SKIP
    """
    if rows is None:
        rows = views.home.usual_change(record.label) or USUAL_ROWS
    vector = Vector(views.spark, views.known)
    ours = {r.store for r in views.all()}
    compiled = views.compiled(record)
    return advise(views.spark, record, compiled, vector, rows=rows, least=least, ours=ours)


def changes_since(views: Views, record: Record, version: int) -> DataFrame:
    """The net change of a view since a version of it.

    >>> changes_since(views, views.get("v"), 3).show()                    # doctest: +SKIP
    """
    store = find(views.spark, record.store)
    newest = sources.version(views.spark, store)
    if not isinstance(version, int) or not 0 <= version <= newest:
        raise InvalidOptionError(
            f"{record.label} has no version {version!r}",
            hint=f"Give one from 0 to {newest}, such as a report's version.",
        )
    with jvm.with_settings(views.spark, record.settings) as spark:
        if record.program:
            rows = program_changes.since(spark, store, record.reader, version)
        else:
            rows = changes.since(spark, store, views.compiled(record).store, version)
        return jvm.move_frame(views.spark, rows)

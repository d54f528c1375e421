"""Several views refreshed, each after those it reads, and what is told of those that failed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from viewkeeper.compiled import Compiled
from viewkeeper.engine import programs
from viewkeeper.engine.failures import computing, with_room
from viewkeeper.engine.order import SkippedError, in_order
from viewkeeper.engine.refresh import refresh
from viewkeeper.engine.vector import Vector
from viewkeeper.graph import upstream
from viewkeeper.lake import jvm
from viewkeeper.records import Record, RefreshFailedError, RefreshReport
from viewkeeper.views import Views

Watch = Callable[[str, RefreshReport | None], None]


def refresh_views(
    views: Views,
    wanted: Sequence[Record],
    vector: Vector,
    strategy: str | None = None,
    insisted: Collection[str] | None = None,
    watch: Watch | None = None,
) -> tuple[list[RefreshReport], dict[str, Exception]]:
    """The reports of the views that were refreshed, and the errors of the others by name.

    Parameters
    ----------
    views : Views
    wanted : sequence of Record
        The views, each after those it reads.
    vector : Vector
        The versions of the sources.
    strategy : str, optional
        Instead of the cost model's choice.
    insisted : names, optional
        The views that the strategy is for; by default all.
    watch : callable, optional
        Told when a refresh begins, and when it ends.

    Examples
    --------
    >>> refresh_views(views, views.all(), vector)                         # doctest: +SKIP
    """
    records = {r.name: r for r in wanted}
    needs = {r.name: [u.name for u in upstream(r, wanted)] for r in wanted}
    lock = threading.Lock()

    def tell(label: str, report: RefreshReport | None) -> None:
        if watch is not None:
            with lock:
                watch(label, report)

    def one(name: str) -> RefreshReport:
        record, report = records[name], None
        insist = strategy if insisted is None or name in insisted else None
        tell(record.label, None)
        try:
            with lock:  # compiling uses the session's current schema
                compiled = views.compiled(record)
            report = _refresh(views, record, compiled, vector, insist)
            return report
        finally:
            tell(record.label, report)

    done, failed = in_order(list(records), needs, one)
    errors = {
        name: _upstream_failed(records[name]) if isinstance(error, SkippedError) else error
        for name, error in failed.items()
    }
    return list(done.values()), errors


def _refresh(
    views: Views, record: Record, compiled: Compiled, vector: Vector, insist: str | None
) -> RefreshReport:
    ways = programs.WAYS if record.program else None
    with (
        jvm.with_settings(views.spark, record.settings) as spark,
        computing(record.label, "The view is as it was before."),
    ):
        return with_room(spark, lambda s: refresh(s, record, compiled, vector, insist, ways))


def _upstream_failed(record: Record) -> RefreshFailedError:
    return RefreshFailedError(
        f"{record.label} was not refreshed, because a view it reads could not be",
        hint="It is as it was before.",
    )


def failure(failed: dict[str, Exception], reports: list[RefreshReport]) -> Exception:
    """The one error, or one that tells of all.

    >>> print(failure({"v": ValueError("no"), "w": ValueError("neither")}, []).what)
    2 views could not be refreshed: v: no; w: neither
    """
    first = next(iter(failed.values()))
    if len(failed) == 1:
        first.reports = reports  # type: ignore[attr-defined]
        return first
    names = "; ".join(f"{name}: {str(e).splitlines()[0]}" for name, e in failed.items())
    error = RefreshFailedError(
        f"{len(failed)} views could not be refreshed: {names}",
        hint="They are as they were before; the others were refreshed.",
    )
    error.reports, error.causes = reports, failed
    return error

"""Of each view, cheaply: its last refresh, how far its sources are ahead, what comes next."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from viewkeeper.cli_output import short, table
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.vector import pinned
from viewkeeper.errors import ViewKeeperError
from viewkeeper.keeper import Keeper
from viewkeeper.lake import stores
from viewkeeper.lake.sources import find, version
from viewkeeper.records import View

TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"


@dataclass
class Ahead:
    """A source: its version at the last refresh, and now."""

    name: str
    then: int
    now: int | None

    @property
    def text(self) -> str:
        if self.now is None:
            return f"{self.name} is gone"
        return f"{self.name} +{self.now - self.then}"


@dataclass
class Status:
    """What is known of one view."""

    view: str
    refresh: str
    stored_rows: int | None = None
    last: dict[str, Any] | None = None
    sources: list[Ahead] = dataclasses.field(default_factory=list)
    next: str | None = None
    reason: str | None = None
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; ``ahead`` is the number of commits a source has since the last refresh."""
        found = dataclasses.asdict(self)
        for source in found["sources"]:
            gone = source["now"] is None
            source["ahead"] = None if gone else source["now"] - source["then"]
        return found


def statuses(keeper: Keeper) -> list[Status]:
    """The status of each view, in the order of creation. No table's rows are read, changes are."""
    views = keeper.views()
    if not views:
        return []
    labels = {v.record.store: str(v) for v in views}
    lasts = _lasts(keeper)
    return [_status(keeper, view, labels, lasts.get(str(view))) for view in views]


def _status(
    keeper: Keeper, view: View, labels: dict[str, str], last: dict[str, Any] | None
) -> Status:
    found = Status(str(view), view.refresh, last=last)
    spark = keeper.spark
    try:
        store = find(spark, view.record.store)
        found.stored_rows = row_count(pinned(spark, store))
        _, meta = stores.last_metadata(spark, store)
        for source in meta.get("sources", {}).values():
            name = _known(source["name"], labels)
            found.sources.append(Ahead(name, source["version"], _now(keeper, source["name"])))
        explained = keeper.explain(view.record.name)
        found.next, found.reason = explained.strategy, explained.reason
    except ViewKeeperError as e:
        found.error = f"[{e.code}] {e.what}"
    return found


def _known(name: str, labels: dict[str, str]) -> str:
    """A source's name; for another view's store, the view's."""
    for store, label in labels.items():
        if name == store or name.endswith("." + store):
            return label
    return short(name)


def _now(keeper: Keeper, name: str) -> int | None:
    try:
        return version(keeper.spark, find(keeper.spark, name))
    except ViewKeeperError:
        return None


def _lasts(keeper: Keeper) -> dict[str, dict[str, Any]]:
    """Each view's newest entry in the history."""
    entry = F.struct(F.date_format("at", TIME).alias("at"), "strategy", "seconds", "reason")
    newest = keeper.history().groupBy("view").agg(F.max_by(entry, "at").alias("last"))
    return {row["view"]: row["last"].asDict() for row in newest.collect()}


def status_table(found: list[Status]) -> str:
    """The statuses for people."""
    if not found:
        return "No views yet. Make one: viewkeeper --lake DIR create NAME --sql 'SELECT …'"
    rows = []
    for s in found:
        last = f"{s.last['strategy']} {s.last['at']}" if s.last else None
        ahead = ", ".join(a.text for a in s.sources) or None
        coming = s.error or f"{s.next}: {s.reason}"
        rows.append((s.view, s.refresh, s.stored_rows, last, ahead, coming))
    head = ["view", "refresh", "stored rows", "last refresh", "commits ahead", "next refresh"]
    return table(head, rows)

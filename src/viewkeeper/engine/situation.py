"""What a refresh finds: what changed since the last one, and what it will say of itself."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import stores
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.feeds import Feed, net_change
from viewkeeper.lake.history import fingerprint
from viewkeeper.lake.sources import version
from viewkeeper.plan.choose import Choice, Timing
from viewkeeper.records import Record, SourceError

_TIMINGS: dict[str, Timing] = {}  # by view, what this process measured last


@dataclass
class Situation:
    """What a refresh finds: the store's last commit, the sources then and now, what changed."""

    record: Record
    compiled: Compiled
    store: Pin
    meta: dict[str, Any]
    pins: dict[str, Pin]
    feeds: dict[str, Feed] = field(default_factory=dict)
    full_reason: str | None = None
    strict: bool = False  # it must be incremental, whatever that takes
    ahead: bool = False  # the view has seen a later version of a source than this refresh
    # what a transaction that is not committed yet does to sources, by leaf
    overlays: dict[str, Overlay] = field(default_factory=dict)
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def changed(self) -> list[str]:
        """The sources that have rows to tell of."""
        return [name for name, feed in self.feeds.items() if not feed.empty]

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """Each source's version before and after."""
        then = self.meta.get("sources", {})
        return {
            name: (then.get(name, {}).get("version", -1), pin.version)
            for name, pin in self.pins.items()
        }

    @property
    def timing(self) -> Timing:
        return _TIMINGS.get(self.record.id) or Timing.of(self.meta.get("timing"))


def source_names(compiled: Compiled) -> dict[str, str]:
    """The SQL name of each Delta source, by leaf."""
    refs = compiled.definition.sources
    return {leaf: ref.sql for leaf, ref in refs.items() if ref.provider == "delta"}


def look(spark: SparkSession, record: Record, compiled: Compiled, vector: Vector) -> Situation:
    """What changed since the last refresh. Unchanged sources cost a look at their logs only."""
    store = vector.pin(record.store)
    _, meta = stores.last_metadata(spark, store.source)
    found = Situation(record, compiled, store, meta, _pins(record, compiled, vector))
    then: Mapping[str, Any] = meta.get("sources", {})
    if compiled.blocked and not _is_same(found, then):
        found.full_reason = compiled.blocked
        return found
    if meta.get("names") != compiled.names:
        found.full_reason = "a view or function in the query was redefined since the last refresh"
        return found
    for leaf, table in compiled.leaves.items():
        pin, old = found.pins[leaf], then.get(leaf)
        if old is None or old["id"] != pin.source.table_id:
            found.full_reason = f"{pin.source.name} was replaced since the last refresh"
            return found
        if _set_back(spark, pin, old):
            found.full_reason = (
                f"the log of {pin.source.name} is not what it was at the last refresh: the table"
                " was copied back, or commits were taken away"
            )
            return found
        if old["version"] > pin.version:
            found.ahead = True
            found.feeds = {}
            return found
        if old["version"] != pin.version:
            try:
                found.feeds[leaf] = net_change(
                    spark, pin.source, old["version"], pin.version, list(table.names)
                )
            except LostHistoryError as e:
                found.full_reason = e.what
                return found
    return found


def _set_back(spark: SparkSession, pin: Pin, old: Mapping[str, Any]) -> bool:
    """Whether a source has another past than at the last refresh, under the same id."""
    if not old.get("commit"):
        return False
    if old["version"] > pin.version:  # then this refresh is late, or the log has gone back
        return version(spark, pin.source) < int(old["version"])
    return fingerprint(spark, pin.source, old["version"]) not in (None, old["commit"])


def _is_same(found: Situation, then: Mapping[str, Any]) -> bool:
    """Whether nothing that the result depends on can have changed since the last refresh."""
    now = {n: (pin.source.table_id, pin.version) for n, pin in found.pins.items()}
    before = {n: (old["id"], old["version"]) for n, old in then.items()}
    if not found.compiled.steady or now != before:
        return False
    return all(old.get("commit") in (None, found.pins[n].commit) for n, old in then.items())


def _pins(record: Record, compiled: Compiled, vector: Vector) -> dict[str, Pin]:
    pins: dict[str, Pin] = {}
    for leaf, name in source_names(compiled).items():
        try:
            pins[leaf] = vector.pin(name)
        except UnknownTableError as e:
            raise SourceError(
                f"{name}, which the view {record.label} reads, is gone",
                hint="Restore it, or drop the view; the view's rows are as they were.",
            ) from e
    return pins


def metadata_of(found: Situation, timing: Timing, strategy: str) -> dict[str, Any]:
    """What the commit says of itself. A transaction adds one version to each table it changes."""
    sources = {
        leaf: {
            "id": pin.source.table_id,
            "version": pin.version + (leaf in found.overlays),
            "name": pin.source.name,
            "commit": None if leaf in found.overlays else pin.commit,
        }
        for leaf, pin in found.pins.items()
    }
    return {
        "view": found.record.id,
        "refresh": found.meta.get("refresh", 0) + 1,
        "strategy": strategy,
        "by": found.nonce,
        "names": found.compiled.names,
        "sources": sources,
        "timing": timing.as_dict(),
    }


def learn(found: Situation, way: str, seconds: float, choice: Choice) -> None:
    """What the refresh took, for the next one's prediction; it is in the next commit."""
    timing = found.timing.learned(way, seconds, choice.predicted)
    _TIMINGS[found.record.id] = timing


def learn_build(record: Record, pins: Mapping[str, Pin], seconds: float) -> None:
    """What filling the store at first took is what a full refresh takes."""
    rows = sum(row_count(pin) for pin in pins.values())
    _TIMINGS[record.id] = Timing.built(seconds, rows)

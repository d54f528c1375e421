"""Active queries: whoever asks is told of each change of a view, and of nothing else.

Each commit of a view's store is one change. It is told if it is not empty; the position behind it
is kept with the subscription's name, so another process goes on where this one ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper.engine import changes, program_changes
from viewkeeper.errors import UnknownTableError, ViewKeeperError
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import WEIGHT, repeated
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import Source, find, quoted, version
from viewkeeper.records import InvalidOptionError, Record, named
from viewkeeper.transactions.manager import Host
from viewkeeper.transactions.shelf import Shelf


class CallbackError(ViewKeeperError):
    """A callback of ``on_change`` raised; the views themselves are changed."""

    code = "CALLBACK_FAILED"


Failures = list[tuple["Subscription", CallbackError]]


@dataclass(frozen=True)
class ViewChange:
    """One change of a view.

    Attributes
    ----------
    view : str
    version : int
        The version of the view's store that has the change.
    removed, added : DataFrame
        ∇ and Δ: no row is in both.
    snapshot : bool
        Whether this is the whole view, the beginning of a subscription that has a name.
    """

    view: str
    version: int
    removed: DataFrame
    added: DataFrame
    snapshot: bool = False


Callback = Callable[[ViewChange], Any]


@dataclass
class Subscription:
    """Somebody who is told of a view's changes, until ``cancel()``."""

    view: str
    full_name: str
    callback: Callback
    name: str | None
    store: str = ""  # the store and its version up to which all was told
    version: int = -1
    active: bool = True
    told: int = 0  # how many changes

    def cancel(self) -> None:
        """No more changes are told; the position of a name stays.

        Examples
        --------
        >>> keeper.on_change("v", print).cancel()                         # doctest: +SKIP
        """
        self.active = False


class Subscriptions:
    """All subscriptions of one keeper."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.shelf = Shelf(host.spark(), host.home, "subscriptions")
        self._all: list[Subscription] = []
        self._busy = threading.Lock()
        self._more = False  # somebody asked to deliver, and it is not done yet

    def add(self, record: Record, callback: Callback, name: str | None) -> Subscription:
        """Begins to tell; with a name, from where it ended, or else with the whole view."""
        _check(callback, name)
        made = Subscription(record.label, record.name, callback, name)
        kept = None if name is None else self._kept(name, record)
        if kept is not None:
            made.store, made.version = kept["store"], kept["version"]
        elif name is None:
            made.store = record.store
            made.version = version(self.host.spark(), find(self.host.spark(), record.store))
        for one in self._all:  # a name has one place, and whoever came last is told
            if name is not None and one.name == name:
                one.cancel()
        self._all.append(made)
        _, failed = self._deliver_all()
        for one, error in failed:  # others are told again at the next occasion
            if one is made:
                made.cancel()
                raise error
        return made

    def _kept(self, name: str, record: Record) -> dict[str, Any] | None:
        """The place of a name in the changes of a view; none if its view is gone."""
        kept = self.shelf.all().get(name)
        view = None if kept is None else kept.get("full_name", record.name)
        if kept is None or view == record.name:
            return kept
        if named(self.host.records(), str(view)) is not None:
            raise InvalidOptionError(
                f"the name {name!r} is that of a subscription to {kept['view']}",
                hint="Use another name: each has one place, in the changes of one view.",
            )
        return None

    def forget(self, name: str) -> None:
        """Drops the position of a name."""
        self.shelf.put(name, None)

    def deliver(self) -> int:
        """Tells all that is new; how many changes these were. A callback that changes views is
        told of it after it has returned. If one raises, the others are told all the same."""
        told, failed = self._deliver_all()
        for _, error in failed:
            raise error
        return told

    def _deliver_all(self) -> tuple[int, Failures]:
        """One thread at a time tells, until there is nothing new; who comes meanwhile leaves the
        rest to it."""
        told = 0
        failed: Failures = []
        self._all = [s for s in self._all if s.active]
        self._more = bool(self._all)
        while self._more and self._busy.acquire(blocking=False):
            try:
                while self._more:
                    self._more = False
                    for one in list(self._all):
                        if not any(one is other for other, _ in failed):
                            told += self._deliver(one, failed)
            finally:
                self._busy.release()
        return told, failed

    def _deliver(self, one: Subscription, failed: Failures) -> int:
        """Tells one of them; how many changes these were."""
        before = one.told
        try:
            self._catch_up(one)
        except CallbackError as error:
            failed.append((one, error))
        if one.told > before:  # the callback may have changed views
            self._more = True
        return one.told - before

    def _catch_up(self, one: Subscription) -> None:
        record = named(self.host.records(), one.full_name)
        if record is None or not one.active:
            return
        record = record.seen_as(one.full_name)
        spark = self.host.spark()
        try:
            store = find(spark, record.store)
        except UnknownTableError:
            return
        now = version(spark, store)
        if one.store != record.store:  # never told, or the view was replaced
            self._tell(one, record, now, self._whole(record, store, now))
        while one.active and one.version < now:
            reached = one.version + 1
            try:
                change = self._change(record, store, one.version, reached)
            except LostHistoryError:
                reached, change = now, self._whole(record, store, now)
            self._tell(one, record, reached, change)

    def _tell(
        self, one: Subscription, record: Record, reached: int, change: ViewChange | None
    ) -> None:
        if change is not None:
            try:
                one.callback(change)
            except Exception as error:
                raise CallbackError(
                    f"the callback for {one.view} raised {type(error).__name__}: {error}",
                    hint="The views are changed. This change is told again at the next occasion.",
                ) from error
            one.told += 1
        one.store, one.version = record.store, reached
        if one.name is not None:
            kept = {"view": one.view, "full_name": one.full_name}
            self.shelf.put(one.name, {**kept, "store": one.store, "version": one.version})

    def _whole(self, record: Record, store: Source, now: int) -> ViewChange:
        spark = self.host.spark()
        with jvm.with_settings(spark, record.settings) as own:
            if record.program:
                rows = program_changes.whole(own, store, record.reader, now)
            else:
                rows = changes.whole(own, store, self.host.compiled(record).store, now)
                rows = rows.toDF(*(n for n, _ in record.columns))
            rows = jvm.move_frame(spark, rows)
        return ViewChange(record.label, now, rows.limit(0), rows, snapshot=True)

    def _change(self, record: Record, store: Source, old: int, new: int) -> ViewChange | None:
        """What one commit changed; None if nothing."""
        spark = self.host.spark()
        with jvm.with_settings(spark, record.settings) as own:
            if record.program:
                frame = program_changes.between(own, store, record.reader, old, new)
            else:
                shape = self.host.compiled(record).store
                frame = changes.between(own, store, shape, old, new)
                frame = frame.toDF(*(n for n, _ in record.columns), WEIGHT)
            frame = jvm.move_frame(spark, frame)
        few = frame.limit(_MOST + 1).toArrow()
        if not few.num_rows:
            return None
        if few.num_rows > _MOST:
            removed, added = (_repeated(frame, sign) for sign in (-1, 1))
        else:
            removed, added = (_local(spark, frame, few, sign) for sign in (-1, 1))
        return ViewChange(record.label, new, removed, added)


def _check(callback: object, name: object) -> None:
    """Raises if a callback cannot be called, or a name is none."""
    if not callable(callback):
        raise InvalidOptionError(
            f"the callback is {callback!r}", hint="Give a function of one argument, the change."
        )
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InvalidOptionError(
            f"{name!r} is not a name", hint="Give the subscription a name, or none."
        )


_MOST = 100_000  # rows of a change that are held on the driver


def _local(spark: SparkSession, frame: DataFrame, rows: pa.Table, sign: int) -> DataFrame:
    times = pc.max_element_wise(pc.multiply(rows.column(WEIGHT), sign), 0)
    names = rows.schema.names[:-1]
    schema = frame.schema.fields[:-1]
    made = repeated(rows.select(names), times)
    return local_frame(spark, made, type(frame.schema)(list(schema)))


def _repeated(frame: DataFrame, sign: int) -> DataFrame:
    weight = F.col(WEIGHT) * sign
    names = [quoted(n) for n in frame.columns[:-1]]
    times = F.explode(F.sequence(F.lit(1), weight.cast("int")))
    return frame.where(weight > 0).select(*names, times.alias(WEIGHT)).select(*names)

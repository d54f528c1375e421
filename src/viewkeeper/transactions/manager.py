"""Transactions of one keeper: begun, committed through the journal, and recovered."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.definitions import reads
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.errors import UnknownTableError, ViewKeeperError
from viewkeeper.graph import with_upstream
from viewkeeper.home import Home
from viewkeeper.lake.errors import ConflictError, NotDeltaError
from viewkeeper.lake.sources import Source, is_same, version
from viewkeeper.records import Record, SourceError
from viewkeeper.transactions.applying import carry_out
from viewkeeper.transactions.constraints import Constraint, Proofs, plain
from viewkeeper.transactions.errors import ConstraintViolation, TransactionError
from viewkeeper.transactions.evaluation import Outcome, Preview, evaluate, follow, preview_of
from viewkeeper.transactions.impact import StaleError
from viewkeeper.transactions.journal import Entry, Journal, Part
from viewkeeper.transactions.shelf import Shelf
from viewkeeper.transactions.state import State
from viewkeeper.transactions.transaction import CommitReport, Transaction, changed_since_read

TRIES = 30


@dataclass(frozen=True)
class Host:
    """What the keeper lends."""

    spark: Callable[[], SparkSession]
    home: Home
    known: dict[str, Source]
    records: Callable[[], dict[str, Record]]
    compiled: Callable[[Record], Compiled]
    refresh: Callable[[list[str]], Any]
    committed: Callable[[], None]  # views may have changed
    sync: Callable[[], None]  # the catalog gets what other processes made


class Transactions:
    """The transactions and the constraints of one keeper."""

    def __init__(self, host: Host) -> None:
        self.host = host
        spark = host.spark()
        self.journal = Journal(spark, host.home)
        self.shelf = Shelf(spark, host.home, "constraints")
        self.proofs = Proofs()
        self._open = threading.local()
        self._place: str | None = None  # the folder of our schema

    # ── what a transaction asks for ──

    @property
    def spark(self) -> SparkSession:
        """The session, if it lives."""
        return self.host.spark()

    @property
    def known(self) -> dict[str, Source]:
        return self.host.known

    def owns(self, source: Source) -> bool:
        """Whether a table is viewkeeper's own, under whatever name or path: users do not write
        it."""
        if source.name.lower().startswith(f"{self.host.home.schema.lower()}."):
            return True
        place = _place(source.location)
        return os.path.dirname(place) == self._folder() or (
            source.is_path and place in self._store_places()
        )

    def _folder(self) -> str | None:
        """The folder of our schema; None as long as there is none."""
        if self._place is None:
            with contextlib.suppress(AnalysisException):
                found = self.spark.catalog.getDatabase(self.host.home.schema)
                self._place = _place(unquote(found.locationUri))
        return self._place

    def _store_places(self) -> set[str]:
        """Where the views' stores lie."""
        vector = Vector(self.spark, self.known)
        found = set()
        for record in self.host.records().values():
            with contextlib.suppress(ViewKeeperError):
                found.add(_place(vector.pin(record.store).source.location))
        return found

    def state(self) -> State:
        """The tables as they are now."""
        return State(
            self.spark,
            self.known,
            follow=lambda state, names: follow(state, names, self.immediate(), self.host.compiled),
        )

    def catch_up(self, record: Record) -> None:
        """An immediate view takes in what writers outside did."""
        self.host.refresh([record.name])

    def begin(self) -> Transaction:
        """A new transaction; one at a time in each thread."""
        current = self._current()
        if current is not None and current.unused:
            current.abort()
        elif current is not None:
            raise TransactionError(
                "a transaction is open already in this thread",
                hint="End it first, or go on with it: transactions are not nested.",
            )
        _ = self.spark
        made = Transaction(self)
        self._open.transaction = weakref.ref(made)  # one that nobody holds is no longer open
        return made

    def _current(self) -> Transaction | None:
        """The transaction that is open in this thread."""
        found: weakref.ref[Transaction] | None = getattr(self._open, "transaction", None)
        return None if found is None else found()

    def ended(self, transaction: Transaction) -> None:
        """Another one may begin."""
        if self._current() is transaction:
            self._open.transaction = None

    # ── constraints and views ──

    def constraints(self) -> dict[str, Constraint]:
        """All constraints by name."""
        return {name: Constraint.of(found) for name, found in self.shelf.all().items()}

    def fresh(self, constraint: Constraint) -> Constraint:
        """A constraint with what it reads now: views and functions of Spark's in its query may have
        been redefined. If one of them is gone, what it read before still counts."""
        if constraint.names == "":
            return constraint
        try:
            compiled = self.host.compiled(constraint.record)
        except SourceError as error:
            if constraint.names is None or isinstance(error.__cause__, UnknownTableError):
                return constraint  # it says so itself, if what it read is changed
            raise
        if compiled.blocked:  # it says so itself, if what it reads or has read is changed
            both = dict.fromkeys((*constraint.reads, *reads(compiled)))
            return replace(constraint, reads=tuple(both))
        names = compiled.names or ""
        same = constraint.names in (names, None)
        made = replace(
            constraint,
            reads=reads(compiled),
            names=names,
            holds_at=constraint.holds_at if same else {},
        )
        if made != constraint:
            self.note(made)
        return made

    def note(self, constraint: Constraint) -> None:
        """Keeps what was found of a constraint, if it is still there."""
        with self.journal.turn():
            there = self.constraints().get(constraint.name)
            if there is not None and there.id == constraint.id:
                self.shelf.put(constraint.name, plain(constraint))

    def immediate(self) -> list[Record]:
        """The immediate views, each after those that it reads."""
        records = list(self.host.records().values())
        return [r for r in with_upstream(records, records) if r.maintain == "immediate"]

    # ── the commit ──

    def preview(self, transaction: Transaction) -> Preview:
        """What a transaction would do."""
        self.recover()
        for _ in range(TRIES):
            try:
                outcome = self._evaluate(transaction, show=True)
            except StaleError as stale:
                self.catch_up(stale.record)
                continue
            return preview_of(self.spark, outcome, transaction.labels)
        raise conflict()

    def commit(self, transaction: Transaction) -> CommitReport:
        """Carries a transaction out."""
        start = time.perf_counter()
        _ = self.spark
        if not transaction.steps:
            if transaction.reads:
                self.recover()
                self._check_reads(transaction, self.state())
            return CommitReport(0)
        with self.journal.turn():
            for _ in range(TRIES):
                self.finish_all()
                number = self.journal.last() + 1
                try:
                    outcome = self._evaluate(transaction)
                except StaleError as stale:
                    self.catch_up(stale.record)
                    continue
                if self.moved(outcome.state):
                    continue
                for verdict in outcome.violated:
                    raise ConstraintViolation(verdict.constraint.name, verdict.rows)
                if not outcome.written:
                    return self._report(0, transaction, outcome, start)
                entry = self.journal.add(number, outcome.parts)
                if entry is None:
                    continue
                self.carry_out(entry)
                report = self._report(number, transaction, outcome, start)
                transaction.report = report  # a callback may raise
                break
            else:
                raise conflict()
        self.host.committed()
        return report

    def _evaluate(self, transaction: Transaction, *, show: bool = False) -> Outcome:
        """The transaction on the tables as they are now."""
        state = self.state()
        self._check_reads(transaction, state)
        state.answers.update(transaction.answers)
        return evaluate(
            state,
            transaction.steps,
            self.immediate(),
            [self.fresh(c) for c in self.constraints().values()],
            self.host.compiled,
            self.proofs,
            show=show,
        )

    def _check_reads(self, transaction: Transaction, state: State) -> None:
        """Raises if a table is not as the transaction's own code has seen it."""
        for name, seen in transaction.reads.items():
            try:
                pin = state.pin(name)
            except (UnknownTableError, NotDeltaError):
                raise changed_since_read(name) from None
            if (pin.source.table_id, pin.version) != seen:
                raise changed_since_read(name)

    def moved(self, state: State) -> bool:
        """Whether a writer outside came between the look at the tables and now."""
        pins = {pin.source.name: pin for pin in state.pins.values()}
        return any(
            not is_same(self.spark, pin.source) or version(self.spark, pin.source) != pin.version
            for pin in pins.values()
        )

    def _report(
        self, number: int, transaction: Transaction, outcome: Outcome, start: float
    ) -> CommitReport:
        labels = transaction.labels
        return CommitReport(
            number,
            {labels.get(n, n): o.sizes for n, o in outcome.written.items()},
            {v.record.label: v.sizes for v in outcome.views},
            {v.constraint.name: v.how for v in outcome.verdicts},
            [line for v in outcome.verdicts for line in v.lookups],
            time.perf_counter() - start,
        )

    def record_entry(self, parts: list[Part]) -> None:
        """An entry that changes no table, in its place among the transactions."""
        with self.journal.turn():
            for _ in range(TRIES):
                self.finish_all()
                entry = self.journal.add(self.journal.last() + 1, parts)
                if entry is not None:
                    self.carry_out(entry)
                    return
        raise conflict()

    # ── recovery ──

    def recover(self) -> int:
        """Finishes transactions that are in the journal and were not carried out to the end."""
        if not self.journal.exists or self.journal.done() >= self.journal.last():
            return 0
        with self.journal.turn():
            return self.finish_all()

    def finish_all(self) -> int:
        """The same, where it is our turn; what other processes made is known from here on."""
        self.host.sync()
        found = self.journal.unfinished()
        for entry in found:
            self.carry_out(entry)
        return len(found)

    def carry_out(self, entry: Entry) -> None:
        """Does what an entry says."""
        carry_out(self.spark, self.journal, entry, self._register)

    def _register(self, head: dict[str, Any]) -> None:
        """A constraint is added or dropped."""
        record = head["record"]
        if self.shelf.all().get(head["name"]) != record:
            self.shelf.put(head["name"], record)

    # ── one moment ──

    def steady(
        self, names: Sequence[str], *, must: bool = True
    ) -> tuple[Vector, dict[str, Pin], tuple[int, int]]:
        """The versions of some tables between two transactions, none of them half done. Tables
        that are gone are left out, unless they must be there."""
        for _ in range(TRIES):
            self.recover()
            mark = self.journal.mark()
            vector = Vector(self.spark, self.known)
            pins = {}
            for name in names:
                try:
                    pins[name] = vector.pin(name)
                except (UnknownTableError, NotDeltaError):
                    if must:
                        raise
            if mark[0] == mark[1] and self.journal.mark() == mark:
                return vector, pins, mark
        raise conflict()


def _place(location: str) -> str:
    """A location, as it is compared with others.

    >>> _place("file:///a/b/"), _place("file:/a/b"), _place("s3a://c/d/")
    ('/a/b', '/a/b', 's3a://c/d')
    """
    local = Source("", "", location.rstrip("/")).local_path
    return location.rstrip("/") if local is None else os.path.realpath(local)


def conflict() -> ConflictError:
    """Others always came first."""
    return ConflictError(
        "other writers changed the tables again and again",
        hint="Nothing was written. Try again, or let them finish.",
    )

"""The tables as a transaction sees them: each at one version, with what was done to it so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.simplify.rewrite import simplify
from viewkeeper.algebra.walk import tables
from viewkeeper.compiled import read_definition
from viewkeeper.engine.incremental import bind_leaf
from viewkeeper.engine.lookups import Lookups, Place
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.frontend import Definition
from viewkeeper.lake.sources import Source, at
from viewkeeper.plan.prune import prune
from viewkeeper.transactions.errors import StatementError, TooLargeError

# the SQLSTATEs for wrong values: several rows of a scalar subquery, data, raise_error
_DATA = ("21", "22", "P0001")
MOST_ROWS = 1_000_000  # of a statement, on the driver


@dataclass(frozen=True)
class Reading:
    """A query that a statement asks: its rows are taken in the state that the statement finds."""

    definition: Definition
    query: Query
    text: str

    @property
    def sources(self) -> dict[str, str]:
        """The SQL name of each Delta table, by leaf."""
        refs = self.definition.sources
        used = {leaf.name for leaf in tables(self.query)}
        return {n: r.sql for n, r in refs.items() if r.provider == "delta" and n in used}


def read_query(spark: SparkSession, query: str | DataFrame, text: str) -> Reading:
    """Reads a query; ``text`` is what the user wrote of it."""
    definition = read_definition(spark, query)
    if definition.query is None:
        raise StatementError(
            f"the rows of this statement cannot be found: {definition.unsupported}",
            text=text,
            hint="Compute them first, and give insert() the rows: frame.toArrow().",
        )
    return Reading(definition, prune(simplify(definition.query)), text)


@contextmanager
def values_of(text: str) -> Iterator[None]:
    """Spark's complaints about values (overflow, division by zero, text that is no number, two rows
    where one was asked for) are ours about the statement."""
    try:
        yield
    except PySparkException as error:
        if not (error.getSqlState() or "").startswith(_DATA):
            raise
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise StatementError(first, text=text, hint="Nothing was written.") from error


class State:
    """Pinned tables, and what a transaction did to them.

    ``follow`` is asked before each query, with the names of the tables that it reads: immediate
    views among them follow what was done so far. ``answers`` are those that statements got before,
    from the same tables: they are not asked again, as chance may decide otherwise.
    """

    def __init__(
        self,
        spark: SparkSession,
        known: dict[str, Source],
        pins: Mapping[str, Pin] | None = None,
        follow: Callable[[State, Collection[str]], None] | None = None,
    ) -> None:
        self.spark = spark
        self.follow = follow
        self.vector = Vector(spark, known)
        self.pins: dict[str, Pin] = dict(pins or {})
        self.overlays: dict[str, Overlay] = {}
        self.answers: dict[object, pa.Table | None] = {}

    def pin(self, name: str) -> Pin:
        """The version at which the transaction sees a table; ``name`` in any form."""
        if name not in self.pins:
            found = self.vector.pin(name)
            place = found.source.location  # a table may have several names
            same = [pin for pin in self.pins.values() if pin.source.location == place]
            self.pins[name] = same[0] if same else found
        return self.pins[name]

    def overlay(self, name: str) -> Overlay:
        """What was done to a table."""
        pin = self.pin(name)
        return self.overlays.get(pin.source.name) or Overlay.of(pin)

    def put(self, overlay: Overlay) -> None:
        """After a statement."""
        self.overlays[overlay.pin.source.name] = overlay

    def undo(self, name: str) -> None:
        """As if nothing had been done to a table."""
        if name in self.pins:
            self.overlays.pop(self.pins[name].source.name, None)

    @property
    def changed(self) -> dict[str, Overlay]:
        """The tables that do not stay as they are."""
        return {name: o for name, o in self.overlays.items() if not o.empty}

    def answer(self, key: object, ask: Callable[[], pa.Table | None]) -> pa.Table | None:
        """What a statement asks, which is known by a key; asked once."""
        if key not in self.answers:
            self.answers[key] = ask()
        return self.answers[key]

    def answer_of(self, reading: Reading) -> pa.Table:
        """The rows of a statement's query, in the state that it finds."""
        return self.answer(id(reading), lambda: self.rows(reading))

    def rows(self, reading: Reading) -> pa.Table:
        """The rows of a query, in the state so far."""
        with values_of(reading.text), Runner(self.spark, most_rows=MOST_ROWS) as runner:
            query = self.bound(runner, reading)
            found = runner.compute(query).rows
        if found is None:
            raise too_large(f"more than {MOST_ROWS:,} rows")
        return found

    def bound(self, runner: Runner, reading: Reading) -> Query:
        """A query over the leaves of a runner, looked up as far as that is a gain."""
        places: dict[Table, Place] = {}
        names = reading.sources
        if self.follow is not None and self.changed:
            self.follow(self, names.values())
        for leaf in tables(reading.query):
            if leaf.name in names:
                pin = self.pin(names[leaf.name])
                overlay = self.changed.get(pin.source.name)
                places.update(bind_leaf(runner, leaf, pin, overlay))
            else:
                runner.bind(leaf, self.spark.table(reading.definition.sources[leaf.name].sql))
        return Lookups(runner, places).reduced(reading.query)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """A table in the state so far."""
        pin = self.pin(name)
        overlay = self.changed.get(pin.source.name)
        names = [f.name for f in pin.columns]
        return (
            at(spark, pin.source, pin.version, names)
            if overlay is None
            else overlay.frame(spark, names)
        )


def too_large(what: str) -> TooLargeError:
    """A change that does not fit on the driver."""
    return TooLargeError(
        f"the transaction changes {what}",
        hint="Split it; or load the rows with Spark, then keeper.refresh() and keeper.check().",
    )


def moved(pin: Pin, version: int) -> Pin:
    """The same table at another version."""
    return replace(pin, version=version)

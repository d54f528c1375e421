"""The lookups of a refresh: rows of the sources and of the store, fetched by values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.walk import rebuild
from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import lookup
from viewkeeper.lake.arrow import UnusualError, arrow_schema
from viewkeeper.lake.sources import quoted
from viewkeeper.plan.lookups import reduced

MOST_VALUES = 300_000  # more are not looked up one by one
MOST_FOUND = 1_000_000  # rows, for each lookup
MOST_BYTES = 64 * 2**20  # of rows, for each lookup
SMALL_TABLE = 5_000  # rows; such a table is read whole
MOST_LISTED = 500  # as a list in a filter of Spark's


@dataclass(frozen=True, eq=False)
class Values:
    """Distinct values of a column; two are the same only if they are the same object."""

    held: pa.Array

    def __len__(self) -> int:
        return len(self.held)

    def with_null(self) -> Values:
        return self if self.held.null_count else self._with_null

    def without_null(self) -> Values:
        return self._without_null if self.held.null_count else self

    def union(self, other: Values) -> Values | None:
        """Both; None if they are of different types, or too many."""
        if not len(other):
            return self
        if not len(self):
            return other
        if self.held.type != other.held.type or len(self) + len(other) > MOST_VALUES:
            return None
        return Values(pc.unique(pa.concat_arrays([self.held, other.held])))

    @cached_property
    def _with_null(self) -> Values:
        return Values(pa.concat_arrays([self.held, pa.nulls(1, self.held.type)]))

    @cached_property
    def _without_null(self) -> Values:
        return Values(self.held.drop_null())


@dataclass(frozen=True)
class Place:
    """Where the rows of a leaf are stored."""

    pin: Pin
    columns: tuple[str, ...]
    overlay: Overlay | None = None  # what a transaction that is not committed yet does to it

    def files(self) -> lookup.Files | None:
        """The files, None where only Spark can read them."""
        return lookup.files(self.pin.source, self.pin.version)

    def read(
        self, found: lookup.Files, limits: Mapping[str, pa.Array], most_rows: int
    ) -> pa.Table | None:
        """The rows with wanted values; None if they are too many."""
        rows = lookup.read(found, self.columns, limits, most_rows)
        if rows is None or self.overlay is None:
            return rows
        return self.overlay.after(rows, self.columns, limits)


class Lookups:
    """Reads leaves by values, on the driver if it can and the rows are few."""

    def __init__(self, runner: Runner, places: Mapping[Table, Place]) -> None:
        self.runner = runner
        self.places = places
        self.reads: list[str] = []  # what was looked up, for the report
        self._wholes: dict[Table, Table | None] = {}
        self._values: dict[tuple[Table, int], Values | None] = {}
        for leaf, place in places.items():
            found = None if place.overlay else place.files()
            if found is not None:
                runner.files[leaf] = found

    def reduced(self, query: Query) -> Query:
        """The query over the rows it can need, as far as the change says which."""
        if not self.runner.small:
            return query
        narrow = reduced(query, self)
        return rebuild(narrow, lambda q: self._whole(q) if isinstance(q, Table) else None)

    def _whole(self, leaf: Table) -> Table | None:
        """A small table is read whole."""
        place = self.places.get(leaf)
        found = None if place is None else place.files()
        if place is None or found is None or found.rows > SMALL_TABLE:
            return None
        if leaf not in self._wholes:
            try:
                rows = place.read(found, {}, self.runner.most_rows)
            except UnusualError:
                rows = None
            made = None
            if rows is not None:
                self.reads.append(f"{place.pin.source.name} whole: {rows.num_rows} rows")
                schema = place.pin.schema(place.columns)
                made = self.runner.keep(f"{leaf.name}#", leaf.names, rows, schema)
            self._wholes[leaf] = made
        return self._wholes[leaf]

    def values(self, leaf: Table, column: int) -> Values | None:
        """The values of a column of a leaf on the driver."""
        key = (leaf, column)
        if key not in self._values:
            rows = self.runner.rows.get(leaf)
            self._values[key] = None if rows is None else _distinct(rows.column(column))
        return self._values[key]

    def read(self, leaf: Table, wanted: Mapping[int, Values]) -> Table:
        """A leaf with the rows that have wanted values; the leaf itself if that is no gain."""
        place = self.places.get(leaf)
        if place is None:
            return leaf
        limits = {place.columns[i]: v.held for i, v in wanted.items()}
        found = place.files()
        if found is not None:
            limits = {c: v for c, v in limits.items() if _fits(found.fields[c], v)}
            if not limits:
                return leaf
            try:
                rows = place.read(found, limits, self._most(found))
            except UnusualError:
                rows = None
            if rows is not None:
                self._note(place, limits, rows.num_rows)
                schema = place.pin.schema(place.columns)
                return self.runner.keep(f"{leaf.name}#", leaf.names, rows, schema)
            if leaf in self.runner.files:
                return leaf  # the query that needs it reads it
        return self._listed(leaf, place, limits)

    def _most(self, found: lookup.Files) -> int:
        """The most rows that come to the driver; small tables' rows are few whatever their size."""
        return max(1_000, min(MOST_FOUND, found.rows_in(MOST_BYTES)))

    def _listed(self, leaf: Table, place: Place, limits: Mapping[str, pa.Array]) -> Table:
        """Spark reads the leaf, with the values as a filter that leaves out files."""
        frame = self.runner.leaf(leaf)
        fields = {f.name: f for f in frame.schema.fields}
        few = {c: v for c, v in limits.items() if len(v) <= MOST_LISTED and _fits(fields[c], v)}
        if not few:
            return leaf
        for column, values in few.items():
            name = F.col(quoted(column))
            condition = name.isin(values.drop_null().to_pylist())
            frame = frame.where(condition | name.isNull() if values.null_count else condition)
        made = self.runner.name(f"{leaf.name}#", leaf.names)
        self.runner.bind(made, frame)
        self._note(place, few, None)
        return made

    def _note(self, place: Place, limits: Mapping[str, pa.Array], rows: int | None) -> None:
        by = ", ".join(f"{len(v)} values of {c}" for c, v in limits.items())
        end = "by Spark" if rows is None else f"{rows} rows"
        self.reads.append(f"{place.pin.source.name} by {by}: {end}")


def _distinct(column: pa.ChunkedArray) -> Values | None:
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        return None
    found = pc.unique(column.combine_chunks())
    return Values(found) if len(found) <= MOST_VALUES else None


def _fits(field: StructField, values: pa.Array) -> bool:
    """Whether the values are of the column's own type."""
    return lookup.can_seek(field) and arrow_schema([field]).field(0).type == values.type

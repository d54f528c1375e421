"""How a table's rows lie in its files: what a lookup by some values would have to open.

The log has each file's least and greatest value of a column. A value drawn from the table lies
between those of one file if the table is clustered by the column, of all files if it is not.
"""

from __future__ import annotations

import bisect
import datetime
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from viewkeeper.lake.sources import Source

_SAMPLES = 512  # values drawn from a table
MOST_FILES = 1_000  # of a clustered table: more would make its log slow
LEAST_SIZE = 2 * 2**20  # bytes of a file of a clustered table


@dataclass(frozen=True)
class Layout:
    """The files of a table: sizes, rows, and the log's statistics.

    Examples
    --------
    >>> files = {"size_bytes": [10, 10], "num_records": [5, 5]}
    >>> sorted_by_a = Layout(pa.table({**files, "min.a": [0, 50], "max.a": [49, 99]}))
    >>> round(sorted_by_a.bytes_for("a", 1)), round(sorted_by_a.bytes_for("a", 100))
    (10, 20)
    >>> mixed = Layout(pa.table({**files, "min.a": [0, 1], "max.a": [98, 99]}))
    >>> round(mixed.bytes_for("a", 1)), mixed.distinct("a")
    (20, 100)
    """

    actions: pa.Table

    @cached_property
    def sizes(self) -> np.ndarray[Any, Any]:
        return np.array(self.actions.column("size_bytes").to_pylist(), dtype=float)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return int(self.sizes.sum())

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.sizes)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(sum(n or 0 for n in self.actions.column("num_records").to_pylist()))

    def has_statistics(self, column: str) -> bool:
        """Whether the log has the range of a column in each file with rows."""
        return any(low is not None for low, _ in self._ranges(column))

    def distinct(self, column: str) -> int | None:
        """How many values a column of whole numbers or dates can have, by its range."""
        ranges = [(a, b) for a, b in self._ranges(column) if a is not None]
        if not ranges or not isinstance(ranges[0][0], (int, datetime.date)):
            return None
        least, most = min(a for a, _ in ranges), max(b for _, b in ranges)
        return int(_number(most) - _number(least)) + 1

    def bytes_for(self, column: str, values: int) -> float:
        """The size of the files that may hold one of so many values of the table's."""
        return float((self.sizes * self._chances(column, values)).sum())

    def files_for(self, column: str, values: int) -> float:
        """The number of these files."""
        return float(self._chances(column, values).sum())

    def _chances(self, column: str, values: int) -> np.ndarray[Any, Any]:
        """For each file, how likely it is to hold one of so many values."""
        if column not in self._known:
            self._known[column] = self._chance(column)
        one: np.ndarray[Any, Any] = 1.0 - (1.0 - self._known[column]) ** max(values, 0)
        return one

    @cached_property
    def _known(self) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def _chance(self, column: str) -> np.ndarray[Any, Any]:
        """For each file, how likely it is to hold a value drawn from the table's rows."""
        low, high = self._numbers(column)
        known = ~np.isnan(low)
        if not known.any():
            return np.ones(self.files)
        weights = np.array(self.actions.column("num_records").to_pylist(), dtype=float)
        weights = np.where(known, np.nan_to_num(weights, nan=1.0), 0.0) + known * 1e-9
        random = np.random.default_rng(7)
        drawn = random.choice(self.files, _SAMPLES, p=weights / weights.sum())
        points = low[drawn] + (high[drawn] - low[drawn]) * random.random(_SAMPLES)
        chance = np.ones(self.files)
        for i in np.flatnonzero(known):
            chance[i] = ((low[i] <= points) & (points <= high[i])).mean()
        return chance

    def _numbers(self, column: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The ranges as numbers; values that are none by their place in the order."""
        ranges = self._ranges(column)
        ends = sorted({v for pair in ranges for v in pair if v is not None})
        plain = all(isinstance(v, (int, float, datetime.date)) for v in ends)

        def number(v: Any) -> float:
            if v is None:
                return float("nan")
            return _number(v) if plain else float(bisect.bisect_left(ends, v))

        low, high = (np.array([number(pair[end]) for pair in ranges]) for end in (0, 1))
        return low, high

    def _ranges(self, column: str) -> list[tuple[Any, Any]]:
        names = (f"min.{column}", f"max.{column}")
        if not all(n in self.actions.schema.names for n in names):
            return [(None, None)] * self.files
        pairs = zip(*(self.actions.column(n).to_pylist() for n in names), strict=True)
        return [(None, None) if a is None or b is None else (a, b) for a, b in pairs]


def layout(source: Source, version: int) -> Layout | None:
    """The layout of a local table at a version; None where the log cannot be read here."""
    if source.local_path is None:
        return None
    try:
        table = DeltaTable(source.local_path, version=version)
        return Layout(pa.table(table.get_add_actions(flatten=True)))
    except Exception:  # features that deltalake does not know
        return None


def file_size(size: int) -> int:
    """How large the files of a clustered table of this size are to be.

    >>> file_size(10**6), file_size(10**10)
    (2097152, 10000000)
    """
    return max(LEAST_SIZE, size // MOST_FILES)


def clustered_bytes(size: int, values: int, columns: int, file: int) -> float:
    """What a lookup by values of one of the columns opens of a table clustered by all of them.

    >>> round(clustered_bytes(1000, 1, 1, 10)), round(clustered_bytes(1000, 1, 2, 10))
    (10, 100)
    """
    slices = max(1.0, size / file) ** (1 / columns)
    return float(size * (1.0 - (1.0 - 1.0 / slices) ** values))


def _number(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return value.timestamp()
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    return float(value)

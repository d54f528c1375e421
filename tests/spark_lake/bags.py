"""Bags of rows for the tests: what a table holds, what a feed says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from viewkeeper.lake.arrow import WEIGHT
from viewkeeper.lake.feeds import Feed


def bag(frame: DataFrame, columns: list[str] | None = None) -> Counter[Any]:
    """The rows of a frame, counted."""
    taken = frame if columns is None else frame.select(*columns)
    if not taken.columns:
        return Counter({(): frame.count()})
    return Counter(_rows(taken.toArrow()))


def project(rows: Counter[Any], names: list[str], columns: list[str]) -> Counter[Any]:
    """Some columns of a bag of rows."""
    places = [names.index(c) for c in columns]
    result: Counter[Any] = Counter()
    for row, n in rows.items():
        result[tuple(row[i] for i in places)] += n
    return result


def difference(old: Counter[Any], new: Counter[Any]) -> dict[Any, int]:
    """The net change of two bags: row to weight."""
    return {row: new[row] - old[row] for row in {*old, *new} if new[row] != old[row]}


def change(feed: Feed) -> dict[Any, int]:
    """What a feed says: row to weight; each row stands once, with a weight."""
    table = feed.local if feed.local is not None else feed.frame.toArrow()
    assert table.schema.names[-1] == WEIGHT and table.schema.field(WEIGHT).type == pa.int64()
    weights = table.column(WEIGHT).to_pylist()
    rows = _rows(table.drop_columns([WEIGHT])) if len(table.schema) > 1 else [()] * len(weights)
    result = dict(zip(rows, weights, strict=True))
    assert len(result) == len(weights), "a row stands twice"
    assert 0 not in result.values()
    assert feed.inserted == sum(w for w in weights if w > 0)
    assert feed.deleted == -sum(w for w in weights if w < 0)
    assert feed.empty == (not weights)
    return result


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    columns = [[_text(v) for v in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    """A value as text, so that NaN equals NaN and -0.0 equals 0.0."""
    return repr(value + 0.0 if isinstance(value, float) else value)

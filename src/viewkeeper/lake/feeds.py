"""The net change of a Delta table between two versions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from viewkeeper.frontend.comparing import comparable
from viewkeeper.lake import arrow, history, jvm
from viewkeeper.lake.arrow import WEIGHT
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.history import Action
from viewkeeper.lake.sources import Source, quoted
from viewkeeper.lake.spans import Span, look
from viewkeeper.records import InvalidOptionError

LIMIT = "spark.viewkeeper.memory"  # the setting: bytes of a source's change on the driver
_DEFAULT = "64m"
_EXPANDS = 16  # times that rows may take more on the driver than in compressed files
_ADDED = ("insert", "update_postimage")
_GONE = ("FILE_NOT_EXIST", "FileNotFound", "FILE_NOT_FOUND", "DOES_NOT_EXIST")


@dataclass
class Feed:
    """A net change: each distinct row once, with a weight that is not zero.

    Parameters
    ----------
    how : str
        "feed": from the change feed; "files": from the files' difference; "none": no change.
    local : pyarrow.Table, optional
        The change on the driver: the columns and ``__weight``.
    frame : DataFrame, optional
        The same as a frame, when the change is too large for the driver.
    most : int, optional
        No more rows than these came and went, as the log tells of a frame.

    Examples
    --------
    >>> feed = Feed("feed", local=pa.table({"a": [1, 2], "__weight": [2, -1]}))
    >>> feed.inserted, feed.deleted, feed.rows, feed.empty
    (2, 1, 3, False)
    """

    how: Literal["feed", "files", "none"]
    local: pa.Table | None = None
    frame: DataFrame | None = None
    most: int | None = None

    @property
    def inserted(self) -> int:
        """The number of rows that came."""
        return self._sums[0]

    @property
    def deleted(self) -> int:
        """The number of rows that went."""
        return self._sums[1]

    @property
    def rows(self) -> int:
        """How many rows came and went; of a large change, which is not read to count it, as many
        as the log tells of before what cancels out is taken away."""
        return sum(self._sums) if self.most is None else self.most

    @property
    def empty(self) -> bool:
        """Whether nothing changed; so many rows are taken to change something."""
        return self.rows == 0

    @cached_property
    def _sums(self) -> tuple[int, int]:
        if self.local is not None:
            weights = self.local.column(WEIGHT)
            plus = pc.sum(pc.max_element_wise(weights, 0)).as_py() or 0
            return plus, plus - (pc.sum(weights).as_py() or 0)
        assert self.frame is not None
        weight = F.col(WEIGHT)
        one = self.frame.agg(
            F.sum(F.greatest(weight, F.lit(0))), F.sum(F.greatest(-weight, F.lit(0)))
        ).first()
        assert one is not None
        return one[0] or 0, one[1] or 0


def net_change(
    spark: SparkSession,
    source: Source,
    since: int,
    until: int,
    columns: Sequence[str],
    *,
    limit_bytes: int | None = None,
    weight: str | None = None,
) -> Feed:
    """The net change of some columns of a table between two versions.

    It equals (version until ∸ version since) with positive weights and (version since ∸ version
    until) with negative ones, but only what changed is read.

    Parameters
    ----------
    spark : SparkSession
        The session.
    source : Source
        The table.
    since, until : int
        The old and the new version.
    columns : sequence of str
        The columns; rows that differ elsewhere only are the same row.
    limit_bytes : int, optional
        Up to this size the change comes to the driver; by default the session's setting.
    weight : str, optional
        A column that says how many times a stored row counts.

    Raises
    ------
    LostHistoryError
        When the log cannot tell the change.
    """
    span = look(spark, source, since, until, columns, weight)
    schema = arrow.change_schema(span.fields)
    names = [*columns, WEIGHT]
    added, removed = span.data_files
    if not (added or removed or span.change_files):
        return Feed("none", local=schema.empty_table().rename_columns(names))
    how: Literal["feed", "files"] = "feed" if span.feed_on else "files"
    limit_bytes = limit(spark) if limit_bytes is None else limit_bytes
    size = sum(action.get("size", 0) for action in [*added, *removed, *span.change_files])
    if size <= limit_bytes and source.local_path is not None and span.usual:
        try:
            return Feed(how, local=_by_arrow(span, limit_bytes).rename_columns(names))
        except arrow.UnusualError:
            pass
        except arrow.LargeError:
            size = limit_bytes + 1
        except FileNotFoundError as error:
            raise _vacuumed(source) from error
    _check_there(spark, span)
    frame = _by_spark(spark, span)
    if frame is None:
        return Feed("none", local=schema.empty_table().rename_columns(names))
    if any("variant" in field.dataType.simpleString() for field in span.fields):
        return Feed(how, frame=frame.toDF(*names))  # Arrow has no such type
    if size * _EXPANDS <= limit_bytes:
        return Feed(how, local=_collect(source, frame, schema).rename_columns(names))
    hidden = any(action.get("deletionVector") for action in (*added, *removed))
    if size <= limit_bytes or hidden or how == "files":  # whole files tell of what may be few rows
        most = limit_bytes // (32 * (len(schema) + 1))
        try:
            some = _collect(source, frame.limit(most + 1), schema)
        except Exception as error:
            if "maxResultSize" not in str(error):  # few rows, but very wide ones
                raise
            return Feed(how, frame=frame.toDF(*names))
        if some.num_rows <= most and some.nbytes <= limit_bytes:
            return Feed(how, local=some.rename_columns(names))
        return Feed(how, frame=frame.toDF(*names))
    return Feed(how, frame=frame.toDF(*names), most=_told(span))


def _told(span: Span) -> int | None:
    """How many rows the change feed has, by its files' statistics; None if they do not tell."""
    folder = span.source.local_path
    if folder is None or span.moved:
        return None
    added, removed = span.data_files
    rows = [history.row_count(action) for action in (*added, *removed)]
    try:
        for action in span.change_files:  # the log has no statistics of these
            rows.append(pq.read_metadata(history.file_path(folder, action)).num_rows)
    except (OSError, pa.ArrowException):
        return None
    told = [n for n in rows if n is not None]
    return sum(told) if len(told) == len(rows) else None


def limit(spark: SparkSession) -> int:
    """How many bytes of a source's change the driver holds, by the session's setting.

    Raises
    ------
    InvalidOptionError
        When the setting is no size.
    """
    text = str(spark.conf.get(LIMIT, _DEFAULT))
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower())
    if found is None:
        raise InvalidOptionError(f"{LIMIT} is {text!r}", hint="Use a size, such as 64m or 1g.")
    return int(found[1]) << 10 * " kmgt".index(found[2] or " ")


def _by_arrow(span: Span, limit_bytes: int) -> pa.Table:
    """Read the files one by one on the driver, as long as they fit."""
    folder = span.source.local_path
    assert folder is not None
    added, removed = span.data_files
    signed = [(1, a) for a in added] + [(-1, a) for a in removed]
    pieces, held = [], 0
    for sign, action in [*signed, *((None, a) for a in span.change_files)]:
        values = action.get("partitionValues") or {}
        table = arrow.read_file(
            history.file_path(folder, action),
            span.fields,
            {field.name: values.get(field.name) for field in span.partitions},
            sign=sign,
            weight=span.weight,
            most_bytes=limit_bytes - held,
        )
        held += table.nbytes
        pieces.append(table)
    return arrow.net(pa.concat_tables(pieces))


def _by_spark(spark: SparkSession, span: Span) -> DataFrame | None:
    """The same by Spark: deletion vectors, column mapping, nested types; None: no change."""
    if span.feed_on and not span.moved:
        reader = spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", span.since + 1)
        raw = reader.option("endingVersion", span.until).load(span.source.location)
        sign = F.when(F.col("_change_type").isin(*_ADDED), F.lit(1)).otherwise(F.lit(-1))
        return _netted(span, [(raw, sign)])
    added, removed = span.rewritten_files
    if span.moved or not _can_read(added, removed, span.tracks_rows):
        # read each end with its own schema, whatever happened in between
        old = span.rebuild(spark, span.since)
        new = span.rebuild(spark, span.until)
        before, after = _files(old), _files(new)
        gone = [text for key, text in before.items() if key not in after]
        come = [text for key, text in after.items() if key not in before]
        ends = [(old, gone, -1), (new, come, 1)]
    else:
        blank = dict.fromkeys(span.physical_partitions)
        head = span.rebuild(spark, span.until)
        ends = [
            (head, [history.as_add(a, blank) for a in files], sign)
            for files, sign in ((removed, -1), (added, 1))
        ]
    read = [(jvm.read_files(spark, t, files), F.lit(sign)) for t, files, sign in ends if files]
    return _netted(span, read) if read else None


def _can_read(added: list[Action], removed: list[Action], tracked: bool) -> bool:
    """Whether the log says enough of the files, and no file is to be read twice."""
    return (
        all(a.get("extendedFileMetadata") for a in removed)
        and all(len({a["path"] for a in files}) == len(files) for files in (added, removed))
        and not (tracked and any(a.get("baseRowId") is None for a in (*added, *removed)))
    )


def _netted(span: Span, pieces: list[tuple[DataFrame, Column]]) -> DataFrame:
    columns = [quoted(field.name) for field in span.fields]
    whole: DataFrame | None = None
    for frame, sign in pieces:
        times = sign.cast("bigint")
        if span.weight is not None:
            times = times * F.col(quoted(span.weight)).cast("bigint")
        part = frame.select(*columns, times.alias(WEIGHT))
        whole = part if whole is None else whole.unionAll(part)
    assert whole is not None, "a change without files has been answered before"
    return summed(whole, span.fields)


def summed(signed: DataFrame, fields: Sequence[StructField]) -> DataFrame:
    """One row per distinct row of the columns, with the sum of its weights if that is not zero."""
    columns = [quoted(field.name) for field in fields]
    keys = [comparable(field) for field in fields]
    weight = F.sum(WEIGHT).alias(WEIGHT)
    if keys == columns:
        net = signed.groupBy(*columns).agg(weight)
    else:
        named = [F.expr(key).alias(f"__key{n}") for n, key in enumerate(keys)]
        values = [F.first(name).alias(f.name) for f, name in zip(fields, columns, strict=True)]
        net = signed.groupBy(*named).agg(*values, weight)
    return net.select(*columns, WEIGHT).where(F.col(WEIGHT) != 0)


def _files(taken: object) -> dict[tuple[str, str], str]:
    """All files of a snapshot by key, as the JSON of their add."""
    found = {}
    for file in taken.allFiles().collect():  # type: ignore[attr-defined]
        text = str(file.json())
        found[history.file_key(json.loads(text)["add"])] = text
    return found


def _collect(source: Source, frame: DataFrame, schema: pa.Schema) -> pa.Table:
    try:
        return frame.toArrow().cast(schema)
    except Exception as error:
        if any(mark in str(error) for mark in _GONE):
            raise _vacuumed(source) from error
        raise


def _check_there(spark: SparkSession, span: Span) -> None:
    """A frame is read later, so look now whether vacuum took its files."""
    folder = span.source.local_path or span.source.location
    added, removed = span.data_files
    for action in [*removed, *span.change_files, *added]:
        if "://" not in action["path"] and not jvm.exists(spark, history.file_path(folder, action)):
            raise _vacuumed(span.source)


def _vacuumed(source: Source) -> LostHistoryError:
    return LostHistoryError(source.name, "files of the old version were vacuumed")

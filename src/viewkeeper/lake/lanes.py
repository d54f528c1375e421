"""The ways to change a store; each makes one commit with the same rows and the same stamp."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StructField, StructType

from viewkeeper.lake import arrow, history, jvm, lookup, patching, tips
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.log import TakenError
from viewkeeper.lake.sources import Source, quoted, struct, tip, version

OP = "__op"
_EXACT_DIGITS = 15  # of a decimal that a floating point number holds
_MARK = "viewkeeper"

# Key types whose equality deltalake and Spark agree on; of the floats, all values but zero.
_NATIVE_KEYS = {
    "boolean", "byte", "short", "integer", "long", "decimal", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
}  # fmt: skip
_FLOATS = {"float", "double"}
_NOT_NATIVE: set[str] = set()  # locations of tables that deltalake refused to write
# What Delta's MERGE raises, for some rows that it is to leave alone.
_NO_CLAUSE = "did not match any merge clause"
_FOREIGN = ("variant", "interval", "collate", "geometry", "geography", "time(")


@dataclass(frozen=True)
class Patch:
    """What a refresh does to a store.

    Parameters
    ----------
    rows : pyarrow.Table or DataFrame
        The store's columns and ``__op``: "U" sets the row of the key, "D" deletes all rows of the
        key, "I" adds a row whatever is there.
    keys : list of str
        The columns that tell rows apart, NULL being equal to NULL; none: the store is one row.
    only_inserts : bool
        Whether no key is in the store yet.
    base : int, optional
        The version of the table that the patch was made for; on another one it is a conflict.
    """

    rows: pa.Table | DataFrame
    keys: list[str]
    only_inserts: bool = False
    base: int | None = None


@dataclass(frozen=True)
class Stamp:
    """What each commit carries: the transaction and the metadata."""

    app_id: str
    txn: int
    metadata: dict[str, Any]

    @property
    def text(self) -> str:
        """The metadata as the commit holds it."""
        return stamp_text(self.metadata)

    @property
    def action(self) -> dict[str, Any]:
        """The transaction as the log has it."""
        return {"appId": self.app_id, "version": self.txn, "lastUpdated": int(time.time() * 1000)}

    @property
    def properties(self) -> CommitProperties:
        """The same for deltalake; a commit that comes second fails instead of trying again."""
        return CommitProperties(
            custom_metadata={"userMetadata": self.text},
            app_transactions=[Transaction(self.app_id, self.txn)],
            max_commit_retries=0,
        )


def stamp_text(metadata: dict[str, Any]) -> str:
    """The metadata as text that we know as ours.

    Examples
    --------
    >>> read_stamp(stamp_text({"a": 1}))
    {'a': 1}
    >>> read_stamp("somebody else's") is None
    True
    """
    return json.dumps({_MARK: metadata}, sort_keys=True)


def read_stamp(text: str | None) -> dict[str, Any] | None:
    """The metadata in a commit's text, None when the text is not ours."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    ours = found.get(_MARK) if isinstance(found, dict) else None
    return ours if isinstance(ours, dict) else None


def is_conflict(error: BaseException) -> bool:
    """Whether another commit came first."""
    return isinstance(error, (CommitFailedError, TakenError)) or jvm.is_conflict(error)


def _came_second(spark: SparkSession, source: Source, before: int, error: BaseException) -> bool:
    """Whether another commit came first. deltalake gives the same error for a table with a feature
    that it lacks (clustering, defaults): then there is none, and Spark writes this table."""
    if version(spark, source) != before:
        return is_conflict(error)
    if is_conflict(error):
        _NOT_NATIVE.add(source.location)
    return False


def last_transaction(spark: SparkSession, source: Source, app_id: str) -> int:
    """The newest transaction number of an application in a store, -1 when there is none."""
    if source.local_path is not None:
        found = open_native(source).transaction_version(app_id)
        return -1 if found is None else int(found)
    known = jvm.newest(spark, source.location).transactions().get(app_id)
    return int(known.get()) if known.isDefined() else -1


def version_of(spark: SparkSession, source: Source, stamp: Stamp) -> int:
    """The newest version whose commit has this transaction or a later one."""
    newest = version(spark, source)
    for one in history.backwards(spark, source, newest):
        if one.transaction(stamp.app_id) >= stamp.txn:
            return one.version
    return newest


class _Handles(threading.local):
    """Tables that deltalake has open, for one thread: two threads with one handle could each
    commit what the other has just committed, without a conflict."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[DeltaTable, int, tips.Mark]] = {}


_HANDLES = _Handles()
_MOST_HANDLES = 64


def open_native(source: Source, at: int | None = None) -> DeltaTable:
    """The store as deltalake sees it now, or at a version.

    A table that is open already reads only the commits that came since.
    """
    folder = source.local_path
    if at is not None or folder is None:
        return DeltaTable(folder, version=at)
    held = _HANDLES.held
    table, version, mark = held.pop(folder, (None, 0, None))
    if table is not None and tips.mark_of(folder, version) == mark:  # the same log as then
        try:
            table.update_incremental()
        except DeltaError:  # commits that are gone from the log
            table = None
    else:
        table = None
    table = table or DeltaTable(folder)
    mark = tips.mark_of(folder, table.version())
    if mark is not None:
        while len(held) >= _MOST_HANDLES:
            del held[next(iter(held))]
        held[folder] = (table, table.version(), mark)
    return table


def append(spark: SparkSession, source: Source, patch: Patch, stamp: Stamp) -> int:
    """Add the rows; none of their keys is in the store."""
    assert patch.only_inserts, "an append cannot change a row"
    rows = patch.rows
    fields = _native_fields(spark, source)
    if isinstance(rows, pa.Table) and fields is not None:
        table = open_native(source)
        if _has(table, stamp):
            return version_of(spark, source, stamp)
        upserts = rows.filter(pc.not_equal(rows.column(OP), "D"))
        before = table.version()
        try:
            data = _fitted(upserts, fields)
            if not any(_is_rounded(f) for f in fields):
                write_deltalake(table, data, mode="append", commit_properties=stamp.properties)
                return version_of(spark, source, stamp)
            if patching.can_patch(table) and _fills(data, fields):
                folder = str(source.local_path)
                patching.appended(folder, before, data, stamp.action, stamp.text)
                return int(before) + 1
        except (pa.ArrowException, DeltaError) as error:
            if _came_second(spark, source, before, error):
                raise
        except UnusualError:
            pass
    base = jvm.newest(spark, source.location)
    frame = _fitted_frame(_frame(spark, rows).where(F.col(OP) != "D"), base)
    return _commit(spark, source, base, frame, replace=False, stamp=stamp)


def native(spark: SparkSession, source: Source, patch: Patch, stamp: Stamp) -> int:
    """Without Spark, for few rows: by hiding the old ones where the table allows that, else MERGE
    by deltalake; by Spark where neither can."""
    fields = _native_fields(spark, source)
    rows = patch.rows
    if fields is None or not isinstance(rows, pa.Table):
        return merge(spark, source, patch, stamp)
    kinds = {f.name: f.dataType.typeName() for f in fields}
    if not all(_same_keys(rows.column(key), kinds[key]) for key in patch.keys):
        return merge(spark, source, patch, stamp)
    names = [field.name for field in fields]
    table = open_native(source, patch.base)
    if _has(table, stamp):
        return version_of(spark, source, stamp)
    if patching.hides_rows(table) or any(_is_rounded(f) for f in fields):
        return _hidden(spark, source, table, patch, stamp, fields)
    before = table.version()
    try:
        data = _fitted(rows, fields).append_column(OP, rows.column(OP).cast(pa.string()))
        same = [f"(t.{_dq(k)} IS NOT DISTINCT FROM s.{_dq(k)})" for k in patch.keys]
        every = {_dq(name): f"s.{_dq(name)}" for name in names}
        builder = table.merge(
            data,
            " AND ".join([*same, f"(s.{OP} <> 'I')"]),
            source_alias="s",
            target_alias="t",
            commit_properties=stamp.properties,
        )
        builder = builder.when_matched_delete(f"s.{OP} = 'D'")
        builder = builder.when_matched_update(every, f"s.{OP} = 'U'")
        builder.when_not_matched_insert(every, f"s.{OP} <> 'D'").execute()
    except (pa.ArrowException, DeltaError) as error:
        if _came_second(spark, source, before, error):
            raise
        return merge(spark, source, patch, stamp)
    if not _has(open_native(source), stamp):
        return touch(spark, source, patch, stamp)  # no row matched: deltalake made no commit
    return version_of(spark, source, stamp)


def _is_rounded(field: StructField) -> bool:
    """Whether deltalake's statistics of a column are not exact, so that readers would leave out
    files: it writes decimals as floating point numbers, and does not count NaN."""
    kind = field.dataType
    if isinstance(kind, DecimalType):
        return bool(kind.scale > 0 and kind.precision > _EXACT_DIGITS)
    return kind.typeName() in ("float", "double")


def _fills(rows: pa.Table, fields: list[StructField]) -> bool:
    """Whether no value is missing where there must be one."""
    return all(f.nullable or not rows.column(f.name).null_count for f in fields)


def _hidden(
    spark: SparkSession,
    source: Source,
    table: DeltaTable,
    patch: Patch,
    stamp: Stamp,
    fields: list[StructField],
) -> int:
    """The patch by a commit of our own."""
    before = table.version()
    found = lookup.files(source, before)
    if found is None or not patching.can_patch(table):
        return merge(spark, source, patch, stamp)
    feed = table.metadata().configuration.get("delta.enableChangeDataFeed") == "true"
    ops = patch.rows.column(OP)
    try:
        rows = _fitted(patch.rows, fields)
        sought = rows.filter(pc.not_equal(ops, "I"))
        come = rows.filter(pc.not_equal(ops, "D"))
        if not _fills(come, fields):
            raise UnusualError("a value is missing")
        said = (stamp.action, stamp.text)
        hide = patching.hides_rows(table)
        patching.patched(found, before, sought, patch.keys, come, *said, feed=feed, hide=hide)
    except (pa.ArrowException, UnusualError):
        return merge(spark, source, patch, stamp)
    return int(before) + 1


def merge(spark: SparkSession, source: Source, patch: Patch, stamp: Stamp) -> int:
    """Spark's MERGE INTO; the source is computed once."""
    delta = "spark.databricks.delta."
    settings = {
        f"{delta}commitInfo.userMetadata": stamp.text,
        f"{delta}write.txnAppId": stamp.app_id,
        f"{delta}write.txnVersion": str(stamp.txn),
        f"{delta}merge.materializeSource": "none" if isinstance(patch.rows, pa.Table) else "all",
    }
    rows = _frame(spark, patch.rows)
    names = struct(jvm.newest(spark, source.location)).names
    same = [f"t.{quoted(k)} <=> s.{quoted(k)}" for k in patch.keys] + [f"s.{OP} <> 'I'"]
    every = {quoted(name): f"s.{quoted(name)}" for name in names}
    with jvm.own_session(spark, settings) as own:
        target = SparkDeltaTable.forPath(own, source.location).alias("t")
        merging = target.merge(jvm.move_frame(own, rows).alias("s"), " AND ".join(same))
        merging = merging.whenMatchedDelete(f"s.{OP} = 'D'")
        merging = merging.whenMatchedUpdate(f"s.{OP} = 'U'", every)
        merging = merging.whenNotMatchedInsert(f"s.{OP} <> 'D'", every)
        try:
            merging.execute()
        except SparkRuntimeException as error:
            if _NO_CLAUSE not in str(error):
                raise
            return overwrite(spark, source, patch, stamp)  # nothing was written
    if last_transaction(spark, source, stamp.app_id) < stamp.txn:
        return touch(spark, source, patch, stamp)  # nothing to do: Delta made no commit
    return version_of(spark, source, stamp)


def overwrite(spark: SparkSession, source: Source, patch: Patch, stamp: Stamp) -> int:
    """All rows again: the old ones whose keys are not in the patch, and the upserts."""
    base = jvm.newest(spark, source.location)
    rows = _frame(spark, patch.rows)
    lazy = not isinstance(patch.rows, pa.Table)
    if lazy:
        rows = rows.persist()
    try:
        upserts = _fitted_frame(rows.where(F.col(OP) != "D"), base)
        old = jvm.read_snapshot(spark, base)
        sought = rows.where(F.col(OP) != "I")
        keys = sought.select([F.col(quoted(k)).alias(f"__{k}") for k in patch.keys])
        same = F.lit(True)
        for key in patch.keys:
            same = same & old[quoted(key)].eqNullSafe(keys[quoted(f"__{key}")])
        kept = old.join(keys, same, "left_anti")
        return _commit(spark, source, base, kept.unionAll(upserts), replace=True, stamp=stamp)
    finally:
        if lazy:
            rows.unpersist()


def touch(spark: SparkSession, source: Source, patch: Patch | None, stamp: Stamp) -> int:
    """A commit without rows, for what it says."""
    if _native_fields(spark, source) is not None:
        table = open_native(source)
        if _has(table, stamp):
            return version_of(spark, source, stamp)
        before = table.version()
        try:
            table.create_write_transaction(
                [], "append", table.schema(), commit_properties=stamp.properties
            )
            return version_of(spark, source, stamp)
        except DeltaError as error:
            if _came_second(spark, source, before, error):
                raise
    base = jvm.newest(spark, source.location)
    return _commit(spark, source, base, None, replace=False, stamp=stamp)


def rewrite(spark: SparkSession, source: Source, frame: DataFrame, stamp: Stamp) -> int:
    """All rows replaced by a frame's."""
    base = jvm.newest(spark, source.location)
    return _commit(spark, source, base, _fitted_frame(frame, base), replace=True, stamp=stamp)


LANES: dict[str, Callable[[SparkSession, Source, Patch, Stamp], int]] = {
    "append": append,
    "native": native,
    "merge": merge,
    "overwrite": overwrite,
    "touch": touch,
}


def _commit(
    spark: SparkSession,
    source: Source,
    base: Any,
    frame: DataFrame | None,
    *,
    replace: bool,
    stamp: Stamp,
) -> int:
    done = jvm.commit(
        spark,
        base,
        frame,
        replace=replace,
        app_id=stamp.app_id,
        txn=stamp.txn,
        user_metadata=stamp.text,
    )
    return version_of(spark, source, stamp) if done is None else done


def _same_keys(values: pa.ChunkedArray, kind: str) -> bool:
    """Whether deltalake finds the rows of these keys that Spark finds: to it, -0.0 is not 0.0.

    >>> [_same_keys(pa.chunked_array([[1.5, x]]), "double") for x in (None, float("nan"), -0.0)]
    [True, True, False]
    """
    if kind in _FLOATS:
        return not pc.any(pc.equal(values, 0.0)).as_py()
    return kind in _NATIVE_KEYS


def _has(table: DeltaTable, stamp: Stamp) -> bool:
    """Whether the very version that a commit will build on has the transaction already.

    Each lane asks again: another refresher may have committed since ``apply`` asked, and then
    there is no conflict for deltalake to see.
    """
    found = table.transaction_version(stamp.app_id)
    return found is not None and found >= stamp.txn


def can_write(spark: SparkSession, source: Source) -> bool:
    """Whether deltalake can write a table."""
    return _native_fields(spark, source) is not None


def _native_fields(spark: SparkSession, source: Source) -> list[StructField] | None:
    """The columns of a table that deltalake can write: our own properties, and types that it has;
    None for other tables."""
    if source.local_path is None or source.location in _NOT_NATIVE:
        return None
    metadata = tip(spark, source).metadata
    config = metadata.get("configuration") or {}
    fields: list[StructField] = StructType.fromJson(json.loads(metadata["schemaString"])).fields
    parts = set(metadata.get("partitionColumns") or ())
    foreign = any(mark in f.dataType.simpleString() for f in fields for mark in _FOREIGN)
    binary = any(f.name in parts and f.dataType.typeName() == "binary" for f in fields)
    mapped = config.get("delta.columnMapping.mode", "none") != "none"
    return None if foreign or binary or mapped else fields


def _fitted(rows: pa.Table, fields: list[StructField]) -> pa.Table:
    """The store's columns in the store's order and types."""
    schema = arrow.arrow_schema(fields)
    return rows.select(schema.names).cast(schema)


def _fitted_frame(frame: DataFrame, base: Any) -> DataFrame:
    return frame.select(
        [F.col(quoted(f.name)).cast(f.dataType).alias(f.name) for f in struct(base).fields]
    )


def _frame(spark: SparkSession, rows: pa.Table | DataFrame) -> DataFrame:
    return spark.createDataFrame(rows) if isinstance(rows, pa.Table) else rows


def _dq(name: str) -> str:
    """A name in the double quotes of deltalake's SQL."""
    return '"' + name.replace('"', '""') + '"'

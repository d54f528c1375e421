"""The ways to change a store; each makes one commit with the same rows and the same stamp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from viewkeeper.lake import jvm, lookup, patching
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.log import TakenError
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.open_tables import (
    fills,
    fitted,
    is_rounded,
    native_fields,
    open_native,
    refuse,
    same_keys,
)
from viewkeeper.lake.sources import Source, quoted, struct, version
from viewkeeper.lake.stamps import Stamp, has, last_transaction, version_of

OP = "__op"

# What Delta's MERGE raises, for some rows that it is to leave alone.
_NO_CLAUSE = "did not match any merge clause"


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


def is_conflict(error: BaseException) -> bool:
    """Whether another commit came first."""
    return isinstance(error, (CommitFailedError, TakenError)) or jvm.is_conflict(error)


def _came_second(spark: SparkSession, source: Source, before: int, error: BaseException) -> bool:
    """Whether another commit came first. deltalake gives the same error for a table with a feature
    that it lacks (clustering, defaults): then there is none, and Spark writes this table."""
    if version(spark, source) != before:
        return is_conflict(error)
    if is_conflict(error):
        refuse(source)
    return False


def append(spark: SparkSession, source: Source, patch: Patch, stamp: Stamp) -> int:
    """Add the rows; none of their keys is in the store."""
    assert patch.only_inserts, "an append cannot change a row"
    rows = patch.rows
    fields = native_fields(spark, source)
    if isinstance(rows, pa.Table) and fields is not None:
        table = open_native(source)
        if has(table, stamp):
            return version_of(spark, source, stamp)
        upserts = rows.filter(pc.not_equal(rows.column(OP), "D"))
        before = table.version()
        try:
            data = fitted(upserts, fields)
            if not any(is_rounded(f) for f in fields):
                write_deltalake(table, data, mode="append", commit_properties=stamp.properties)
                return version_of(spark, source, stamp)
            if patching.can_patch(table) and fills(data, fields):
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
    fields = native_fields(spark, source)
    rows = patch.rows
    if fields is None or not isinstance(rows, pa.Table):
        return merge(spark, source, patch, stamp)
    kinds = {f.name: f.dataType.typeName() for f in fields}
    if not all(same_keys(rows.column(key), kinds[key]) for key in patch.keys):
        return merge(spark, source, patch, stamp)
    names = [field.name for field in fields]
    table = open_native(source, patch.base)
    if has(table, stamp):
        return version_of(spark, source, stamp)
    if patching.hides_rows(table) or any(is_rounded(f) for f in fields):
        return _hidden(spark, source, table, patch, stamp, fields)
    before = table.version()
    try:
        data = fitted(rows, fields).append_column(OP, rows.column(OP).cast(pa.string()))
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
    if not has(open_native(source), stamp):
        return touch(spark, source, patch, stamp)  # no row matched: deltalake made no commit
    return version_of(spark, source, stamp)


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
        rows = fitted(patch.rows, fields)
        sought = rows.filter(pc.not_equal(ops, "I"))
        come = rows.filter(pc.not_equal(ops, "D"))
        if not fills(come, fields):
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
    """All rows again: the old ones whose keys are not in the patch, and the upserts. The patch is
    read twice."""
    base = jvm.newest(spark, source.location)
    rows = _frame(spark, patch.rows)
    upserts = _fitted_frame(rows.where(F.col(OP) != "D"), base)
    old = jvm.read_snapshot(spark, base)
    sought = rows.where(F.col(OP) != "I")
    keys = sought.select([F.col(quoted(k)).alias(f"__{k}") for k in patch.keys])
    same = F.lit(True)
    for key in patch.keys:
        same = same & old[quoted(key)].eqNullSafe(keys[quoted(f"__{key}")])
    kept = old.join(keys, same, "left_anti")
    return _commit(spark, source, base, kept.unionAll(upserts), replace=True, stamp=stamp)


def touch(spark: SparkSession, source: Source, patch: Patch | None, stamp: Stamp) -> int:
    """A commit without rows, for what it says."""
    if native_fields(spark, source) is not None:
        table = open_native(source)
        if has(table, stamp):
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


def _fitted_frame(frame: DataFrame, base: Any) -> DataFrame:
    return frame.select(
        [F.col(quoted(f.name)).cast(f.dataType).alias(f.name) for f in struct(base).fields]
    )


def _frame(spark: SparkSession, rows: pa.Table | DataFrame) -> DataFrame:
    return local_frame(spark, rows) if isinstance(rows, pa.Table) else rows


def _dq(name: str) -> str:
    """A name in the double quotes of deltalake's SQL."""
    return '"' + name.replace('"', '""') + '"'

"""The tables that hold our views: creating them, changing them, and what each commit says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper.lake import history, jvm, lanes, stamps, tips
from viewkeeper.lake.errors import ConflictError, LostHistoryError
from viewkeeper.lake.lanes import OP, Patch
from viewkeeper.lake.sources import Source, find, quoted, version
from viewkeeper.lake.stamps import Stamp

__all__ = [
    "OP", "PROPERTIES", "Lane", "Patch", "apply", "create", "drop", "last_metadata", "rewrite",
]  # fmt: skip

Lane = Literal["append", "native", "merge", "overwrite", "touch"]

# What every store has: dependants read the feed; old rows are hidden rather than their files
# written again; no commit of another process slips under one of ours.
PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.isolationLevel": "Serializable",
}
# Delta allows these in a column's name only when it maps names. It then refuses CREATE TABLE AS
# SELECT with a change feed, and deltalake cannot write it: dependants compare files, Spark merges.
_ODD = set(" ,;{}()\n\t=")
_ODD_NAMES = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "false"}
# What tables have that are read whole, by deltalake among others.
WHOLE_FILES: Mapping[str, str] = {"delta.enableDeletionVectors": "false"}
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def create(
    spark: SparkSession,
    name_or_path: str,
    frame: DataFrame,
    *,
    metadata: dict[str, Any],
    properties: Mapping[str, str] | None = None,
    partition: str | None = None,
    replace: bool = False,
) -> Source:
    """Create a store with its first rows, in one commit.

    SQL: ``CREATE [OR REPLACE] TABLE name USING delta TBLPROPERTIES (…) AS SELECT …``.

    Parameters
    ----------
    spark : SparkSession
        The session.
    name_or_path : str
        A table name, ``delta.`path```, or a path with a slash in it.
    frame : DataFrame
        The first rows.
    metadata : dict
        What the commit says of itself; JSON values only.
    properties : mapping, optional
        More table properties.
    partition : str, optional
        The column by whose values the files are kept apart.
    replace : bool
        Whether a table of this name may be there already.

    Raises
    ------
    ConflictError
        When the table is there and ``replace`` is false.
    """
    name = f"delta.{quoted(name_or_path)}" if _is_path(name_or_path) else name_or_path
    extra = dict(_ODD_NAMES) if any(set(c) & _ODD for c in frame.columns) else {}
    settings = {_USER_METADATA: stamps.stamp_text(metadata)}
    try:
        with jvm.own_session(spark, settings) as own:
            writer = _plain(jvm.move_frame(own, frame)).writeTo(name).using("delta")
            for key, value in {**PROPERTIES, **extra, **(properties or {})}.items():
                writer = writer.tableProperty(key, value)
            if partition is not None:
                writer = writer.partitionedBy(F.col(quoted(partition)))
            writer.createOrReplace() if replace else writer.create()
    except AnalysisException as error:
        if "ALREADY_EXISTS" in (error.getCondition() or ""):
            raise ConflictError(
                f"{name} is there already", hint="Drop it first, or replace it."
            ) from error
        raise
    return find(spark, name)


def last_metadata(spark: SparkSession, source: Source) -> tuple[int, dict[str, Any]]:
    """The newest commit of ours and what it says: the log is read, no Spark job runs.

    Commits of others that came later, such as OPTIMIZE, are passed over.

    Raises
    ------
    LostHistoryError
        When the log holds no commit of ours.
    """
    for one in history.backwards(spark, source, version(spark, source)):
        found = stamps.read_stamp(one.user_metadata)
        if found is not None:
            return one.version, found
    raise LostHistoryError(source.name, "no commit of its log was made by viewkeeper")


def apply(
    spark: SparkSession,
    source: Source,
    patch: Patch,
    *,
    lane: Lane,
    app_id: str,
    txn: int,
    metadata: dict[str, Any],
    expected: int | None = None,
) -> int:
    """Change a store by a patch, in one commit, exactly once.

    When the log has the transaction already nothing is done. All lanes give the same rows, the
    same net change feed, and the same commit metadata.

    Parameters
    ----------
    spark : SparkSession
        The session.
    source : Source
        The store.
    patch : Patch
        What to change.
    lane : {"append", "native", "merge", "overwrite", "touch"}
        How: plain append, merge by deltalake, MERGE INTO, writing all rows again, or a commit
        without rows. Where deltalake cannot do it, Spark does.
    app_id, txn : str, int
        The transaction, which rises by each change of the store.
    metadata : dict
        What the commit says of itself.
    expected : int, optional
        The store's version for which the patch was made.

    Returns
    -------
    int
        The version that holds the change.

    Raises
    ------
    ConflictError
        When another process committed first.
    """
    stamp = Stamp(app_id, txn, metadata)
    done = None if expected is None else _seen(spark, source, stamp)
    if done is not None:
        return done
    if expected is not None and version(spark, source) != expected:
        raise _conflict(source, f"the store is no longer at version {expected}")
    return _tried(spark, source, stamp, lambda: lanes.LANES[lane](spark, source, patch, stamp))


def rewrite(
    spark: SparkSession,
    source: Source,
    frame: DataFrame,
    *,
    app_id: str,
    txn: int,
    metadata: dict[str, Any],
) -> int:
    """Replace all rows of a store in one commit, exactly once: a full refresh."""
    stamp = Stamp(app_id, txn, metadata)
    return _tried(spark, source, stamp, lambda: lanes.rewrite(spark, source, frame, stamp))


def drop(spark: SparkSession, source: Source) -> None:
    """Drop a store with its rows."""
    if source.is_path:
        jvm.delete_folder(spark, source.location)
    else:
        spark.sql(f"DROP TABLE IF EXISTS {source.name}")
    jvm.forget(spark, source.location)
    tips.forget(source.location)


def _tried(spark: SparkSession, source: Source, stamp: Stamp, run: Callable[[], int]) -> int:
    """Runs a lane, exactly once; again if the commit that came first only moved rows to other
    files, as a compaction does."""
    for last in (False, False, True):
        done = _seen(spark, source, stamp)
        if done is not None:
            return done
        before = version(spark, source)
        try:
            return run()
        except Exception as error:
            if not lanes.is_conflict(error):
                raise
            between = history.between(spark, source, before, version(spark, source))
            if last or not history.only_rewritten(between):
                raise _conflict(source, str(error).splitlines()[0]) from error
    raise AssertionError("the last try returns or raises")


def _seen(spark: SparkSession, source: Source, stamp: Stamp) -> int | None:
    """The version of the commit that has this transaction or a later one, None when none has."""
    if stamps.last_transaction(spark, source, stamp.app_id) < stamp.txn:
        return None
    return stamps.version_of(spark, source, stamp)


_BINARY = '"string collate UTF8_BINARY"'


def _plain(frame: DataFrame) -> DataFrame:
    """The frame without what belongs to its sources' columns alone: the limits of CHAR and VARCHAR,
    which may change, defaults, which no store has, and a COLLATE UTF8_BINARY, which is none."""
    collated = _BINARY in str(frame._jdf.schema().json())
    if not collated and not any(f.metadata for f in frame.schema.fields):
        return frame
    columns = []
    for field in frame.schema.fields:
        column = F.col(quoted(field.name))
        if collated and "string" in field.dataType.simpleString():
            column = column.cast(field.dataType)
        columns.append(column.alias(field.name, metadata={}))
    return frame.select(columns)


def _is_path(text: str) -> bool:
    return "/" in text and "`" not in text


def _conflict(source: Source, why: str) -> ConflictError:
    return ConflictError(
        f"another process changed {source.name} first: {why}", hint="Refresh again."
    )

"""The few calls into Delta's own classes, through py4j; all of them belong to delta-spark 4.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.records import SETTINGS

# Classes of Delta's exceptions that mean: somebody else committed first.
_CONFLICTS = ("Concurrent", "MetadataChanged", "ProtocolChanged")


def none(spark: SparkSession) -> Any:
    """Scala's None."""
    return _jvm(spark).scala.Option.empty()


def some(spark: SparkSession, value: Any) -> Any:
    """Scala's Some."""
    return _jvm(spark).scala.Some(value)


def seq(spark: SparkSession, items: Iterable[Any]) -> Any:
    """A Scala sequence of Java objects."""
    jvm = _jvm(spark)
    held = jvm.java.util.ArrayList()
    for item in items:
        held.add(item)
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(held)


def delta_log(spark: SparkSession, location: str) -> Any:
    """Delta's handle of the table at a location; Delta caches it."""
    jvm = _jvm(spark)
    path = jvm.org.apache.hadoop.fs.Path(location)
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(_session(spark), path)


def forget(spark: SparkSession, location: str) -> None:
    """Drop Delta's cached handle of a location."""
    jvm = _jvm(spark)
    path = jvm.org.apache.hadoop.fs.Path(location)
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(_session(spark), path)


def newest(spark: SparkSession, location: str) -> Any:
    """The newest snapshot, after a look at the log."""
    return delta_log(spark, location).update(False, none(spark), none(spark))


def snapshot(spark: SparkSession, location: str, version: int) -> Any:
    """The snapshot of one version; the newest one costs no time travel."""
    head = newest(spark, location)
    if head.version() == version:
        return head
    return delta_log(spark, location).getSnapshotAt(version, none(spark), none(spark), False)


def commit_text(spark: SparkSession, location: str, version: int) -> str | None:
    """The text of one commit in the log, None when it is not there (any more)."""
    log = delta_log(spark, location)
    path = _jvm(spark).org.apache.hadoop.fs.Path(log.logPath(), f"{version:020d}.json")
    conf = log.newDeltaHadoopConf()
    if not path.getFileSystem(conf).exists(path):
        return None
    text: str = log.store().read(path, conf).mkString("\n")
    return text


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file is there."""
    hadoop = _jvm(spark).org.apache.hadoop.fs.Path(path)
    conf = _session(spark).sessionState().newHadoopConf()
    return bool(hadoop.getFileSystem(conf).exists(hadoop))


def delete_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder with all it holds."""
    hadoop = _jvm(spark).org.apache.hadoop.fs.Path(path)
    conf = _session(spark).sessionState().newHadoopConf()
    hadoop.getFileSystem(conf).delete(hadoop, True)


def read_snapshot(spark: SparkSession, taken: Any) -> DataFrame:
    """A snapshot as a frame: pinned, with file skipping, deletion vectors and column mapping."""
    relation = taken.deltaLog().createRelation(
        seq(spark, ()), some(spark, taken), none(spark), True
    )
    return DataFrame(_session(spark).baseRelationToDataFrame(relation), spark)


def read_files(spark: SparkSession, taken: Any, adds: Iterable[str]) -> DataFrame:
    """Some files as a frame, read with the schema of a snapshot; each is the JSON of an add."""
    parse = _jvm(spark).org.apache.spark.sql.delta.actions.Action.fromJson
    files = seq(spark, (parse(text) for text in adds))
    frame = taken.deltaLog().createDataFrame(taken, files, False, none(spark))
    return DataFrame(frame, spark)


def commit(
    spark: SparkSession,
    base: Any,
    frame: DataFrame | None,
    *,
    replace: bool,
    app_id: str,
    txn: int,
    user_metadata: str,
) -> int | None:
    """One commit on top of a snapshot: new rows, or all rows replaced, or no rows at all.

    None when the snapshot has the transaction already.
    """
    jvm = _jvm(spark)
    nothing = none(spark)
    delta = jvm.org.apache.spark.sql.delta
    started = base.deltaLog().startTransaction(nothing, some(spark, base))
    if started.txnVersion(app_id) >= txn:  # having read it, another commit of it is a conflict
        return None
    actions = [delta.actions.SetTransaction(app_id, txn, nothing)]
    if frame is not None:
        actions += items(started.writeFiles(frame._jdf))
    if replace:
        actions += [file.remove() for file in items(started.filterFiles())]
    mode = jvm.org.apache.spark.sql.SaveMode
    operation = getattr(delta, "DeltaOperations$Write")(
        mode.Overwrite if replace else mode.Append,
        nothing,
        nothing,
        some(spark, user_metadata),
        *[nothing] * 5,
    )
    return int(started.commit(seq(spark, actions), operation))


def items(scala_seq: Any) -> list[Any]:
    """The members of a Scala sequence."""
    return [scala_seq.apply(i) for i in range(scala_seq.size())]


@contextmanager
def own_session(spark: SparkSession, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A copy of the session with settings of its own, in use only inside the block.

    Delta reads some settings from the thread's active session, so the copy is made the active
    one, and must not stay it: a later commit would carry the settings of this one.
    """
    sessions = _jvm(spark).org.apache.spark.sql.SparkSession
    before = sessions.getActiveSession()
    copy = SparkSession(spark.sparkContext, _session(spark).cloneSession())
    for key, value in settings.items():
        copy.conf.set(key, value)
    sessions.setActiveSession(copy._jsparkSession)
    try:
        yield copy
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def settings_of(spark: SparkSession) -> tuple[tuple[str, str], ...]:
    """The settings of a session that the answers of queries depend on."""
    return tuple((key, str(spark.conf.get(key))) for key in SETTINGS)


@contextmanager
def with_settings(
    spark: SparkSession, settings: tuple[tuple[str, str], ...]
) -> Iterator[SparkSession]:
    """The session, or a copy of it with these settings where it has others."""
    other = set(settings) - set(settings_of(spark)) if settings else set()
    if not other:
        yield spark
        return
    with own_session(spark, dict(other)) as copy:
        yield copy


def move_frame(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The same frame, run by another session."""
    dataset = _jvm(spark).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(_session(spark), frame._jdf.logicalPlan()), spark)


def cached_frame(kept: DataFrame) -> DataFrame:
    """A persisted frame as a leaf: queries over it hold its rows and not the query it came from.

    Without this each use carries the whole query, for Spark to analyse again, and Delta's MERGE
    computes it again.
    """
    dataset = _jvm(kept.sparkSession).org.apache.spark.sql.classic.Dataset
    plan = kept._jdf.queryExecution().withCachedData()
    return DataFrame(dataset.ofRows(_session(kept.sparkSession), plan), kept.sparkSession)


def is_conflict(error: BaseException) -> bool:
    """Whether Delta says that somebody else committed first."""
    java = getattr(error, "java_exception", None)
    names = [type(error).__name__, str(java.getClass().getSimpleName()) if java else ""]
    return any(mark in name for name in names for mark in _CONFLICTS)


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _session(spark: SparkSession) -> Any:
    return spark._jsparkSession

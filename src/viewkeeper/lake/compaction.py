"""Views stay compact: the many small files of a store become few, in a commit without a change.

Each refresh may leave a small file behind, and each lookup opens those it cannot leave out. When
there are many below a size they are put together; what is larger stays as it is, so a row is
written again a few times in its life, not at each refresh. The commit says ``dataChange: false``:
dependants, change feeds and our own metadata pass over it. Nothing is deleted from the disk:
earlier versions stay readable until somebody vacuums.

deltalake rewrites the files, but its own commit must not be used: it lets two compactions of the
same files both succeed, and every row is there twice (seen with 1.6). So it works in a folder
aside, on links to the log and to the small files, and its commit is linked into the log under the
number after the version it was made for: that fails if another commit is there.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.lake import arrow, history, jvm, lanes, lookup
from viewkeeper.lake.sources import Source, version

MANY = 24  # files of a level, before they are put together
LEVELS = (4 * 2**20, 32 * 2**20, 256 * 2**20)  # bytes
_MOST_NATIVE = 256 * 2**20  # bytes to rewrite; more are Spark's
_LOOK_EVERY = 16  # versions, where only a Spark job can tell the sizes
_ROOM = "_compaction_"
_FORGOTTEN = 3600  # seconds after which a room was left by a process that died
_LOG_FILE = re.compile(r"(\d{20})\.(json|checkpoint(\.\d+\.\d+)?\.parquet)")
_QUIET = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_LOG = logging.getLogger(__name__)


def due(sizes: Sequence[int]) -> int | None:
    """The size below which files are to be put together, None if that does not pay.

    >>> due([10_000] * 23), due([10_000] * 24), due([10_000] * 23 + [10**9])
    (None, 4194304, None)
    >>> due([3_000_000] * 30)  # they would not fit into fewer files of the first level
    33554432
    """
    lowest = 0
    for level in LEVELS:
        many = sum(lowest <= size < level // 2 for size in sizes) >= MANY
        small = [size for size in sizes if size < level]
        files = 2 * sum(small) // level + 1  # at most: each but the last is half full
        if many and 2 * files <= len(small):
            return level
        lowest = level // 4  # the files that this level made wait for many of their kind
    return None


def compact(spark: SparkSession, source: Source) -> int:
    """Puts the small files of a table together, if they are many.

    It never fails: a table that another process changes at this moment is left to a later call.

    Returns
    -------
    int
        How many files were put together.

    Examples
    --------
    >>> compact(spark, find(spark, "t"))                                  # doctest: +SKIP
    31
    """
    try:
        now = version(spark, source)
        found = lookup.files(source, now)
        if found is None:
            return _look(spark, source) if now % _LOOK_EVERY == 0 else 0
        sizes = [int(size) for size in found.actions.column("size_bytes").to_pylist()]
        level = due(sizes)
        if level is None:
            return 0
        native = sum(size for size in sizes if size < level) <= _MOST_NATIVE
        if native and lanes.can_write(spark, source) and _todays(found, level):
            return _aside(found, now, level)
        return _by_spark(spark, source, level)
    except (OSError, DeltaError, PySparkException) as error:
        if not lanes.is_conflict(error):
            _LOG.warning("%s was not compacted: %s", source.name, error)
        return 0
    except Exception as error:
        if not jvm.is_conflict(error):  # Py4J's own
            raise
        return 0


def _look(spark: SparkSession, source: Source) -> int:
    """The same where only Spark can see the files."""
    taken = jvm.newest(spark, source.location)
    rows = DataFrame(taken.allFiles().toDF(), spark).select("size").toArrow()
    level = due(rows.column(0).to_pylist())
    return 0 if level is None else _by_spark(spark, source, level)


def _by_spark(spark: SparkSession, source: Source, level: int) -> int:
    optimize = "spark.databricks.delta.optimize."
    settings = {f"{optimize}minFileSize": str(level), f"{optimize}maxFileSize": str(level)}
    with jvm.own_session(spark, settings) as own:
        done = SparkDeltaTable.forPath(own, source.location).optimize().executeCompaction()
        row = done.first()
    return 0 if row is None else int(row["metrics"]["numFilesRemoved"])


# ── by deltalake, aside ──────────────────────────────────────────────────────────────────────────


def _aside(found: lookup.Files, now: int, level: int) -> int:
    folder = Path(found.folder)
    _clean(folder)
    room = folder / f"{_ROOM}{uuid.uuid4().hex}"
    try:
        _furnish(room, found, now, level)
        table = DeltaTable(str(room))
        if table.version() != now:
            return 0  # the log is being cleaned or checkpointed
        table.optimize.compact(
            target_size=level, max_concurrent_tasks=1, post_commithook_properties=_QUIET
        )
        return _publish(room, folder, now + 1)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _todays(found: lookup.Files, level: int) -> bool:
    """Whether no file has the dates of another calendar; deltalake would not know it."""
    marks = [pq.read_metadata(path).metadata or {} for path in _small(found, level).values()]
    return not any(mark in one for one in marks for mark in arrow.LEGACY)


def _small(found: lookup.Files, level: int) -> dict[str, str]:
    """The files that may be rewritten: the path in the log, and the path on the disk."""
    columns = (found.actions.column(c).to_pylist() for c in ("path", "size_bytes"))
    return {
        path: history.file_path(found.folder, {"path": path})
        for path, size in zip(*columns, strict=True)
        if size <= level
    }


def _furnish(room: Path, found: lookup.Files, now: int, level: int) -> None:
    """Links to the log up to a version and to the files that may be rewritten."""
    (room / "_delta_log").mkdir(parents=True)
    with os.scandir(Path(found.folder) / "_delta_log") as entries:
        for entry in entries:
            name = _LOG_FILE.fullmatch(entry.name)
            if (name and int(name[1]) <= now) or entry.name == "_last_checkpoint":
                os.link(entry.path, room / "_delta_log" / entry.name)
    for path, file in _small(found, level).items():
        place = Path(history.file_path(str(room), {"path": path}))
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, place)


def _publish(room: Path, folder: Path, new: int) -> int:
    """The new files, and then the commit, which must be the first of its number."""
    commit = f"_delta_log/{new:020d}.json"
    try:
        done = history.parse(new, (room / commit).read_text(encoding="utf-8"))
    except FileNotFoundError:  # nothing to do
        return 0
    assert not any(a["dataChange"] for a in (*done.adds, *done.removes)), "rows do not change"
    moved = []
    for add in done.adds:
        place = Path(history.file_path(str(folder), add))
        os.link(history.file_path(str(room), add), place)
        moved.append(place)
    try:
        os.link(room / commit, folder / commit)
    except OSError as error:
        for place in moved:
            place.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            return 0  # another commit came first
        raise
    return len(done.removes)


def _clean(folder: Path) -> None:
    """Rooms of processes that died."""
    with os.scandir(folder) as entries:
        for entry in entries:
            ours = entry.name.startswith(_ROOM)
            if ours and time.time() - entry.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(entry.path, ignore_errors=True)

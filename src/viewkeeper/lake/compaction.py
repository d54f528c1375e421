"""Views stay compact: the many small files of a store become few, in a commit without a change.

Each refresh may leave a small file behind, and each lookup opens those it cannot leave out. When
there are many below a size they are put together; what is larger stays as it is, so a row is
written again a few times in its life, not at each refresh. The commit says ``dataChange: false``:
dependants, change feeds and our own metadata pass over it. Nothing is deleted from the disk:
earlier versions stay readable until somebody vacuums.

deltalake's own compaction must not be used: it lets two compactions of the same files both succeed,
and every row is there twice (seen with 1.6). Ours commits under the number after the version it was
made for, and fails if another commit is there. Rows that are hidden by deletion vectors are left
out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.lake import arrow, history, jvm, lanes, log, lookup, open_tables, patching, written
from viewkeeper.lake.history import Action
from viewkeeper.lake.sources import Source, quoted, version

MANY = 24  # files of a level, before they are put together
LEVELS = (4 * 2**20, 32 * 2**20, 256 * 2**20)  # bytes
_MOST_NATIVE = 64 * 2**20  # bytes to rewrite on the driver; more are Spark's
_LOOK_EVERY = 16  # versions, where only a Spark job can tell the sizes
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
            return _purge(spark, source, found)
        native = sum(size for size in sizes if size < level) <= _MOST_NATIVE
        if native and open_tables.can_write(spark, source) and _is_plain(source):
            try:
                return rewritten(found, now, level)
            except arrow.UnusualError:
                pass
        return _by_spark(spark, source, level)
    except (OSError, DeltaError, PySparkException) as error:
        if not lanes.is_conflict(error):
            _LOG.warning("%s was not compacted: %s", source.name, error)
        return 0
    except Exception as error:
        if not jvm.is_conflict(error):  # Py4J's own
            raise
        return 0


def _is_plain(source: Source) -> bool:
    return patching.can_commit(open_tables.open_native(source))


def _look(spark: SparkSession, source: Source) -> int:
    """The same where only Spark can see the files."""
    taken = jvm.newest(spark, source.location)
    rows = DataFrame(taken.allFiles().toDF(), spark).select("size").toArrow()
    level = due(rows.column(0).to_pylist())
    return 0 if level is None else _by_spark(spark, source, level)


def _purge(spark: SparkSession, source: Source, found: lookup.Files) -> int:
    """Writes large files again of which most rows are hidden; smaller ones are when they change."""
    large = [p for p, kept in found.kept.items() if 2 * kept.sum() < len(kept)]
    if not any(os.path.getsize(p) > _MOST_NATIVE for p in large):
        return 0
    name = f"delta.{quoted(source.location)}"
    row = spark.sql(f"REORG TABLE {name} APPLY (PURGE)").first()
    return 0 if row is None else int(row["metrics"]["numFilesRemoved"])


def _by_spark(spark: SparkSession, source: Source, level: int) -> int:
    optimize = "spark.databricks.delta.optimize."
    settings = {f"{optimize}minFileSize": str(level), f"{optimize}maxFileSize": str(level)}
    with jvm.own_session(spark, settings) as own:
        done = SparkDeltaTable.forPath(own, source.location).optimize().executeCompaction()
        row = done.first()
    return 0 if row is None else int(row["metrics"]["numFilesRemoved"])


# ── on the driver ────────────────────────────────────────────────────────────────────────────────


def rewritten(found: lookup.Files, now: int, level: int) -> int:
    """Puts the files below a size together; how many there were.

    Raises
    ------
    UnusualError
        When only Spark can do it; nothing was done.
    """
    fields = [f for name, f in found.fields.items() if name not in found.partitions]
    schema = arrow.arrow_schema(fields)
    actions: list[Action] = []
    gone = 0
    for adds in _together(log.files(found.folder, now).values(), level):
        rows = pa.concat_tables([_rows(found, add, schema) for add in adds])
        actions += [written.removed(add, change=False) for add in adds]
        if rows.num_rows:
            values = adds[0]["partitionValues"]
            actions.append(written.data_file(found.folder, rows, values, change=False))
        gone += len(adds)
    if not actions:
        return 0
    try:
        log.commit(found.folder, now + 1, {"operation": "OPTIMIZE"}, actions)
    except log.TakenError:
        patching.discard(found.folder, actions)
        return 0
    except arrow.UnusualError:
        patching.discard(found.folder, actions)
        raise
    return gone


def _together(adds: Iterable[Action], level: int) -> Iterator[list[Action]]:
    """Files that are to become one: small ones of one partition, in sum not above the level."""
    by_values: dict[str, list[Action]] = {}
    for add in adds:
        if add["size"] < level:
            by_values.setdefault(str(add["partitionValues"]), []).append(add)
    for small in by_values.values():
        bin_: list[Action] = []
        for add in small:
            if bin_ and sum(a["size"] for a in bin_) + add["size"] > level:
                if len(bin_) > 1:
                    yield bin_
                bin_ = []
            bin_.append(add)
        if len(bin_) > 1:
            yield bin_


def _rows(found: lookup.Files, add: Action, schema: pa.Schema) -> pa.Table:
    path = history.file_path(found.folder, add)
    if not lookup.is_usual(path):
        raise arrow.UnusualError("another calendar")
    return patching.remaining(path, patching.hidden_rows(found, path), schema)

"""The newest version of a table, and its metadata, by a look at the log's files.

Spark is asked once per table; from then on a local log is followed file by file, which takes
microseconds where Spark needs a job.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from viewkeeper.lake import jvm

Mark = tuple[int, int]  # what makes a commit's file another one


@dataclass(frozen=True)
class Tip:
    """The end of a table's log."""

    version: int
    metadata: dict[str, Any]
    mark: Mark | None

    @property
    def table_id(self) -> str:
        """Delta's id of the table."""
        return str(self.metadata["id"])


_TIPS: dict[str, Tip] = {}


def tip(spark: SparkSession, location: str, folder: str | None) -> Tip:
    """The newest version of the table at a location; ``folder`` is the same as a local path."""
    known = _TIPS.get(location)
    if folder is not None and known is not None and known.mark is not None:
        if mark_of(folder, known.version) == known.mark:
            found = _TIPS[location] = _followed(folder, known)
            return found
        _TIPS.pop(location, None)
        jvm.forget(spark, location)  # the log is another one, or its beginning was cleaned
    taken = jvm.newest(spark, location)
    version = int(taken.version())
    metadata = json.loads(taken.metadata().json())["metaData"]
    mark = None if folder is None else mark_of(folder, version)
    found = _TIPS[location] = Tip(version, metadata, mark)
    return found


def forget(location: str) -> None:
    """The table is gone."""
    _TIPS.pop(location, None)


def _followed(folder: str, known: Tip) -> Tip:
    """The tip after the commits that came since."""
    version, metadata, mark = known.version, known.metadata, known.mark
    while (now := mark_of(folder, version + 1)) is not None:
        with open(_path(folder, version + 1), encoding="utf-8") as file:
            for line in file:
                if line.startswith('{"metaData"'):
                    metadata = json.loads(line)["metaData"]
        version, mark = version + 1, now
    return known if version == known.version else Tip(version, metadata, mark)


def mark_of(folder: str, version: int) -> Mark | None:
    """What tells the file of a commit from any other; None when it is not there."""
    try:
        found = os.stat(_path(folder, version))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020d}.json"

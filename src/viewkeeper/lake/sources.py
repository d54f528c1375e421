"""Delta tables: who they are, their versions, and their rows pinned at a version."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import jvm, tips
from viewkeeper.lake.errors import LostHistoryError, NotDeltaError

# What deltalake decodes or breaks at, and what DuckDB takes for a pattern.
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[][^|\\*?\x00-\x1f]")
_MISSING = ("NOT_FOUND", "SINGLE_PART_NAMESPACE", "DELTA_MISSING", "PATH_DOES_NOT_EXIST")


@dataclass(frozen=True)
class Source:
    """A Delta table.

    Parameters
    ----------
    name : str
        The full name, backquoted, or ``delta.`path```.
    table_id : str
        Delta's id of the table; CREATE OR REPLACE TABLE gives a new one.
    location : str
        The folder of the table, as Hadoop writes it.

    Examples
    --------
    >>> Source("`c`.`d`.`t`", "1f0c", "file:/data/t").local_path
    '/data/t'
    >>> Source("`c`.`d`.`t`", "1f0c", "s3a://bucket/t").local_path is None
    True
    >>> Source("`c`.`d`.`t`", "1f0c", "file:/per%20cent/t").local_path is None
    True
    """

    name: str
    table_id: str
    location: str

    @property
    def local_path(self) -> str | None:
        """The folder as a plain path, None when only Spark reads it: it is not on this machine's
        file system, or deltalake or DuckDB would take its name for that of another one."""
        return _local_path(self.location)

    @property
    def is_path(self) -> bool:
        """Whether the table is known by its path only."""
        return self.name.startswith("delta.`")


@lru_cache(maxsize=1024)
def _local_path(location: str) -> str | None:
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        path = "/" + path.lstrip("/") if path.startswith("/") else path
    elif ":" in location.split("/", 1)[0]:
        return None
    else:
        path = location
    return None if _MISREAD.search(path) or _MISREAD.search(os.path.realpath(path)) else path


def find(spark: SparkSession, name: str) -> Source:
    """Look up a Delta table.

    Parameters
    ----------
    spark : SparkSession
        The session.
    name : str
        A name of one, two or three parts, or ``delta.`path```.

    Raises
    ------
    UnknownTableError
        When there is no such table.
    NotDeltaError
        When it is not a Delta table.
    """
    if not isinstance(name, str):
        raise _no_name(name)
    try:
        plan = spark.table(name)._jdf.queryExecution().analyzed()
    except ParseException as error:
        raise _no_name(name) from error
    except AnalysisException as error:
        if any(mark in (error.getCondition() or "") for mark in _MISSING):
            raise UnknownTableError(
                f"no table {name}", hint="Check the name, the current schema and the catalog."
            ) from error
        raise
    if plan.nodeName() != "SubqueryAlias":
        raise _not_delta(name)
    alias, relation = plan.identifier(), plan.child()
    while relation.nodeName() == "Project":  # Spark pads CHAR columns there
        relation = relation.child()
    log = _log_of(relation)
    if log is None:
        raise _not_delta(name)
    location = str(log.dataPath().toString())
    found = Source(name, "", location)
    parts = [*jvm.items(alias.qualifier()), alias.name()]
    if relation.catalogTable().isDefined():
        full = ".".join(quoted(part) for part in parts)
    else:
        full = f"delta.{quoted(parts[-1])}"
    return Source(full, tip(spark, found).table_id, location)


GENERATED = "delta.generationExpression"  # in a column's metadata: its expression
IDENTITY = "delta.identity"  # what such keys of a column that numbers rows begin with


def quoted(part: str) -> str:
    """One part of a name in backquotes.

    Examples
    --------
    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + part.replace("`", "``") + "`"


def version(spark: SparkSession, source: Source) -> int:
    """The newest version of a table: a look at the log, no Spark job."""
    return tip(spark, source).version


def tip(spark: SparkSession, source: Source) -> tips.Tip:
    """The newest version of a table with its metadata, likewise."""
    return tips.tip(spark, source.location, source.local_path)


def is_same(spark: SparkSession, source: Source) -> bool:
    """Whether the table is still the one that was found."""
    try:
        return tip(spark, source).table_id == source.table_id
    except Exception:  # gone, or no longer Delta's
        return False


def schema(spark: SparkSession, source: Source, version: int | None = None) -> dict[str, str]:
    """The columns of a table at a version, by default the newest: name to DDL type."""
    fields = struct(_taken(spark, source, version)).fields
    return {field.name: field.dataType.simpleString() for field in fields}


def at(
    spark: SparkSession, source: Source, version: int, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of a table at exactly one version, also when others commit meanwhile.

    SQL: ``SELECT columns FROM source VERSION AS OF version``.
    """
    frame = jvm.read_snapshot(spark, _taken(spark, source, version))
    return frame if columns is None else frame.select([quoted(c) for c in columns])


def struct(taken: Any) -> StructType:
    """The schema of a snapshot as Spark's type."""
    return StructType.fromJson(json.loads(taken.schema().json()))


def _taken(spark: SparkSession, source: Source, version: int | None) -> Any:
    if version is None:
        return jvm.newest(spark, source.location)
    try:
        return jvm.snapshot(spark, source.location, version)
    except Exception as error:
        reason = f"version {version} cannot be rebuilt from the log"
        raise LostHistoryError(source.name, reason) from error


def _log_of(relation: Any) -> Any:
    """The DeltaLog below a relation of the analysed plan, None when it is not Delta's."""
    if relation.nodeName() != "LogicalRelation":
        return None
    base = relation.relation()
    files = base.location() if "location" in dir(base) else None
    return files.deltaLog() if files is not None and "deltaLog" in dir(files) else None


def _no_name(given: object) -> UnknownTableError:
    return UnknownTableError(
        f"{given!r} is not the name of a table",
        hint="Use one to three parts, catalog.schema.table, or delta.`path`.",
    )


def _not_delta(name: str) -> NotDeltaError:
    return NotDeltaError(
        f"{name} is not a Delta table", hint="Only Delta tables have versions: refresh in full."
    )

"""What the log says about a span of versions, before any row is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from viewkeeper.errors import UnknownColumnError, suggestion
from viewkeeper.lake import arrow, history, jvm
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.history import Action, Commit
from viewkeeper.lake.sources import Source, tip

_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Span:
    """The commits between two versions, and how the table looked meanwhile."""

    source: Source
    since: int
    until: int
    commits: list[Commit]
    states: list[Action]  # the table's metadata at each version, `since` included
    fields: list[StructField]  # the asked columns
    weight: str | None

    @cached_property
    def change_files(self) -> list[Action]:
        """Files of the change feed; a commit that has some is told by them alone."""
        return [action for one in self.commits for action in one.of("cdc")]

    @cached_property
    def data_files(self) -> tuple[list[Action], list[Action]]:
        """Files added and removed by the commits without change files."""
        return history.net_files(
            history.signed_files(one for one in self.commits if not one.of("cdc"))
        )

    @cached_property
    def rewritten_files(self) -> tuple[list[Action], list[Action]]:
        """Files added and removed by all commits."""
        return history.net_files(history.signed_files(self.commits))

    @cached_property
    def feed_on(self) -> bool:
        """Whether the change feed was on at every version."""
        return all(_config(state, "enableChangeDataFeed") == "true" for state in self.states[1:])

    @cached_property
    def tracks_rows(self) -> bool:
        """Whether the files of the newest version must say where the numbers of rows begin."""
        return _config(self.states[-1], "enableRowTracking") == "true"

    @cached_property
    def moved(self) -> bool:
        """Whether the schema changed in between."""
        return len({state["schemaString"] for state in self.states}) > 1

    @cached_property
    def partitions(self) -> list[StructField]:
        """The partition columns."""
        own = _struct(self.states[-1])
        return [own[name] for name in self.states[-1]["partitionColumns"]]

    @cached_property
    def physical_partitions(self) -> list[str]:
        """The partition columns as the log names them."""
        return [_physical(field) for field in self.partitions]

    @cached_property
    def usual(self) -> bool:
        """Whether Arrow alone can read the change; otherwise Spark does."""
        asked = {field.name for field in self.fields}
        return (
            not any(a.get("deletionVector") for files in self.data_files for a in files)
            and all(_config(s, "columnMapping.mode") in (None, "none") for s in self.states)
            and len({str(s["partitionColumns"]) for s in self.states}) == 1
            and all(self.fields == _same(state, self.fields) for state in self.states if self.moved)
            and all(arrow.can_group(field.dataType) for field in self.fields)
            and all(arrow.can_partition(f.dataType) for f in self.partitions if f.name in asked)
            and not any(
                "://" in a["path"] for files in (*self.data_files, self.change_files) for a in files
            )
        )

    def rebuild(self, spark: SparkSession, version: int) -> Any:
        """The snapshot of a version."""
        return _rebuild(spark, self.source, version)


def look(
    spark: SparkSession,
    source: Source,
    since: int,
    until: int,
    columns: Sequence[str],
    weight: str | None,
) -> Span:
    """Read the log and check that the two versions can be compared."""
    assert since <= until, "a change goes forward"
    try:
        end = tip(spark, source)
    except Exception as error:
        raise LostHistoryError(source.name, "its log cannot be read") from error
    if until > end.version:
        reason = f"version {until} is not in the log, the newest is {end.version}"
        raise LostHistoryError(source.name, reason)
    if end.table_id != source.table_id:
        raise LostHistoryError(source.name, "the table was replaced by another one")
    commits = history.between(spark, source, since, until)
    new = end.metadata
    later = range(until + 1, end.version + 1)
    if any((one := history.commit(spark, source, v)) is None or one.metadata for v in later):
        new = _metadata(_rebuild(spark, source, until))
    changed = any(one.metadata is not None for one in commits)
    states = [_metadata(_rebuild(spark, source, since)) if changed else new]
    for one in commits:
        states.append(one.metadata or states[-1])
    if any(state["id"] != source.table_id for state in states):
        raise LostHistoryError(source.name, "the table was replaced by another one")
    fields = [_field(source, states, name) for name in columns]
    counted = None if weight is None else _field(source, states, weight).name
    return Span(source, since, until, commits, states, fields, counted)


def _field(source: Source, states: list[Action], name: str) -> StructField:
    """A column that is the same at both ends."""
    old, new = _find(states[0], name), _find(states[-1], name)
    if new is None and old is None:
        known = _struct(states[-1]).names
        raise UnknownColumnError(
            f"{source.name} has no column {name!r}", hint=suggestion(name, known)
        )
    if new is None:
        raise LostHistoryError(source.name, f"column {name} was dropped or renamed")
    if old is None:
        raise LostHistoryError(source.name, f"column {name} is new")
    if old.dataType != new.dataType:
        kinds = f"{old.dataType.simpleString()} to {new.dataType.simpleString()}"
        raise LostHistoryError(source.name, f"column {name} changed from {kinds}")
    if _physical(old) != _physical(new):  # the files have other values under this name now
        raise LostHistoryError(source.name, f"column {name} was dropped or renamed, and is another")
    return StructField(new.name, new.dataType, True)


def _same(state: Action, fields: list[StructField]) -> list[StructField]:
    """The fields as another version of the table has them."""
    found = (_find(state, field.name) for field in fields)
    return [StructField(f.name, f.dataType, True) for f in found if f is not None]


def _find(state: Action, name: str) -> StructField | None:
    """A column by name; like Spark, without regard to case."""
    for field in _struct(state).fields:
        if field.name.lower() == name.lower():
            return field
    return None


def _physical(field: StructField) -> str:
    """The name of a column in the files."""
    return str(field.metadata.get(_PHYSICAL, field.name))


def _struct(state: Action) -> StructType:
    return StructType.fromJson(json.loads(state["schemaString"]))


def _metadata(taken: Any) -> Action:
    found: Action = json.loads(taken.metadata().json())["metaData"]
    return found


def _config(state: Action, key: str) -> str | None:
    value = (state.get("configuration") or {}).get(f"delta.{key}")
    return None if value is None else str(value).lower()


def _rebuild(spark: SparkSession, source: Source, version: int) -> Any:
    try:
        return jvm.snapshot(spark, source.location, version)
    except Exception as error:
        reason = f"version {version} cannot be rebuilt from the log"
        raise LostHistoryError(source.name, reason) from error

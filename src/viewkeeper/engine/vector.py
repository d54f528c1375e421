"""The consistent vector of source versions that all views of one refresh reflect."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from viewkeeper.lake.history import fingerprint
from viewkeeper.lake.sources import Source, find, is_same, tip


@dataclass(frozen=True)
class Pin:
    """A source at a version."""

    source: Source
    version: int
    metadata: Mapping[str, Any] = field(compare=False, hash=False)
    commit: str | None = field(default=None, compare=False)  # what tells the version's commit

    @property
    def columns(self) -> list[StructField]:
        """All columns, as the log has them."""
        return list(StructType.fromJson(json.loads(self.metadata["schemaString"])).fields)

    def schema(self, columns: Iterable[str]) -> StructType:
        """Some columns; each may be NULL."""
        fields = {f.name: f for f in self.columns}
        return StructType([StructField(c, fields[c].dataType) for c in columns])


def pinned(spark: SparkSession, source: Source) -> Pin:
    """A source at its newest version."""
    end = tip(spark, source)
    return Pin(source, end.version, end.metadata, fingerprint(spark, source, end.version))


class Vector:
    """Source versions, each looked up once and then kept."""

    def __init__(self, spark: SparkSession, known: dict[str, Source]) -> None:
        self.spark = spark
        self.known = known  # sources found earlier, by name
        self._pins: dict[str, Pin] = {}
        self._lock = threading.Lock()

    def pin(self, name: str) -> Pin:
        """The version at which this refresh reads a table."""
        with self._lock:
            if name not in self._pins:
                source = self.known.get(name)
                if source is None or not is_same(self.spark, source):
                    source = self.known[name] = find(self.spark, name)
                self._pins[name] = pinned(self.spark, source)
            return self._pins[name]

    def moved(self, name: str) -> None:
        """A view's store was changed by this refresh: its dependants read the new version."""
        with self._lock:
            self._pins.pop(name, None)

"""The consistent vector of source versions that all views of one refresh reflect."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pyspark.sql import SparkSession

from viewkeeper.lake.sources import Source, find, version


@dataclass(frozen=True)
class Pin:
    """A source at a version."""

    source: Source
    version: int


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
                if source is None or not _same(self.spark, source):
                    source = self.known[name] = find(self.spark, name)
                self._pins[name] = Pin(source, version(self.spark, source))
            return self._pins[name]

    def moved(self, name: str) -> None:
        """A view's store was changed by this refresh: its dependants read the new version."""
        with self._lock:
            self._pins.pop(name, None)


def _same(spark: SparkSession, source: Source) -> bool:
    """Is the table still the one that was found?"""
    from viewkeeper.lake import jvm

    try:
        return str(jvm.newest(spark, source.location).metadata().id()) == source.table_id
    except Exception:  # gone, or no longer Delta's
        return False

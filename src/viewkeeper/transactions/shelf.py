"""Named records in a Delta table of ours: constraints, subscriptions."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from viewkeeper.errors import UnknownTableError
from viewkeeper.home import Home
from viewkeeper.lake import history, stamps, stores
from viewkeeper.lake.errors import ConflictError
from viewkeeper.lake.sources import Source, at, find, quoted, version
from viewkeeper.lake.stores import OP, Patch

_COLUMNS = "name STRING, record STRING"
_TRIES = 50


class Shelf:
    """A table of names and records; each change is one atomic commit."""

    def __init__(self, spark: SparkSession, home: Home, table: str) -> None:
        self.spark = spark
        self.home = home
        self.table = table
        self._source: Source | None = None
        self._held: tuple[int, dict[str, dict[str, Any]]] = (-1, {})
        self._lock = threading.Lock()

    def all(self) -> dict[str, dict[str, Any]]:
        """All records by name; read again only when the table has a new version."""
        source = self._found()
        if source is None:
            return {}
        now = version(self.spark, source)
        if self._held[0] != now:
            if source.local_path is not None:
                rows = DeltaTable(source.local_path, version=now).to_pyarrow_table()
                pairs = zip(
                    rows.column("name").to_pylist(), rows.column("record").to_pylist(), strict=True
                )
                texts = dict(pairs)
            else:
                texts = {r.name: r.record for r in at(self.spark, source, now).collect()}
            self._held = now, {n: json.loads(t) for n, t in sorted(texts.items())}
        return self._held[1]

    def put(self, name: str, record: dict[str, Any] | None) -> None:
        """Sets a record; None takes it away."""
        if self._source is None:
            self._source = self.home.table(self.table, _COLUMNS)
        source = self._source
        op = "D" if record is None else "U"
        rows = pa.table({"name": [name], "record": [json.dumps(record)], OP: [op]})
        with self._lock:
            for _ in range(_TRIES):
                number = stamps.last_transaction(self.spark, source, self.table) + 1
                by = uuid.uuid4().hex
                try:
                    stores.apply(
                        self.spark,
                        source,
                        Patch(rows, ["name"]),
                        lane="native",
                        app_id=self.table,
                        txn=number,
                        metadata={self.table: name, "by": by},
                    )
                except ConflictError:
                    continue
                if self._is_ours(source, number, by):
                    return
        raise ConflictError(f"{name}: other processes always came first", hint="Try again.")

    def _is_ours(self, source: Source, number: int, by: str) -> bool:
        for one in history.backwards(self.spark, source, version(self.spark, source)):
            if one.transaction(self.table) <= number:
                return (stamps.read_stamp(one.user_metadata) or {}).get("by") == by
        return False

    def _found(self) -> Source | None:
        if self._source is None:
            try:
                self._source = find(self.spark, f"{self.home.schema}.{quoted(self.table)}")
            except UnknownTableError:
                return None
        return self._source

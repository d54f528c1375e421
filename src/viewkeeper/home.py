"""Where viewkeeper keeps its own: the registry of views, their history, their stores.

One schema of the session's catalog, ``viewkeeper`` by default. The registry and the history are
Delta tables, so several processes share them, and every change of them is one atomic commit.
"""

from __future__ import annotations

import datetime
import json
import statistics
import threading
import uuid

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import compaction, history, stamps, stores
from viewkeeper.lake.errors import ConflictError
from viewkeeper.lake.sources import Source, at, find, quoted, version
from viewkeeper.lake.stores import OP, Patch
from viewkeeper.records import Record, RefreshReport

_VIEWS = "name STRING, record STRING"
_HISTORY = (
    "at TIMESTAMP, view STRING, strategy STRING, inserted BIGINT, deleted BIGINT, seconds DOUBLE,"
    " reason STRING, lane STRING, version BIGINT, changed_rows BIGINT, source_rows BIGINT,"
    " sources STRING"
)
_ARROW = {
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
}
_TRIES = 20
_COMPACT_EVERY = 32  # entries of the history, each a file
_REGISTRY = "registry"  # the application whose transactions are the changes of the registry
_ANY = "*"


class Home:
    """The registry and the history of one catalog."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.spark = spark
        parts = schema.split(".")
        if len(parts) == 1:  # full names, as sources have them
            parts = [spark.catalog.currentCatalog(), *parts]
        self.schema = ".".join(quoted(p) for p in parts)
        self._lock = threading.Lock()
        self._tables: dict[str, Source] = {}
        self._records: tuple[int, dict[str, Record]] = (-1, {})
        self._process = uuid.uuid4().hex
        self._writes = 0

    def table(self, name: str, columns: str) -> Source:
        """One of our own tables, made at the first use."""
        if name not in self._tables:
            full = f"{self.schema}.{quoted(name)}"
            try:
                self._tables[name] = find(self.spark, full)
            except UnknownTableError:
                self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
                pairs = (c.split() for c in columns.split(", "))
                empty = self.spark.range(0).selectExpr(
                    *(f"CAST(NULL AS {t}) AS {n}" for n, t in pairs)
                )
                try:
                    made = stores.create(
                        self.spark,
                        full,
                        empty,
                        metadata={"table": name},
                        properties=stores.WHOLE_FILES,
                    )
                except ConflictError:  # another process made it
                    made = find(self.spark, full)
                self._tables[name] = made
        return self._tables[name]

    @property
    def exists(self) -> bool:
        """Is there a registry? Looking makes none."""
        if "views" in self._tables:
            return True
        try:
            self._tables["views"] = find(self.spark, f"{self.schema}.{quoted('views')}")
        except UnknownTableError:
            return False
        return True

    # ── the registry ──

    def records(self) -> dict[str, Record]:
        """All views by name; read again only when the registry has a new version."""
        if not self.exists:
            return {}
        source = self.table("views", _VIEWS)
        now = version(self.spark, source)
        if self._records[0] != now:
            found = [Record.from_json(text) for text in self._texts(source, now)]
            self._records = now, {r.name: r for r in sorted(found, key=lambda r: r.created)}
        return self._records[1]

    def _texts(self, source: Source, now: int) -> list[str]:
        if source.local_path is not None:
            rows = DeltaTable(source.local_path, version=now).to_pyarrow_table(columns=["record"])
            return list(rows.column("record").to_pylist())
        return [row[0] for row in at(self.spark, source, now).select("record").collect()]

    def save(self, record: Record, *, after: str | None = _ANY) -> None:
        """Adds a view, or replaces the record of its name.

        Parameters
        ----------
        record : Record
        after : str, optional
            The id of the record that must be there now; None: the name must be free.

        Raises
        ------
        ConflictError
            When another process gave the name first.
        """
        self._write(record.name, record.to_json(), "U", after)

    def remove(self, name: str) -> None:
        """Forgets a view."""
        self._write(name, "", "D")

    def _write(self, name: str, text: str, op: str, after: str | None = _ANY) -> None:
        """One change of the registry; its changes are numbered, so none is lost or made twice."""
        source = self.table("views", _VIEWS)
        rows = pa.table({"name": [name], "record": [text], OP: [op]})
        for attempt in range(_TRIES):
            number = stamps.last_transaction(self.spark, source, _REGISTRY) + 1
            there = self.records().get(name)
            if after is not _ANY and after != (there.id if there else None):
                raise ConflictError(
                    f"another process made, replaced or dropped {name} at the same moment",
                    hint="Look at keeper.views(), then try again.",
                )
            by = uuid.uuid4().hex
            try:
                with self._lock:
                    stores.apply(
                        self.spark,
                        source,
                        Patch(rows, ["name"]),
                        lane="native",
                        app_id=_REGISTRY,
                        txn=number,
                        metadata={"registry": name, "by": by},
                    )
                if self._is_there(source, number, by):
                    return
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
        raise ConflictError(f"{name}: other processes always came first", hint="Try again.")

    def _is_there(self, source: Source, number: int, by: str) -> bool:
        """Whether the change of this number is ours, not that of a process that came first."""
        for one in history.backwards(self.spark, source, version(self.spark, source)):
            if one.transaction(_REGISTRY) <= number:
                return (stamps.read_stamp(one.user_metadata) or {}).get("by") == by
        return False

    # ── the history ──

    def usual_change(self, view: str) -> int | None:
        """How many rows changed between two refreshes of a view: the median; None if none did."""
        source = self.table("history", _HISTORY)
        names = ["view", "strategy", "changed_rows"]
        if source.local_path is not None:
            rows = DeltaTable(source.local_path).to_pyarrow_table(columns=names)
        else:
            rows = at(self.spark, source, version(self.spark, source), names).toArrow()
        found = [
            r["changed_rows"]
            for r in rows.to_pylist()
            if r["view"] == view and r["strategy"] == "incremental" and r["changed_rows"]
        ]
        return int(statistics.median(found)) if found else None

    def log(self, reports: list[RefreshReport], when: datetime.datetime) -> None:
        """Adds refreshes to the history."""
        if not reports:
            return
        told = [r.as_dict() for r in reports]
        rows = [{**r, "at": when, "sources": json.dumps(r["sources"])} for r in told]
        source = self.table("history", _HISTORY)
        schema = pa.schema([(n, _ARROW[t]) for n, t in (c.split() for c in _HISTORY.split(", "))])
        table = pa.Table.from_pylist(
            [{n: r.get(n) for n in schema.names} for r in rows], schema=schema
        )
        table = table.append_column(OP, pa.array(["I"] * len(rows), pa.string()))
        for attempt in range(_TRIES):
            try:
                with self._lock:
                    self._writes += 1
                    done = stores.apply(
                        self.spark,
                        source,
                        Patch(table, [], only_inserts=True),
                        lane="append",
                        app_id=self._process,
                        txn=self._writes,
                        metadata={"history": len(rows)},
                    )
                if done % _COMPACT_EVERY == 0:
                    compaction.compact(self.spark, source)
                return
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise

    def history(self) -> DataFrame:
        """All refreshes, the newest first."""
        source = self.table("history", _HISTORY)
        return self.spark.table(source.name).orderBy("at", ascending=False)

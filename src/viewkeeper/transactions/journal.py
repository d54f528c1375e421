"""The journal: one entry for each transaction, in one order for all processes.

An entry is one commit of a Delta table of ours. It holds all that the transaction does to its
tables and views, so whoever finds it unfinished can finish it. The entry is the moment at which
the transaction happens: before it nothing was written, after it everything will be.

Entries are numbered; a number can be given once. A second number, in commits without rows, says up
to which entry all is done.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import UnknownTableError
from viewkeeper.home import Home
from viewkeeper.lake import history, stamps, stores
from viewkeeper.lake.errors import ConflictError, LostHistoryError
from viewkeeper.lake.sources import Source, at, find, quoted, version
from viewkeeper.lake.stores import OP, Patch

_TABLE = "journal"
_COLUMNS = "number BIGINT, part STRING, head STRING, data BINARY"
_ENTRIES, _DONE = "journal", "journal-done"  # the applications whose transactions are the numbers
_KEPT = 10_000  # entries that are done
_TIDY_EVERY = 1_000  # entries
_PATIENCE = 3.0  # seconds that another process is given to finish its entry


@dataclass(frozen=True)
class Part:
    """What a transaction does to one table or view: plain values, and rows."""

    kind: str  # "table" or "view"
    head: dict[str, Any]
    rows: pa.Table | None = None


@dataclass(frozen=True)
class Entry:
    """One transaction, or one change of the constraints."""

    number: int
    id: str
    parts: list[Part] = field(default_factory=list)


class Journal:
    """The journal of one home."""

    def __init__(self, spark: SparkSession, home: Home) -> None:
        self.spark = spark
        self.home = home
        self._source: Source | None = None
        self._mine = threading.local()

    @property
    def exists(self) -> bool:
        """Is there one? Looking makes none."""
        if self._source is None:
            name = f"{self.home.schema}.{quoted(_TABLE)}"
            if self.spark.catalog.tableExists(name):  # cheaper than an error
                with contextlib.suppress(UnknownTableError):
                    self._source = find(self.spark, name)
        return self._source is not None

    @property
    def source(self) -> Source:
        """The table; it is made at the first use."""
        if self._source is None:
            self._source = self.home.table(_TABLE, _COLUMNS)
        return self._source

    @property
    def app_id(self) -> str:
        """The application under which the tables' commits have the numbers of entries."""
        return f"viewkeeper-{self.source.table_id}"

    def last(self) -> int:
        """The number of the newest entry; 0 is none."""
        return self._newest(_ENTRIES)

    def done(self) -> int:
        """The newest entry that is finished, as are all before it."""
        return self._newest(_DONE)

    def _newest(self, app: str) -> int:
        """The newest number of a kind; it is in one of the last commits."""
        for one in history.backwards(self.spark, self.source, version(self.spark, self.source)):
            found = one.transaction(app)
            if found >= 0:
                return found
            if one.version == 0:
                return 0
        return max(0, stamps.last_transaction(self.spark, self.source, app))

    def mark(self) -> tuple[int, int]:
        """Changes whenever a transaction begins or ends to be written; none is, if both are
        equal."""
        return (self.last(), self.done()) if self.exists else (0, 0)

    # ── writing ──

    def add(self, number: int, parts: list[Part]) -> Entry | None:
        """Writes an entry; None if the number was given to another."""
        made = Entry(number, uuid.uuid4().hex, parts)
        head = Part("entry", {"id": made.id})
        whole = [head, *parts]
        rows = pa.table(
            {
                "number": pa.array([number] * len(whole), pa.int64()),
                "part": [p.kind for p in whole],
                "head": [json.dumps(p.head) for p in whole],
                "data": pa.array([_packed(p.rows) for p in whole], pa.binary()),
                OP: ["I"] * len(whole),
            }
        )
        with contextlib.suppress(ConflictError):
            stores.apply(
                self.spark,
                self.source,
                Patch(rows, [], only_inserts=True),
                lane="append",
                app_id=_ENTRIES,
                txn=number,
                metadata={"entry": number, "by": made.id},
            )
        return made if self._writer(number) == made.id else None

    def finish(self, number: int) -> None:
        """Says that an entry is done."""
        while self.done() < number:
            with contextlib.suppress(ConflictError):
                stores.apply(
                    self.spark,
                    self.source,
                    Patch(_nothing(), [], only_inserts=True),
                    lane="touch",
                    app_id=_DONE,
                    txn=number,
                    metadata={"done": number},
                )

    def tidy(self, number: int) -> None:
        """Now and then forgets what is done long ago; if that fails, another time."""
        if number % _TIDY_EVERY or number <= _KEPT:
            return
        with contextlib.suppress(PySparkException):
            self.spark.sql(f"DELETE FROM {self.source.name} WHERE number <= {number - _KEPT}")

    def _writer(self, number: int) -> str | None:
        commit = self._commit(number)
        if commit is None:
            return None
        return str((stamps.read_stamp(commit.user_metadata) or {}).get("by"))

    def _commit(self, number: int) -> history.Commit | None:
        for one in history.backwards(self.spark, self.source, version(self.spark, self.source)):
            found = one.transaction(_ENTRIES)
            if found == number:
                return one
            if 0 <= found < number:
                return None
        return None

    # ── reading ──

    def entry(self, number: int) -> Entry:
        """An entry with all that it holds."""
        commit = self._commit(number)
        if commit is None:
            raise LostHistoryError(self.source.name, f"entry {number} is not in the log")
        rows = self._rows(commit)
        parts = [
            Part(kind, json.loads(head), _unpacked(data))
            for kind, head, data in zip(
                rows.column("part").to_pylist(),
                rows.column("head").to_pylist(),
                rows.column("data").to_pylist(),
                strict=True,
            )
        ]
        (head,) = (p for p in parts if p.kind == "entry")
        return Entry(number, head.head["id"], [p for p in parts if p.kind != "entry"])

    def _rows(self, commit: history.Commit) -> pa.Table:
        folder = self.source.local_path
        if folder is not None:
            files = [history.file_path(folder, a) for a in commit.adds]
            return pa.concat_tables(pq.ParquetFile(f).read() for f in files)
        frame = at(self.spark, self.source, commit.version)
        number = commit.transaction(_ENTRIES)
        return frame.where(frame.number == number).toArrow()

    def unfinished(self) -> list[Entry]:
        """Entries that are not done, the oldest first. Another process may be at work on the
        newest: it gets a moment."""
        if not self.exists:
            return []
        end = time.monotonic() + _PATIENCE
        while (last := self.last()) > (done := self.done()):
            if self.alone() or time.monotonic() > end:
                return [self.entry(n) for n in range(done + 1, last + 1)]
            time.sleep(0.02)
        return []

    # ── turns ──

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One process at a time, where the file system can say whose turn it is; the turn of a
        process ends with it. Where it cannot, the numbers alone decide."""
        path = self._lock_path()
        if path is None or getattr(self._mine, "turn", False):
            yield
            return
        with open(path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._mine.turn = True
            try:
                yield
            finally:
                self._mine.turn = False
                fcntl.flock(file, fcntl.LOCK_UN)

    def alone(self) -> bool:
        """Whether no other process has its turn now: then nobody is at work on an entry."""
        if getattr(self._mine, "turn", False):
            return True
        path = self._lock_path()
        if path is None:
            return False
        with open(path, "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            fcntl.flock(file, fcntl.LOCK_UN)
            return True

    def _lock_path(self) -> str | None:
        folder = self.source.local_path
        return None if folder is None else os.path.join(folder, "_turn")


def _packed(rows: pa.Table | None) -> bytes | None:
    if rows is None:
        return None
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _unpacked(data: bytes | None) -> pa.Table | None:
    return None if data is None else pa.ipc.open_stream(data).read_all()


def _nothing() -> pa.Table:
    return pa.table({OP: pa.array([], pa.string())})

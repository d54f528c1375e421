"""Compaction without Spark: which files, one commit without a change, and never two for one."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from viewkeeper.lake import compaction, history, log, lookup, stores
from viewkeeper.lake.errors import ConflictError
from viewkeeper.lake.sources import Source
from viewkeeper.lake.stamps import Stamp

LEVEL = compaction.LEVELS[0]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """One larger file and thirty small ones, with rows that stand more than once."""
    path = str(tmp_path / "a table")
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, rows(0, 1000), configuration=feed)
    for i in range(30):
        write_deltalake(path, rows(i, 3), mode="append")
    return path


def rows(first: int, n: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(range(first, first + n), pa.int64()),
            "s": pa.array(["é" * (i % 3) if i % 2 else None for i in range(n)], pa.string()),
            "a": pa.array([[i, None] for i in range(n)], pa.list_(pa.int64())),
        }
    )


def held(path: str, version: int | None = None) -> list[Any]:
    found = DeltaTable(path, version=version).to_pyarrow_table()
    return sorted(map(repr, found.to_pylist()))


def files(path: str) -> lookup.Files:
    table = DeltaTable(path)
    return lookup._files(path, str(table.metadata().id), table.version())


def test_many_become_few_and_nothing_changes(table: str) -> None:
    before, now = held(table), DeltaTable(table).version()
    assert compaction.rewritten(files(table), now, LEVEL) == 31
    after = DeltaTable(table)
    assert after.version() == now + 1 and held(table) == before
    assert len(after.file_uris()) == 1
    assert held(table, now) == before, "the old version can still be read"
    text = Path(table, "_delta_log", f"{now + 1:020d}.json").read_text(encoding="utf-8")
    done = history.parse(now + 1, text)
    assert history.only_rewritten([done]) and not done.of("cdc")
    changes = pa.table(after.load_cdf(starting_version=now + 1).read_all())
    assert changes.num_rows == 0, "dependants see nothing"
    assert compaction.rewritten(files(table), now + 1, LEVEL) == 0, "nothing to do"
    stats = pa.table(after.get_add_actions(flatten=True))
    assert stats.column("min.k").to_pylist() == [0] and stats.column("max.k").to_pylist() == [999]


@pytest.mark.parametrize("by", ["a row", "a compaction"])
def test_a_commit_that_came_first_wins(table: str, by: str) -> None:
    now, old = DeltaTable(table).version(), files(table)
    if by == "a row":
        write_deltalake(table, rows(7, 1), mode="append")
    else:
        assert compaction.rewritten(files(table), now, LEVEL) == 31
    before, there = held(table), {n for n in os.listdir(table) if n.endswith(".parquet")}
    assert compaction.rewritten(old, now, LEVEL) == 0
    assert held(table) == before and DeltaTable(table).version() == now + 1
    assert {n for n in os.listdir(table) if n.endswith(".parquet")} == there, "nothing is left"


def test_ten_at_once_compact_once(table: str) -> None:
    before, now, old = held(table), DeltaTable(table).version(), files(table)
    done: list[int] = []
    start = threading.Barrier(10)

    def run() -> None:
        start.wait()
        done.append(compaction.rewritten(old, now, LEVEL))

    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0] * 9 + [31]
    assert held(table) == before and DeltaTable(table).version() == now + 1


def test_larger_files_stay(table: str) -> None:
    now, found = DeltaTable(table).version(), files(table)
    largest = max(found.actions.column("size_bytes").to_pylist())
    assert compaction.rewritten(found, now, largest) == 30
    sizes = files(table).actions.column("size_bytes").to_pylist()
    assert largest in sizes and len(sizes) < 12


def test_with_a_checkpoint(table: str) -> None:
    DeltaTable(table).create_checkpoint()
    write_deltalake(table, rows(5, 2), mode="append")
    log._KNOWN.clear()
    before, now = held(table), DeltaTable(table).version()
    assert compaction.rewritten(files(table), now, LEVEL) == 32
    assert held(table) == before


def test_rows_are_written_again_a_few_times_only() -> None:
    """A thousand refreshes with a file each: the work for compaction stays far below quadratic."""
    sizes: list[int] = []
    written, size = 0, 300_000
    for _ in range(1000):
        sizes.append(size)
        level = compaction.due(sizes)
        if level is not None:
            small = [s for s in sizes if s < level]
            written += sum(small)
            kept = [s for s in sizes if s >= level]
            full, rest = divmod(sum(small), level)
            sizes = kept + [level] * full + ([rest] if rest else [])
        assert len(sizes) < 100
    assert written < 3 * 1000 * size


@pytest.mark.parametrize("moved", [True, False])
def test_a_lane_runs_again_only_if_rows_were_moved(
    monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """A commit came between: a compaction is nothing to the lane, any other is a conflict."""
    came = history.parse(4, f'{{"add": {{"path": "a", "dataChange": {str(not moved).lower()}}}}}')
    versions = iter([3, 4, 4])
    monkeypatch.setattr(stores, "_seen", lambda *_: None)
    monkeypatch.setattr(stores, "version", lambda *_: next(versions))
    monkeypatch.setattr(history, "between", lambda *_: [came])
    tries: list[int] = []

    def run() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise CommitFailedError("another commit came first")
        return 5

    nothing: Any = None
    source, stamp = Source("`t`", "id", "/nowhere"), Stamp("v", 1, {})
    if moved:
        assert stores._tried(nothing, source, stamp, run) == 5 and len(tries) == 2
    else:
        with pytest.raises(ConflictError):
            stores._tried(nothing, source, stamp, run)
        assert len(tries) == 1

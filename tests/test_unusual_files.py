"""Files and tables that are not as usual: without Spark they give the same rows, or are Spark's."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StringType, StructField

from viewkeeper.lake import arrow, history, lookup, patching, written
from viewkeeper.lake.sources import Source

NAN = float("nan")
HIDING = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def files(path: str) -> lookup.Files:
    table = DeltaTable(path)
    return lookup._files(path, str(table.metadata().id), table.version())


def rows(path: str, names: list[str]) -> list[tuple[Any, ...]]:
    found = lookup.read(files(path), names, {}, 10**6)
    assert found is not None
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_a_table_below_a_link_hides_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """deltalake names files by their real path; a row that was hidden stays hidden."""
    monkeypatch.setattr(patching, "_SMALL", 0)
    monkeypatch.setattr(patching, "_MUCH", 2.0)
    real, link = tmp_path / "real", tmp_path / "link"
    write_deltalake(str(real), pa.table({"k": list(range(100))}), configuration=HIDING)
    link.symlink_to(real)
    for version, key in enumerate((5, 6)):
        one = pa.table({"k": pa.array([key], pa.int64())})
        txn = {"appId": "t", "version": version, "lastUpdated": 0}
        come = one.slice(0, 0)
        patching.patched(files(str(link)), version, one, ["k"], come, txn, "", feed=True)
    assert rows(str(link), ["k"]) == [(k,) for k in range(100) if k not in (5, 6)]


def test_nan_is_found_in_whole_tables(tmp_path: Path) -> None:
    """The statistics of some writers leave out NaN, the greatest of all numbers."""
    path = str(tmp_path)
    write_deltalake(path, pa.table({"f": [1.0, 2.0, NAN, None], "k": [1, 2, 3, 4]}))
    scan = lookup.scan_text(files(path), ["f", "k"], ["f", "k"])
    duck = lookup.connection()
    assert duck.sql(f"SELECT k FROM ({scan}) WHERE f > 5").fetchall() == [(3,)]
    assert duck.sql(f"SELECT k FROM ({scan}) WHERE f IS NULL").fetchall() == [(4,)]
    assert str(duck.sql(f"SELECT max(f) FROM ({scan})").fetchall()[0][0]) == "nan"


def test_rows_with_nan_are_patched(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, pa.table({"f": [1.0, NAN], "k": [1, 2]}), configuration=HIDING)
    one = pa.table({"f": [NAN], "k": [2]})
    txn = {"appId": "t", "version": 1, "lastUpdated": 0}
    patching.patched(files(path), 0, one, ["f", "k"], one.slice(0, 0), txn, "", feed=True)
    assert rows(path, ["k"]) == [(1,)]


def test_our_files_have_no_range_of_numbers_that_may_be_nan(tmp_path: Path) -> None:
    table = pa.table({"f": [1.0, NAN], "k": [1, 2], "a": [[NAN], [1.0]]})
    path = written.data_file(str(tmp_path), table)["add"]["path"]
    group = pq.read_metadata(tmp_path / path).row_group(0)
    ranged = {group.column(i).path_in_schema for i in range(3) if group.column(i).is_stats_set}
    assert ranged == {"k"}
    assert pq.read_table(tmp_path / path).num_rows == 2


def test_a_patch_without_vectors(tmp_path: Path) -> None:
    """A table that may have none is written again, in one commit with its change."""
    path = str(tmp_path)
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, pa.table({"k": [1, 2], "f": [0.5, NAN]}), configuration=feed)
    sought, come = pa.table({"k": [2], "f": [None]}), pa.table({"k": [2], "f": [7.5]})
    sought = sought.cast(come.schema)
    txn = {"appId": "t", "version": 1, "lastUpdated": 0}
    patching.patched(files(path), 0, sought, ["k"], come, txn, "", feed=True, hide=False)
    table = DeltaTable(path)
    assert rows(path, ["k", "f"]) == [(1, 0.5), (2, 7.5)]
    assert not files(path).kept and table.transaction_version("t") == 1
    changes = pa.table(table.load_cdf(starting_version=1).read_all())
    assert sorted(changes.column("_change_type").to_pylist()) == ["delete", "insert"]
    patching.appended(path, 1, come, txn | {"version": 2}, "said")
    assert rows(path, ["k", "f"]) == [(1, 0.5), (2, 7.5), (2, 7.5)]


def test_constraints_of_old_protocols_are_heeded(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, pa.table({"k": [1]}))
    assert patching.can_patch(DeltaTable(path))
    DeltaTable(path).alter.add_constraint({"small": "k < 10"})
    assert not patching.can_patch(DeltaTable(path))


def test_times_with_and_without_a_zone(tmp_path: Path) -> None:
    """Files of Spark's have times without a zone, in UTC; whatever the clock of the machine."""
    path, noon = str(tmp_path), datetime(2024, 7, 1, 12, tzinfo=timezone.utc)
    write_deltalake(path, pa.table({"t": pa.array([noon], pa.timestamp("us", "UTC"))}))
    old = pa.array([noon.replace(tzinfo=None)], pa.timestamp("us"))
    pq.write_table(
        pa.table({"t": old}), f"{path}/old.parquet", use_deprecated_int96_timestamps=True
    )
    (log,) = sorted(os.listdir(f"{path}/_delta_log"))
    lines = Path(path, "_delta_log", log).read_text().splitlines()
    add = next(json.loads(line)["add"] for line in lines if '"add"' in line)
    add |= {"path": "old.parquet", "size": os.path.getsize(f"{path}/old.parquet")}
    Path(path, "_delta_log", f"{1:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    assert lookup.connection().sql("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
    assert rows(path, ["t"]) == [(noon,), (noon,)]


def test_lines_end_where_json_says() -> None:
    text = json.dumps({"add": {"path": "a\u2028b\u0085"}}, ensure_ascii=False) + "\n"
    assert history.parse(3, text).adds[0]["path"] == "a\u2028b\u0085"


def test_dates_that_python_has_not() -> None:
    days = pa.array([0, 2_932_897 + 5], pa.int32()).cast(pa.date32())
    assert "minValues" in written.statistics(pa.table({"d": days}))
    actions = pa.table({"min.d": days, "max.d": days})
    assert lookup._between(actions, "min.d", "max.d", days).to_pylist() == [True, True]


def test_names_in_other_letters_are_left_to_spark(tmp_path: Path) -> None:
    path = str(tmp_path / "file.parquet")
    pq.write_table(pa.table({"ID": [1]}), path)
    with pytest.raises(arrow.UnusualError):
        patching.remaining(path, pa.array([], pa.int64()).to_numpy(), pa.schema([("id", "int64")]))


def test_a_version_that_was_taken_back(tmp_path: Path) -> None:
    """Another commit of the same number is another version."""
    path = str(tmp_path)
    for k in (1, 2):
        write_deltalake(path, pa.table({"k": [k]}), mode="append")
    assert rows(path, ["k"]) == [(1,), (2,)]
    Path(path, "_delta_log", f"{1:020d}.json").unlink()
    write_deltalake(path, pa.table({"k": [3]}), mode="append")
    assert rows(path, ["k"]) == [(1,), (3,)]


def test_a_small_file_of_many_rows_is_not_read_to_the_driver(tmp_path: Path) -> None:
    """What counts is the size in memory, of numbers that pack well and of long texts alike."""
    fields = [StructField("a", LongType()), StructField("t", StringType())]
    many = pa.table({"a": pa.repeat(pa.scalar(1, pa.int64()), 300_000), "t": ["x"] * 300_000})
    wide = pa.table({"a": [1] * 500, "t": ["x" * 10_000] * 500})
    for name, held in (("many", many), ("wide", wide)):
        path = str(tmp_path / name)
        pq.write_table(held, path)
        assert os.path.getsize(path) < 1_000_000 < 3_500_000 < held.nbytes

        def read(most: int, path: str = path) -> pa.Table:
            return arrow.read_file(path, fields, {}, sign=1, weight=None, most_bytes=most)

        assert read(64 * 2**20).num_rows == held.num_rows
        for most in (0, 60_000, 3_000_000):
            with pytest.raises(arrow.LargeError):
                read(most)


def test_folders_whose_names_are_read_otherwise_are_left_to_spark(tmp_path: Path) -> None:
    """deltalake decodes %20, and breaks at some letters; a link may lead to such a folder."""
    for i, name in enumerate(("per%20cent", "[a]", "a|b", "a\\b", "st*r", "q?", "c^", "new\nline")):
        link = tmp_path / f"link{i}"
        link.symlink_to(tmp_path / name)
        for place in (tmp_path / name, link):
            assert Source("t", "1", f"file:{place}/t").local_path is None, name
    for name in ("sp ace", "100%", "h#x", "ü'q", "a&b;c=+", "{a}", "a:b"):
        path = str(tmp_path / name / "t")
        write_deltalake(path, pa.table({"k": [1, 2]}))
        assert Source("t", "1", f"file:{path}").local_path == path
        assert rows(path, ["k"]) == [(1,), (2,)] and len(os.listdir(path)) == 2, name

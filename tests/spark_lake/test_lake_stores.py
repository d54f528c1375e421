"""Stores: creation, the lanes of a change, exactly once, conflicts, commit metadata."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from bags import bag, change, difference
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import jvm, lanes, patching, sources, stamps, stores, vectors
from viewkeeper.lake.errors import ConflictError, LostHistoryError
from viewkeeper.lake.feeds import net_change
from viewkeeper.lake.sources import Source
from viewkeeper.lake.stores import Patch

pytestmark = pytest.mark.spark

LANES: list[stores.Lane] = ["native", "merge", "overwrite"]
ROWS = "SELECT * FROM VALUES (1L, 'a', 10L), (1L, NULL, 11L), (NULL, 'a', 12L), (2L, 'b', 13L) "
ROWS += "AS t(g, `K 2`, n)"


@pytest.fixture
def path(tmp_path: Any) -> Iterator[str]:
    yield str(tmp_path / "a store")


def store(spark: SparkSession, path: str, query: str = ROWS, whole: bool = False) -> Source:
    """A small store; a ``whole`` one has no deletion vectors, as those of programs."""
    frame = spark.sql(query.replace("`K 2`", "k"))
    properties = stores.WHOLE_FILES if whole else None
    return stores.create(spark, path, frame, metadata={"made": "now"}, properties=properties)


@pytest.fixture
def hiding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native lane hides rows also of files as small as those of tests."""
    monkeypatch.setattr(patching, "_SMALL", 0)
    monkeypatch.setattr(patching, "_MUCH", 2.0)


def patch(rows: list[tuple[Any, ...]], only_inserts: bool = False) -> Patch:
    """A patch of a small store."""
    names = ["g", "k", "n", "__op"]
    schema = pa.schema(
        [("g", pa.int64()), ("k", pa.string()), ("n", pa.int64()), ("__op", pa.string())]
    )
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    return Patch(table, ["g", "k"], only_inserts)


MIXED = patch(
    [
        (1, None, 20, "U"),
        (None, "a", None, "U"),
        (2, "b", None, "D"),
        (7, "new", 1, "U"),
        (8, "not there", 1, "D"),
    ]
)


def test_create_is_one_commit(lake_spark: SparkSession, table: str) -> None:
    frame = lake_spark.sql(ROWS.replace("`K 2`", "k"))
    made = stores.create(lake_spark, table, frame, metadata={"a": [1, "é"]}, properties={"x": "y"})
    assert made == sources.find(lake_spark, table)
    assert sources.version(lake_spark, made) == 0
    assert stores.last_metadata(lake_spark, made) == (0, {"a": [1, "é"]})
    assert bag(lake_spark.table(table)) == bag(frame)
    properties = {r[0]: r[1] for r in lake_spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["x"] == "y" and properties["delta.enableChangeDataFeed"] == "true"
    with pytest.raises(ConflictError):
        stores.create(lake_spark, table, frame, metadata={})
    again = stores.create(lake_spark, table, frame.limit(1), metadata={"b": 2}, replace=True)
    assert again.table_id != made.table_id
    assert stores.last_metadata(lake_spark, again) == (1, {"b": 2})
    key = "spark.databricks.delta.commitInfo.userMetadata"
    assert lake_spark.conf.get(key, None) is None, "the session keeps its settings"
    stores.drop(lake_spark, again)
    with pytest.raises(UnknownTableError):
        sources.find(lake_spark, table)


def test_odd_column_names_go_by_spark(lake_spark: SparkSession, path: str) -> None:
    source = stores.create(lake_spark, path, lake_spark.sql(ROWS), metadata={})
    rows = pa.table({"g": [1], "K 2": ["a"], "n": [99], "__op": ["U"]})
    stores.apply(
        lake_spark, source, Patch(rows, ["g", "K 2"]), lane="native", app_id="v", txn=1, metadata={}
    )
    assert bag(lake_spark.table(source.name).where("g = 1 AND `K 2` = 'a'"), ["n"]) == {("99",): 1}


def test_lanes_agree(lake_spark: SparkSession, path: str, request: pytest.FixtureRequest) -> None:
    """The same rows, the same net change, the same metadata, one commit, applied once."""
    seen = []
    for lane, way in [*((lane, "") for lane in LANES), ("native", "whole"), ("native", "hiding")]:
        source = store(lake_spark, f"{path}{lane}{way}", whole=way == "whole")
        if way == "hiding":
            request.getfixturevalue("hiding")
        before = bag(lake_spark.table(source.name))
        stamp: dict[str, Any] = {"app_id": "v", "txn": 5, "metadata": {"lane": "any"}}
        assert stores.apply(lake_spark, source, MIXED, lane=lane, **stamp) == 1
        assert stores.apply(lake_spark, source, MIXED, lane=lane, **stamp) == 1, "once"
        older: dict[str, Any] = {**stamp, "txn": 4}
        assert stores.apply(lake_spark, source, MIXED, lane="touch", **older) == 1
        assert stores.last_metadata(lake_spark, source) == (1, {"lane": "any"})
        after = bag(lake_spark.table(source.name))
        told = change(net_change(lake_spark, source, 0, 1, ["g", "k", "n"]))
        assert told == difference(before, after)
        seen.append((after, told, sources.version(lake_spark, source)))
    expected = {
        ("1", "'a'", "10"): 1,
        ("1", "None", "20"): 1,
        ("None", "'a'", "None"): 1,
        ("7", "'new'", "1"): 1,
    }
    assert all(one == (expected, seen[0][1], 1) for one in seen)


@pytest.mark.parametrize("remote", [False, True])
def test_append_touch_rewrite(
    lake_spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, remote: bool
) -> None:
    """By deltalake, and by Spark as for a store that is not on this machine."""
    if remote:
        monkeypatch.setattr(Source, "local_path", property(lambda self: None))
    source = store(lake_spark, path)
    new = patch([(5, "e", 1, "U"), (6, None, None, "U"), (9, "x", 0, "D")], only_inserts=True)
    stamp: dict[str, Any] = {"app_id": "v"}
    apply = stores.apply
    assert apply(lake_spark, source, new, lane="append", txn=1, metadata={"n": 1}, **stamp) == 1
    assert lake_spark.table(source.name).count() == 6
    assert apply(lake_spark, source, new, lane="append", txn=1, metadata={"n": 1}, **stamp) == 1
    none = patch([], only_inserts=True)
    assert apply(lake_spark, source, none, lane="append", txn=2, metadata={"n": 2}, **stamp) == 2
    assert apply(lake_spark, source, none, lane="touch", txn=3, metadata={"n": 3}, **stamp) == 3
    nothing = patch([(77, "q", 0, "D")])
    for txn, lane in enumerate(LANES, start=4):
        done = apply(lake_spark, source, nothing, lane=lane, txn=txn, metadata={"n": txn}, **stamp)
        assert done == txn
        assert stores.last_metadata(lake_spark, source) == (txn, {"n": txn})
    told = net_change(lake_spark, source, 0, 6, ["g", "k", "n"])
    assert change(told) == {("5", "'e'", "1"): 1, ("6", "None", "None"): 1}
    frame = lake_spark.sql("SELECT 1L AS n, 'z' AS k, CAST(NULL AS BIGINT) AS g")
    for _ in range(2):
        done = stores.rewrite(lake_spark, source, frame, app_id="v", txn=7, metadata={"n": 7})
        assert done == 7
    assert bag(lake_spark.table(source.name)) == {("None", "'z'", "1"): 1}
    lake_spark.sql(f"OPTIMIZE {source.name}")
    assert stores.last_metadata(lake_spark, source) == (7, {"n": 7})
    stores.drop(lake_spark, source)
    with pytest.raises(UnknownTableError):
        sources.find(lake_spark, source.name)


def test_one_row_store_and_lazy_rows(lake_spark: SparkSession, path: str) -> None:
    """A global aggregate has no key; large patches are frames."""
    source = store(lake_spark, path, "SELECT 1L AS g, 'a' AS k, 3L AS n")
    for txn, lane in enumerate(LANES, start=1):
        one = Patch(pa.table({"g": [txn], "k": ["b"], "n": [None], "__op": ["U"]}), [])
        stores.apply(lake_spark, source, one, lane=lane, app_id="v", txn=txn, metadata={})
        assert bag(lake_spark.table(source.name)) == {(str(txn), "'b'", "None"): 1}
    frame = lake_spark.sql("SELECT 7L AS g, 'c' AS k, 0L AS n, 'U' AS __op")
    for txn, lane in enumerate(["native", "overwrite"], start=4):
        lazy = Patch(frame.selectExpr("g", "k", f"{txn}L AS n", "__op"), ["g"])
        stores.apply(lake_spark, source, lazy, lane=lane, app_id="v", txn=txn, metadata={})
        assert bag(lake_spark.table(source.name).where("g = 7"), ["n"]) == {(str(txn),): 1}


@pytest.mark.usefixtures("hiding")
def test_all_types_in_all_lanes(lake_spark: SparkSession, path: str) -> None:
    row = (
        "SELECT {k}L AS g, DECIMAL('1.20') AS d, DATE'2020-02-29' AS dt, 1.5D AS x, true AS b, "
        "TIMESTAMP'1900-01-01 12:34:56.123456' AS ts, TIMESTAMP_NTZ'2020-01-01 00:00:01' AS tn, "
        "X'01' AS bin, array(1, NULL) AS a, struct(1 AS u, 'x' AS v) AS st, map('a', {k}) AS m"
    )
    keys = ["g", "d", "dt", "b", "ts", "tn", "bin"]
    results = []
    for lane in LANES:
        source = store(lake_spark, path + lane, row.format(k=1))
        rows = lake_spark.sql(f"{row.format(k=1)} UNION ALL {row.format(k=2)}")
        table = rows.selectExpr("* EXCEPT (x)", "9D AS x", "'U' AS __op").toArrow()
        patch = Patch(table, keys)
        stores.apply(lake_spark, source, patch, lane=lane, app_id="v", txn=1, metadata={})
        results.append(bag(lake_spark.table(source.name)))
        operation = lake_spark.sql(f"DESCRIBE HISTORY {source.name}").first()
        assert (operation["engineInfo"] == "viewkeeper") == (lane == "native")
    assert results[0] == results[1] == results[2] and sum(results[0].values()) == 2
    for txn, value in ((2, 9.0), (3, -0.0)):
        x = pa.array([value])
        place = table.schema.get_field_index("x")
        floats = Patch(table.slice(0, 1).set_column(place, "x", x), ["x", "g"])
        stores.apply(lake_spark, source, floats, lane="native", app_id="v", txn=txn, metadata={})
        engine = lake_spark.sql(f"DESCRIBE HISTORY {source.name}").first()["engineInfo"]
        assert (engine == "viewkeeper") == bool(value), "zero is left to Spark"


def test_conflict_leaves_nothing(
    lake_spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another refresher commits after we looked: nothing of ours is written."""
    source = store(lake_spark, path)
    old_table = DeltaTable(source.local_path)
    old_snapshot = jvm.newest(lake_spark, source.location)
    first = patch([(5, "e", 1, "U")], only_inserts=True)
    stores.apply(lake_spark, source, first, lane="append", app_id="v", txn=1, metadata={"by": 1})
    held = bag(lake_spark.table(source.name))
    with pytest.raises(ConflictError, match="no longer at version 0"):
        stores.apply(
            lake_spark, source, first, lane="append", app_id="v", txn=2, metadata={}, expected=0
        )
    for module in (lanes, stamps):
        monkeypatch.setattr(module, "open_native", lambda source, *_: old_table)
    monkeypatch.setattr(jvm, "newest", lambda spark, location: old_snapshot)
    lanes_now: list[stores.Lane] = ["append", "native", "overwrite", "touch"]
    for lane in lanes_now:
        with pytest.raises(ConflictError, match="CONFLICT"):
            stores.apply(lake_spark, source, first, lane=lane, app_id="v", txn=1, metadata={})
    monkeypatch.undo()
    assert bag(lake_spark.table(source.name)) == held
    assert stores.last_metadata(lake_spark, source) == (1, {"by": 1})
    assert sources.version(lake_spark, source) == 1


def test_seen_late(lake_spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another refresher commits after apply asked, before the lane starts: still once."""
    source = store(lake_spark, path)
    new = patch([(5, "e", 1, "U")], only_inserts=True)
    stores.apply(lake_spark, source, new, lane="append", app_id="v", txn=1, metadata={})
    monkeypatch.setattr(stores, "_seen", lambda *_: None)
    lanes_now: list[stores.Lane] = ["append", *LANES, "touch"]
    for lane in lanes_now:
        done = stores.apply(lake_spark, source, new, lane=lane, app_id="v", txn=1, metadata={})
        assert done == 1
    frame = lake_spark.table(source.name).limit(0)
    assert stores.rewrite(lake_spark, source, frame, app_id="v", txn=1, metadata={}) == 1
    assert sources.version(lake_spark, source) == 1


@pytest.mark.parametrize("lane", ["native", "merge"])
def test_two_refreshers_apply_once(lake_spark: SparkSession, path: str, lane: stores.Lane) -> None:
    source = store(lake_spark, path)
    outcomes: list[Any] = []

    def run() -> None:
        try:
            done = stores.apply(
                lake_spark, source, MIXED, lane=lane, app_id="v", txn=1, metadata={}
            )
            outcomes.append(done)
        except ConflictError:
            outcomes.append("conflict")

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 in outcomes and set(outcomes) <= {1, "conflict"}
    assert sources.version(lake_spark, source) == 1


# 1004: Delta's MERGE raises for a row that none of its clauses is about
@pytest.mark.parametrize("seed", [1004, None])
def test_random_patches_agree(
    lake_spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"seed {seed}")
    rng = random.Random(seed)
    source = store(lake_spark, path)
    model = {(g, k): n for g, k, n in lake_spark.table(source.name).collect()}
    states = [bag(lake_spark.table(source.name))]
    for txn in range(1, 9):
        keys = [(rng.choice([None, 1, 2, 3]), rng.choice([None, "a", "b"])) for _ in range(5)]
        rows = [(*key, rng.randrange(3), rng.choice("UUD")) for key in dict.fromkeys(keys)]
        for g, k, n, op in rows:
            model.pop((g, k), None)
            if op == "U":
                model[g, k] = n
        lane = rng.choice(["native", "native", "native", "native", "merge", "overwrite"])
        monkeypatch.setattr(patching, "_SMALL", rng.choice([0, 10**6]))
        monkeypatch.setattr(patching, "_MUCH", rng.choice([0.3, 2.0]))
        monkeypatch.setattr(patching, "_CHECKPOINT", 3)
        monkeypatch.setattr(vectors, "_MOST_INLINE", rng.choice([0, 4096]))
        stores.apply(
            lake_spark, source, patch(rows), lane=lane, app_id="v", txn=txn, metadata={"n": txn}
        )
        states.append(bag(lake_spark.table(source.name)))
        wanted = {(repr(g), repr(k), repr(n)): 1 for (g, k), n in model.items()}
        assert states[-1] == wanted, (seed, txn, lane)
        assert stores.last_metadata(lake_spark, source) == (txn, {"n": txn})
    for since in range(0, 8, 3):
        told = change(net_change(lake_spark, source, since, 8, ["g", "k", "n"]))
        assert told == difference(states[since], states[8]), (seed, since)


def test_no_metadata_of_ours(lake_spark: SparkSession, table: str) -> None:
    lake_spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta")
    with pytest.raises(LostHistoryError, match="no commit of its log"):
        stores.last_metadata(lake_spark, sources.find(lake_spark, table))

"""The net change of a table: every kind of commit, against the difference of the two versions."""

from __future__ import annotations

import glob
import itertools
import os
import random
from collections import Counter
from typing import Any

import pytest
from bags import bag, change, difference, project
from pyspark.sql import SparkSession

from viewkeeper.errors import UnknownColumnError
from viewkeeper.lake import jvm, sources
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.feeds import net_change

pytestmark = pytest.mark.spark

NAMES = ["id", "k", "x", "p"]
FEED = "'delta.enableChangeDataFeed'='{}'"
VECTORS = "'delta.enableDeletionVectors'='{}'"
ROWS = "SELECT id, IF(id % 4 = 0, NULL, 'k' || id % 3), CAST(id % 5 AS DOUBLE) - 2, "
ROWS += "IF(id % 3 = 0, NULL, 'p ' || id % 3) FROM range({}, {})"

# one commit of each kind
COMMITS = [
    "INSERT INTO {t} " + ROWS.format(0, 20),
    "INSERT INTO {t} " + ROWS.format(0, 6),
    "DELETE FROM {t} WHERE id IN (3, 5, 12)",
    "UPDATE {t} SET k = 'u', p = 'p/é' WHERE id < 2",
    "UPDATE {t} SET k = IF(id % 4 = 0, NULL, 'k' || id % 3) WHERE k = 'u'",
    "OPTIMIZE {t}",
    "MERGE INTO {t} t USING (SELECT id + 8 AS id FROM range(15)) s ON t.id = s.id "
    "WHEN MATCHED AND t.id < 11 THEN DELETE WHEN MATCHED THEN UPDATE SET x = DOUBLE('NaN') "
    "WHEN NOT MATCHED THEN INSERT (id, k, x, p) VALUES (s.id, NULL, -0.0D, 'p 1')",
    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 1",
    "DELETE FROM {t} WHERE p = 'p 1'",
    "TRUNCATE TABLE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 4",
    "UPDATE {t} SET x = x WHERE id = 7",
]
MODES = {
    "feed, partitions": (FEED.format("true"), "PARTITIONED BY (p)"),
    "no feed": (FEED.format("false"), ""),
    "feed, vectors": (f"{FEED.format('true')}, {VECTORS.format('true')}", ""),
    "no feed, partitions, vectors": (VECTORS.format("true"), "PARTITIONED BY (p)"),
}
FEWER = [0, 2, 3, 5, 6, 10]  # for tables with deletion vectors, which Spark reads


def make(spark: SparkSession, table: str, properties: str, partition: str = "") -> None:
    """An empty table of the tests' columns."""
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, k STRING, x DOUBLE, p STRING) USING delta {partition} "
        f"TBLPROPERTIES ({properties})"
    )


def held(spark: SparkSession, table: str) -> Counter[Any]:
    """What the table holds now."""
    return bag(spark.table(table).select(*NAMES))


DAILY = ("feed, partitions", "no feed, partitions, vectors")


@pytest.mark.parametrize(
    "mode", [pytest.param(m, marks=[] if m in DAILY else pytest.mark.slow) for m in MODES]
)
def test_every_kind_of_commit_oracle(lake_spark: SparkSession, table: str, mode: str) -> None:
    make(lake_spark, table, *MODES[mode])
    vectors = "vectors" in mode
    states = [held(lake_spark, table)]
    for commit in [COMMITS[i] for i in FEWER] if vectors else COMMITS:
        lake_spark.sql(commit.format(t=table))
        states.append(held(lake_spark, table))
    source = sources.find(lake_spark, table)
    last = len(states) - 1
    assert sources.version(lake_spark, source) == last
    pairs = [(v, v + 1) for v in range(last)]
    pairs += [(0, last), (1, last), (2, 11), (4, 11), (1, 8), (3, 8), (6, 6), (7, 11)]
    for since, until in [(1, 2), (2, 3), (4, 5), (1, last)] if vectors else pairs:
        feed = net_change(lake_spark, source, since, until, NAMES)
        assert change(feed) == difference(states[since], states[until]), (since, until)
        assert feed.how in ("none", "feed" if mode.startswith("feed") else "files")
        assert feed.local is not None
    for columns in (["p", "K"], []):
        plain = [c.lower() for c in columns]
        ends = (project(states[v], NAMES, plain) for v in (1, last))
        assert change(net_change(lake_spark, source, 1, last, columns)) == difference(*ends)
    large = net_change(lake_spark, source, 0, last, NAMES, limit_bytes=0)  # as if it were
    assert change(large) == difference(states[0], states[last])
    if vectors:
        assert net_change(lake_spark, source, 3, 4, NAMES).how == "none", "OPTIMIZE"
    else:
        assert net_change(lake_spark, source, 5, 6, NAMES).how == "none", "OPTIMIZE"
        assert net_change(lake_spark, source, 3, 5, NAMES[:3]).empty, "an update forth and back"


@pytest.mark.parametrize("at_first", ["true", "false"])
def test_tracked_rows_oracle(lake_spark: SparkSession, table: str, at_first: str) -> None:
    """Tables that number their rows, from the start or from later on."""
    tracked = f"'delta.enableRowTracking'='{at_first}'"
    make(lake_spark, table, f"{VECTORS.format('true')}, {tracked}")
    states = [held(lake_spark, table)]
    for step in (
        COMMITS[0],
        COMMITS[2],
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking'='true')",
        COMMITS[3],
        COMMITS[6],
    ):
        before = sources.version(lake_spark, sources.find(lake_spark, table))
        lake_spark.sql(step.format(t=table))
        after = sources.version(lake_spark, sources.find(lake_spark, table))
        states += [held(lake_spark, table)] * (after - before)
    source = sources.find(lake_spark, table)
    last = len(states) - 1
    for since, until in [(0, last), (1, 2), (1, last), (2, last - 1), (last - 1, last)]:
        feed = net_change(lake_spark, source, since, until, NAMES)
        assert change(feed) == difference(states[since], states[until]), (since, until)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_feed_switched_on_and_off(lake_spark: SparkSession, table: str, vectors: str) -> None:
    make(lake_spark, table, VECTORS.format(vectors))
    switch = "ALTER TABLE {t} SET TBLPROPERTIES (" + FEED + ")"
    steps = [
        COMMITS[0],
        COMMITS[3],
        switch.format("true", t="{t}"),
        COMMITS[6],
        "ALTER TABLE {t} ADD COLUMN extra INT",
        COMMITS[2],
        switch.format("false", t="{t}"),
        "UPDATE {t} SET x = 9, extra = 4 WHERE id = 7",
    ]
    states = [held(lake_spark, table)]
    for step in steps:
        lake_spark.sql(step.format(t=table))
        states.append(held(lake_spark, table))
    source = sources.find(lake_spark, table)
    hows = {}
    for since, until in itertools.combinations(range(len(states)), 2):
        if vectors == "true" and (since, until) not in ((0, 8), (2, 4), (3, 6)):
            continue
        feed = net_change(lake_spark, source, since, until, NAMES)
        assert change(feed) == difference(states[since], states[until]), (since, until)
        hows[since, until] = feed.how
    if vectors == "false":
        assert hows[3, 4] == hows[3, 6] == "feed"
        assert hows[1, 4] == hows[3, 8] == "files"
    large = net_change(lake_spark, source, 3, 8, NAMES, limit_bytes=0)
    assert change(large) == difference(states[3], states[8])
    with pytest.raises(LostHistoryError, match="extra is new"):
        net_change(lake_spark, source, 1, 8, ["extra"])
    assert net_change(lake_spark, source, 5, 8, ["extra"]).inserted > 0


@pytest.mark.parametrize("feed", ["true", "false"])
def test_column_mapping_drop_and_rename(lake_spark: SparkSession, table: str, feed: str) -> None:
    properties = f"{FEED.format(feed)}, 'delta.columnMapping.mode'='name'"
    make(lake_spark, table, properties, "PARTITIONED BY (p)")
    lake_spark.sql(COMMITS[0].format(t=table))
    lake_spark.sql(COMMITS[2].format(t=table))
    source = sources.find(lake_spark, table)
    states = [bag(sources.at(lake_spark, source, v, ["id", "p"])) for v in (1, 2)]
    assert change(net_change(lake_spark, source, 1, 2, ["id", "p"])) == difference(*states)
    lake_spark.sql(f"ALTER TABLE {table} RENAME COLUMN k TO kk")
    lake_spark.sql(f"ALTER TABLE {table} DROP COLUMN x")
    lake_spark.sql(f"DELETE FROM {table} WHERE id = 1")
    states.append(bag(lake_spark.table(table).select("id", "p")))
    for limit in (0, 2**20):
        feed_now = net_change(lake_spark, source, 1, 5, ["id", "p"], limit_bytes=limit)
        assert change(feed_now) == difference(states[0], states[2])
    with pytest.raises(LostHistoryError, match="k was dropped or renamed"):
        net_change(lake_spark, source, 1, 5, ["k"])
    with pytest.raises(UnknownColumnError, match="Known: id, kk, p"):
        net_change(lake_spark, source, 1, 5, ["nothing"])
    # the files are the same, their values under the old names are not
    lake_spark.sql(f"ALTER TABLE {table} ADD COLUMN k STRING")
    with pytest.raises(LostHistoryError, match="k was dropped or renamed, and is another"):
        net_change(lake_spark, source, 1, 6, ["k"])


def test_all_types_oracle(lake_spark: SparkSession, table: str) -> None:
    """NULL, NaN, -0.0, decimals, times, binary by Arrow; nested types by Spark."""
    flat = "b BOOLEAN, y TINYINT, s SMALLINT, i INT, f FLOAT, d DECIMAL(38,10), dt DATE, "
    flat += "ts TIMESTAMP, tn TIMESTAMP_NTZ, bin BINARY, `odd-name` STRING"
    nested = "a ARRAY<INT>, st STRUCT<u: INT, v: STRING>, m MAP<STRING, INT>"
    lake_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, {flat}, {nested}) USING delta "
        f"TBLPROPERTIES ({FEED.format('true')})"
    )
    values = (
        "SELECT {id}L, true, 1Y, 2S, 3, FLOAT('NaN'), 1234567890123456789012345678.0123456789BD, "
        "DATE'0099-03-01', TIMESTAMP'1600-01-01 12:34:56.123456', "
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', X'00FF', 'ä', "
        "array(1, NULL), struct(1, 'x'), map('a', 1)"
    )
    empty = "SELECT {id}L, " + ", ".join(["NULL"] * 14)
    lake_spark.sql(
        f"INSERT INTO {table} {values.format(id=1)} UNION ALL {values.format(id=1)} "
        f"UNION ALL {empty.format(id=2)} UNION ALL {empty.format(id=2)}"
    )
    lake_spark.sql(f"UPDATE {table} SET f = -0.0, id = 3 WHERE id = 1")
    lake_spark.sql(f"UPDATE {table} SET f = 0.0 WHERE id = 3")
    source = sources.find(lake_spark, table)
    names = list(sources.schema(lake_spark, source))
    states = [bag(sources.at(lake_spark, source, v)) for v in range(4)]
    for since, until in itertools.combinations(range(4), 2):
        for columns in (names[:12], names):
            feed = net_change(lake_spark, source, since, until, columns)
            ends = (project(states[v], names, columns) for v in (since, until))
            assert change(feed) == difference(*ends), (since, until, columns)
            assert feed.local.schema.field("ts").type.tz == "UTC"
    assert net_change(lake_spark, source, 2, 3, names[:12]).empty, "-0.0 equals 0.0"


def test_weight_counts_a_row_many_times(lake_spark: SparkSession, table: str) -> None:
    lake_spark.sql(
        f"CREATE TABLE {table} (a BIGINT, n BIGINT) USING delta "
        f"TBLPROPERTIES ({FEED.format('true')})"
    )
    lake_spark.sql(f"INSERT INTO {table} VALUES (1, 3), (2, 1), (NULL, 2)")
    lake_spark.sql(f"UPDATE {table} SET n = n - 1")
    source = sources.find(lake_spark, table)
    for limit in (0, 2**20):
        feed = net_change(lake_spark, source, 0, 1, ["a"], weight="n", limit_bytes=limit)
        assert change(feed) == {("1",): 3, ("2",): 1, ("None",): 2}
        feed = net_change(lake_spark, source, 1, 2, ["a"], weight="N", limit_bytes=limit)
        assert change(feed) == {("1",): -1, ("2",): -1, ("None",): -1}


def test_lost_history(lake_spark: SparkSession, table: str) -> None:
    make(lake_spark, table, FEED.format("false"))
    for step in (0, 3, 2):
        lake_spark.sql(COMMITS[step].format(t=table))
    source = sources.find(lake_spark, table)
    folder = source.local_path
    with pytest.raises(LostHistoryError, match="newest is 3") as caught:
        net_change(lake_spark, source, 7, 9, ["id"])
    assert caught.value.code == "LOST_HISTORY" and "version 9" in caught.value.reason

    spare = sorted(glob.glob(f"{folder}/part-*.parquet"), key=os.path.getmtime)
    os.rename(spare[0], spare[0] + ".gone")  # as vacuum does
    for limit in (0, 2**20):
        with pytest.raises(LostHistoryError, match="vacuumed"):
            net_change(lake_spark, source, 1, 3, ["id"], limit_bytes=limit)
    os.rename(spare[0] + ".gone", spare[0])

    jvm.delta_log(lake_spark, source.location).checkpoint()
    for version in range(3):
        os.remove(f"{folder}/_delta_log/{version:020d}.json")
    jvm.forget(lake_spark, source.location)
    assert not net_change(lake_spark, source, 2, 3, ["id"]).empty
    with pytest.raises(LostHistoryError, match="version 2 was cleaned"):
        net_change(lake_spark, source, 1, 3, ["id"])

    lake_spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 'x' AS id, 1 AS k")
    with pytest.raises(LostHistoryError, match="replaced"):
        net_change(lake_spark, source, 1, 3, ["id"])
    replaced = sources.find(lake_spark, table)
    with pytest.raises(LostHistoryError, match="replaced"):
        net_change(lake_spark, replaced, 3, 4, ["id"])
    lake_spark.range(3).selectExpr("id").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).saveAsTable(table)
    again = sources.find(lake_spark, table)
    newest = sources.version(lake_spark, again)
    with pytest.raises(LostHistoryError, match=r"changed from string to bigint|replaced"):
        net_change(lake_spark, again, newest - 1, newest, ["id"])


@pytest.mark.parametrize("seed", [1, 2])
def test_random_commits_oracle(lake_spark: SparkSession, table: str, seed: int) -> None:
    seed = seed * 1000 + random.SystemRandom().randrange(1000)
    print(f"seed {seed}")
    rng = random.Random(seed)
    vectors = rng.choice(["true", "false"])
    partition = rng.choice(["", "PARTITIONED BY (p)"])
    make(lake_spark, table, f"{FEED.format('false')}, {VECTORS.format(vectors)}", partition)
    states = [held(lake_spark, table)]
    feed_on = False
    for _ in range(8):
        low = rng.randrange(10)
        if rng.random() < 0.2:
            feed_on = not feed_on
            step = f"ALTER TABLE {table} SET TBLPROPERTIES ({FEED.format(str(feed_on).lower())})"
        else:
            step = rng.choice(
                [
                    f"INSERT INTO {table} {ROWS.format(low, low + rng.randrange(1, 8))}",
                    f"INSERT INTO {table} {ROWS.format(low, low + rng.randrange(1, 8))}",
                    f"DELETE FROM {table} WHERE id % {rng.randrange(2, 5)} = 1",
                    f"UPDATE {table} SET x = {rng.randrange(3)} WHERE id < {low}",
                    f"UPDATE {table} SET k = NULL, p = 'p {rng.randrange(3)}' WHERE id = {low}",
                    f"OPTIMIZE {table}",
                    f"RESTORE TABLE {table} TO VERSION AS OF {rng.randrange(len(states))}",
                ]
            )
        before = sources.version(lake_spark, sources.find(lake_spark, table))
        lake_spark.sql(step)
        feed_on = feed_on if "RESTORE" not in step else False
        after = sources.version(lake_spark, sources.find(lake_spark, table))
        states += [held(lake_spark, table)] * (after - before)
    source = sources.find(lake_spark, table)
    pairs = list(itertools.combinations(range(len(states)), 2))
    for since, until in rng.sample(pairs, min(len(pairs), 8)):
        limit = rng.choice([0, 2**20, 2**20])
        feed = net_change(lake_spark, source, since, until, NAMES, limit_bytes=limit)
        expected = difference(states[since], states[until])
        assert change(feed) == expected, (seed, since, until, limit)

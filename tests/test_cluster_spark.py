"""On real executors, ``local-cluster[2,1,1024]``: two processes beside the driver compute.

Run as a script, this file is the driver, in a process of its own with a session of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
JOINED = (
    "SELECT p.kind, sum(s.amount) AS total, count(*) AS n, max(s.amount) AS most"
    " FROM shop.sales s JOIN shop.parts p ON s.part = p.part GROUP BY p.kind"
)
PLAIN = "SELECT part, amount * 2 AS twice FROM shop.sales WHERE amount > 3"
CHANGES = (
    "INSERT INTO shop.sales SELECT id % 50, id % 7 FROM range(200)",
    "DELETE FROM shop.sales WHERE part = 3",
    "UPDATE shop.parts SET kind = 'k0' WHERE part = 5",
)


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    from viewkeeper.jars import delta_session

    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", catalog)
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "1")
    )
    spark = delta_session(builder)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def executors(spark: Any) -> int:
    """How many executors there are, beside the driver; waits for two."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + 120
    while len(tracker.getExecutorInfos()) < 3 and time.monotonic() < end:
        time.sleep(0.2)
    return len(tracker.getExecutorInfos()) - 1


def places(spark: Any) -> set[str]:
    """The folders of the processes that ran the tasks of a small job; each executor has its own."""

    def place(_: int) -> str:
        time.sleep(0.2)  # so that both get some
        return os.getcwd()

    return set(spark.sparkContext.parallelize(range(8), 8).map(place).collect())


def same(spark: Any, name: str, sql: str) -> None:
    found, wanted = (
        Counter(map(tuple, frame.collect())) for frame in (spark.table(name), spark.sql(sql))
    )
    assert found == wanted, f"{name}: {found - wanted} too many, {wanted - found} missing"


def main(folder: Path) -> None:
    import viewkeeper as vk

    spark = session(folder)
    assert executors(spark) == 2, executors(spark)
    found = places(spark)
    assert all("/app-" in p for p in found), found
    keeper = vk.Keeper(spark)
    spark.sql("CREATE SCHEMA shop")
    spark.sql(f"CREATE TABLE shop.parts (part BIGINT, kind STRING) {FEED}")
    spark.sql(f"CREATE TABLE shop.sales (part BIGINT, amount BIGINT) {FEED}")
    spark.sql("INSERT INTO shop.parts SELECT id, concat('k', id % 4) FROM range(40)")
    spark.sql("INSERT INTO shop.sales SELECT id % 60, id % 11 FROM range(2000)")
    views = {"shop.joined": JOINED, "shop.plain": PLAIN}
    for name, sql in views.items():
        keeper.create_view(name, sql)
        same(spark, name, sql)
    for driver in ("true", "false"):  # small queries on the driver; all queries on the executors
        spark.conf.set("spark.viewkeeper.driver", driver)
        for change in CHANGES:
            spark.sql(change)
        for report in keeper.refresh(strategy="incremental"):
            assert report.strategy == "incremental", report
            print(
                driver, report.view, report.strategy, report.inserted, report.deleted, report.lane
            )
        for name, sql in views.items():
            same(spark, name, sql)
    spark.sql(CHANGES[0])
    assert {r.strategy for r in keeper.refresh(strategy="full")} == {"full"}
    for name, sql in views.items():
        same(spark, name, sql)
    assert {r.strategy for r in keeper.refresh()} == {"none"}
    keeper.drop_view("shop.joined")
    print("all right")
    keeper.stop()


@pytest.mark.slow  # three JVMs
@pytest.mark.spark
def test_on_a_cluster(tmp_path: Path) -> None:
    import pyspark

    home = tmp_path / "spark"  # the executors' folders are below it, not below the installed one
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    settings = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **settings},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "all right", done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))

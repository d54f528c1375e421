"""Random Spark SQL views and random changes, each refresh checked against recomputation.

    python tools/fuzz_spark.py --cases 2000 --seed 1

A case is one view after one refresh. A world (tables, views, changes) comes from one seed; a failed
one runs again with ``--seed SEED --cases 1``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fuzz_worlds import Tally, run_world

# many small queries: compile quickly rather than well, and keep what was compiled
_SHORT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"


def session(home: str) -> Any:
    """A local session with Delta Lake."""
    from pyspark.sql import SparkSession

    from viewkeeper.jars import delta_session

    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("viewkeeper-fuzz")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", catalog)
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home} {_SHORT}")
        .config("spark.driver.memory", "2g")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
    )
    spark = delta_session(builder)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> int:
    """Runs worlds until the cases are done; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many views after a refresh")
    parser.add_argument("--seed", type=int, default=1, help="the first world's seed")
    parser.add_argument("--views", type=int, default=6, help="views per world")
    parser.add_argument("--rounds", type=int, default=6, help="refreshes per world")
    parser.add_argument("--depth", type=int, default=3, help="operators over one another")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"seed {args.seed}", flush=True)
    tally, seed, start = Tally(), args.seed, time.time()
    with tempfile.TemporaryDirectory() as home:
        spark = session(home)
        while tally.cases < args.cases:
            run_world(spark, seed, tally, args.views, args.rounds, args.depth)
            seed += 1
            rate = (time.time() - start) / max(tally.cases, 1)
            print(
                f"{tally.cases:6} cases, {tally}, {rate:.2f} s each, next seed {seed}", flush=True
            )
        spark.stop()
    for reason, n in tally.full.most_common():
        print(f"{n:6} refreshed in full: {reason}")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())

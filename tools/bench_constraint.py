"""What a constraint costs: a foreign key on many rows, checked by the change and in full.

    python tools/bench_constraint.py --rows 10000000 --changed 100

One run: the tables are made, the constraint is added, then some transactions of a few rows are
committed; each time the constraint is also evaluated in full, on the same data. Prints a table and
one line of JSON. `make bench-constraint`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import viewkeeper as vk

FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"


def make(keeper: Any, rows: int) -> None:
    """Items and the orders that they refer to, ten items to an order."""
    spark, orders = keeper.spark, rows // 10
    spark.sql(
        f"CREATE TABLE orders {FEED} AS SELECT id AS order_id, concat('c', id % 1000) AS who"
        f" FROM range(0, {orders}, 1, 4)"
    )
    spark.sql(
        f"CREATE TABLE items {FEED} AS SELECT id AS item_id, id % {orders} AS order_id,"
        f" CAST(id % 97 AS INT) AS n FROM range(0, {rows}, 1, 8)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder that is kept, and used again")
    options = parser.parse_args()
    lake = options.keep or Path(tempfile.mkdtemp())
    try:
        return run(lake, options)
    finally:
        if options.keep is None:
            shutil.rmtree(lake, ignore_errors=True)


def run(lake: Path, options: Any) -> int:
    keeper = vk.connect(lake, {"spark.sql.autoBroadcastJoinThreshold": str(200 * 2**20)})
    if not keeper.spark.catalog.tableExists("items"):
        make(keeper, options.rows)
    keeper.drop_constraint("fk", if_exists=True)
    start = time.perf_counter()
    keeper.add_constraint("fk", vk.foreign_key("items", "order_id", "orders"))
    adding = time.perf_counter() - start
    (constraint,) = keeper.constraints()
    checks, commits, fulls = [], [], []
    half = options.changed // 2
    for n in range(options.rounds + 1):
        base = 10 * options.rows + n * options.changed
        orders = [(base + i, "new") for i in range(options.changed - half)]
        items = [(base + i, base + i if i % 2 else i * 7919, 1) for i in range(half)]
        with keeper.transaction() as t:
            t.insert("orders", orders)
            t.insert("items", items)
            shown = t.preview()
        assert t.report is not None
        start = time.perf_counter()
        violations = keeper.spark.sql(constraint.sql).count()
        full = time.perf_counter() - start
        assert violations == 0 and shown.constraints["fk"].how == "checked"
        if n:  # the first round warms up
            checks.append(shown.constraints["fk"].seconds)
            commits.append(t.report.seconds)
            fulls.append(full)
    try:
        with keeper.transaction() as t:
            t.insert("items", [(-1, -1, 1)])
        raise AssertionError("an orphan was accepted")
    except vk.ConstraintViolation as error:
        assert [tuple(r) for r in error.rows] == [(-1, -1, 1)]
    found = {
        "rows": options.rows,
        "changed": options.changed,
        "rounds": options.rounds,
        "check_seconds": round(statistics.median(checks), 4),
        "commit_seconds": round(statistics.median(commits), 4),
        "full_seconds": round(statistics.median(fulls), 4),
        "adding_seconds": round(adding, 3),
        "full_by_check": round(statistics.median(fulls) / statistics.median(checks), 1),
        "full_by_commit": round(statistics.median(fulls) / statistics.median(commits), 1),
    }
    print("| what | median seconds |\n|---|---|")
    print(f"| the constraint by the change of {options.changed} rows | {found['check_seconds']} |")
    print(f"| the whole transaction, committed | {found['commit_seconds']} |")
    print(f"| the constraint in full, {options.rows:,} rows | {found['full_seconds']} |")
    print(json.dumps(found))
    keeper.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

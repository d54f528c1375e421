"""The 22 TPC-H queries as views, kept incrementally through rounds of changes. `make tpch`.

Each round inserts orders with their lines (RF1), deletes others (RF2) and updates rows of every
table; after each refresh every view is compared with its query, as bags.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import viewkeeper as vk

ROOT = Path(__file__).resolve().parent.parent
TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
UPDATES = (
    "UPDATE region SET r_comment = concat('round ', {n}) WHERE r_regionkey = {n} % 5",
    "UPDATE nation SET n_regionkey = (n_regionkey + 1) % 5 WHERE n_nationkey = ({n} * 7) % 25",
    "UPDATE supplier SET s_acctbal = s_acctbal + 10, s_nationkey = (s_nationkey + 3) % 25"
    " WHERE s_suppkey % 37 = {n}",
    "UPDATE part SET p_size = p_size % 50 + 1, p_brand = 'Brand#23' WHERE p_partkey % 97 = {n}",
    "UPDATE partsupp SET ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty + 5"
    " WHERE ps_partkey % 89 = {n}",
    "UPDATE customer SET c_acctbal = c_acctbal - 25, c_mktsegment = 'BUILDING'"
    " WHERE c_custkey % 53 = {n}",
    "UPDATE orders SET o_orderpriority = '1-URGENT' WHERE o_orderkey % 211 = {n}",
    "UPDATE lineitem SET l_quantity = l_quantity % 50 + 1, l_discount = 0.06"
    " WHERE l_orderkey % 173 = {n}",
    "DELETE FROM partsupp WHERE ps_partkey % 211 = {n}",
    "DELETE FROM customer WHERE c_custkey % 307 = {n}",
)


def generate(scale: float, folder: Path) -> Path:
    """The tables as Parquet files, made once per scale."""
    target = folder / f"tpch-{scale:g}"
    if not (target / "lineitem.parquet").exists():
        target.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).with_name("tpcgen-cli")
        options = ["tpch", "parquet", "-s", f"{scale:g}", "--output-dir", str(target)]
        subprocess.run([str(tool), *options], check=True, capture_output=True)
    return target


def load(spark: Any, data: Path, feed: bool = True) -> None:
    """The tables as Delta tables, with their change feed; some orders are held back for RF1."""
    for t in TABLES:
        frame = spark.read.parquet(str(data / f"{t}.parquet"))
        key = {"orders": "o_orderkey", "lineitem": "l_orderkey"}.get(t)
        if key:
            frame.where(f"{key} % 40 >= 38").write.format("delta").saveAsTable(f"{t}_later")
            frame = frame.where(f"{key} % 40 < 38")
        writer = frame.writeTo(t).using("delta")
        writer.tableProperty("delta.enableChangeDataFeed", str(feed).lower()).create()


def change(spark: Any, n: int) -> None:
    """One round: RF1, RF2 and updates of every table."""
    for t, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        spark.sql(f"INSERT INTO {t} SELECT * FROM {t}_later WHERE {key} % 5 = {n % 5}")
    for t, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        spark.sql(f"DELETE FROM {t} WHERE {key} % 101 = {n}")
    for statement in UPDATES:
        spark.sql(statement.format(n=n))


def queries() -> dict[str, str]:
    folder = ROOT / "tests" / "tpch"
    return {p.stem: p.read_text().strip().rstrip(";") for p in sorted(folder.glob("q*.sql"))}


def bag(frame: Any) -> Counter[Any]:
    """Rows as a bag; doubles to twelve digits, since Spark adds them in no fixed order."""
    rows = frame.collect()
    return Counter(
        tuple(float(f"{v:.12g}") if isinstance(v, float) else v for v in row) for row in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--only", nargs="*", help="some of the queries: q01 q05 …")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = generate(options.scale, options.data)
    lake = options.data / "tpch-lake"
    shutil.rmtree(lake, ignore_errors=True)
    keeper = vk.connect(lake)
    load(keeper.spark, data)
    views = {n: q for n, q in queries().items() if not options.only or n in options.only}
    for name, sql in views.items():
        keeper.create_view(name, sql, refresh="incremental")
    passed = failed = 0
    figures: list[dict[str, Any]] = []
    for n in range(1, options.rounds + 1):
        change(keeper.spark, n)
        start = time.perf_counter()
        try:
            reports = {str(r.view): r for r in keeper.refresh()}
        except vk.ViewKeeperError as e:
            reports = {r.view: r for r in getattr(e, "reports", [])}
            print(f"round {n}: {e}")
        took = time.perf_counter() - start
        for name, sql in views.items():
            right = bag(keeper.spark.table(name)) == bag(keeper.spark.sql(sql))
            report = reports.get(name)
            ok = right and report is not None and report.strategy != "full"
            passed, failed = passed + ok, failed + (not ok)
            figures.append({"round": n, "right": right, **(report.as_dict() if report else {})})
            if not ok:
                print(f"round {n} {name}: {'right' if right else 'WRONG'}, {report}")
        changed = sum(1 for r in reports.values() if r.inserted + r.deleted)
        print(f"round {n}: {len(reports)} views refreshed in {took:.1f} s, {changed} changed")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    keeper.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether the cost model chooses well: changes of 0.01 % to 50 %, five shapes of views.

    python tools/bench_choice.py --scale 1

Each shape is kept three times: as the cost model says, always incrementally, always in full. After
each change all three are refreshed; the choice is judged by the time of the strategy it took over
the better of the two. The cost model starts from its priors and has only its own view's history.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import tpch
import viewkeeper as vk
from bench import QUERY, SETTINGS
from bench_picture import save

SHARES = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5)
SHAPES = {
    "join": QUERY,
    "filter": "SELECT l_orderkey, l_partkey, l_quantity * l_extendedprice AS value FROM lineitem"
    " WHERE l_shipmode = 'AIR' AND l_quantity > 10",
    "group": "SELECT l_suppkey, l_returnflag, count(*) AS n, sum(l_quantity) AS q,"
    " max(l_extendedprice) AS dearest FROM lineitem GROUP BY l_suppkey, l_returnflag",
    "outer": "SELECT c_custkey, c_name, o_orderkey, o_totalprice FROM customer"
    " LEFT JOIN orders ON c_custkey = o_custkey AND o_orderstatus = 'F'",
    "anti": "SELECT o_orderkey, o_custkey, o_totalprice FROM orders WHERE NOT EXISTS"
    " (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 45)",
}


def change(spark: Any, n: int, share: float) -> None:
    """A share of the orders and of their lines is updated, scattered by a hash of the key."""
    for table, key, value in (
        ("orders", "o_orderkey", "o_totalprice = o_totalprice + 1"),
        ("lineitem", "l_orderkey", "l_quantity = l_quantity % 50 + 1"),
    ):
        picked = f"pmod(xxhash64({key}, {n}), 100000) < {round(share * 100000)}"
        spark.sql(f"UPDATE {table} SET {value} WHERE {picked}")


def same(spark: Any, a: str, b: str) -> bool:
    """Whether two tables are equal, by their sizes and sums of hashes."""
    text = "SELECT count(*), sum(cast(xxhash64(*) AS DECIMAL(38))) FROM {}"
    return bool(spark.sql(text.format(a)).first() == spark.sql(text.format(b)).first())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--data", type=Path, default=tpch.ROOT / "data")
    parser.add_argument("--only", nargs="*", help="some of the shapes")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES)
    options = parser.parse_args()
    lake = options.data / f"bench-choice-lake-{options.scale:g}"
    shutil.rmtree(lake, ignore_errors=True)
    keeper = vk.connect(lake, SETTINGS)
    tpch.load(keeper.spark, tpch.generate(options.scale, options.data))
    shapes = {n: q for n, q in SHAPES.items() if not options.only or n in options.only}
    for name, sql in shapes.items():
        for kind in ("auto", "incremental", "full"):
            keeper.create_view(f"{name}_{kind}", sql, refresh=kind)
    change(keeper.spark, 0, 0.0001)  # a first round warms up
    keeper.refresh([f"{n}_{k}" for n in shapes for k in ("incremental", "full", "auto")])
    found = []
    print(f"{'':8}{'changed':>9}{'auto s':>9}{'incr. s':>9}{'full s':>9}{'ratio':>7}  chosen")
    for n, share in enumerate(options.shares, start=1):
        change(keeper.spark, n, share)
        for name in shapes:
            taken, chosen = {}, ""
            for kind in ("incremental", "full", "auto"):
                start = time.perf_counter()
                (report,) = keeper.refresh(f"{name}_{kind}")
                taken[kind] = time.perf_counter() - start
                chosen = report.strategy
            ratio = taken[chosen] / min(taken["incremental"], taken["full"])
            row = {"shape": name, "share": share, "chosen": chosen, "ratio": ratio, **taken}
            row["reason"] = report.reason
            found.append(row)
            print(
                f"{name:8}{share:9.2%}{taken['auto']:9.2f}{taken['incremental']:9.2f}"
                f"{taken['full']:9.2f}{ratio:7.2f}  {chosen}, {report.lane}",
                flush=True,
            )
            for kind in ("auto", "incremental"):
                assert same(keeper.spark, f"{name}_{kind}", f"{name}_full"), (name, kind)
    keeper.stop()
    ratios = [float(str(row["ratio"])) for row in found]
    print(f"chosen ÷ better: mean {statistics.fmean(ratios):.2f}, worst {max(ratios):.2f}")
    target = options.data / "bench" / f"choice-{options.scale:g}.json"
    shown = {f"{r['shape']} {r['share']:.2%}": float(str(r["ratio"])) for r in found}
    save(target, found, "Chosen strategy ÷ the better of the two", shown, unit="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

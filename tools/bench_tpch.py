"""The 22 TPC-H queries as views: refresh against full recompute, in one run. `make bench-tpch`.

Each round inserts a share of the orders with their lines and deletes as many; then each view is
refreshed by itself, and its query is computed in full into a table. Prints the medians and the
geometric mean of full ÷ refresh; every view is compared with its query.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import tpch
import viewkeeper as vk
from bench import SETTINGS
from bench_picture import save


def change(spark: Any, n: int, share: float) -> None:
    """New orders from those held back, and as many old ones deleted, by ranges of their keys."""
    most = spark.sql("SELECT max(o_orderkey) FROM orders").first()[0]
    width = max(40, int(most * share))
    low = (n + 1) * 20 * width % most
    for t, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        later = f"{key} BETWEEN {low} AND {low + 20 * width}"  # one in twenty is held back
        spark.sql(f"INSERT INTO {t} SELECT * FROM {t}_later WHERE {later}")
        gone = low + 21 * width
        spark.sql(f"DELETE FROM {t} WHERE {key} BETWEEN {gone} AND {gone + width}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="rounds before, which do not count")
    parser.add_argument("--share", type=float, default=0.001, help="of the orders")
    parser.add_argument("--data", type=Path, default=tpch.ROOT / "data")
    parser.add_argument("--memory", default="4g", help="of the driver; 8g for scale 10")
    parser.add_argument("--only", nargs="*", help="some of the queries: q01 q05 …")
    options = parser.parse_args()
    lake = options.data / f"bench-tpch-lake-{options.scale:g}"
    shutil.rmtree(lake, ignore_errors=True)
    keeper = vk.connect(lake, SETTINGS | {"spark.driver.memory": options.memory})
    tpch.load(keeper.spark, tpch.generate(options.scale, options.data))
    views = {n: q for n, q in tpch.queries().items() if not options.only or n in options.only}
    for name, sql in views.items():
        keeper.create_view(name, sql)
        keeper.spark.sql(f"CREATE TABLE full_{name} USING delta AS SELECT * FROM ({sql}) LIMIT 0")
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in views}
    reports: dict[str, Any] = {}
    for n in range(options.warm + options.rounds):
        change(keeper.spark, n, options.share)
        for name, sql in views.items():
            start = time.perf_counter()
            (reports[name],) = keeper.refresh(name)
            refreshed = time.perf_counter()
            keeper.spark.sql(f"INSERT OVERWRITE full_{name} {sql}")
            full = time.perf_counter() - refreshed
            if n >= options.warm:
                seconds[name].append((full, refreshed - start))
            have, want = (
                tpch.bag(keeper.spark.table(name)),
                tpch.bag(keeper.spark.table(f"full_{name}")),
            )
            assert have == want, f"round {n}: {name} differs from its query"
            r = reports[name]
            ours = f"refresh {refreshed - start:.2f} s, {r.strategy}"
            print(f"round {n} {name}: {ours}; full {full:.2f} s", flush=True)
    keeper.stop()
    ratios = {}
    print(f"{'':6}{'full s':>9}{'refresh s':>11}{'ratio':>8}  strategy")
    for name, taken in seconds.items():
        full, ours = (statistics.median(x) for x in zip(*taken, strict=True))
        ratios[name] = full / ours
        r = reports[name]
        print(f"{name:6}{full:9.2f}{ours:11.2f}{full / ours:8.1f}  {r.strategy}, {r.lane}")
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    print(f"geometric mean {mean:.1f}, least {min(ratios.values()):.2f}")
    target = options.data / "bench" / f"tpch-{options.scale:g}.json"
    title = f"full ÷ refresh, TPC-H scale {options.scale:g}"
    save(target, {"scale": options.scale, "seconds": seconds}, title, ratios, unit="×")
    return 0


if __name__ == "__main__":
    sys.exit(main())

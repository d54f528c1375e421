"""A graph of twenty views in three levels: refresh of all against computing all in full.

    python tools/bench_graph.py --scale 1

The full recompute writes the same queries into plain tables, level by level, those of a level at
the same time as the keeper does. The results are compared after each round.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tpch
import viewkeeper as vk
from bench import SETTINGS
from bench_choice import same
from bench_picture import save
from bench_tpch import change

# Level by level; a name in braces is a view of a lower level.
LEVELS: tuple[dict[str, str], ...] = (
    {
        "line_value": "SELECT l_orderkey, l_partkey, l_suppkey, l_shipdate, l_returnflag,"
        " l_quantity, l_extendedprice * (1 - l_discount) AS value FROM lineitem",
        "order_lines": "SELECT l_orderkey, count(*) AS n, sum(l_quantity) AS quantity,"
        " sum(l_extendedprice) AS price FROM lineitem GROUP BY l_orderkey",
        "customer_orders": "SELECT o_custkey, count(*) AS n, sum(o_totalprice) AS total,"
        " max(o_orderdate) AS latest FROM orders GROUP BY o_custkey",
        "open_orders": "SELECT o_orderkey, o_custkey, o_orderdate, o_totalprice FROM orders"
        " WHERE o_orderstatus = 'O'",
        "part_sales": "SELECT l_partkey, sum(l_quantity) AS quantity, count(*) AS n"
        " FROM lineitem GROUP BY l_partkey",
        "supplier_sales": "SELECT l_suppkey, sum(l_extendedprice) AS price, count(*) AS n"
        " FROM lineitem GROUP BY l_suppkey",
        "returned": "SELECT l_orderkey, l_partkey, l_suppkey, l_quantity FROM lineitem"
        " WHERE l_returnflag = 'R'",
        "urgent": "SELECT o_orderkey, o_custkey, o_orderdate FROM orders"
        " WHERE o_orderpriority = '1-URGENT'",
    },
    {
        "order_value": "SELECT o_orderkey, o_custkey, n, quantity, price FROM orders"
        " JOIN {order_lines} ON o_orderkey = l_orderkey",
        "customers": "SELECT c_custkey, c_nationkey, c_mktsegment, coalesce(n, 0) AS orders,"
        " total FROM customer LEFT JOIN {customer_orders} ON c_custkey = o_custkey",
        "urgent_open": "SELECT o.o_orderkey, o.o_custkey, o.o_totalprice FROM {open_orders} o"
        " WHERE EXISTS (SELECT 1 FROM {urgent} u WHERE u.o_orderkey = o.o_orderkey)",
        "parts": "SELECT p_partkey, p_brand, p_type, quantity, n FROM part"
        " JOIN {part_sales} ON p_partkey = l_partkey",
        "suppliers": "SELECT s_suppkey, s_nationkey, price, n FROM supplier"
        " JOIN {supplier_sales} ON s_suppkey = l_suppkey",
        "returns_by_part": "SELECT l_partkey, sum(l_quantity) AS returned FROM {returned}"
        " GROUP BY l_partkey",
        "months": "SELECT year(l_shipdate) AS y, month(l_shipdate) AS m, sum(value) AS value,"
        " count(*) AS n FROM {line_value} GROUP BY year(l_shipdate), month(l_shipdate)",
        "open_by_customer": "SELECT o_custkey, count(*) AS n, sum(o_totalprice) AS total"
        " FROM {open_orders} GROUP BY o_custkey",
    },
    {
        "nations": "SELECT n_name, count(*) AS customers, sum(orders) AS orders,"
        " sum(total) AS total FROM {customers} JOIN nation ON c_nationkey = n_nationkey"
        " GROUP BY n_name",
        "brands": "SELECT p_brand, sum(quantity) AS sold, sum(returned) AS returned FROM {parts}"
        " LEFT JOIN {returns_by_part} ON p_partkey = l_partkey GROUP BY p_brand",
        "big_customers": "SELECT o_custkey, sum(price) AS price, max(quantity) AS most"
        " FROM {order_value} GROUP BY o_custkey HAVING sum(price) > 1000000",
        "open_share": "SELECT c.c_custkey, c.orders, o.n AS open FROM {customers} c"
        " JOIN {open_by_customer} o ON c.c_custkey = o.o_custkey",
    },
)


def texts(prefix: str) -> list[dict[str, str]]:
    """The queries over views or tables whose names have a prefix."""
    names = {name: prefix + name for level in LEVELS for name in level}
    return [{names[n]: q.format(**names) for n, q in level.items()} for level in LEVELS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument("--data", type=Path, default=tpch.ROOT / "data")
    options = parser.parse_args()
    lake = options.data / f"bench-graph-lake-{options.scale:g}"
    shutil.rmtree(lake, ignore_errors=True)
    keeper = vk.connect(lake, SETTINGS)
    spark = keeper.spark
    tpch.load(spark, tpch.generate(options.scale, options.data))
    for level in texts("v_"):
        for name, sql in level.items():
            keeper.create_view(name, sql)
    for level in texts("full_"):
        for name, sql in level.items():
            spark.sql(f"CREATE TABLE {name} USING delta AS {sql}")
    seconds: dict[str, list[float]] = {"refresh": [], "full": []}
    for n in range(options.rounds + 1):
        change(spark, n, options.share)
        start = time.perf_counter()
        reports = keeper.refresh()
        refreshed = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            for level in texts("full_"):
                list(
                    pool.map(lambda v: spark.sql(f"INSERT OVERWRITE {v[0]} {v[1]}"), level.items())
                )
        full = time.perf_counter() - refreshed
        if n:  # the first round warms both up
            seconds["refresh"].append(refreshed - start)
            seconds["full"].append(full)
        for level in LEVELS:
            for name in level:
                assert same(spark, f"v_{name}", f"full_{name}"), f"round {n}: {name} differs"
        print(f"round {n}: refresh {refreshed - start:.2f} s, full {full:.2f} s", flush=True)
    for r in reports:
        print(f"  {r.view:20}{r.strategy:12} {r.lane:10}{r.seconds:7.2f} s")
    keeper.stop()
    medians = {name: statistics.median(s) for name, s in seconds.items()}
    print(f"full ÷ refresh of all: {medians['full'] / medians['refresh']:.1f}")
    target = options.data / "bench" / f"graph-{options.scale:g}.json"
    save(target, seconds, f"Seconds for twenty views, TPC-H scale {options.scale:g}", medians)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A refresh against recomputing, in one run, on real data. `make bench`, `make bench-large`.

Contenders: the full recompute in the same session; the change feed and MERGE by hand, as a good
engineer writes it; DuckDB recomputing the same query; viewkeeper. All results are compared. Prints
a table, and writes it as JSON and as a picture.

    python tools/bench.py --scale 1 --rounds 5
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

import tpch
import viewkeeper as vk
from bench_picture import save

ROOT = tpch.ROOT
SETTINGS = {  # the same for all contenders
    "spark.driver.memory": "4g",
    "spark.sql.autoBroadcastJoinThreshold": str(200 * 2**20),
}
QUERY = """SELECT c_custkey, o_orderstatus, count(*) AS n,
  sum(l_extendedprice * (1 - l_discount)) AS revenue, sum(l_quantity) AS quantity
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
  JOIN nation ON c_nationkey = n_nationkey GROUP BY c_custkey, o_orderstatus"""
# the same aggregates of a signed change: d(O ⋈ L) = dO ⋈ L + O ⋈ dL − dO ⋈ dL
BY_HAND = """
WITH o AS (SELECT o_orderkey, o_custkey, o_orderstatus, {sign} AS w
           FROM orders_changes),
     l AS (SELECT l_orderkey, l_extendedprice, l_discount, l_quantity, {sign} AS w
           FROM lineitem_changes),
     d AS (SELECT /*+ BROADCAST(o) */
             o_custkey, o_orderstatus, l_extendedprice, l_discount, l_quantity, o.w AS w
           FROM o JOIN lineitem ON l_orderkey = o_orderkey
           UNION ALL
           SELECT /*+ BROADCAST(l) */
             o_custkey, o_orderstatus, l_extendedprice, l_discount, l_quantity, l.w
           FROM l JOIN orders ON l_orderkey = o_orderkey
           UNION ALL
           SELECT o_custkey, o_orderstatus, l_extendedprice, l_discount, l_quantity, -(o.w * l.w)
           FROM o JOIN l ON l_orderkey = o_orderkey)
SELECT c_custkey, o_orderstatus, sum(w) AS n,
  sum(w * l_extendedprice * (1 - l_discount)) AS revenue, sum(w * l_quantity) AS quantity
FROM d JOIN customer ON c_custkey = o_custkey JOIN nation ON c_nationkey = n_nationkey
GROUP BY c_custkey, o_orderstatus
"""
SIGN = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
MERGE = """MERGE INTO by_hand t USING by_hand_change s
ON t.c_custkey = s.c_custkey AND t.o_orderstatus = s.o_orderstatus
WHEN MATCHED AND t.n + s.n = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET n = t.n + s.n, revenue = t.revenue + s.revenue,
  quantity = t.quantity + s.quantity
WHEN NOT MATCHED THEN INSERT *"""


class Bench:
    """One lake, its contenders, and what they took."""

    def __init__(
        self, scale: float, data: Path, orders: int, builds: int = 1, memory: str = "4g"
    ) -> None:
        self.orders = orders
        self.builds = builds
        self.lake = data / f"bench-lake-{scale:g}"
        shutil.rmtree(self.lake, ignore_errors=True)
        self.keeper = vk.connect(self.lake, SETTINGS | {"spark.driver.memory": memory})
        self.spark = self.keeper.spark
        tpch.load(self.spark, tpch.generate(scale, data))
        self.seconds: dict[str, list[float]] = {}
        self.since: dict[str, int] = {}

    def timed(self, name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        found = run()
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)
        return found

    def setup(self) -> None:
        """The view, and the tables of the other contenders."""
        self.sql(f"CREATE TABLE plain USING delta AS {QUERY}")  # warms up
        self.sql("CREATE TABLE by_hand USING delta AS SELECT * FROM plain")
        self.sql("DROP TABLE plain")
        for n in range(self.builds):  # in turn; what is last stays
            self.timed("create view", lambda: self.keeper.create_view("v", QUERY, replace=True))
            self.sql("DROP TABLE IF EXISTS plain")
            self.timed(
                "create table as", lambda: self.sql(f"CREATE TABLE plain USING delta AS {QUERY}")
            )
            if n == 0 and self.builds > 1:  # the first ones of a session warm up
                self.seconds["create view"].clear()
                self.seconds["create table as"].clear()
        self.mark()

    def sql(self, text: str) -> Any:
        return self.spark.sql(text).collect()

    def mark(self) -> None:
        for t in ("orders", "lineitem"):
            self.since[t] = DeltaTable(str(self.lake / t)).version()

    def change(self, n: int) -> None:
        """New orders with their lines."""
        keys = f"SELECT o_orderkey FROM orders_later ORDER BY o_orderkey LIMIT {self.orders}"
        keys += f" OFFSET {n * self.orders}"
        self.sql(f"INSERT INTO orders SELECT * FROM orders_later WHERE o_orderkey IN ({keys})")
        self.sql(f"INSERT INTO lineitem SELECT * FROM lineitem_later WHERE l_orderkey IN ({keys})")

    def by_hand(self) -> None:
        for t in ("orders", "lineitem"):
            reader = self.spark.read.option("readChangeFeed", "true")
            changes = reader.option("startingVersion", self.since[t] + 1).table(t)
            changes.createOrReplaceTempView(f"{t}_changes")
        text = BY_HAND.format(sign=SIGN)
        change = self.spark.sql(text).persist()
        change.createOrReplaceTempView("by_hand_change")
        self.sql(MERGE)
        change.unpersist()

    def duck(self) -> None:
        with duckdb.connect() as db:
            for t in ("customer", "orders", "lineitem", "nation"):
                files = DeltaTable(str(self.lake / t)).file_uris()
                db.execute(f"CREATE VIEW {t} AS SELECT * FROM read_parquet({files!r})")
            target = self.lake.parent / "bench-duck.parquet"
            db.execute(f"COPY ({QUERY}) TO '{target}' (FORMAT parquet)")

    def round(self, n: int) -> None:
        self.change(n)
        self.timed("viewkeeper", lambda: self.keeper.refresh("v", strategy="incremental"))
        self.timed("by hand", self.by_hand)
        self.timed("full", lambda: self.sql(f"INSERT OVERWRITE plain {QUERY}"))
        self.timed("duckdb", self.duck)
        self.mark()
        for t in ("v", "by_hand"):
            for a, b in ((t, "plain"), ("plain", t)):
                text = f"SELECT count(*) FROM (SELECT * FROM {a} EXCEPT ALL SELECT * FROM {b})"
                assert self.sql(text)[0][0] == 0, f"round {n}: {a} and {b} differ"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--orders", type=int, default=100, help="new orders in each round")
    parser.add_argument("--builds", type=int, default=4, help="how often the view is made")
    parser.add_argument("--memory", default="4g", help="of the driver; 8g for scale 10")
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bench = Bench(options.scale, options.data, options.orders, options.builds, options.memory)
    bench.setup()
    for n in range(options.rounds + 1):
        bench.round(n)
        if n == 0:  # the first round warms all contenders up
            for name in ("viewkeeper", "by hand", "full", "duckdb"):
                bench.seconds[name].clear()
    for _ in range(5):
        bench.timed("nothing changed", lambda: bench.keeper.refresh("v"))
    bench.keeper.stop()
    medians = {name: statistics.median(s) for name, s in bench.seconds.items()}
    ours = medians["viewkeeper"]
    print(f"{'':18}{'median s':>10}{'÷ viewkeeper':>14}")
    for name, s in medians.items():
        print(f"{name:18}{s:10.3f}{s / ours:14.1f}")
    ratio = medians["create view"] / medians["create table as"]
    print(f"initial build ÷ CREATE TABLE AS: {ratio:.2f}")
    target = options.json or options.data / "bench" / f"join-{options.scale:g}.json"
    found = {"scale": options.scale, "orders": options.orders, "seconds": bench.seconds}
    shown = {n: medians[n] for n in ("full", "by hand", "duckdb", "viewkeeper")}
    title = f"Seconds per refresh, TPC-H scale {options.scale:g}, {options.orders} new orders"
    save(target, found, title, shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

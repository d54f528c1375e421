"""The queries of TPC-DS as views over real rows, kept incrementally through rounds of changes.

    python tools/tpcds_run.py --rounds 2

Each round deletes, doubles and updates rows of every table. After each refresh every view is
compared with its query, as bags. A query is a view without its last ORDER BY … LIMIT, because the
first hundred rows of an order with ties are not one answer. `make tpcds-run`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tpch
import viewkeeper as vk
from tpcds import FEED, FOLDER, LAST_LIMIT, named, queries

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.ansi.enabled": "false",  # some quotients have no divisor in so few rows
}
FACTS = ("store_sales", "catalog_sales", "web_sales")
UPDATES = (  # so that the views' filters let other rows through
    "UPDATE {t} SET {p}_quantity = {p}_quantity % 90 + 3, {p}_sales_price = {p}_sales_price + 1"
    " WHERE pmod(hash({p}_item_sk), 41) = {n}",
    "UPDATE {t} SET {p}_promo_sk = NULL WHERE pmod(hash({p}_item_sk), 43) = {n}",
)
OTHERS = (
    "UPDATE item SET i_manufact_id = i_manufact_id % 900 + 1, i_current_price = i_current_price + 1"
    " WHERE i_item_sk % 17 = {n}",
    "UPDATE customer SET c_current_addr_sk = c_current_addr_sk % 400 + 1"
    " WHERE c_customer_sk % 13 = {n}",
    "UPDATE customer_address SET ca_state = 'TN', ca_gmt_offset = -5.00"
    " WHERE ca_address_sk % 11 = {n}",
    "UPDATE store SET s_state = 'TN' WHERE s_store_sk % 3 = {n}",
    "DELETE FROM date_dim WHERE d_date_sk % 997 = {n} AND d_year BETWEEN 1998 AND 2002",
)


def generate(scale: float, folder: Path) -> Path:
    """The tables as Parquet files, made once per scale."""
    target = folder / f"tpcds-{scale:g}"
    if not (target / "web_site.parquet").exists():
        target.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).with_name("tpcgen-cli")
        options = ["tpcds", "parquet", "-s", f"{scale:g}", "--output-dir", str(target)]
        subprocess.run([str(tool), *options], check=True, capture_output=True)
    return target


def load(spark: Any, data: Path) -> dict[str, list[str]]:
    """The tables as Delta tables with a change feed; the columns of each."""
    tables = {}
    for line in (FOLDER / "tables.txt").read_text(encoding="utf-8").splitlines():
        name, columns = line.split(": ", 1)
        spark.sql(f"CREATE TABLE {name} ({columns}) {FEED}")
        names = spark.table(name).columns
        frame = spark.read.parquet(str(data / f"{name}.parquet"))
        frame.createOrReplaceTempView("generated")
        where = " WHERE cd_demo_sk % 40 = 1" if name == "customer_demographics" else ""
        held = [c if c in frame.columns else f"NULL AS {c}" for c in names]
        spark.sql(f"INSERT INTO {name} SELECT {', '.join(held)} FROM generated{where}")
        tables[name] = names
    return tables


def change(spark: Any, tables: dict[str, list[str]], n: int) -> None:
    """One round: every table loses rows and gets others a second time, the larger ones updates."""
    for name, columns in tables.items():
        place = f"pmod(xxhash64({', '.join(columns)}), 211)"
        spark.sql(f"DELETE FROM {name} WHERE {place} = {n}")
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE {place} = {100 + n}")
    for t in FACTS:
        prefix = {"store_sales": "ss", "catalog_sales": "cs", "web_sales": "ws"}[t]
        for text in UPDATES:
            spark.sql(text.format(t=t, p=prefix, n=n))
    for text in OTHERS:
        spark.sql(text.format(n=n))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path, default=tpch.ROOT / "data")
    parser.add_argument("--only", nargs="*", help="some of the queries: q01 q14a …")
    options = parser.parse_args()
    lake = options.data / "tpcds-lake"
    shutil.rmtree(lake, ignore_errors=True)
    keeper = vk.connect(lake, SETTINGS)
    spark = keeper.spark
    tables = load(spark, generate(options.scale, options.data))
    views = {}
    for name, sql in queries().items():
        if options.only and name not in options.only:
            continue
        plain = LAST_LIMIT.sub("", sql)
        try:
            keeper.create_view(name, plain, refresh="incremental")
        except vk.ViewKeeperError as e:
            if e.code != "DUPLICATE_OUTPUT_COLUMN":
                raise
            plain = named(spark, plain)
            keeper.create_view(name, plain, refresh="incremental")
        views[name] = plain
        print(f"{name}: {spark.table(name).count()} rows", flush=True)
    passed = failed = 0
    for n in range(options.rounds):
        change(spark, tables, n)
        for name, sql in views.items():
            start = time.perf_counter()
            try:
                (report,) = keeper.refresh(name)
                right = tpch.bag(spark.table(name)) == tpch.bag(spark.sql(sql))
                told = f"{report.strategy}, {report.inserted} in, {report.deleted} out"
            except ConnectionError:
                raise  # the JVM is gone, and with it all that would come
            except Exception as e:
                right, told = False, f"{type(e).__name__}: {str(e)[:1000]}"
            passed, failed = passed + right, failed + (not right)
            took = time.perf_counter() - start
            print(f"round {n} {name}: {'right' if right else 'WRONG'}, {told}, {took:.1f} s")
            sys.stdout.flush()
    keeper.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

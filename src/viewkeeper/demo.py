"""``make demo``: a small shop, several views, changes, and what each refresh cost.

Every number printed is measured in this run, and every view is compared with its query.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from viewkeeper.cli_output import table
from viewkeeper.cli_progress import Progress
from viewkeeper.errors import ViewKeeperError

LINES = 600_000
_FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"

# Each table from the numbers 0 … n-1; `id` and hash() stand for chance, so every run is the same.
TABLES = {
    "customers": (
        0.01,
        "SELECT id AS customer, concat('customer ', id) AS name,"
        " element_at(array('north', 'south', 'east', 'west'), cast(id % 4 AS INT) + 1) AS region",
    ),
    "products": (
        0.002,
        "SELECT id AS product, concat('product ', id) AS title,"
        " element_at(array('books', 'music', 'games', 'tools', 'food'), cast(id % 5 AS INT) + 1)"
        " AS kind, cast(1 + pmod(hash(id), 9900) / 100 AS DECIMAL(10, 2)) AS price",
    ),
    "orders": (
        0.25,
        "SELECT id AS ord, pmod(hash(id, 1), {customers}) AS customer,"
        " date_add(DATE'2024-01-01', pmod(hash(id, 2), 366)) AS day",
    ),
    "lines": (
        1.0,
        "SELECT id AS line, pmod(hash(id, 3), {orders}) AS ord,"
        " pmod(hash(id, 4), {products}) AS product, 1 + pmod(hash(id, 5), 5) AS quantity",
    ),
}

VIEWS = {
    "sales": (
        "join of four tables, grouped",
        "SELECT c.region, p.kind, o.day, count(*) AS lines, sum(l.quantity * p.price) AS revenue"
        " FROM lines l JOIN orders o ON l.ord = o.ord JOIN products p ON l.product = p.product"
        " JOIN customers c ON o.customer = c.customer GROUP BY c.region, p.kind, o.day",
    ),
    "customer_orders": (
        "left join: customers without orders stay",
        "SELECT c.customer, c.name, o.ord, o.day"
        " FROM customers c LEFT JOIN orders o ON c.customer = o.customer",
    ),
    "sold": (
        "which product sold on which day: distinct",
        "SELECT DISTINCT o.day, l.product FROM lines l JOIN orders o ON l.ord = o.ord",
    ),
    "best_days": (
        "top 10 of a view",
        "SELECT day, sum(revenue) AS revenue FROM sales GROUP BY day"
        " ORDER BY revenue DESC, day LIMIT 10",
    ),
    "regions": (
        "a view over a view, grouped again",
        "SELECT region, kind, sum(revenue) AS revenue, max(day) AS latest FROM sales"
        " GROUP BY region, kind",
    ),
}


def rounds(sizes: dict[str, int]) -> list[tuple[str, list[str]]]:
    """What happens in the shop between two refreshes."""
    n = sizes["orders"]
    new = f"SELECT id AS ord, pmod(hash(id, 1), {sizes['customers']}) AS customer,"
    new_lines = (
        f"SELECT {sizes['lines']} + id AS line, {n} + pmod(id, 100) AS ord,"
        f" pmod(hash(id, 4), {sizes['products']}) AS product, 2 AS quantity FROM range(300)"
    )
    return [
        (
            "100 new orders with 300 lines",
            [
                f"INSERT INTO orders {new} DATE'2024-07-01' AS day FROM range({n}, {n + 100})",
                f"INSERT INTO lines {new_lines}",
            ],
        ),
        (
            "20 orders cancelled, 3 customers move, 2 prices rise",
            [
                "DELETE FROM lines WHERE ord BETWEEN 1000 AND 1019",
                "DELETE FROM orders WHERE ord BETWEEN 1000 AND 1019",
                "UPDATE customers SET region = 'abroad' WHERE customer IN (7, 77, 777)",
                "UPDATE products SET price = price + 1 WHERE product IN (5, 55)",
            ],
        ),
        (
            "50 lines get another quantity, 100 orders another day",
            [
                "UPDATE lines SET quantity = quantity + 1 WHERE line BETWEEN 5000 AND 5049",
                "UPDATE orders SET day = DATE'2024-12-24' WHERE ord BETWEEN 2000 AND 2099",
            ],
        ),
    ]


def run(keeper: Any, lines: int, say: Callable[[str], None], progress: Progress) -> bool:
    """Makes the shop and its views, changes it, refreshes; is every view equal to its query?"""
    sizes = {name: max(10, int(lines * share)) for name, (share, _) in TABLES.items()}
    spark = keeper.spark
    with progress.doing("making the shop"):
        for name, (_, sql) in TABLES.items():
            rows = f"{sql.format(**sizes)} FROM range({sizes[name]})"
            spark.sql(f"CREATE OR REPLACE TABLE {name} {_FEED} AS {rows}")
    say("The shop: " + ", ".join(f"{n:,} {name}" for name, n in sizes.items()) + ".\n")
    created = []
    for name, (what, sql) in VIEWS.items():
        with progress.doing(f"creating {name}"):
            report = keeper.create_view(name, sql, replace=True)
            created.append((name, what, report.inserted, f"{report.seconds:.2f} s"))
    say(table(["view", "what", "rows", "created in"], created) + "\n")
    right = True
    spent = {"refresh": 0.0, "full": 0.0}
    for what, statements in rounds(sizes):
        with progress.doing("changing tables"):
            for statement in statements:
                spark.sql(statement)
        right &= _round(keeper, what, say, progress, spent)
    say(
        f"All refreshes together took {spent['refresh']:.1f} s; computing the same views again in"
        f" full took {spent['full']:.1f} s.\nThe first round is slower than the others, because"
        " Spark is still warming up."
    )
    return right


def _round(
    keeper: Any, what: str, say: Callable[[str], None], progress: Progress, spent: dict[str, float]
) -> bool:
    """Refreshes all views, then computes each in full beside it, and compares the two."""
    from viewkeeper.cli_progress import watch
    from viewkeeper.cli_verify import difference

    with progress.doing("refreshing", len(VIEWS)):
        reports = {r.view: r for r in keeper.refresh(watch=watch(progress))}
    rows, right = [], True
    for name, (_, sql) in VIEWS.items():
        report = reports[name]
        with progress.doing(f"computing {name} in full"):
            start = time.perf_counter()
            keeper.spark.sql(f"CREATE OR REPLACE TABLE demo_full USING delta AS {sql}")
            full = time.perf_counter() - start
            missing, extra = difference(keeper.spark.table("demo_full"), keeper.spark.table(name))
        right &= not missing and not extra
        spent["refresh"] += report.seconds
        spent["full"] += full
        changed = f"+{report.inserted:,} -{report.deleted:,}"
        equal = "yes" if not missing and not extra else f"NO: {missing} missing, {extra} extra"
        times = f"{report.seconds:.2f} s", f"{full:.2f} s"
        rows.append((name, report.strategy, changed, *times, equal))
    keeper.spark.sql("DROP TABLE IF EXISTS demo_full")
    head = ["view", "strategy", "rows changed", "refresh", "full recompute", "equals its query"]
    say(f"{what}:\n{table(head, rows)}\n")
    return right


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo in a new folder and says where to look next."""
    parser = argparse.ArgumentParser("python -m viewkeeper.demo", description=__doc__)
    parser.add_argument("--lake", metavar="DIR", help="a folder that is new or empty")
    parser.add_argument("--lines", type=int, default=LINES, help=f"order lines ({LINES:,})")
    parser.add_argument("--verbose", action="store_true", help="show what Spark says")
    args = parser.parse_args(argv)
    lake = Path(args.lake or tempfile.mkdtemp(prefix="viewkeeper-demo-"))
    if lake.is_dir() and any(lake.iterdir()):
        parser.error(f"{lake} is not empty")
    start, progress = time.perf_counter(), Progress()
    try:
        right = _run(lake, args, progress)
    except ViewKeeperError as e:
        print(e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        shutil.rmtree(lake, ignore_errors=True)
        return 130
    print(f"\nThe demo took {time.perf_counter() - start:.0f} s. The lake is {lake}. Look around:")
    command = Path(sys.executable).with_name("viewkeeper")
    viewkeeper = shlex.quote(str(command))
    if not command.exists():
        viewkeeper = f"{shlex.quote(sys.executable)} -m viewkeeper.cli"
    for rest in ("status", "explain sales", "history --limit 5", "sql 'SELECT * FROM best_days'"):
        print(f"  {viewkeeper} --lake {shlex.quote(str(lake))} {rest}")
    return 0 if right else 1


def _run(lake: Path, args: argparse.Namespace, progress: Progress) -> bool:
    from viewkeeper.cli_quiet import quiet

    what = "starting Spark (the first time it fetches Delta Lake's jars)"
    with progress.doing(what), quiet(args.verbose):
        from viewkeeper.keeper import connect

        keeper = connect(lake)
    with keeper:
        return run(keeper, args.lines, lambda text: print(text, flush=True), progress)


if __name__ == "__main__":
    sys.exit(main())

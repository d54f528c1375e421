"""What a refresh costs when the tables grow and the change does not. `make bench-growth`.

    python tools/bench_growth.py --scales 1 10

The view of tools/bench.py over sources that lie in the order of their keys, as TPC-H's generator
makes them; each round inserts the same number of orders with their lines at every scale. Prints
the medians and their ratio; at the end each view is compared with its query.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import tpch
from bench import QUERY, Bench
from bench_choice import same
from bench_picture import save


def refreshes(scale: float, data: Path, orders: int, rounds: int) -> list[float]:
    """Seconds of the refreshes at one scale, without the first ones, which warm up."""
    bench = Bench(scale, data, orders)
    bench.timed("create view", lambda: bench.keeper.create_view("v", QUERY))
    for n in range(rounds + 2):
        bench.change(n)
        bench.timed("refresh", lambda: bench.keeper.refresh("v", strategy="incremental"))
    bench.sql(f"CREATE TABLE plain USING delta AS {QUERY}")
    assert same(bench.spark, "v", "plain"), f"scale {scale:g}: the view differs from its query"
    bench.keeper.stop()
    return bench.seconds["refresh"][2:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=float, nargs="+", default=(1, 10))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--orders", type=int, default=100, help="new orders in each round")
    parser.add_argument("--data", type=Path, default=tpch.ROOT / "data")
    options = parser.parse_args()
    seconds = {}
    for scale in options.scales:
        seconds[f"scale {scale:g}"] = refreshes(scale, options.data, options.orders, options.rounds)
        print(
            f"scale {scale:g}: {statistics.median(seconds[f'scale {scale:g}']):.3f} s", flush=True
        )
    medians = {name: statistics.median(s) for name, s in seconds.items()}
    first, *_, last = medians.values()
    print(f"growth, {options.orders} new orders: {last / first:.2f} times")
    found = {"orders": options.orders, "seconds": seconds}
    title = f"Seconds per refresh, {options.orders} new orders"
    save(options.data / "bench" / "growth.json", found, title, medians)
    return 0


if __name__ == "__main__":
    sys.exit(main())

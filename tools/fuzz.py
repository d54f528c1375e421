"""Random queries and changes against the reference, as many as there is time for. `make fuzz`.

Each case: the pair is correct and strongly minimal in all its forms; the signed form means the
same; simplified, with and without facts, means the same; nothing proved is wrong; over sets the
rules of 1997 give the minimal change, those of 1991 a correct one. In each fifth case the SQL text
of the query, and in each 99th that of its change, run by DuckDB gives the same.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import checks
import random_facts

CHUNK = 50
CHANGE_IN_SQL = 99  # not even, as the forms of the change take turns by the seed
QUERY_IN_SQL = 5


@cache
def duck() -> checks.Duck:
    """One DuckDB for each worker."""
    return checks.Duck()


def check_sql(seed: int) -> object:
    """The SQL text of the query; now and then, of a form of its change too."""
    if seed % CHANGE_IN_SQL == 0:
        return checks.check_sql(seed, duck())
    return None if seed % QUERY_IN_SQL else checks.check_query_sql(seed, duck())


CHECKS: tuple[Callable[[int], object], ...] = (
    checks.check_pair,
    checks.check_signed,
    checks.check_sets,
    checks.check_simplified,
    check_sql,
    random_facts.check_facts,
    random_facts.check_simplify_facts,
)


def failure(seed: int) -> str | None:
    """What goes wrong in a case; None where nothing does."""
    for check in CHECKS:
        try:
            check(seed)
        except Exception as e:
            said = str(e) if isinstance(e, AssertionError) else traceback.format_exc()
            return f"{check.__name__}: {said}"
    return None


def run(seeds: range) -> list[tuple[int, str]]:
    """The failures among some cases."""
    gc.set_threshold(50_000)  # trees make many objects and hardly a cycle
    return [(seed, why) for seed in seeds if (why := failure(seed)) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first case")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    options = parser.parse_args()
    stop = options.seed + options.cases
    parts = [range(s, min(s + CHUNK, stop)) for s in range(options.seed, stop, CHUNK)]
    failed: list[tuple[int, str]] = []
    start = shown = time.monotonic()
    done = 0
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for part, found in zip(parts, pool.imap(run, parts), strict=True):
            done += len(part)
            for seed, why in found:
                print(f"seed {seed} failed: {why}", flush=True)
                print(f"  again: python tools/fuzz.py --cases 1 --jobs 1 --seed {seed}", flush=True)
            failed += found
            now = time.monotonic()
            if now - shown > 20:
                rate = done / (now - start)
                left = (options.cases - done) / rate / 60
                print(f"{done:,} cases, {rate:.1f} cases/s, {left:.0f} min left", flush=True)
                shown = now
    seconds = time.monotonic() - start
    print(f"{done / seconds:.1f} cases/s, {seconds:.0f} s, {options.jobs} jobs")
    print(f"{options.cases - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

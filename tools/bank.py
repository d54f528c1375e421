"""Brandon's bank: random transfers from several processes at once; no money is made or lost.

    python tools/bank.py --processes 4 --transfers 2000

Each transfer is one transaction over two tables, with an immediate view of the balances and the
constraint that they sum to zero. Afterwards every version of every table is looked at, in the order
of the journal: the sum is zero in each, and each transfer is there once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ACCOUNTS = 12
FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
BALANCES = "SELECT owner, sum(amount) AS balance, count(*) AS n FROM accounts GROUP BY owner"
QUICK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"
    " -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def connect(lake: Path) -> Any:
    import viewkeeper as vk

    return vk.connect(lake, QUICK)


def prepare(lake: Path) -> None:
    """Accounts without money, a view of the balances, and a constraint."""
    keeper = connect(lake)
    keeper.sql(f"CREATE TABLE accounts (id INT, owner STRING, amount BIGINT) {FEED}")
    keeper.sql(f"CREATE TABLE transfers (id STRING, a INT, b INT, amount BIGINT) {FEED}")
    rows = [f"({i}, 'owner{i % 3}', 0)" for i in range(ACCOUNTS)]
    keeper.sql(f"INSERT INTO accounts VALUES {', '.join(rows)}")
    keeper.create_view("balances", BALANCES, maintain="immediate")
    keeper.add_constraint(
        "zero", "SELECT s FROM (SELECT sum(balance) AS s FROM balances) WHERE s <> 0"
    )
    keeper.stop()


def work(lake: Path, number: int, transfers: int) -> dict[str, Any]:
    """One of the processes."""
    import viewkeeper as vk

    keeper = connect(lake)
    chance = random.Random(number)
    done, refused, conflicts = [], 0, 0
    start = time.perf_counter()
    while len(done) < transfers:
        a, b = chance.sample(range(ACCOUNTS), 2)
        amount, name = chance.randint(1, 100), f"{number}-{len(done)}"
        wrong = chance.random() < 0.05  # money out of nothing: must be refused
        try:
            with keeper.transaction() as t:
                t.update("accounts", {"amount": f"amount - {amount}"}, where=f"id = {a}")
                extra = amount + 1 if wrong else amount
                t.update("accounts", {"amount": f"amount + {extra}"}, where=f"id = {b}")
                t.insert("transfers", [(name, a, b, amount)])
        except vk.ConstraintViolation:
            assert wrong, "a right transfer was refused"
            refused += 1
            continue
        except vk.ConflictError:
            conflicts += 1
            continue
        assert not wrong, "a wrong transfer was committed"
        done.append([name, a, b, amount])
    seconds = time.perf_counter() - start
    keeper.stop()
    return {"done": done, "refused": refused, "conflicts": conflicts, "seconds": seconds}


def examine(lake: Path, done: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Every version, without Spark; then the views against their queries."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    def rows(folder: Path, version: int) -> Any:  # the way that knows deletion vectors
        asked = QueryBuilder().register("t", DeltaTable(folder, version=version))
        return pa.table(asked.execute("SELECT * FROM t").read_all())

    accounts, transfers = lake / "accounts", lake / "transfers"
    newest = DeltaTable(accounts).version()
    for version in range(1, newest + 1):
        held = rows(accounts, version)
        assert sum(held.column("amount").to_pylist()) == 0, f"version {version}"
        assert held.num_rows == ACCOUNTS, f"version {version}"
    found = rows(transfers, DeltaTable(transfers).version())
    names = ("id", "a", "b", "amount")
    there = Counter(zip(*(found.column(c).to_pylist() for c in names), strict=True))
    assert there == Counter(done), "transfers were lost or doubled"
    amounts: Counter[int] = Counter()
    for _, a, b, amount in done:
        amounts[a] -= amount
        amounts[b] += amount
    last = rows(accounts, newest)
    held = dict(zip(last.column("id").to_pylist(), last.column("amount").to_pylist(), strict=True))
    assert held == {i: amounts[i] for i in range(ACCOUNTS)}, "balances are not what was transferred"
    keeper = connect(lake)
    view = Counter(map(tuple, keeper.sql("SELECT * FROM balances").collect()))
    assert view == Counter(map(tuple, keeper.sql(BALANCES).collect())), "the view is not its query"
    assert keeper.check() == []
    last_entry, finished = keeper._transactions.journal.mark()
    assert last_entry == finished, "the journal has an entry that is not done"
    store = [r.store.split(".")[-1].strip("`") for r in keeper._home.records().values()]
    keeper.stop()
    for name in store:  # the view's own history: the sum is zero at each version too
        folder = lake / "viewkeeper.db" / name
        for version in range(DeltaTable(folder).version() + 1):
            total = rows(folder, version).column("__2").to_pylist()  # rows, count, sum
            assert sum(t or 0 for t in total) == 0, f"view version {version}"
    return {"versions": newest, "transfers": len(done), "entries": last_entry}


def run(lake: Path, processes: int, transfers: int) -> dict[str, Any]:
    """The whole test; what was found."""
    prepare_in_own_process(lake)
    each = [transfers // processes + (i < transfers % processes) for i in range(processes)]
    start = time.perf_counter()
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", str(lake), str(i), str(n)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i, n in enumerate(each)
    ]
    answers = []
    for worker in workers:
        out, _ = worker.communicate()
        assert worker.returncode == 0, "a process failed"
        answers.append(json.loads(out.strip().splitlines()[-1]))
    seconds = time.perf_counter() - start
    done = [tuple(t) for a in answers for t in a["done"]]
    text = json.dumps(done)
    found = subprocess.run(
        [sys.executable, __file__, "--examine", str(lake)],
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(found.stdout.strip().splitlines()[-1])
    answer |= {"processes": processes, "seconds": round(seconds, 1)}
    answer |= {k: sum(a[k] for a in answers) for k in ("refused", "conflicts")}
    return answer


def prepare_in_own_process(lake: Path) -> None:
    subprocess.run([sys.executable, __file__, "--prepare", str(lake)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--transfers", type=int, default=2000)
    parser.add_argument("--prepare", type=Path)
    parser.add_argument("--work", nargs=3)
    parser.add_argument("--examine", type=Path)
    args = parser.parse_args()
    if args.prepare:
        prepare(args.prepare)
    elif args.work:
        lake, number, transfers = args.work
        print(json.dumps(work(Path(lake), int(number), int(transfers))))
    elif args.examine:
        done = [tuple(t) for t in json.loads(sys.stdin.read())]
        print(json.dumps(examine(args.examine, done)))
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(run(Path(folder) / "lake", args.processes, args.transfers)))


if __name__ == "__main__":
    main()

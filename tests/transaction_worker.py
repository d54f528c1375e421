"""A process that is killed in the middle of a transaction, or of its recovery, and one that looks
at what is left.

    python transaction_worker.py die LAKE POINT       # is killed at a named point
    python transaction_worker.py loop LAKE            # makes transactions until it is killed
    python transaction_worker.py serve TEMPLATE       # makes a lake, then answers about others
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from crash_worker import FEED, QUICK, bag, connect, die
from examiner import serve
from viewkeeper.session import local_session

JOINED = "SELECT a.k, a.n, b.what FROM a JOIN b ON a.k = b.k"
SUMS = "SELECT k, sum(n) AS s, count(*) AS c FROM joined GROUP BY k"


class Point(NamedTuple):
    """Where to die: before or after a call of a function, the first or a later one."""

    when: str
    function: str
    left: str  # what is found after recovery: "old" or "new"
    call: int = 1


_APPLY = "transactions.applying"
POINTS = {
    "before_entry": Point("before", "transactions.journal:Journal.add", "old"),
    "after_entry": Point("after", "transactions.journal:Journal.add", "new"),
    "before_first_table": Point("before", f"{_APPLY}:apply_table", "new"),
    "after_first_table": Point("after", f"{_APPLY}:apply_table", "new"),
    "after_second_table": Point("after", f"{_APPLY}:apply_table", "new", 2),
    "before_first_view": Point("before", f"{_APPLY}:apply_view", "new"),
    "after_first_view": Point("after", f"{_APPLY}:apply_view", "new"),
    "after_second_view": Point("after", f"{_APPLY}:apply_view", "new", 2),
    "before_done": Point("before", "transactions.journal:Journal.finish", "new"),
    "after_done": Point("after", "transactions.journal:Journal.finish", "new"),
    "before_position": Point("before", "transactions.shelf:Shelf.put", "new"),
    "after_position": Point("after", "transactions.shelf:Shelf.put", "new"),
}
# the same in the recovery of a transaction whose process was killed right after its entry
RECOVERY = [
    "before_first_table", "after_first_table", "after_second_table", "before_first_view",
    "after_first_view", "after_second_view", "before_done", "after_done",
]  # fmt: skip


def arm(point: Point) -> None:
    module, path = point.function.split(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(f"viewkeeper.{module}")
    for part in owners:
        owner = getattr(owner, part)
    function = getattr(owner, name)
    calls = 0

    @functools.wraps(function)
    def deadly(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < point.call:
            return function(*args, **options)
        if point.when == "before":
            die()
        result = function(*args, **options)
        die()
        return result

    setattr(owner, name, deadly)


def prepare(lake: Path) -> None:
    keeper = connect(lake)
    keeper.sql(f"CREATE TABLE a (k INT, n INT) {FEED}")
    keeper.sql(f"CREATE TABLE b (k INT, what STRING) {FEED}")
    keeper.sql("INSERT INTO a VALUES (1, 1), (1, 1), (2, 5), (NULL, 3)")
    keeper.sql("INSERT INTO b VALUES (1, 'one'), (2, 'two'), (NULL, NULL)")
    keeper.create_view("joined", JOINED, maintain="immediate")
    keeper.create_view("sums", SUMS, maintain="immediate")
    keeper.add_constraint("fk", "SELECT k FROM a WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM b"
                          " WHERE k IS NOT NULL)")  # fmt: skip
    log = lake / "told.jsonl"
    keeper.on_change("sums", told(log), name="listener")
    keeper.stop()


def told(log: Path) -> Any:
    """A callback that writes each change to a file, in one piece."""

    def write(change: Any) -> None:
        value = {
            "version": change.version,
            "snapshot": change.snapshot,
            "removed": [list(r) for r in change.removed.collect()],
            "added": [list(r) for r in change.added.collect()],
        }
        with log.open("a") as file:
            file.write(json.dumps(value) + "\n")

    return write


OLD = Counter({(1, 1): 2, (2, 5): 1, (None, 3): 1})
NEW = Counter({(1, 1): 1, (2, 6): 1, (None, 3): 1, (3, 7): 2})


def transact(keeper: Any) -> None:
    with keeper.transaction() as t:
        t.delete("a", "k = 1")
        t.insert("a", [(1, 1), (3, 7), (3, 7)])
        t.update("a", {"n": "n + 1"}, where="k = 2")
        t.insert("b", [(3, "three")])


def main_die(lake: Path, name: str) -> None:
    recovering = name.startswith("recovery_")
    point = POINTS[name.removeprefix("recovery_")]
    if recovering:
        arm(point)
        connect(lake)
    else:
        keeper = connect(lake)
        keeper.on_change("sums", told(lake / "told.jsonl"), name="listener")
        arm(point)
        transact(keeper)
    sys.exit("the point was not reached")


def main_loop(lake: Path) -> None:
    """Transactions that keep k distinct and the two tables in step, once told to begin."""
    local_session(lake, QUICK)  # a JVM takes its time: it may start before the lake is free
    sys.stdin.readline()
    keeper = connect(lake)
    keeper.on_change("sums", told(lake / "told.jsonl"), name="listener")
    print("ready", flush=True)
    n = int(time.time() * 1000) % 1_000_000_000
    while True:
        n += 1
        with keeper.transaction() as t:
            t.insert("a", [(n, 1), (n, 1)])
            t.insert("b", [(n, f"no {n}")])
            t.delete("a", f"k = {n - 2}")


def check(lake: Path, left: str) -> dict[str, Any]:
    """What a new process finds; it recovers when it connects."""
    start = time.perf_counter()
    keeper = connect(lake)
    try:
        now = bag(keeper.sql("SELECT * FROM a"))
        if left in ("old", "new"):
            assert now == (OLD if left == "old" else NEW), now
            whats = bag(keeper.sql("SELECT what FROM b"))
            assert (("three",) in whats) == (left == "new"), whats
        else:
            counts = Counter(k for k, _ in now.elements() if k is not None and k > 2)
            assert set(counts.values()) <= {2}, "half a transaction"
            there = {k for (k,) in bag(keeper.sql("SELECT k FROM b WHERE k > 2"))}
            assert set(counts) <= there, "half a transaction"
        journal = keeper._transactions.journal.mark()
        assert journal[0] == journal[1], journal
        right(keeper)
        assert {r.strategy for r in keeper.refresh()} == {"none"}, "the views were up to date"
        assert keeper.check() == []
        keeper.on_change("sums", told(lake / "told.jsonl"), name="listener")
        with keeper.transaction() as t:  # life goes on
            t.insert("a", [(2, 100)])
        right(keeper)
        heard(lake, keeper)
        return {"left": left, "entries": journal[0], "seconds": time.perf_counter() - start}
    finally:
        keeper.stop()


def right(keeper: Any) -> None:
    assert bag(keeper.sql("SELECT * FROM joined")) == bag(keeper.sql(JOINED))
    wanted = bag(keeper.sql(SUMS.replace("joined", f"({JOINED})")))
    assert bag(keeper.sql("SELECT * FROM sums")) == wanted


def heard(lake: Path, keeper: Any) -> None:
    """The listener's changes, in order, come to the view: none is missing. One may be there twice,
    if the process was killed after the callback and before its position was kept."""
    state: Counter[Any] = Counter()
    seen: dict[int, Any] = {}
    for line in (lake / "told.jsonl").read_text().splitlines():
        one = json.loads(line)
        if one["version"] in seen:
            assert seen[one["version"]] == one, "told twice, and differently"
            continue
        seen[one["version"]] = one
        gone, come = (Counter(map(tuple, one[part])) for part in ("removed", "added"))
        assert not gone & come, "not the least change"
        assert one["snapshot"] or gone or come, "an alarm without a change"
        assert not gone - state, "a row was removed that was not there"
        state = (state - gone) + come
    assert state == bag(keeper.sql("SELECT * FROM sums")), "a change is missing"


if __name__ == "__main__":
    if sys.argv[1] == "die":
        main_die(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "loop":
        main_loop(Path(sys.argv[2]))
    else:
        serve(Path(sys.argv[2]), prepare, check)

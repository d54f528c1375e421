"""A process that kills itself with SIGKILL at a named point, and one that looks at what it left.

    python crash_worker.py die LAKE POINT     # refreshes, creates, replaces or drops, and is killed
    python crash_worker.py serve TEMPLATE     # makes a lake, then answers what it finds in others

The second reads a line of JSON per question, {"lake": …, "what": …}, and writes one per answer.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from examiner import serve

FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
TOTALS = "SELECT c, sum(x) AS s, count(*) AS n FROM t GROUP BY c"
BIG = "SELECT c, s FROM totals WHERE s > 5"  # a view over a view
PLAIN = "SELECT t.c, t.x, u.y FROM t JOIN u ON t.x = u.x"
OTHER = "SELECT c, max(x) AS m FROM t GROUP BY c"
QUICK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"
    " -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


class Point(NamedTuple):
    """Where to die: before or after a function, or when a store's folder has a new data file."""

    verb: str
    when: str  # "before", "after", "file"
    function: str
    left: str  # what must be found: "old", "new", or "any" of the two


POINTS = {
    "refresh_before_commit": Point("refresh", "before", "lake.stores:apply", "old"),
    "refresh_while_writing": Point("refresh", "file", "", "any"),
    "refresh_files_written": Point("refresh", "before", "lake.log:commit", "old"),
    "refresh_linked": Point("refresh", "after", "lake.log:commit", "new"),
    "refresh_after_commit": Point("refresh", "after", "lake.stores:apply", "new"),
    "full_before_write": Point("full", "before", "lake.stores:rewrite", "old"),
    "full_before_commit": Point("full", "after", "lake.jvm:items", "old"),  # the files are there
    "full_after_commit": Point("full", "after", "lake.stores:rewrite", "new"),
    "create_while_writing": Point("create", "file", "", "old"),
    "create_before_entry": Point("create", "before", "home:Home.save", "old"),
    "create_after_entry": Point("create", "after", "home:Home.save", "new"),
    "create_after_show": Point("create", "after", "keeper:Keeper._show", "new"),
    "replace_before_entry": Point("replace", "before", "home:Home.save", "old"),
    "replace_after_entry": Point("replace", "after", "home:Home.save", "new"),
    "replace_before_drop": Point("replace", "before", "creating:_drop_store", "new"),
    "drop_before_entry": Point("drop", "before", "home:Home.remove", "old"),
    "drop_after_entry": Point("drop", "after", "home:Home.remove", "new"),
    "drop_after_store": Point("drop", "after", "creating:_drop_store", "new"),
}


def die() -> None:
    """Python and the JVM, which share a process group, end at once."""
    os.killpg(0, signal.SIGKILL)


def arm(point: Point, lake: Path) -> None:
    if point.when == "file":
        threading.Thread(target=watch, args=(lake,), daemon=True).start()
        return
    module, path = point.function.split(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(f"viewkeeper.{module}")
    for part in owners:
        owner = getattr(owner, part)
    function = getattr(owner, name)

    @functools.wraps(function)
    def deadly(*args: Any, **options: Any) -> Any:
        if point.when == "before":
            die()
        result = function(*args, **options)
        die()
        return result

    setattr(owner, name, deadly)


def watch(lake: Path) -> None:
    """Kills as soon as a store has a data file that it had not."""

    def files() -> set[str]:
        stores = (lake / "viewkeeper.db").glob("store_*/*.parquet")
        return {str(p) for p in stores}

    before = files()
    while files() <= before:
        pass
    die()


def act(keeper: Any, verb: str) -> None:
    match verb:
        case "refresh":
            keeper.refresh("totals", strategy="incremental")
        case "full":
            keeper.refresh("totals", strategy="full")
        case "create":
            keeper.create_view("fresh", PLAIN)
        case "replace":
            keeper.create_view("plain", OTHER, replace=True)
        case "drop":
            keeper.drop_view("plain")


def connect(lake: Path) -> Any:
    import viewkeeper as vk

    return vk.connect(lake, QUICK)


def main_die(lake: Path, name: str) -> None:
    keeper = connect(lake)
    keeper.views()
    point = POINTS[name]
    arm(point, lake)
    act(keeper, point.verb)
    sys.exit("the point was not reached")


# ── what is left ──


def prepare(lake: Path) -> None:
    """Two tables and three views, and a change that no view has yet."""
    keeper = connect(lake)
    keeper.sql(f"CREATE TABLE t (c STRING, x INT) {FEED}")
    keeper.sql(f"CREATE TABLE u (x INT, y STRING) {FEED}")
    keeper.sql("INSERT INTO t VALUES ('a', 1), ('a', 1), ('b', 9), ('d', 4), (NULL, 2)")
    keeper.sql("INSERT INTO u VALUES (1, 'one'), (1, 'uno'), (9, 'nine'), (2, NULL)")
    keeper.create_view("totals", TOTALS)
    keeper.create_view("big", BIG)
    keeper.create_view("plain", PLAIN)
    keeper.sql("INSERT INTO t VALUES ('a', 7), ('e', 2), (NULL, 2)")
    keeper.sql("DELETE FROM t WHERE c = 'b'")
    keeper.stop()


OLD = {"a": (2, 2), "b": (9, 1), "d": (4, 1), None: (2, 1)}
NEW = {"a": (9, 3), "d": (4, 1), "e": (2, 1), None: (4, 2)}
OLD_PLAIN = Counter(
    {("a", 1, "one"): 2, ("a", 1, "uno"): 2, ("b", 9, "nine"): 1, (None, 2, None): 1}
)


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


def rows(keeper: Any, name: str) -> Counter[Any]:
    return bag(keeper.sql(f"SELECT * FROM {name}"))


def totals(keeper: Any) -> dict[Any, Any]:
    found = rows(keeper, "totals")
    assert set(found.values()) <= {1}, found
    return {c: (s, n) for c, s, n in found}


def right(keeper: Any, name: str, sql: str) -> None:
    found, wanted = rows(keeper, name), bag(keeper.sql(sql))
    assert found == wanted, f"{name}: {found} is not {wanted}"


def orphans(keeper: Any, *, fix: bool = False) -> int:
    """How many stores no view has."""
    from viewkeeper import doctor

    found = doctor.orphans(keeper, fix=fix, older_than=0)
    return sum(1 for check in found if check.what == "store")


def check(lake: Path, name: str) -> dict[str, Any]:
    """Looks with a keeper that knows nothing of the killed one, goes on working, and tells."""
    start = time.perf_counter()
    keeper = connect(lake)
    try:
        point = POINTS[name]
        print(f"{name}: connected in {time.perf_counter() - start:.1f} s")
        look = {"refresh": _refreshed, "full": _refreshed, "create": _created}
        look |= {"replace": _replaced, "drop": _dropped}
        answer = look[point.verb](keeper, point)
        if point.verb != "create":  # which did it with its own view
            _goes_on(keeper)
        assert orphans(keeper) == 0
        print(f"{name}: examined in {time.perf_counter() - start:.1f} s")
        return {"point": name, **answer}
    finally:
        keeper.stop()


def _refreshed(keeper: Any, point: Point) -> dict[str, Any]:
    found = totals(keeper)
    assert found in (OLD, NEW), found
    left = "old" if found == OLD else "new"
    assert rows(keeper, "plain") == OLD_PLAIN, "it was not asked to be refreshed"
    assert point.left in (left, "any"), left
    reports = {r.view: r for r in keeper.refresh(strategy="incremental")}
    report = reports["totals"]
    expected = ("incremental", 3, 3) if left == "old" else ("none", 0, 0)
    assert (report.strategy, report.inserted, report.deleted) == expected, report
    assert totals(keeper) == NEW
    changed = {tuple(row) for row in keeper.changes("totals", since=0).collect()}
    gone = {(c, *OLD[c], -1) for c in OLD if OLD[c] != NEW.get(c)}
    come = {(c, *NEW[c], 1) for c in NEW if NEW[c] != OLD.get(c)}
    assert changed == gone | come, changed
    assert report.version == 1, "the store has two commits: its creation and one refresh"
    assert {r.strategy for r in keeper.refresh()} == {"none"}
    return {"left": left}


def _created(keeper: Any, point: Point) -> dict[str, Any]:
    import viewkeeper as vk

    there = "fresh" in keeper.views()
    assert there == (point.left == "new"), there
    assert keeper.spark.catalog.tableExists("fresh") == there, "the name is taken by half"
    lost = orphans(keeper, fix=True)
    if there:
        right(keeper, "fresh", PLAIN)
        assert lost == 0, lost
        try:
            keeper.create_view("fresh", PLAIN)
            raise AssertionError("it is there already")
        except vk.ViewKeeperError as e:
            assert e.code == "NAME_TAKEN", e
    else:
        assert lost <= 1, lost
        keeper.create_view("fresh", PLAIN)
    right(keeper, "fresh", PLAIN)
    keeper.sql("INSERT INTO u VALUES (7, 'seven')")
    (report,) = keeper.refresh("fresh", strategy="incremental")
    assert (report.strategy, report.inserted, report.deleted) == ("incremental", 1, 0), report
    right(keeper, "fresh", PLAIN)
    return {"left": point.left, "orphans": lost}


def _replaced(keeper: Any, point: Point) -> dict[str, Any]:
    if point.left == "old":
        assert rows(keeper, "plain") == OLD_PLAIN
        (report,) = keeper.refresh("plain", strategy="incremental")
        assert report.strategy == "incremental", report
        right(keeper, "plain", PLAIN)
    lost = orphans(keeper, fix=True)
    assert lost == 1, "one store has no view: the new one or the old one"
    right(keeper, "plain", PLAIN if point.left == "old" else OTHER)
    keeper.create_view("plain", OTHER, replace=True)
    right(keeper, "plain", OTHER)
    return {"left": point.left, "orphans": lost}


def _dropped(keeper: Any, point: Point) -> dict[str, Any]:
    there = "plain" in keeper.views()
    assert there == (point.left == "old"), there
    assert keeper.spark.catalog.tableExists("plain") == there, "the name is taken by half"
    lost = orphans(keeper, fix=True)
    if there:
        assert rows(keeper, "plain") == OLD_PLAIN and lost == 0
        keeper.refresh("plain")
        right(keeper, "plain", PLAIN)
        keeper.drop_view("plain")
    assert "plain" not in keeper.views()
    keeper.create_view("plain", OTHER)
    right(keeper, "plain", OTHER)
    return {"left": point.left, "orphans": lost}


def _goes_on(keeper: Any) -> None:
    """Whatever was left: all views follow further changes, and nothing is in disorder."""
    keeper.sql("UPDATE t SET x = x + 1 WHERE c IN ('a', 'd')")
    keeper.refresh()
    right(keeper, "totals", TOTALS)
    right(keeper, "big", BIG.replace("totals", f"({TOTALS})"))


if __name__ == "__main__":
    if sys.argv[1] == "die":
        main_die(Path(sys.argv[2]), sys.argv[3])
    else:
        serve(Path(sys.argv[2]), prepare, check)

"""The journal without Spark: processes killed with SIGKILL at random moments, and other writers.

Each process is a fork of one that never opens a table itself: killing one is cheap, so many moments
can be tried. That one is a new process too, since a worker of a test run has opened tables before.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.vector import pinned
from viewkeeper.lake import tips
from viewkeeper.lake.sources import Source
from viewkeeper.transactions.applying import carry_out, table_part
from viewkeeper.transactions.journal import Journal

NO_SPARK: Any = None
ROWS = pa.schema([("k", pa.int32()), ("n", pa.string())])
JOURNAL = pa.schema(
    [("number", pa.int64()), ("part", pa.string()), ("head", pa.string()), ("data", pa.binary())]
)


# ── in the forks ──


def make(lake: Path) -> None:
    from deltalake import DeltaTable

    for name in ("a", "b"):
        feed = {"delta.enableChangeDataFeed": "true"}
        DeltaTable.create(lake / name, ROWS, configuration=feed)
    DeltaTable.create(lake / "journal", JOURNAL)


def source(lake: Path, name: str) -> Source:
    """A table, known without asking Spark for it."""
    from deltalake import DeltaTable

    folder = lake / name
    for line in (folder / "_delta_log" / f"{0:020d}.json").read_text().splitlines():
        if '"metaData"' in line:
            metadata = json.loads(line)["metaData"]
    version = DeltaTable(folder).version()
    location = f"file:{folder}"
    mark = tips.mark_of(str(folder), version)
    tips._TIPS[location] = tips.Tip(version, metadata, mark)
    return Source(name, metadata["id"], location)


def journal(lake: Path) -> Journal:
    made = Journal(NO_SPARK, None)  # type: ignore[arg-type]
    made._source = source(lake, "journal")
    for name in ("a", "b"):
        source(lake, name)
    return made


def table(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table([[r[0] for r in rows], [r[1] for r in rows]], schema=ROWS)


def finish(made: Journal) -> None:
    for entry in made.unfinished():
        carry_out(NO_SPARK, made, entry, lambda head: None)


def transact(lake: Path, made: Journal, number: int) -> None:
    """Two copies of a row into each table; of those of the transaction before, one is taken."""
    with made.turn():
        finish(made)
        n = made.last() + 1
        parts = []
        for name in ("a", "b"):
            pin = pinned(NO_SPARK, source(lake, name))
            overlay = Overlay.of(pin).inserted(table([(n, "x"), (n, "x")]))
            if n > 1:
                overlay = overlay.deleted(table([(n - 1, "x")] * 2))
                overlay = overlay.inserted(table([(n - 1, "x")]))
            parts.append(table_part(overlay))
        entry = made.add(n, parts)
        assert entry is not None, "it was our turn"
        carry_out(NO_SPARK, made, entry, lambda head: None)


def work(lake: Path) -> None:
    made = journal(lake)
    for number in range(10_000):
        transact(lake, made, number)


def write_outside(lake: Path, first: int, times: int) -> None:
    """A writer that knows nothing of the journal."""
    from deltalake import write_deltalake

    for i in range(times):
        write_deltalake(lake / "a", table([(-first - i, "outside")]), mode="append")


def held(lake: Path, name: str) -> Counter[Any]:
    from deltalake import DeltaTable

    rows = DeltaTable(lake / name).to_pyarrow_table()
    return Counter(zip(rows.column("k").to_pylist(), rows.column("n").to_pylist(), strict=True))


def examine(lake: Path, outside: int) -> None:
    """Recovers, and finds both tables after the same whole number of transactions."""
    made = journal(lake)
    finish(made)
    last, done = made.mark()
    assert last == done
    wanted = Counter({(k, "x"): 1 for k in range(1, last)}) + Counter({(last, "x"): 2 * (last > 0)})
    assert held(lake, "b") == wanted, (last, held(lake, "b") - wanted, wanted - held(lake, "b"))
    ours = Counter({r: c for r, c in held(lake, "a").items() if r[1] == "x"})
    assert ours == wanted, (last, ours - wanted, wanted - ours)
    others = Counter({r: c for r, c in held(lake, "a").items() if r[1] != "x"})
    assert set(others.values()) <= {1} and len(others) >= outside, "another's rows are lost"


# ── the test ──


def forked(do: Callable[[], None]) -> int:
    """The id of a process that does it."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        do()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


FRESH = "VIEWKEEPER_FRESH_PROCESS"
inside = pytest.mark.skipif(FRESH not in os.environ, reason="run by test_in_a_fresh_process")


@pytest.mark.parametrize("which", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_in_a_fresh_process(which: str, tmp_path: Path) -> None:
    if FRESH in os.environ:
        pytest.skip("it is one")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", which]
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'inside'}", __file__],
        env={**os.environ, FRESH: "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@inside
@pytest.mark.parametrize(
    ("kills", "outside"),
    [
        (8, False),
        pytest.param(100, False, marks=pytest.mark.slow),
        pytest.param(40, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside pytest's own threads
def test_killed_at_random_moments(tmp_path: Path, kills: int, outside: bool) -> None:
    assert ended(forked(lambda: make(tmp_path))) == 0
    chance = random.Random(kills)
    written = 0
    for _ in range(kills):
        workers = [forked(lambda: work(tmp_path)) for _ in range(2)]
        if outside:
            other = forked(partial(write_outside, tmp_path, written + 1, 3))
            assert ended(other) == 0
            written += 3
        time.sleep(chance.uniform(0.05, 1.0))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            ended(worker)
        assert ended(forked(partial(examine, tmp_path, written))) == 0


@inside
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_processes_take_turns(tmp_path: Path) -> None:
    assert ended(forked(lambda: make(tmp_path))) == 0

    def some() -> None:
        made = journal(tmp_path)
        for number in range(4):
            transact(tmp_path, made, number)

    workers = [forked(some) for _ in range(3)]
    assert [ended(w) for w in workers] == [0, 0, 0]

    def twelve() -> None:
        examine(tmp_path, 0)
        assert journal(tmp_path).last() == 12, "none lost, none doubled"

    assert ended(forked(twelve)) == 0

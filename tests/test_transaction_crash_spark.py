"""Killed with SIGKILL in a transaction or in recovery: then all of it is there, or nothing."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from examiner import Examiner, killed
from transaction_worker import POINTS, RECOVERY

WORKER = str(Path(__file__).parent / "transaction_worker.py")
# long runs; the journal alone is killed without Spark in test_journal_crash.py
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    made = Examiner(WORKER, tmp_path_factory.mktemp("transaction_crash"))
    yield made
    made.close()


@pytest.mark.parametrize("point", POINTS)
def test_killed_in_a_transaction(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed(WORKER, lake, point)
    examiner.look(lake, POINTS[point].left)


@pytest.mark.parametrize("point", RECOVERY)
def test_killed_in_recovery(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed(WORKER, lake, "after_entry")
    killed(WORKER, lake, f"recovery_{point}")
    examiner.look(lake, "new")


def test_killed_at_random_moments(examiner: Examiner, tmp_path: Path) -> None:
    """One lake, one process after the other; VIEWKEEPER_KILLS says how many."""
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    seed, kills = 6, int(os.environ.get("VIEWKEEPER_KILLS", "4"))
    print(f"seed {seed}")
    chance = random.Random(seed)
    with ExitStack() as ending:
        later = ending.enter_context(victim(lake))
        for n in range(1, kills + 1):
            process, later = later, ending.enter_context(victim(lake))
            assert process.stdin is not None and process.stdout is not None
            print("go", file=process.stdin, flush=True)
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.2, 8.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            found = examiner.look(lake, "any")
            print(f"kill {n} of {kills}: all agrees after {found['entries']} entries", flush=True)


@contextmanager
def victim(lake: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that makes transactions once it is told to; its JVM starts before that."""
    process = subprocess.Popen(
        [sys.executable, WORKER, "loop", str(lake)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with process:
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
